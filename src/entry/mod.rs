//! Webhook and REST: verify, store, enqueue, read. No engine and no adapter is called here (WeCom's
//! decryption apart), so a request never waits for an EDC, a model or WeCom.

pub mod auth;
pub mod batches;
pub mod body;
pub mod error;
pub mod idempotent;
pub mod inbox;
pub mod messages;
pub mod ops;
pub mod pending;
pub mod runs;
pub mod wecom;

use std::sync::Arc;

use axum::{
    Router,
    extract::DefaultBodyLimit,
    middleware,
    routing::{get, post},
};
use secrecy::SecretString;
use sqlx::PgPool;
use tower_http::{
    catch_panic::CatchPanicLayer,
    request_id::{MakeRequestUuid, PropagateRequestIdLayer, SetRequestIdLayer},
};

use crate::{
    adapters::wecom::callback::Gate,
    ops::{health::Readiness, metrics::Metrics},
    queue::Wake,
};

/// Largest request body of the API.
pub const MAX_BODY_BYTES: usize = 1024 * 1024;

/// What request handlers work with.
#[derive(Clone)]
pub struct AppState {
    /// The database.
    pub pool: PgPool,
    /// Tells workers about new jobs.
    pub wake: Wake,
    /// The bearer token of the API; without one every API call is refused.
    pub token: Option<Arc<SecretString>>,
    /// Whether this process can do its work.
    pub readiness: Readiness,
    /// The metrics page.
    pub metrics: Metrics,
}

/// What a process without an HTTP side of its own may serve: health and metrics.
pub fn ops_app(state: AppState) -> Router {
    ops_routes().fallback(error::not_found).with_state(state)
}

fn ops_routes() -> Router<AppState> {
    Router::new()
        .route("/healthz", get(ops::healthz))
        .route("/readyz", get(ops::readyz))
        .route("/metrics", get(ops::metrics))
}

/// The whole HTTP side. Without a `gate` the WeCom callback answers 503 and says what to set.
pub fn app(state: AppState, gate: Option<Gate>) -> Router {
    let inbox = inbox::PgInbox::new(state.pool.clone(), state.wake.clone());
    let api = Router::new()
        .route("/projects/{project}/messages", post(messages::send))
        .route("/messages/{id}", get(messages::show))
        .route("/projects/{project}/qc", post(batches::request))
        .route("/batches/{id}", get(batches::show))
        .route("/runs/{id}", get(runs::show))
        .route("/runs/{id}/steps", get(runs::steps))
        .route("/runs/{id}/trace", get(runs::trace))
        .route("/projects/{project}/pending-actions", get(pending::list))
        .route("/pending-actions/{id}/decision", post(pending::decide))
        .route("/queues", get(ops::queues))
        .fallback(error::not_found)
        .method_not_allowed_fallback(error::method_not_allowed)
        .layer(DefaultBodyLimit::disable())
        .layer(middleware::map_response(error::as_problem))
        .route_layer(middleware::from_fn_with_state(state.clone(), auth::require));
    ops_routes()
        .nest("/api/v1", api)
        .fallback(error::not_found)
        .with_state(state)
        .merge(wecom::router(gate, inbox, wecom::Limits::default()))
        .layer(PropagateRequestIdLayer::x_request_id())
        .layer(SetRequestIdLayer::x_request_id(MakeRequestUuid))
        .layer(CatchPanicLayer::custom(error::panicked))
}
