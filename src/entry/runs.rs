//! `GET /api/v1/runs/{id}`, `/steps` and `/trace`, of every kind of run.

use axum::{
    Json,
    extract::{Path, State},
};
use serde_json::{Value, json};

use super::{AppState, error::Problem};
use crate::{
    store::{run_view, runs},
    types::ids::RunId,
};

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
    let run = run_view::get(&mut conn, run_id)
        .await?
        .ok_or_else(|| Problem::no_such("运行", &id))?;
    Ok(Json(json!(run)))
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
    if run_view::get(&mut conn, run_id).await?.is_none() {
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

/// What was said in a run, in order (what is JSON in a row is JSON here), and each question to the model with
/// its tokens and its cost in millionths of a yuan.
///
/// # Errors
/// 404 when there is no such run.
pub async fn trace(
    State(state): State<AppState>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    let run_id = parse(&id)?;
    let mut conn = state.pool.acquire().await?;
    if run_view::get(&mut conn, run_id).await?.is_none() {
        return Err(Problem::no_such("运行", &id));
    }
    let said: Vec<Value> = run_view::transcript(&mut conn, run_id)
        .await?
        .into_iter()
        .map(|line| {
            let content = match line.kind.as_str() {
                "data" | "history" | "question" | "calls" | "result" => {
                    serde_json::from_str(&line.content).unwrap_or(Value::String(line.content))
                }
                _ => Value::String(line.content),
            };
            json!({
                "seq": line.seq,
                "step": line.step_no,
                "thread": line.thread,
                "kind": line.kind,
                "content": content,
                "at": line.at,
            })
        })
        .collect();
    let calls = run_view::calls(&mut conn, run_id).await?;
    Ok(Json(json!({ "said": said, "calls": calls })))
}
