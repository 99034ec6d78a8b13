//! The bearer token of the API. It has the admin role.

use axum::{
    extract::{Request, State},
    http::{HeaderMap, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use secrecy::ExposeSecret;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::{AppState, error::Problem};

/// Refuses a request without the right token.
pub async fn require(
    State(state): State<AppState>,
    headers: HeaderMap,
    request: Request,
    next: Next,
) -> Response {
    let Some(token) = &state.token else {
        return Problem::new(
            StatusCode::UNAUTHORIZED,
            "未设置 IIT_API_TOKEN，接口不开放：设置后重启 (IIT_API_TOKEN is not set, the API is closed)",
        )
        .into_response();
    };
    let given = headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .map(|(_, token)| token.trim());
    // Hashes are of one length, so comparing them tells nothing about the token's.
    let right = given.is_some_and(|given| {
        let given = Sha256::digest(given.as_bytes());
        let wanted = Sha256::digest(token.expose_secret().as_bytes());
        bool::from(given.ct_eq(&wanted))
    });
    if right {
        next.run(request).await
    } else {
        let mut response = Problem::new(
            StatusCode::UNAUTHORIZED,
            "令牌缺失或不对：请求头写 Authorization: Bearer <IIT_API_TOKEN> (missing or wrong bearer token)",
        )
        .into_response();
        response.headers_mut().insert(
            header::WWW_AUTHENTICATE,
            header::HeaderValue::from_static("Bearer"),
        );
        response
    }
}

/// Who acts through the token, for the audit log.
pub const API_ACTOR: &str = "api:admin";
