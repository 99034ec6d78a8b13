//! Soft rules, with a model's server that is ours: what is believed, what is asked again, what is paid.

mod breaker;
mod budget;
mod causality;
mod corrections;
mod journal;
mod judgement;
mod tool_nodes;
mod tools;

use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::fake_llm::{FakeLlm, Request};
use crate::support::study::{StudyFolder, Subject};

/// A skill with one soft rule.
fn soft_skill() -> Value {
    json!({
        "name": "病史核查",
        "start_node": "history",
        "nodes": {
            "history": {
                "type": "soft_instruction",
                "instruction": "既往史中不得有间质性肺炎",
                "on_pass": "end_success",
                "on_fail": "end_review_required"
            }
        }
    })
}

fn study(subjects: impl IntoIterator<Item = Subject>) -> StudyFolder {
    let study = StudyFolder::new("lung", subjects);
    study.write_skill("history", &soft_skill());
    study
}

/// The program with one fit subject P001, the soft rule, and that model.
async fn app_with(model: &FakeLlm) -> TestApp {
    TestApp::with_model(&study([Subject::fit("P001")]), model).await
}

/// The one run over P001, with its steps.
async fn run(app: &TestApp) -> Value {
    let mut runs = app.runs_of("P001").await;
    runs.retain(|run| run["kind"] == "sop");
    assert_eq!(runs.len(), 1, "{runs:?}");
    runs.remove(0)
}

fn outcomes(run: &Value) -> Vec<&str> {
    let steps = run["steps"].as_array().unwrap();
    steps
        .iter()
        .map(|step| step["outcome"].as_str().unwrap())
        .collect()
}

fn keys(log: &[Request]) -> Vec<String> {
    log.iter()
        .map(|request| request.key.split_once('/').unwrap().1.to_owned())
        .collect()
}

/// Kinds of the rows of a run's transcript, in order.
async fn kinds(app: &TestApp, run: &Value) -> Vec<String> {
    let path = format!("/api/v1/runs/{}/trace", run["id"].as_str().unwrap());
    let (status, trace) = app.get(&path).await;
    assert_eq!(status, 200);
    let said = trace["said"].as_array().unwrap();
    said.iter()
        .map(|line| line["kind"].as_str().unwrap().to_owned())
        .collect()
}
