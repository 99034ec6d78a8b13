//! `GET` and `POST /wecom/callback`: verify, decrypt, hand over, answer 200 with an empty body.
//!
//! WeCom cuts the connection after 5 s and sends again, so nothing here waits for anything but the
//! inbox: no model, no EDC, no call to WeCom. A refusal tells the sender only 400 or 403; which check
//! failed goes to the log.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures::StreamExt as _;
use serde_json::json;

use crate::adapters::wecom::callback::{CallbackError, Gate};
use crate::adapters::wecom::inbound::Inbound;

/// Takes in a verified message: stores it and enqueues its job in one transaction.
pub trait ReceiveInbound: Clone + Send + Sync + 'static {
    /// Must be atomic and must recognise a repeat by [`Inbound::dedupe_key`]. Must not call a model, the
    /// EDC or WeCom. May be dropped in the middle when it takes too long: then nothing may be half done.
    fn receive(&self, inbound: Inbound) -> impl Future<Output = anyhow::Result<Received>> + Send;
}

/// What became of an inbound message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// Stored and enqueued.
    New,
    /// Known already; nothing done.
    Duplicate,
}

/// Bounds of one request.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Largest accepted body; WeCom's own are a few KB.
    pub body_bytes: usize,
    /// How much of a larger body is read and thrown away, so that its sender gets to read the answer.
    pub discard_bytes: usize,
    /// Until the body must be complete.
    pub body_deadline: Duration,
    /// How long the inbox may take; under WeCom's 5 s.
    pub inbox_deadline: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 256 * 1024,
            discard_bytes: 64 * 1024 * 1024,
            body_deadline: Duration::from_secs(5),
            inbox_deadline: Duration::from_secs(4),
        }
    }
}

struct Callback<I> {
    /// `None`: WeCom is not configured.
    gate: Option<Gate>,
    inbox: I,
    limits: Limits,
}

/// The callback's routes. Without a `gate` they answer 503 and say what to set.
pub fn router<I: ReceiveInbound>(gate: Option<Gate>, inbox: I, limits: Limits) -> Router {
    Router::new()
        .route("/wecom/callback", get(verify_url::<I>).post(receive::<I>))
        .with_state(Arc::new(Callback {
            gate,
            inbox,
            limits,
        }))
}

async fn verify_url<I: ReceiveInbound>(
    State(callback): State<Arc<Callback<I>>>,
    RawQuery(query): RawQuery,
) -> Response {
    let Some(gate) = &callback.gate else {
        return not_configured();
    };
    match gate.verify_url(&query.unwrap_or_default()) {
        Ok(echo) => ([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], echo).into_response(),
        Err(error) => refused(error),
    }
}

async fn receive<I: ReceiveInbound>(
    State(callback): State<Arc<Callback<I>>>,
    RawQuery(query): RawQuery,
    body: Body,
) -> Response {
    let Some(gate) = &callback.gate else {
        return not_configured();
    };
    let body = match read_within(body, &callback.limits).await {
        Ok(body) => body,
        Err(response) => return response,
    };
    let inbound = match gate.receive(&query.unwrap_or_default(), &body) {
        Ok(inbound) => inbound,
        Err(error) => return refused(error),
    };
    let key = inbound.dedupe_key().to_owned();
    if inbound.agent != gate.agent_id() {
        tracing::warn!(
            wecom.agent = inbound.agent,
            "message for agent {} arrived at agent {}; check WECOM_AGENT_ID",
            inbound.agent,
            gate.agent_id()
        );
    }
    match tokio::time::timeout(
        callback.limits.inbox_deadline,
        callback.inbox.receive(inbound),
    )
    .await
    {
        Ok(Ok(Received::New)) => StatusCode::OK.into_response(),
        Ok(Ok(Received::Duplicate)) => {
            tracing::info!(
                wecom.key = key,
                "WeCom message {key} delivered again; already known"
            );
            StatusCode::OK.into_response()
        }
        Ok(Err(error)) => {
            let error = format!("{error:#}");
            tracing::error!(
                wecom.key = key,
                error,
                "WeCom message {key} not stored; WeCom will send it again"
            );
            not_stored()
        }
        Err(_) => {
            tracing::error!(
                wecom.key = key,
                "WeCom message {key} not stored in time; WeCom will send it again"
            );
            not_stored()
        }
    }
}

