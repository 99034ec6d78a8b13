//! Requests that change something: answered once, however often they are sent.

use axum::{
    Json,
    body::Body,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use sha2::{Digest, Sha256};
use sqlx::PgConnection;

use super::{AppState, body, error::Problem};
use crate::store::{
    db,
    idempotency::{self, Answer},
};

/// A request's body and, when it has one, its `Idempotency-Key`.
pub struct Request {
    key: Option<String>,
    body: Vec<u8>,
}

/// What a request did.
pub struct Done {
    /// The answer's status.
    pub status: StatusCode,
    /// The answer.
    pub response: Value,
    /// The queues that have a new job.
    pub wake: Vec<String>,
}

impl Request {
    /// Reads the request.
    ///
    /// # Errors
    /// 400 when the key is unreadable or over 200 characters, and see [`body::read`].
    pub async fn read(headers: &HeaderMap, body: Body) -> Result<Self, Problem> {
        Ok(Self {
            key: key(headers)?,
            body: body::read(body).await?,
        })
    }

    /// The body as JSON.
    ///
    /// # Errors
    /// See [`body::json`].
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        body::json(&self.body)
    }

    /// Does in one transaction what the request wants and remembers the answer to its key; or gives the
    /// answer given before, and does nothing. Two requests with one key wait for each other. A refusal is
    /// not remembered: once it is right, the request may be repeated with the same key.
    ///
    /// `route` names what is asked of what: a key counts for one route.
    ///
    /// # Errors
    /// 422 when the key was used for another body; what `act` refuses.
    pub async fn once(
        &self,
        state: &AppState,
        route: &str,
        act: impl AsyncFnOnce(&mut PgConnection) -> Result<Done, Problem>,
    ) -> Result<Response, Problem> {
        let mut tx = db::begin(&state.pool).await?;
        if let Some(answer) = self.earlier(&mut tx, route).await? {
            return Ok(answer);
        }
        let done = act(&mut tx).await?;
        self.remember(&mut tx, route, &done).await?;
        tx.commit().await?;
        state.wake.queues(done.wake);
        Ok((done.status, Json(done.response)).into_response())
    }

    async fn earlier(
        &self,
        conn: &mut PgConnection,
        route: &str,
    ) -> Result<Option<Response>, Problem> {
        let Some(key) = &self.key else {
            return Ok(None);
        };
        let Some(answer) = idempotency::find(conn, key, route).await? else {
            return Ok(None);
        };
        if answer.request != hash(&self.body) {
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

    async fn remember(
        &self,
        conn: &mut PgConnection,
        route: &str,
        done: &Done,
    ) -> Result<(), Problem> {
        let Some(key) = &self.key else { return Ok(()) };
        let answer = Answer {
            request: hash(&self.body),
            status: i32::from(done.status.as_u16()),
            response: done.response.clone(),
        };
        Ok(idempotency::keep(conn, key, route, &answer).await?)
    }
}

fn key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
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

fn hash(body: &[u8]) -> String {
    Sha256::digest(body)
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect()
}
