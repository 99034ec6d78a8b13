//! Why no answer came, by what is done next.

use std::fmt::Write as _;

use iit_manager::adapters::llm::LlmError;

use super::scripts::failures;
use super::server::{Act, Server, http};
use super::{PERSONAL, ask};

#[tokio::test]
async fn each_failure_is_told_apart_with_its_status_wait_and_request_id_and_asked_once() {
    let mut lines = String::new();
    for (name, bytes) in failures() {
        let server = Server::start(Act::Says(bytes)).await;
        let error = ask(&server).await.expect_err(name);
        assert_eq!(server.log().len(), 1, "{name}: asked once");
        let told = format!("{error} {error:?}");
        assert!(
            PERSONAL.iter().all(|text| !told.contains(text)),
            "{name}: {told}"
        );
        writeln!(lines, "{name}\n    {error}").unwrap();
        if let Some(wait) = error.retry_after() {
            writeln!(lines, "    wait {wait:?}").unwrap();
        }
        if error.maybe_billed() {
            writeln!(lines, "    perhaps billed").unwrap();
        }
    }
    insta::assert_snapshot!(lines);
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_carries_the_key_nowhere() {
    let elsewhere = Server::says(r#"{"choices":[{"message":{"content":"好"}}]}"#).await;
    for status in [301, 302, 307, 308] {
        let to = elsewhere.base();
        let server = Server::start(Act::Says(http(status, &[("location", &to)], b""))).await;
        let error = ask(&server).await.unwrap_err();
        assert!(matches!(error, LlmError::Refused { .. }), "{error}");
    }
    assert_eq!(elsewhere.log().len(), 0);
}

#[tokio::test]
async fn nobody_listening_is_a_question_that_never_left() {
    let server = Server::says("").await;
    let config = super::config(&server, &[("LLM_BASE_URL", "http://127.0.0.1:9/v1")]);
    let mut config = config;
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = format!("http://{}/v1", free.local_addr().unwrap());
    drop(free);
    config.base_url = nobody.parse().unwrap();
    let error = super::client(&config)
        .chat(&super::question(), "run/1/1")
        .await
        .unwrap_err();
    assert!(matches!(error, LlmError::NotSent { .. }), "{error}");
    assert!(!error.maybe_billed());
}
