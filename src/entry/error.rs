//! Errors as RFC 9457 problem+json: a fixed sentence for the client, the cause once in the log.

use axum::{
    Json,
    body::Body,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use serde_json::json;

/// What a request is refused with.
#[derive(Debug)]
pub struct Problem {
    status: StatusCode,
    detail: String,
}

impl Problem {
    /// A refusal that says what, where, and what to do.
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self {
            status,
            detail: detail.into(),
        }
    }

    /// 422: understood, but can't be done as written.
    pub fn unprocessable(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
    }

    /// 404 for a thing with an id.
    #[must_use]
    pub fn no_such(what: &str, id: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            format!("没有{what} {id} (there is no such thing); 请核对编号"),
        )
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = json!({
            "type": "about:blank",
            "title": self.status.canonical_reason().unwrap_or("Error"),
            "status": self.status.as_u16(),
            "detail": self.detail,
        });
        (
            self.status,
            [(header::CONTENT_TYPE, "application/problem+json")],
            Json(body).into_response().into_body(),
        )
            .into_response()
    }
}

impl From<anyhow::Error> for Problem {
    fn from(error: anyhow::Error) -> Self {
        if error
            .chain()
            .filter_map(|e| e.downcast_ref())
            .any(is_unstorable_text)
        {
            return Self::unprocessable(
                "请求中含有无法存储的字符 U+0000：去掉后再发 (U+0000 can't be stored, leave it out)",
            );
        }
        tracing::error!(error = format!("{error:#}"), "http.failed");
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "服务暂时不可用，请稍后重试 (temporarily unavailable, try again)",
        )
    }
}

impl From<sqlx::Error> for Problem {
    fn from(error: sqlx::Error) -> Self {
        anyhow::Error::new(error).into()
    }
}

/// Postgres stores every character but U+0000, as text (22021) and inside JSON (22P05).
fn is_unstorable_text(error: &sqlx::Error) -> bool {
    error
        .as_database_error()
        .and_then(|database| database.code())
        .is_some_and(|code| code == "22021" || code == "22P05")
}

/// Refusals of the framework itself (an unreadable path or query) come as plain text; here they become
/// problems like all others.
pub async fn as_problem(response: Response) -> Response {
    let status = response.status();
    let plain = response
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"text/plain"));
    if !plain || !status.is_client_error() {
        return response;
    }
    let why = axum::body::to_bytes(response.into_body(), 4096)
        .await
        .unwrap_or_default();
    let why = String::from_utf8_lossy(&why);
    Problem::new(
        status,
        format!("请求的地址或参数有误 (the path or the query can't be read): {why}"),
    )
    .into_response()
}

/// Any path nobody serves.
pub async fn not_found() -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        "没有这个地址 (no such path)；接口在 /api/v1 下，见 README",
    )
}

/// A path with another method.
pub async fn method_not_allowed() -> Problem {
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "这个地址不支持该方法 (method not allowed here)",
    )
}

/// A handler that panicked: the request fails, the process goes on.
pub fn panicked(_panic: Box<dyn std::any::Any + Send>) -> Response<Body> {
    tracing::error!("http.panicked");
    Problem::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "内部错误，已记录 (internal error, logged)",
    )
    .into_response()
}
