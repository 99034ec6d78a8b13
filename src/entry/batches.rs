//! `POST /api/v1/projects/{p}/qc` and `GET /api/v1/batches/{id}`.

use axum::{
    Json,
    body::Body,
    extract::{Path, State},
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{AppState, auth::API_ACTOR, error::Problem, idempotent};
use crate::{
    jobs::batch_qc,
    store::{
        batches::{self, NewBatch},
        db, projects, skills,
    },
    types::ids::BatchId,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    /// `null`: the whole project. Must be written, so that a forgotten key checks nobody.
    #[serde(deserialize_with = "Option::deserialize")]
    records: Option<Vec<String>>,
    #[serde(default)]
    skill: Option<String>,
}

/// Requests a QC of some records, or of the whole project: 202 with the batch's id.
///
/// # Errors
/// 400 for an unreadable body, 404 for an unknown project, 422 for an unknown skill or no records.
pub async fn request(
    State(state): State<AppState>,
    Path(project): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let key = idempotent::key(&headers)?;
    let body = idempotent::read(body).await?;
    let request: Request = idempotent::json(&body)?;
    if let Some(records) = &request.records
        && (records.is_empty()
            || records
                .iter()
                .any(|id| id.trim().is_empty() || id.contains('\0')))
    {
        return Err(Problem::unprocessable(
            "records 为空或含空编号；质控全项目时写 null (records is empty or holds an empty id)",
        ));
    }
    let route = format!("POST /projects/{project}/qc");
    let mut tx = db::begin(&state.pool).await?;
    if let Some(answer) = idempotent::earlier(&mut tx, key.as_deref(), &route, &body).await? {
        return Ok(answer);
    }
    if projects::get(&mut tx, &project).await?.is_none() {
        return Err(Problem::no_such("项目", &project));
    }
    let active = skills::active(&mut tx, &project, request.skill.as_deref()).await?;
    if active.is_empty() {
        return Err(Problem::unprocessable(format!(
            "项目 {project} 没有启用的技能{}：先用 `iit skills apply` 启用 (no such active skill)",
            request.skill.as_deref().unwrap_or_default()
        )));
    }
    let new = NewBatch {
        project: &project,
        skill: request.skill.as_deref(),
        records: request.records.as_deref(),
        reply_to: None,
        requested_by: API_ACTOR,
    };
    let id = batch_qc::request(&mut tx, &new).await?;
    let response = json!({ "batch_id": id });
    let status = StatusCode::ACCEPTED;
    idempotent::remember(&mut tx, key.as_deref(), &route, &body, status, &response).await?;
    tx.commit().await?;
    state.wake.queues([batch_qc::queue_of_requests()]);
    Ok((status, Json(response)).into_response())
}

/// How far a batch is.
///
/// # Errors
/// 404 when there is none.
pub async fn show(
    State(state): State<AppState>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    let missing = || Problem::no_such("批次", &id);
    let batch_id: BatchId = id.parse().map_err(|_| missing())?;
    let mut conn = state.pool.acquire().await?;
    let batch = batches::get(&mut conn, batch_id)
        .await?
        .ok_or_else(missing)?;
    Ok(Json(json!({
        "id": batch.id,
        "project": batch.project,
        "state": batch.state,
        "total": batch.total,
        "done": batch.done,
        "failed": batch.failed,
        "findings": batch.findings,
        "eta_s": batch.eta_s(),
        "note": batch.note,
        "error": batch.error,
    })))
}
