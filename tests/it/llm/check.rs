//! `iit llm check` as an operator meets it.

use std::process::Output;

use serde_json::{Value, json};

use crate::support::fake_llm::{Answer, FakeLlm};

use super::PERSONAL;

/// Runs it in an empty folder with these settings and nothing else, without a database.
async fn check(settings: &[(&str, String)], args: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_iit"));
    command.args(["llm", "check"]).args(args);
    command.current_dir(folder.path()).env_clear();
    for name in ["PATH", "HOME", "LD_LIBRARY_PATH"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command.envs(settings.iter().map(|(name, value)| (name, value)));
    command.output().await.unwrap()
}

/// What it printed, without what differs from run to run.
fn printed(output: &Output) -> String {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let port = regex::Regex::new(r"127\.0\.0\.1:\d+").unwrap();
    let ms = regex::Regex::new(r"┆ +\d+ ┆").unwrap();
    let ms_json = regex::Regex::new(r#""ms": \d+"#).unwrap();
    let text = port.replace_all(&text, "127.0.0.1:PORT");
    let text = ms.replace_all(&text, "┆     MS ┆");
    ms_json.replace_all(&text, r#""ms": 0"#).into_owned()
}

fn message(message: &Value) -> Answer {
    let body = json!({ "choices": [{ "message": message, "finish_reason": "stop" }] });
    Answer::Http(200, Vec::new(), body.to_string())
}

fn says(text: &str) -> Answer {
    message(&json!({ "content": text }))
}

fn calls() -> Answer {
    let arguments = r#"{"word": "bluebird"}"#;
    message(&json!({
        "content": "",
        "tool_calls": [{ "id": "a", "function": { "name": "lookup_code", "arguments": arguments } }],
    }))
}

fn refuses(status: u16, code: &str, message: &str) -> Answer {
    let body = json!({ "error": { "code": code, "message": message } });
    Answer::Http(status, Vec::new(), body.to_string())
}

fn with(server: &FakeLlm, more: &[(&'static str, &str)]) -> Vec<(&'static str, String)> {
    let mut settings = server.variables();
    settings.extend(
        more.iter()
            .map(|(name, value)| (*name, (*value).to_owned())),
    );
    settings
}

#[tokio::test]
async fn an_endpoint_that_can_do_everything_is_said_to() {
    let server = FakeLlm::start(|_| String::new()).await;
    let good = || {
        [
            says("你好"),
            says(r#"{"ok": true}"#),
            says(r#"{"station": "K7Q", "level": 3}"#),
            calls(),
            says("代码是 7319。"),
            says("红色"),
        ]
    };
    server.next(good());
    let output = check(&server.variables(), &[]).await;
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    insta::assert_snapshot!(printed(&output));
    server.next(good());
    let output = check(&server.variables(), &["--json"]).await;
    insta::assert_snapshot!(printed(&output));
    // The answer to the call went back with it.
    let last = &server.log()[4].body["messages"];
    assert_eq!(last[1]["tool_calls"][0]["id"], last[2]["tool_call_id"]);
}

#[tokio::test]
async fn what_an_endpoint_does_wrong_or_refuses_is_said_with_what_it_means() {
    let server = FakeLlm::start(|_| String::new()).await;
    server.next([
        says("你好"),
        says("好的：{\"ok\": true}"),
        says(r#"{"colour": "blue"}"#),
        says("```json\n{\"name\": \"lookup_code\", \"arguments\": {\"word\": \"bluebird\"}}\n```"),
        refuses(
            400,
            "bad_request",
            "image input is not supported by 患者张三",
        ),
    ]);
    let output = check(&server.variables(), &[]).await;
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    insta::assert_snapshot!(printed(&output));
}

#[tokio::test]
async fn a_tool_call_whose_answer_is_not_used_is_found_out() {
    let server = FakeLlm::start(|_| String::new()).await;
    server.next([
        says("你好"),
        refuses(400, "unsupported", "response_format"),
        refuses(400, "unsupported", "response_format"),
        calls(),
        // Calls the same again.
        calls(),
        Answer::Http(500, Vec::new(), "<html>".to_owned()),
    ]);
    let output = check(&server.variables(), &[]).await;
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    insta::assert_snapshot!(printed(&output));
}

#[tokio::test]
async fn what_a_profile_rules_out_is_not_tried() {
    let server = FakeLlm::start(|_| String::new()).await;
    server.next([says("你好"), says(r#"{"ok": true}"#), calls(), says("7319")]);
    let output = check(&with(&server, &[("LLM_PROFILE", "deepseek")]), &[]).await;
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    insta::assert_snapshot!(printed(&output));
    assert_eq!(server.log().len(), 4);
}

#[tokio::test]
async fn an_endpoint_that_does_not_even_answer_is_exit_code_1_and_asked_once() {
    let server = FakeLlm::start(|_| String::new()).await;
    server.always(Some(refuses(401, "invalid_api_key", "患者张三")));
    let output = check(&server.variables(), &[]).await;
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    insta::assert_snapshot!(printed(&output));
    assert_eq!(server.log().len(), 1);
}

#[tokio::test]
async fn an_empty_answer_is_exit_code_1_and_the_rest_is_tried_to_see_more() {
    let server = FakeLlm::start(|_| " ".to_owned()).await;
    let output = check(&server.variables(), &["--format", "csv"]).await;
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let printed = String::from_utf8(output.stdout).unwrap();
    let outcomes: Vec<&str> = printed
        .lines()
        .map(|line| line.split(',').nth(1).unwrap())
        .collect();
    assert_eq!(
        outcomes,
        [
            "outcome", "wrong", "wrong", "wrong", "wrong", "skipped", "wrong"
        ]
    );
}

#[tokio::test]
async fn without_a_model_or_with_a_wrong_profile_it_is_wrong_use_in_one_sentence() {
    let server = FakeLlm::start(|_| String::new()).await;
    for settings in [vec![], with(&server, &[("LLM_PROFILE", "gpt")])] {
        let output = check(&settings, &[]).await;
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let sentence = String::from_utf8(output.stderr).unwrap();
        assert_eq!(sentence.trim_end().lines().count(), 1, "{sentence}");
        assert!(sentence.contains("LLM_"), "{sentence}");
    }
}

#[tokio::test]
async fn even_at_the_loudest_level_the_program_logs_no_answer() {
    let server = FakeLlm::start(|_| String::new()).await;
    let personal = PERSONAL.join(" ");
    let refusals = [
        says(&personal),
        Answer::Http(200, Vec::new(), format!("<html>{personal}")),
        refuses(400, "bad", &personal),
        Answer::Http(503, Vec::new(), personal.clone()),
        Answer::Http(429, Vec::new(), personal.clone()),
        says(&personal),
    ];
    server.next(refusals);
    let output = check(&with(&server, &[("RUST_LOG", "trace")]), &["--json"]).await;
    let logged = String::from_utf8(output.stderr).unwrap();
    assert!(logged.contains("hyper"), "the libraries do log: {logged}");
    let printed = String::from_utf8(output.stdout).unwrap();
    for text in PERSONAL.into_iter().chain(["fake-llm-key"]) {
        assert!(!logged.contains(text), "{text}");
        assert!(!printed.contains(text), "{text}");
    }
}
