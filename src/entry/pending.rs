//! `GET /api/v1/projects/{p}/pending-actions` and `POST /api/v1/pending-actions/{id}/decision`.

use axum::{
    Json,
    body::Body,
    extract::{Path, Query, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{AppState, auth::API_ACTOR, error::Problem, idempotent};
use crate::{
    jobs::review,
    store::{
        db,
        ledger::{self, DecideError, Filter},
        projects,
    },
    types::ids::PendingActionId,
};

/// Rows of one page.
const PAGE: i64 = 200;

/// Filters and the cursor of a page.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListQuery {
    status: Option<String>,
    record: Option<String>,
    rule: Option<String>,
    cursor: Option<String>,
}

impl ListQuery {
    /// The query of the page after `last`: the same filters.
    fn after(&self, last: PendingActionId) -> String {
        let mut query = format!("?cursor={last}");
        for (name, value) in [
            ("status", &self.status),
            ("record", &self.record),
            ("rule", &self.rule),
        ] {
            if let Some(value) = value {
                let value = utf8_percent_encode(value, NON_ALPHANUMERIC);
                query.push_str(&format!("&{name}={value}"));
            }
        }
        query
    }
}

/// A page of the ledger as an array; the next page's query is in the `link` header.
///
/// # Errors
/// 404 for an unknown project, 422 for an unreadable cursor or an unknown status.
pub async fn list(
    State(state): State<AppState>,
    Path(project): Path<String>,
    Query(query): Query<ListQuery>,
) -> Result<Response, Problem> {
    let after: Option<PendingActionId> = query
        .cursor
        .as_deref()
        .map(|cursor| {
            cursor
                .parse()
                .map_err(|_| Problem::unprocessable("cursor 无法识别 (unreadable cursor)"))
        })
        .transpose()?;
    if let Some(status) = &query.status
        && !ledger::STATUSES.contains(&status.as_str())
    {
        return Err(Problem::unprocessable(format!(
            "status 须为 {} (no such status)",
            ledger::STATUSES.join("、")
        )));
    }
    let mut conn = state.pool.acquire().await?;
    if projects::get(&mut conn, &project).await?.is_none() {
        return Err(Problem::no_such("项目", &project));
    }
    let filter = Filter {
        status: query.status.as_deref(),
        record: query.record.as_deref(),
        rule: query.rule.as_deref(),
        after,
        limit: PAGE,
    };
    let rows = ledger::list(&mut conn, &project, &filter).await?;
    let full = i64::try_from(rows.len()).is_ok_and(|n| n == PAGE);
    let next = rows.last().filter(|_| full).map(|row| row.id);
    let mut response = Json(rows).into_response();
    if let Some(next) = next
        && let Ok(link) = HeaderValue::from_str(&format!("<{}>; rel=\"next\"", query.after(next)))
    {
        response.headers_mut().insert(header::LINK, link);
    }
    Ok(response)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Decision {
    decision: String,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    payload_hash: Option<String>,
}

/// Takes a person's decision; a run that waits for it goes on.
///
/// # Errors
/// 404 for no such row, 409 when it is already past that, 422 for an unknown decision or no reason.
pub async fn decide(
    State(state): State<AppState>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let key = idempotent::key(&headers)?;
    let body = idempotent::read(body).await?;
    let decision: Decision = idempotent::json(&body)?;
    let action: PendingActionId = id.parse().map_err(|_| Problem::no_such("待办", &id))?;
    let reason = decision.reason.trim();
    if reason.is_empty() {
        return Err(Problem::unprocessable(
            "reason 为空：每个决定都要写明理由 (every decision needs a reason)",
        ));
    }
    if decision.payload_hash.is_some() {
        return Err(Problem::unprocessable(
            "payload_hash 只用于写入审批 (payload_hash goes with write approvals only)",
        ));
    }
    let verdict = review::parse(&decision.decision).ok_or_else(|| {
        Problem::unprocessable("decision 须为 confirm、dismiss、answer 或 close (unknown decision)")
    })?;
    let route = format!("POST /pending-actions/{id}/decision");
    let mut tx = db::begin(&state.pool).await?;
    if let Some(answer) = idempotent::earlier(&mut tx, key.as_deref(), &route, &body).await? {
        return Ok(answer);
    }
    let decided = review::decide(&mut tx, action, verdict, API_ACTOR, reason)
        .await
        .map_err(|error| match error.downcast::<DecideError>() {
            Ok(DecideError::NotFound(_)) => Problem::no_such("待办", &id),
            Ok(DecideError::Stale { status, .. }) => Problem::new(
                StatusCode::CONFLICT,
                format!("待办已是 {status}，不能再这样决定 (already decided)"),
            ),
            Ok(DecideError::NeedsVerdict(_)) => Problem::new(
                StatusCode::CONFLICT,
                "有流程在等这项复核的结论：用 confirm 或 dismiss (a run waits for a verdict)",
            ),
            Ok(other) => anyhow::Error::new(other).into(),
            Err(error) => error.into(),
        })?;
    let response: Value = json!({ "id": action, "status": decided.status });
    let status = StatusCode::OK;
    idempotent::remember(&mut tx, key.as_deref(), &route, &body, status, &response).await?;
    tx.commit().await?;
    state.wake.queues(decided.queue);
    Ok((status, Json(response)).into_response())
}
