//! `/healthz`, `/readyz`, `/metrics` and `GET /api/v1/queues`.

use axum::{
    Json,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use serde_json::json;

use super::{AppState, error::Problem};
use crate::queue::depth::{self, Depth};

/// The process is alive. Never touches the database.
pub async fn healthz() -> Json<serde_json::Value> {
    Json(json!({ "status": "ok", "version": env!("CARGO_PKG_VERSION") }))
}

/// The process can do its work; 503 with the reasons when it can't.
pub async fn readyz(State(state): State<AppState>) -> Response {
    let faults = state.readiness.faults().await;
    if faults.is_empty() {
        Json(json!({ "status": "ready" })).into_response()
    } else {
        let body = json!({ "status": "not ready", "faults": faults });
        (StatusCode::SERVICE_UNAVAILABLE, Json(body)).into_response()
    }
}

/// Metrics in Prometheus's text format.
///
/// # Errors
/// 503 when the database does not answer.
pub async fn metrics(State(state): State<AppState>) -> Result<Response, Problem> {
    let page = state.metrics.page(&state.pool).await?;
    Ok((
        [(
            header::CONTENT_TYPE,
            "text/plain; version=0.0.4; charset=utf-8",
        )],
        page,
    )
        .into_response())
}

/// Depth by queue and state, with the oldest age.
///
/// # Errors
/// 503 when the database does not answer.
pub async fn queues(State(state): State<AppState>) -> Result<Json<Vec<Depth>>, Problem> {
    let mut conn = state.pool.acquire().await?;
    Ok(Json(depth::depth(&mut conn).await?))
}
