//! `iit eval intents` with a model, as a person runs it.

use std::process::Output;

use serde_json::{Value, json};

use super::{asked, intent, intents};
use crate::support::fake_llm::{Answer, FakeLlm};

async fn eval(model: &FakeLlm, args: &[&str]) -> Output {
    tokio::process::Command::new(env!("CARGO_BIN_EXE_iit"))
        .args(["eval", "intents"])
        .args(args)
        .env_remove("DATABASE_URL")
        .envs(model.variables())
        .env("LLM_PRICE_INPUT", "2")
        .env("LLM_PRICE_OUTPUT", "8")
        .current_dir(std::env::temp_dir())
        .output()
        .await
        .unwrap()
}

fn labelled(dir: &std::path::Path, lines: &[Value]) -> String {
    let path = dir.join("messages.jsonl");
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    std::fs::write(&path, lines.join("\n")).unwrap();
    path.to_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_model_is_measured_with_what_it_took_and_plain_commands_ask_it_nothing() {
    let model = FakeLlm::start(|request| {
        let text = asked(request);
        let kind = if text.contains("方案") {
            "PROTOCOL_QA"
        } else {
            "OUT_OF_SCOPE"
        };
        intents([intent(kind, &text, &[])])
    })
    .await;
    let dir = tempfile::tempdir().unwrap();
    let file = labelled(
        dir.path(),
        &[
            json!({"id": "a", "text": "质控 ID=001", "expect": {"types": ["QC_TASK"], "record_id": "001"}}),
            json!({"id": "b", "text": "帮我想个团建方案", "expect": "OUT_OF_SCOPE"}),
            json!({"id": "c", "text": "红楼梦的作者是谁", "expect": "OUT_OF_SCOPE"}),
            json!({"id": "d", "text": "他的年龄", "memory": {"last_patient": "P001"}, "expect": "QA_QUERY"}),
        ],
    );
    let out = dir.path().join("answers.jsonl");
    let output = eval(
        &model,
        &[&file, "--llm", "--json", "--out", out.to_str().unwrap()],
    )
    .await;
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{told}");
    let mut summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    // Answers come in the order of the lines, however the model takes its time.
    let answers = std::fs::read_to_string(out).unwrap();
    let ids: Vec<Value> = answers
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].clone())
        .collect();
    assert_eq!(ids, ["a", "b", "c", "d"]);
    assert_eq!(
        model.log().len(),
        3,
        "one per message the program does not read by itself"
    );
    summary.as_object_mut().unwrap().remove("confusion");
    insta::assert_json_snapshot!(summary);
}

#[tokio::test]
async fn answers_that_cannot_be_used_are_counted_as_the_keywords_and_a_dead_endpoint_is_told() {
    let model = FakeLlm::start(|_| "不知道".to_owned()).await;
    let dir = tempfile::tempdir().unwrap();
    let file = labelled(
        dir.path(),
        &[json!({"id": "b", "text": "今天会下雨吗", "expect": "OUT_OF_SCOPE"})],
    );
    let output = eval(&model, &[&file]).await;
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("fell back: unusable 1"), "{told}");
    assert!(
        told.contains("fake-model") && told.contains("calls: 2"),
        "{told}"
    );
    assert!(told.contains("100.0 %"), "{told}");
    model.always(Some(Answer::Http(401, Vec::new(), String::new())));
    let output = eval(&model, &[&file]).await;
    assert_eq!(output.status.code(), Some(3));
    assert!(output.stdout.is_empty());
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("LLM_API_KEY"), "{told}");
}

#[tokio::test]
async fn without_a_file_the_bundled_messages_are_measured() {
    let output = tokio::process::Command::new(env!("CARGO_BIN_EXE_iit"))
        .args(["eval", "intents", "--router", "keyword", "--json"])
        .output()
        .await
        .unwrap();
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(summary["accuracy"].as_f64().unwrap() > 0.7, "{summary}");
    assert!(summary["messages"].as_u64().unwrap() >= 300);
    assert!(summary["without_model"].as_f64().unwrap() > 0.05);
    assert_eq!(summary["llm"], Value::Null);
}
