//! What a skill's tool suggests about a ledger row; a person decides.

use serde_json::json;
use sqlx::PgConnection;

use crate::{
    store::audit,
    types::ids::{PendingActionId, RunId},
};

/// Suggests that an open or answered row is settled. Returns whether it moved: one that is settled, or that a run
/// waits for a verdict on, is left as it is.
///
/// # Errors
/// The database failed.
pub async fn suggest_close(
    conn: &mut PgConnection,
    project: &str,
    id: PendingActionId,
    run: RunId,
    reason: &str,
) -> Result<bool, sqlx::Error> {
    let before = sqlx::query_scalar!(
        r#"SELECT status FROM iit_pending_actions
           WHERE project_id = $1 AND id = $2 AND status IN ('open', 'answered') AND waits_for IS NULL FOR UPDATE"#,
        project,
        id as PendingActionId,
    )
    .fetch_optional(&mut *conn)
    .await?;
    let Some(before) = before else {
        return Ok(false);
    };
    sqlx::query!(
        r#"WITH moved AS (
               UPDATE iit_pending_actions SET status = 'close_proposed', updated_at = now() WHERE id = $1
               RETURNING id, message, values)
           INSERT INTO iit_pending_action_history (action_id, from_status, to_status, message, values, actor, reason, run_id)
           SELECT id, $2, 'close_proposed', message, values, 'system:sop', $3, $4 FROM moved"#,
        id as PendingActionId,
        before,
        reason,
        run as RunId,
    )
    .execute(&mut *conn)
    .await?;
    audit::record(
        conn,
        audit::Entry {
            project: Some(project),
            actor: "system:sop",
            action: "pending_action.close_proposed",
            entity: "pending_action",
            entity_id: &id.to_string(),
            old: Some(json!({ "status": before })),
            new: Some(json!({ "status": "close_proposed" })),
            reason: Some(reason),
        },
    )
    .await?;
    Ok(true)
}
