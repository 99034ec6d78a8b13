//! No call lasts for ever: each of the three deadlines ends one on its own, with the others far away.

use std::time::Duration;

use iit_manager::adapters::llm::{LlmConfig, LlmError, client::Answer};
use tokio::net::{TcpSocket, TcpStream};

use super::server::{Act, Server, head};
use super::{client, config, question};

const FAR: Duration = Duration::from_secs(60);
const SOON: Duration = Duration::from_millis(200);

/// Asks with these deadlines. A call that outlives all of them fails the test.
async fn ask_within(
    server: &Server,
    connect: Duration,
    idle: Duration,
    total: Duration,
) -> Result<Answer, LlmError> {
    let config = LlmConfig {
        connect_timeout: connect,
        idle_timeout: idle,
        timeout: total,
        ..config(server, &[])
    };
    let question = question();
    let client = client(&config);
    let call = client.chat(&question, "run/1/1");
    tokio::time::timeout(FAR / 2, call)
        .await
        .expect("a deadline ends the call")
}

fn why(outcome: Result<Answer, LlmError>) -> (&'static str, Option<String>) {
    match outcome {
        Err(LlmError::NoAnswer { why, request_id }) => (why, request_id),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_connection_that_never_stands_is_given_up_and_nothing_was_sent() {
    // A server that takes nobody in, and whose waiting room is full.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut waiting = Vec::new();
    while let Ok(stream) = tokio::time::timeout(SOON, TcpStream::connect(address)).await {
        waiting.push(stream.unwrap());
        assert!(waiting.len() < 1000, "the waiting room fills up");
    }
    let server = Server::says("").await;
    let config = LlmConfig {
        base_url: format!("http://{address}/v1").parse().unwrap(),
        connect_timeout: SOON,
        timeout: FAR,
        ..config(&server, &[])
    };
    let (client, question) = (client(&config), question());
    let call = client.chat(&question, "run/1/1");
    let outcome = tokio::time::timeout(FAR / 2, call)
        .await
        .expect("the deadline ends the call");
    let error = outcome.unwrap_err();
    assert!(matches!(error, LlmError::NotSent { .. }), "{error}");
    assert!(!error.maybe_billed());
}

#[tokio::test]
async fn a_server_that_never_says_a_word_is_ended_by_the_total_deadline() {
    let server = Server::start(Act::Holds(Vec::new())).await;
    let outcome = ask_within(&server, FAR, SOON, SOON * 2).await;
    assert_eq!(why(outcome), ("the time was up", None));
    assert_eq!(server.log().len(), 1);
}

#[tokio::test]
async fn a_body_that_stands_still_is_ended_by_the_idle_deadline() {
    let mut bytes = head(200, &[("x-request-id", "req-5")], 500);
    bytes.extend_from_slice(b"{\"choices\":[");
    let server = Server::start(Act::Holds(bytes)).await;
    let outcome = ask_within(&server, FAR, SOON, FAR).await;
    let id = Some("req-5".to_owned());
    assert_eq!(why(outcome), ("the answer stood still for too long", id));
}

#[tokio::test]
async fn blank_lines_without_end_are_ended_by_the_total_deadline() {
    let head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    let server = Server::start(Act::Drips(head, "1\r\n\n\r\n")).await;
    let outcome = ask_within(&server, FAR, SOON * 2, SOON * 4).await;
    assert_eq!(why(outcome), ("the time was up", None));
}

#[tokio::test]
async fn a_refusal_whose_body_never_ends_is_still_that_refusal() {
    let server = Server::start(Act::Holds(head(402, &[], 500))).await;
    let outcome = ask_within(&server, FAR, SOON, FAR).await;
    assert!(matches!(outcome, Err(LlmError::NoCredit(_))), "{outcome:?}");
}
