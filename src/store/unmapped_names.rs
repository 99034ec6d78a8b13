//! Names people and models used that no field, alias or label answers to: what a data manager maps.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::PgConnection;

use super::audit;
use crate::types::text::{ellipsis, without_nul};

/// Longest name kept; what is longer is no name of a field.
const MOST_CHARS: usize = 100;

/// A name nobody could map.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnmappedName {
    /// The study.
    pub project: String,
    /// As it was written.
    pub name: String,
    /// How often.
    pub count: i64,
    /// First.
    pub first_seen: DateTime<Utc>,
    /// Last.
    pub last_seen: DateTime<Utc>,
}

/// Notes names that a tool could not map. Belongs into the settlement of the step that asked, so that a step
/// that is repeated counts once.
///
/// # Errors
/// The database failed.
pub async fn note(
    conn: &mut PgConnection,
    project: &str,
    names: &[String],
) -> Result<(), sqlx::Error> {
    let mut names: Vec<String> = names
        .iter()
        .map(|name| ellipsis(without_nul(name).0.trim(), MOST_CHARS))
        .filter(|name| !name.is_empty())
        .collect();
    // In one order everywhere, so that two that note the same names don't wait for each other in a circle.
    names.sort();
    names.dedup();
    if names.is_empty() {
        return Ok(());
    }
    sqlx::query!(
        r#"INSERT INTO iit_unmapped_names AS n (project_id, name)
           SELECT $1, name FROM UNNEST($2::text[]) AS t(name)
           ON CONFLICT (project_id, name) DO UPDATE SET count = n.count + 1, last_seen = now()"#,
        project,
        &names,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// The names nobody could map, of one study or of all, the most used first.
///
/// # Errors
/// The database failed.
pub async fn list(
    conn: &mut PgConnection,
    project: Option<&str>,
) -> Result<Vec<UnmappedName>, sqlx::Error> {
    sqlx::query_as!(
        UnmappedName,
        r#"SELECT project_id AS project, name, count, first_seen, last_seen FROM iit_unmapped_names
           WHERE $1::text IS NULL OR project_id = $1 ORDER BY project_id, count DESC, name"#,
        project
    )
    .fetch_all(conn)
    .await
}

/// Makes `alias` stand for `field`, whatever it stood for, and takes it off the list. Returns whether that
/// changed anything. The caller has checked that the study has the field.
///
/// # Errors
/// The database failed.
pub async fn map(
    conn: &mut PgConnection,
    project: &str,
    alias: &str,
    field: &str,
    actor: &str,
) -> Result<bool, sqlx::Error> {
    sqlx::query!(
        r#"DELETE FROM iit_unmapped_names WHERE project_id = $1 AND name = $2"#,
        project,
        alias
    )
    .execute(&mut *conn)
    .await?;
    let before = sqlx::query_scalar!(
        r#"SELECT actual_name FROM iit_field_mapping WHERE project_id = $1 AND alias_name = $2 FOR UPDATE"#,
        project,
        alias
    )
    .fetch_optional(&mut *conn)
    .await?;
    if before.as_deref() == Some(field) {
        return Ok(false);
    }
    sqlx::query!(
        r#"INSERT INTO iit_field_mapping (project_id, alias_name, actual_name) VALUES ($1, $2, $3)
           ON CONFLICT (project_id, alias_name) DO UPDATE SET actual_name = excluded.actual_name"#,
        project,
        alias,
        field,
    )
    .execute(&mut *conn)
    .await?;
    audit::record(
        conn,
        audit::Entry {
            project: Some(project),
            actor,
            action: match before {
                Some(_) => "field_mapping.changed",
                None => "field_mapping.added",
            },
            entity: "field_mapping",
            entity_id: alias,
            old: before.map(|field| serde_json::json!({ "field": field })),
            new: Some(serde_json::json!({ "field": field })),
            reason: None,
        },
    )
    .await?;
    Ok(true)
}
