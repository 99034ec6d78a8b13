//! The audit log: who changed what, when, from what to what, and why. Written in the same transaction
//! as the change.

use serde_json::Value;
use sqlx::PgConnection;

/// One change.
#[derive(Debug, Clone)]
pub struct Entry<'a> {
    /// The study, when the change belongs to one.
    pub project: Option<&'a str>,
    /// A person's id, or `system:<part>`.
    pub actor: &'a str,
    /// What was done, e.g. `pending_action.reopened`.
    pub action: &'a str,
    /// Kind of thing changed.
    pub entity: &'a str,
    /// Which one.
    pub entity_id: &'a str,
    /// Before; `None` for something new.
    pub old: Option<Value>,
    /// After; `None` for something gone.
    pub new: Option<Value>,
    /// Why.
    pub reason: Option<&'a str>,
}

/// Appends one entry.
///
/// # Errors
/// The database failed.
pub async fn record(conn: &mut PgConnection, entry: Entry<'_>) -> Result<(), sqlx::Error> {
    sqlx::query!(
        r#"INSERT INTO iit_audit_log (project_id, actor, action, entity, entity_id, old, new, reason)
           VALUES ($1, $2, $3, $4, $5, $6, $7, $8)"#,
        entry.project,
        entry.actor,
        entry.action,
        entry.entity,
        entry.entity_id,
        entry.old,
        entry.new,
        entry.reason,
    )
    .execute(conn)
    .await?;
    Ok(())
}
