//! Request bodies, read with a limit and a remedy.

use axum::{body::Body, http::StatusCode};
use futures::StreamExt;
use serde::de::DeserializeOwned;

use super::{MAX_BODY_BYTES, error::Problem};

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
