//! Every bad request gets one clear sentence, and nothing is stored.

use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::app::{TOKEN, TestApp};
use crate::support::study::{StudyFolder, Subject};

const MESSAGES: &str = "/api/v1/projects/lung/messages";

async fn app() -> TestApp {
    TestApp::with(&StudyFolder::with_eligibility(
        "lung",
        [Subject::fit("P001")],
    ))
    .await
}

/// Sends bytes as they are; status, content type and body.
async fn send(
    app: &TestApp,
    method: Method,
    path: &str,
    token: Option<&str>,
    body: &[u8],
) -> (u16, String, Value) {
    let mut request = app
        .http()
        .request(method, app.url(path))
        .body(body.to_vec());
    if let Some(token) = token {
        request = request.header("authorization", token);
    }
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    let kind = response
        .headers()
        .get("content-type")
        .map(|kind| kind.to_str().unwrap().to_owned())
        .unwrap_or_default();
    let text = response.text().await.unwrap();
    (
        status,
        kind,
        serde_json::from_str(&text).unwrap_or(Value::String(text)),
    )
}

/// A problem document with that status; its sentence.
fn problem((status, kind, body): (u16, String, Value), wanted: u16) -> String {
    assert_eq!(status, wanted, "{body}");
    assert_eq!(kind, "application/problem+json");
    assert_eq!(body["status"], wanted);
    assert!(
        body["type"].is_string() && body["title"].is_string(),
        "{body}"
    );
    body["detail"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn the_api_wants_the_token_and_nothing_else_does() {
    let app = app().await;
    let uuid = "01a22d99-55d7-74a8-9fe2-76fb876ee37a";
    let guarded = [
        (Method::POST, MESSAGES.to_owned()),
        (Method::GET, format!("/api/v1/messages/{uuid}")),
        (Method::POST, "/api/v1/projects/lung/qc".to_owned()),
        (Method::GET, format!("/api/v1/batches/{uuid}")),
        (Method::GET, format!("/api/v1/runs/{uuid}")),
        (Method::GET, format!("/api/v1/runs/{uuid}/steps")),
        (
            Method::GET,
            "/api/v1/projects/lung/pending-actions".to_owned(),
        ),
        (
            Method::POST,
            format!("/api/v1/pending-actions/{uuid}/decision"),
        ),
        (Method::GET, "/api/v1/queues".to_owned()),
    ];
    let wrong = format!("Bearer {TOKEN}x");
    let basic = format!("Basic {TOKEN}");
    for (method, path) in guarded {
        for token in [
            None,
            Some("Bearer"),
            Some("Bearer "),
            Some(wrong.as_str()),
            Some(basic.as_str()),
        ] {
            let answer = send(&app, method.clone(), &path, token, b"{}").await;
            let sentence = problem(answer, 401);
            assert!(!sentence.contains(TOKEN), "{sentence}");
        }
        let right = format!("bearer {TOKEN}");
        let (status, _, body) = send(&app, method.clone(), &path, Some(&right), b"{}").await;
        assert_ne!(status, 401, "{method} {path}: {body}");
    }
    for path in ["/healthz", "/readyz", "/metrics"] {
        assert_eq!(
            send(&app, Method::GET, path, None, b"").await.0,
            200,
            "{path}"
        );
    }
    // Unsigned, so refused; but not for want of a token.
    assert_eq!(
        send(&app, Method::GET, "/wecom/callback", None, b"")
            .await
            .0,
        400
    );
    app.settled().await;
    assert_eq!(app.count("iit_inbox").await, 0);
    app.stop().await;
}

#[tokio::test]
async fn a_message_that_cannot_be_one_is_refused_with_the_place_of_the_fault() {
    let app = app().await;
    let token = format!("Bearer {TOKEN}");
    let long_name = "名".repeat(65);
    let long_text = "字".repeat(20_001);
    let bodies: Vec<(&str, u16, Vec<u8>)> = vec![
        ("empty", 400, Vec::new()),
        ("not JSON", 400, b"text=hi".to_vec()),
        ("an array", 400, b"[1]".to_vec()),
        (
            "not UTF-8",
            400,
            b"{\"user\":\"a\",\"text\":\"\xff\xfe\"}".to_vec(),
        ),
        (
            "cut in a character",
            400,
            b"{\"user\":\"a\",\"text\":\"\xe8\xb4".to_vec(),
        ),
        (
            "lone surrogate",
            400,
            br#"{"user":"a","text":"\ud800"}"#.to_vec(),
        ),
        (
            "unknown key",
            400,
            br#"{"user":"a","text":"hi","image":"x"}"#.to_vec(),
        ),
        ("no text", 400, br#"{"user":"a"}"#.to_vec()),
        ("number as text", 400, br#"{"user":"a","text":1}"#.to_vec()),
        ("blank text", 422, br#"{"user":"a","text":" \n"}"#.to_vec()),
        ("blank user", 422, br#"{"user":" ","text":"hi"}"#.to_vec()),
        (
            "long user",
            422,
            json!({ "user": long_name, "text": "hi" })
                .to_string()
                .into_bytes(),
        ),
        (
            "long text",
            422,
            json!({ "user": "a", "text": long_text })
                .to_string()
                .into_bytes(),
        ),
    ];
    let mut sentences = Vec::new();
    for (name, status, body) in bodies {
        let answer = send(&app, Method::POST, MESSAGES, Some(&token), &body).await;
        sentences.push(format!("{name}: {}", problem(answer, status)));
    }
    insta::assert_snapshot!(sentences.join("\n"));
    app.settled().await;
    assert_eq!(app.count("iit_inbox").await, 0);
    assert_eq!(app.count("iit_jobs").await, 0);
    app.stop().await;
}

#[tokio::test]
async fn nul_in_a_text_is_made_visible_and_the_message_is_answered() {
    let app = app().await;
    let message = app.chat("lung", "Zhang\0San", "质控\0 P001\0").await;
    assert_eq!(
        [&message["user"], &message["text"]],
        ["Zhang\u{fffd}San", "质控\u{fffd} P001\u{fffd}"]
    );
    assert_eq!(message["status"], "answered");
    let sanitised = app.text("SELECT detail->>'sanitised' FROM iit_inbox").await;
    assert_eq!(sanitised.as_deref(), Some("true"));
    let reply = app
        .chat("lung", "ZhangSan", "质控 \u{202e}P001\u{7}\u{fffe}")
        .await;
    assert_eq!(reply["status"], "answered");
    app.stop().await;
}

#[tokio::test]
async fn things_that_do_not_exist_are_404_and_unusable_values_422() {
    let app = app().await;
    let token = format!("Bearer {TOKEN}");
    let uuid = "01a22d99-55d7-74a8-9fe2-76fb876ee37a";
    let mut sentences = Vec::new();
    for (method, path, body, status) in [
        (
            Method::POST,
            "/api/v1/projects/nope/messages".to_owned(),
            r#"{"user":"a","text":"hi"}"#,
            404,
        ),
        (
            Method::POST,
            "/api/v1/projects/nope/qc".to_owned(),
            r#"{"records":null}"#,
            404,
        ),
        (
            Method::GET,
            "/api/v1/projects/nope/pending-actions".to_owned(),
            "",
            404,
        ),
        (Method::GET, "/api/v1/messages/1".to_owned(), "", 404),
        (Method::GET, format!("/api/v1/messages/{uuid}"), "", 404),
        (Method::GET, "/api/v1/runs/x".to_owned(), "", 404),
        (Method::GET, format!("/api/v1/runs/{uuid}/steps"), "", 404),
        (Method::GET, format!("/api/v1/batches/{uuid}"), "", 404),
        (
            Method::POST,
            format!("/api/v1/pending-actions/{uuid}/decision"),
            r#"{"decision":"close","reason":"x"}"#,
            404,
        ),
        (
            Method::POST,
            "/api/v1/pending-actions/7/decision".to_owned(),
            r#"{"decision":"close","reason":"x"}"#,
            404,
        ),
        (Method::GET, "/api/v1/nothing".to_owned(), "", 404),
        (Method::GET, "/nothing".to_owned(), "", 404),
        (Method::GET, MESSAGES.to_owned(), "", 405),
        (
            Method::POST,
            "/api/v1/projects/lung/qc".to_owned(),
            r#"{"records":[]}"#,
            422,
        ),
        (
            Method::POST,
            "/api/v1/projects/lung/qc".to_owned(),
            r#"{"records":["P001",""]}"#,
            422,
        ),
        (
            Method::POST,
            "/api/v1/projects/lung/qc".to_owned(),
            r#"{"records":["P\u0000"]}"#,
            422,
        ),
        (
            Method::POST,
            "/api/v1/projects/lung/qc".to_owned(),
            r#"{"records":null,"skill":"nope"}"#,
            422,
        ),
        (
            Method::POST,
            "/api/v1/projects/lung/qc".to_owned(),
            r#"{"skill":"eligibility"}"#,
            400,
        ),
        (
            Method::POST,
            "/api/v1/projects/lung/qc".to_owned(),
            r#"{"skills":"nope"}"#,
            400,
        ),
        (
            Method::GET,
            "/api/v1/projects/lung/pending-actions?cursor=x".to_owned(),
            "",
            422,
        ),
        (
            Method::GET,
            "/api/v1/projects/lung/pending-actions?status=opened".to_owned(),
            "",
            422,
        ),
    ] {
        let answer = send(&app, method.clone(), &path, Some(&token), body.as_bytes()).await;
        sentences.push(format!(
            "{method} {path} {body}: {status} {}",
            problem(answer, status)
        ));
    }
    insta::assert_snapshot!(sentences.join("\n"));
    app.settled().await;
    assert_eq!(app.count("iit_jobs").await, 0);
    app.stop().await;
}

#[tokio::test]
async fn nul_in_a_path_or_query_is_refused_not_stumbled_over() {
    let app = app().await;
    let token = format!("Bearer {TOKEN}");
    for (method, path, body) in [
        (
            Method::POST,
            "/api/v1/projects/lu%00ng/messages",
            r#"{"user":"a","text":"hi"}"#,
        ),
        (Method::GET, "/api/v1/projects/%00/pending-actions", ""),
        (
            Method::GET,
            "/api/v1/projects/lung/pending-actions?record=%00",
            "",
        ),
        (
            Method::GET,
            "/api/v1/projects/lung/pending-actions?rule=a%00b",
            "",
        ),
        (
            Method::POST,
            "/api/v1/projects/lung/qc",
            r#"{"records":null,"skill":"a\u0000b"}"#,
        ),
        (Method::GET, "/api/v1/projects/%ff/pending-actions", ""),
    ] {
        let answer = send(&app, method.clone(), path, Some(&token), body.as_bytes()).await;
        let status = if path.contains("%ff") { 400 } else { 422 };
        problem(answer, status);
    }
    app.stop().await;
}

#[tokio::test]
async fn nul_in_a_reason_is_refused_and_decides_nothing() {
    let young = Subject::fit("P001").with("age", "16");
    let app = TestApp::with(&StudyFolder::with_eligibility("lung", [young])).await;
    app.qc("lung", None).await;
    let action = app.action("lung", "IE-01").await;
    let (status, body) = app.decide(&action, "dismiss", "已\0核对").await;
    assert_eq!(status, 422, "{body}");
    assert!(
        body["detail"].as_str().unwrap().contains("U+0000"),
        "{body}"
    );
    assert_eq!(app.action("lung", "IE-01").await, action);
    app.stop().await;
}

#[tokio::test]
async fn a_body_of_20_mb_is_answered_413_to_a_client_that_writes_first_and_reads_then() {
    let app = app().await;
    let size = 20 * 1024 * 1024;
    let mut stream = TcpStream::connect(app.address).await.unwrap();
    let head = format!(
        "POST {MESSAGES} HTTP/1.1\r\nHost: iit\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\nContent-Length: {size}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let chunk = vec![b'a'; 1024 * 1024];
    for _ in 0..20 {
        stream.write_all(&chunk).await.unwrap();
    }
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    assert!(
        answer.to_lowercase().contains("application/problem+json"),
        "{answer}"
    );
    assert!(answer.contains("1 MiB"), "{answer}");
    app.settled().await;
    assert_eq!(app.count("iit_inbox").await, 0);
    app.stop().await;
}

#[tokio::test]
async fn a_wrong_token_with_a_20_mb_body_is_answered_401() {
    let app = app().await;
    let body = vec![b'a'; 20 * 1024 * 1024];
    let answer = send(&app, Method::POST, MESSAGES, Some("Bearer no"), &body).await;
    problem(answer, 401);
    app.stop().await;
}
