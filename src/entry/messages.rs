//! `POST /api/v1/projects/{p}/messages` and `GET /api/v1/messages/{id}`.

use axum::{
    Json,
    body::Body,
    extract::{Path, State},
    http::{HeaderMap, StatusCode},
    response::Response,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    AppState,
    error::Problem,
    idempotent::{Done, Request},
};
use crate::{
    jobs::intent,
    store::{
        inbox::{self, Channel, NewMessage},
        outbox, progress, projects,
    },
    types::{ids::MessageId, text::without_nul},
};

/// Longest message text, in characters. A person's message has a few hundred.
const MAX_TEXT_CHARS: usize = 20_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewText {
    user: String,
    text: String,
}

/// Stores a message and enqueues its `intent` job: 202 with its id.
///
/// # Errors
/// 400 and 413 for an unreadable body, 404 for an unknown project, 422 for an empty or endless text.
pub async fn send(
    State(state): State<AppState>,
    Path(project): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let request = Request::read(&headers, body).await?;
    let new: NewText = request.json()?;
    let (user, _) = without_nul(new.user.trim());
    let (text, sanitised) = without_nul(&new.text);
    if user.is_empty() || user.chars().count() > 64 {
        return Err(Problem::unprocessable(
            "user 须为 1–64 个字符 (user must have 1 to 64 characters)",
        ));
    }
    if text.trim().is_empty() {
        return Err(Problem::unprocessable("text 为空 (text is empty)"));
    }
    if text.chars().count() > MAX_TEXT_CHARS {
        return Err(Problem::unprocessable(
            "text 超过 20000 字：分成几条发送 (text is over 20000 characters, send it in parts)",
        ));
    }
    let route = format!("POST /projects/{project}/messages");
    let message = NewMessage {
        channel: Channel::Rest,
        dedupe_key: None,
        project: Some(&project),
        sender: &user,
        kind: "text",
        text: &text,
        detail: json!({ "sanitised": sanitised }),
    };
    request
        .once(&state, &route, async |conn| {
            if projects::get(conn, &project).await?.is_none() {
                return Err(Problem::no_such("项目", &project));
            }
            let id = intent::receive(conn, &message).await?;
            Ok(Done {
                status: StatusCode::ACCEPTED,
                response: json!({ "message_id": id }),
                wake: vec![intent::queue_of_messages()],
            })
        })
        .await
}

/// A message, its runs and the replies to it.
///
/// # Errors
/// 404 when there is none.
pub async fn show(
    State(state): State<AppState>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    let missing = || Problem::no_such("消息", &id);
    let message_id: MessageId = id.parse().map_err(|_| missing())?;
    let mut conn = state.pool.acquire().await?;
    let message = inbox::get(&mut conn, message_id)
        .await?
        .ok_or_else(missing)?;
    let runs = inbox::runs_of(&mut conn, message_id).await?;
    let progress = progress::said(&mut conn, message_id).await?;
    let replies: Vec<Value> = outbox::replies_to(&mut conn, message_id)
        .await?
        .into_iter()
        .map(|reply| {
            json!({
                "text": reply.text,
                "chips": reply.chips,
                "degraded": reply.degraded,
                "sent_at": reply.sent_at,
                "state": reply.state,
            })
        })
        .collect();
    Ok(Json(json!({
        "id": message.id,
        "project": message.project,
        "user": message.sender,
        "text": message.text,
        "status": message.status,
        "intents": message.intents,
        "runs": runs,
        "progress": progress,
        "replies": replies,
        "created_at": message.created_at,
    })))
}
