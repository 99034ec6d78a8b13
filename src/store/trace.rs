//! What was said in a run (`iit_agent_trace`): append only, in order. The next request is made of these
//! rows and of nothing else, so it is the same after a crash, whatever became of the data meanwhile.

use sqlx::PgConnection;

use crate::types::ids::RunId;

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// `system`, `instruction`, `data`, `reply`, `correction`.
    pub kind: String,
    /// The text.
    pub content: String,
}

impl Entry {
    /// An entry of that kind.
    #[must_use]
    pub fn new(kind: &str, content: String) -> Self {
        Self {
            kind: kind.to_owned(),
            content,
        }
    }
}

/// What was said in one thread of a run, oldest first.
///
/// # Errors
/// The database failed.
pub async fn thread(
    conn: &mut PgConnection,
    run: RunId,
    thread: &str,
) -> Result<Vec<Entry>, sqlx::Error> {
    sqlx::query_as!(
        Entry,
        r#"SELECT kind, content FROM iit_agent_trace WHERE run_id = $1 AND thread = $2 ORDER BY seq"#,
        run as RunId,
        thread,
    )
    .fetch_all(conn)
    .await
}

/// Appends to a thread. Two attempts at the same step that append at once collide on the number, and one
/// fails.
///
/// # Errors
/// The database failed.
pub async fn append(
    conn: &mut PgConnection,
    run: RunId,
    step: i32,
    thread: &str,
    entries: &[Entry],
) -> Result<(), sqlx::Error> {
    let kinds: Vec<String> = entries.iter().map(|entry| entry.kind.clone()).collect();
    let contents: Vec<String> = entries.iter().map(|entry| entry.content.clone()).collect();
    sqlx::query!(
        r#"INSERT INTO iit_agent_trace (run_id, seq, thread, step_no, kind, content)
           SELECT $1, (SELECT COALESCE(max(seq), 0)::int FROM iit_agent_trace WHERE run_id = $1) + said.at::int,
                  $2, $3, said.kind, said.content
           FROM UNNEST($4::text[], $5::text[]) WITH ORDINALITY AS said(kind, content, at)"#,
        run as RunId,
        thread,
        step,
        &kinds,
        &contents,
    )
    .execute(conn)
    .await?;
    Ok(())
}
