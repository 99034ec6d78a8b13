//! `iit eval verdicts` against a model of ours.

use std::process::Output;

use serde_json::{Value, json};

use crate::support::fake_llm::FakeLlm;

async fn eval(model: &FakeLlm, args: &[&str]) -> Output {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_iit"));
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if name.starts_with("LLM_") || name == "DATABASE_URL" {
            command.env_remove(name);
        }
    }
    command
        .current_dir(std::env::temp_dir())
        .args(["eval", "verdicts"])
        .args(args)
        .envs(model.variables())
        .env("LLM_PRICE_INPUT", "1")
        .env("LLM_PRICE_OUTPUT", "2");
    tokio::task::spawn_blocking(move || command.output().unwrap())
        .await
        .unwrap()
}

/// A verdict that quotes the first value there is.
fn says(request: &crate::support::fake_llm::Request, verdict: &str) -> String {
    let data = request.data();
    let row = &data["rows"][0];
    let (field, value) = row["values"].as_object().unwrap().iter().next().unwrap();
    json!({ "verdict": verdict, "reason": "依据", "evidence": [
        { "event": row["event"], "instance": row["instance"], "field": field, "quote": value }
    ] })
    .to_string()
}

#[tokio::test]
async fn a_judge_that_passes_everybody_has_its_wrong_passes_told_first() {
    let model = FakeLlm::start(|request| says(request, "pass")).await;
    let output = eval(&model, &["--llm", "--json"]).await;
    assert!(output.status.success(), "{output:?}");
    let figures: Value = serde_json::from_slice(&output.stdout).unwrap();
    let cases = figures["cases"].as_u64().unwrap();
    assert!(cases >= 40, "{figures}");
    assert_eq!(figures["labelled"], cases);
    let confusion = &figures["confusion"];
    let wrong =
        confusion["fail"]["pass"].as_u64().unwrap() + confusion["unable"]["pass"].as_u64().unwrap();
    assert_eq!(figures["wrong_pass"], wrong);
    assert_eq!(
        figures["right"].as_u64().unwrap() + wrong,
        cases,
        "{figures}"
    );
    assert_eq!(figures["false_alarm"], 0);
    assert_eq!(figures["evidence_valid"], json!([cases, cases]));
    assert_eq!(figures["calls"], cases);
    assert_eq!(figures["prompt_tokens"], 100 * cases);
    assert!((figures["cost_cny"].as_f64().unwrap() - 140.0 * cases as f64 / 1e6).abs() < 1e-9);
}

#[tokio::test]
async fn each_case_is_a_line_and_the_summary_stays_out_of_it() {
    let model = FakeLlm::start(|request| {
        let text = request.data()["rows"][0]["values"]["text"].to_string();
        match text.as_str() {
            _ if text.contains("肺炎") => says(request, "fail"),
            _ if text.contains("编造") => json!({ "verdict": "pass", "reason": "x", "evidence": [
                { "field": "text", "quote": "没有的话" }] })
            .to_string(),
            _ if request.said_by("assistant").is_empty() => "好的".to_owned(),
            _ => says(request, "pass"),
        }
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cases.jsonl");
    let line = |id: &str, text: &str, expect: &str| {
        json!({ "id": id, "instruction": "不得有肺炎", "text": text, "expect": expect }).to_string()
    };
    let lines = [
        line("a", "间质性肺炎", "fail"),
        line("b", "编造", "fail"),
        line("c", "体健", "pass"),
        line("d", "体健", "unable"),
    ];
    std::fs::write(&file, lines.join("\n")).unwrap();
    let output = eval(&model, &[file.to_str().unwrap()]).await;
    assert!(output.status.success(), "{output:?}");
    insta::assert_snapshot!(String::from_utf8(output.stdout).unwrap());
    insta::assert_snapshot!(String::from_utf8(output.stderr).unwrap());
}

#[tokio::test]
async fn a_bad_line_is_named_and_a_model_that_is_away_is_an_outside_failure() {
    let model = FakeLlm::passing().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cases.jsonl");
    let good = r#"{"id":1,"instruction":"x","text":"y"}"#;
    for bad in [
        "{",
        r#"{"id":1,"instruction":"x"}"#,
        r#"{"id":1,"instruction":" ","text":"y"}"#,
        r#"{"id":1,"instruction":"x","text":"y","data":{}}"#,
        r#"{"id":1,"instruction":"x","text":"y","expect":"maybe"}"#,
    ] {
        std::fs::write(&file, format!("{good}\n\n{bad}\n")).unwrap();
        let output = eval(&model, &[file.to_str().unwrap()]).await;
        assert_eq!(output.status.code(), Some(2), "{bad}");
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(told.contains(&format!("{}:3:", file.display())), "{told}");
    }
    assert!(model.log().is_empty());
    std::fs::write(&file, good).unwrap();
    model.always(Some(crate::support::fake_llm::Answer::Http(
        401,
        Vec::new(),
        String::new(),
    )));
    let output = eval(&model, &[file.to_str().unwrap()]).await;
    assert_eq!(output.status.code(), Some(3), "{output:?}");
}