/// Reads the body up to the limit. What goes beyond is read but not kept: answering early would reset
/// the connection of a sender still writing, and it would never see why.
async fn read_within(body: Body, limits: &Limits) -> Result<Vec<u8>, Response> {
    let mut stream = body.into_data_stream();
    let mut kept = Vec::new();
    let mut seen = 0_usize;
    let read_all = async {
        while let Some(chunk) = stream.next().await {
            let chunk = chunk.map_err(|_| unreadable())?;
            seen = seen.saturating_add(chunk.len());
            if seen > limits.discard_bytes {
                break;
            }
            if seen <= limits.body_bytes {
                kept.extend_from_slice(&chunk);
            }
        }
        Ok(())
    };
    let outcome = tokio::time::timeout(limits.body_deadline, read_all).await;
    if seen > limits.body_bytes {
        return Err(too_large(limits.body_bytes));
    }
    match outcome {
        Ok(read) => read.map(|()| kept),
        Err(_) => Err(too_slow()),
    }
}

fn refused(error: CallbackError) -> Response {
    let code = error.code();
    tracing::warn!(
        wecom.code = code,
        "WeCom callback refused ({code}): {error}"
    );
    match StatusCode::from_u16(error.http_status()) {
        Ok(StatusCode::FORBIDDEN) => problem(
            StatusCode::FORBIDDEN,
            "回调未通过校验 (callback not accepted)",
            "此请求未通过企业微信回调校验，原因见服务器日志 (the request did not pass the WeCom callback checks; the server log says why)",
        ),
        _ => unreadable(),
    }
}

fn unreadable() -> Response {
    problem(
        StatusCode::BAD_REQUEST,
        "无法读取回调 (callback not readable)",
        "此请求不是完整的企业微信回调，原因见服务器日志 (the request is not a complete WeCom callback; the server log says why)",
    )
}

fn too_large(limit: usize) -> Response {
    problem(
        StatusCode::PAYLOAD_TOO_LARGE,
        "请求过大 (request too large)",
        &format!(
            "回调请求体上限为 {} KB，图片与文件请在企业微信中发送 (the callback takes at most {} KB; send pictures and files in WeCom itself)",
            limit / 1024,
            limit / 1024
        ),
    )
}

fn too_slow() -> Response {
    problem(
        StatusCode::REQUEST_TIMEOUT,
        "请求体接收超时 (request body timed out)",
        "未在时限内收到完整的请求体，请重发 (the body did not arrive in time; send it again)",
    )
}

fn not_stored() -> Response {
    problem(
        StatusCode::INTERNAL_SERVER_ERROR,
        "消息暂未保存 (message not stored)",
        "服务器暂时无法保存消息，请稍后重发 (the server can't store the message at the moment; send it again)",
    )
}

fn not_configured() -> Response {
    problem(
        StatusCode::SERVICE_UNAVAILABLE,
        "企业微信未配置 (WeCom is not configured)",
        "请设置 WECOM_CORP_ID、WECOM_AGENT_ID、WECOM_SECRET、WECOM_TOKEN、WECOM_ENCODING_AES_KEY 后重启 (set these five variables and restart)",
    )
}

/// RFC 9457.
fn problem(status: StatusCode, title: &str, detail: &str) -> Response {
    let body = json!({ "type": "about:blank", "status": status.as_u16(), "title": title, "detail": detail });
    (
        status,
        [(header::CONTENT_TYPE, "application/problem+json")],
        body.to_string(),
    )
        .into_response()
}
