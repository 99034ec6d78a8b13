//! What a run's placeholders stand for (`iit_placeholders`): personal data, read only to put back what a model
//! was not shown.

use sqlx::PgConnection;

use crate::types::ids::RunId;

/// One placeholder as stored.
#[derive(Clone, PartialEq, Eq)]
pub struct Stored {
    /// `〔姓名1〕`
    pub placeholder: String,
    /// `姓名`
    pub kind: String,
    /// What it stands for.
    pub value: String,
}

impl std::fmt::Debug for Stored {
    /// Without the value.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.placeholder)
    }
}

/// The placeholders of a run.
///
/// # Errors
/// The database failed; nothing may be sent then.
pub async fn of_run(conn: &mut PgConnection, run: RunId) -> Result<Vec<Stored>, sqlx::Error> {
    sqlx::query_as!(
        Stored,
        r#"SELECT placeholder, kind, value FROM iit_placeholders WHERE run_id = $1
           ORDER BY created_at, placeholder"#,
        run as RunId,
    )
    .fetch_all(conn)
    .await
}

/// Keeps more of them. To be committed before the request that uses them leaves.
///
/// # Errors
/// The database failed; a unique violation means that another attempt at the same run numbered its own at
/// this moment.
pub async fn add(conn: &mut PgConnection, run: RunId, fresh: &[Stored]) -> Result<(), sqlx::Error> {
    let column =
        |of: fn(&Stored) -> &String| fresh.iter().map(of).cloned().collect::<Vec<String>>();
    sqlx::query!(
        r#"INSERT INTO iit_placeholders (run_id, placeholder, kind, value)
           SELECT $1, * FROM UNNEST($2::text[], $3::text[], $4::text[])"#,
        run as RunId,
        &column(|one| &one.placeholder),
        &column(|one| &one.kind),
        &column(|one| &one.value),
    )
    .execute(conn)
    .await?;
    Ok(())
}
