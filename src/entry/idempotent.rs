//! Request bodies, and the first answer to a request that carries an `Idempotency-Key`.

use axum::{
    Json,
    body::Body,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use futures::StreamExt;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sha2::{Digest, Sha256};
use sqlx::PgConnection;

use super::{MAX_BODY_BYTES, error::Problem};
use crate::store::idempotency::{self, Answer};

/// How much of a body over the limit is read and thrown away, so that its sender reads the answer
/// instead of a reset connection.
const MAX_DISCARDED_BYTES: usize = 64 * 1024 * 1024;

/// Reads a body of at most 1 MiB.
///
/// # Errors
/// 413 when it is larger, 400 when the connection broke.
pub async fn read(body: Body) -> Result<Vec<u8>, Problem> {
    let mut stream = body.into_data_stream();
    let mut bytes = Vec::new();
    let mut seen = 0_usize;
    while let Some(chunk) = stream.next().await {
        let chunk = chunk.map_err(|_| {
            Problem::new(
                StatusCode::BAD_REQUEST,
                "请求体不完整 (the request body broke off)",
            )
        })?;
        seen += chunk.len();
        if seen > MAX_DISCARDED_BYTES {
            break;
        }
        if seen <= MAX_BODY_BYTES {
            bytes.extend_from_slice(&chunk);
        }
    }
    if seen > MAX_BODY_BYTES {
        return Err(Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "请求体超过 1 MiB：缩短内容后再发 (the body is over 1 MiB, nothing was stored)",
        ));
    }
    Ok(bytes)
}

/// Reads JSON out of a body.
///
/// # Errors
/// 400 with the place of the fault: not UTF-8, not JSON, a lone surrogate, a missing or unknown key.
pub fn json<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    let text = std::str::from_utf8(body).map_err(|error| {
        Problem::new(
            StatusCode::BAD_REQUEST,
            format!(
                "请求体第 {} 字节起不是 UTF-8 (the body is not UTF-8)",
                error.valid_up_to()
            ),
        )
    })?;
    serde_json::from_str(text).map_err(|error| {
        Problem::new(
            StatusCode::BAD_REQUEST,
            format!("请求体不是期望的 JSON (the body is not the expected JSON): {error}"),
        )
    })
}

/// The key of a request, when it has one.
///
/// # Errors
/// 400 when it is unreadable or over 200 characters.
pub fn key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let Some(value) = headers.get("idempotency-key") else {
        return Ok(None);
    };
    value
        .to_str()
        .ok()
        .filter(|key| !key.is_empty() && key.len() <= 200)
        .map(|key| Some(key.to_owned()))
        .ok_or_else(|| {
            Problem::new(
                StatusCode::BAD_REQUEST,
                "Idempotency-Key 须为 1–200 个 ASCII 字符 (unusable Idempotency-Key)",
            )
        })
}

/// The answer given before to this key, if any. Two requests with one key wait for each other.
///
/// # Errors
/// 422 when the key was used for another body.
pub async fn earlier(
    conn: &mut PgConnection,
    key: Option<&str>,
    route: &str,
    body: &[u8],
) -> Result<Option<Response>, Problem> {
    let Some(key) = key else { return Ok(None) };
    let Some(answer) = idempotency::find(conn, key, route).await? else {
        return Ok(None);
    };
    if answer.request != hash(body) {
        return Err(Problem::unprocessable(
            "这个 Idempotency-Key 已用于另一个请求：换一个 (the key was used for another request)",
        ));
    }
    let status = u16::try_from(answer.status)
        .ok()
        .and_then(|status| StatusCode::from_u16(status).ok())
        .unwrap_or(StatusCode::OK);
    Ok(Some((status, Json(answer.response)).into_response()))
}

/// Remembers the answer to this key, in the transaction that did what it says.
///
/// # Errors
/// The database failed.
pub async fn remember(
    conn: &mut PgConnection,
    key: Option<&str>,
    route: &str,
    body: &[u8],
    status: StatusCode,
    response: &Value,
) -> Result<(), Problem> {
    let Some(key) = key else { return Ok(()) };
    let answer = Answer {
        request: hash(body),
        status: i32::from(status.as_u16()),
        response: response.clone(),
    };
    Ok(idempotency::keep(conn, key, route, &answer).await?)
}

fn hash(body: &[u8]) -> String {
    Sha256::digest(body)
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect()
}
