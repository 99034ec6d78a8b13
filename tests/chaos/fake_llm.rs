//! A language model on loopback: answers what the study says, slowly enough to be struck, and keeps a log
//! of who asked what.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use uuid::Uuid;

use crate::history::History;
use crate::study::{self, Study, Verdict};
use crate::traps::{self, Moment, Traps};

/// One request.
#[derive(Debug, Clone)]
pub struct Call {
    /// Its place in the order of everything.
    pub at: u64,
    /// `Idempotency-Key` as it came.
    pub key: String,
    pub run: Uuid,
    pub step_no: i32,
    pub ask: i32,
    /// What it was about, both from 0.
    pub record: usize,
    pub step: usize,
}

/// The running server.
#[derive(Clone)]
pub struct FakeLlm(Arc<Inner>);

struct Inner {
    base: String,
    study: Arc<Study>,
    traps: Traps,
    history: History,
    thinks: Duration,
    calls: Mutex<Vec<Call>>,
    /// Requests that no program of ours may send.
    odd: Mutex<Vec<String>>,
}

impl FakeLlm {
    /// Starts one that takes about `thinks` for an answer.
    pub async fn start(
        study: Arc<Study>,
        traps: Traps,
        history: History,
        thinks: Duration,
    ) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let fake = Self(Arc::new(Inner {
            base: format!("http://{}", listener.local_addr()?),
            study,
            traps,
            history,
            thinks,
            calls: Mutex::default(),
            odd: Mutex::default(),
        }));
        let app = Router::new()
            .route("/{slot}/v1/chat/completions", post(complete))
            .with_state(fake.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        Ok(fake)
    }

    /// `LLM_BASE_URL` for the process of a slot.
    pub fn base(&self, slot: usize) -> String {
        format!("{}/{slot}/v1", self.0.base)
    }

    pub fn calls(&self) -> Vec<Call> {
        lock(&self.0.calls).clone()
    }

    pub fn odd(&self) -> Vec<String> {
        lock(&self.0.odd).clone()
    }

    fn understand(&self, headers: &HeaderMap, body: &Value) -> Option<Call> {
        let key = headers.get("idempotency-key")?.to_str().ok()?.to_owned();
        let mut parts = key.split('/');
        let run = parts.next()?.parse().ok()?;
        let step_no = parts.next()?.parse().ok()?;
        let ask = parts.next()?.parse().ok()?;
        let messages = body["messages"].as_array()?;
        let user = messages.iter().rev().find(|m| m["role"] == "user")?;
        let (record, step) = study::about(&user["content"].to_string())?;
        Some(Call {
            at: self.0.history.next(),
            key,
            run,
            step_no,
            ask,
            record,
            step,
        })
    }
}

async fn complete(
    State(fake): State<FakeLlm>,
    Path(slot): Path<usize>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> Response {
    let Some(call) = fake.understand(&headers, &body) else {
        let said: String = body.to_string().chars().take(600).collect();
        lock(&fake.0.odd).push(format!("{:?} {said}", headers.get("idempotency-key")));
        return (StatusCode::BAD_REQUEST, "not understood").into_response();
    };
    let Some(verdict) = fake.0.study.verdict(call.record, call.step) else {
        lock(&fake.0.odd).push(format!("{}: no such record or step", call.key));
        return (StatusCode::BAD_REQUEST, "no such record or step").into_response();
    };
    let (record, at) = (call.record, call.at);
    lock(&fake.0.calls).push(call);
    if fake.0.traps.reach(slot, Moment::Asked).await == traps::Verdict::Swallow {
        // Nobody is there to hear it.
        return StatusCode::GONE.into_response();
    }
    // Neighbours take differently long.
    tokio::time::sleep(fake.0.thinks.mul_f64(0.5 + (at % 11) as f64 / 10.0)).await;
    Json(answer(record, verdict)).into_response()
}

fn answer(record: usize, verdict: Verdict) -> Value {
    let history = study::history_of(record);
    let quote: String = history.chars().take(6).collect();
    let (verdict, reason) = match verdict {
        Verdict::Pass => ("pass", "记录与要求相符"),
        Verdict::Fail => ("fail", "记录与要求不符"),
    };
    let content = json!({
        "verdict": verdict,
        "reason": reason,
        "evidence": [{
            "record": study::record_id(record), "event": null, "instance": null,
            "field": "history", "quote": quote,
        }],
    });
    json!({
        "id": "chatcmpl-fake",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "fake-model",
        "choices": [{
            "index": 0,
            "message": { "role": "assistant", "content": content.to_string() },
            "finish_reason": "stop",
        }],
        "usage": { "prompt_tokens": 200, "completion_tokens": 50, "total_tokens": 250 },
    })
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
