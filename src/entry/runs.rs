//! `GET /api/v1/runs/{id}` and `/steps`.

use axum::{
    Json,
    extract::{Path, State},
};
use serde_json::{Value, json};

use super::{AppState, error::Problem};
use crate::{store::runs, types::ids::RunId};

fn parse(id: &str) -> Result<RunId, Problem> {
    id.parse().map_err(|_| Problem::no_such("运行", id))
}

/// A run as it stands.
///
/// # Errors
/// 404 when there is none.
pub async fn show(
    State(state): State<AppState>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    let run_id = parse(&id)?;
    let mut conn = state.pool.acquire().await?;
    let run = runs::get(&mut conn, run_id)
        .await?
        .ok_or_else(|| Problem::no_such("运行", &id))?;
    Ok(Json(json!({
        "id": run.id,
        "project": run.project,
        "kind": run.kind,
        "skill": run.skill_type,
        "skill_version": run.skill_version,
        "record": run.record,
        "status": run.status,
        "node": run.node,
        "final_state": run.final_state,
        "standing": run.standing,
        "step_no": run.step_no,
        "findings": run.findings,
        "tokens": run.tokens,
        "error": run.error,
    })))
}

/// The committed steps of a run, in order.
///
/// # Errors
/// 404 when there is no such run.
pub async fn steps(
    State(state): State<AppState>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    let run_id = parse(&id)?;
    let mut conn = state.pool.acquire().await?;
    if runs::get(&mut conn, run_id).await?.is_none() {
        return Err(Problem::no_such("运行", &id));
    }
    let steps: Vec<Value> = runs::steps(&mut conn, run_id)
        .await?
        .into_iter()
        .map(|step| {
            json!({
                "no": step.no,
                "node": step.node,
                "outcome": step.outcome,
                "note": step.note,
                "findings": step.findings,
                "llm_calls": step.llm_calls,
                "attempt": step.attempt,
                "started_at": step.started_at,
                "committed_at": step.committed_at,
            })
        })
        .collect();
    Ok(Json(Value::Array(steps)))
}
