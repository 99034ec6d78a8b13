//! Questions answered by reasoning over tools, with a model's server that is ours: what is called, what is
//! believed, what ends it. The tools are the real ones, over a study of the test's.

mod answers;
mod ends;
mod injection;
mod journal;
mod progress;

use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::fake_llm::{Answer, FakeLlm, Request};
use crate::support::study::{StudyFolder, Subject};

/// Four subjects: two women (60 and 71), two men (45 and 52), enrolled in this order.
fn study() -> StudyFolder {
    let subject = |id: &str, sex: &str, age: &str, enrolled: &str| {
        Subject::fit(id)
            .with("sex", sex)
            .with("age", age)
            .with("enroll_date", enrolled)
    };
    StudyFolder::with_eligibility(
        "lung",
        [
            subject("P001", "1", "45", "2026-03-02"),
            subject("P002", "2", "60", "2026-04-02"),
            subject("P003", "2", "71", "2026-05-02"),
            subject("P004", "1", "52", "2026-06-02"),
        ],
    )
}

/// Whether a request is one of ours: other questions go to the model as well.
fn is_reasoning(request: &Request) -> bool {
    let system = request.said_by("system");
    system.iter().any(|text| text.contains("数据助手"))
}

/// A model that takes these turns one after the other, by what was said so far: asked the same again, it
/// answers the same.
async fn scripted(script: Vec<Answer>) -> FakeLlm {
    FakeLlm::answering(move |request| {
        if !is_reasoning(request) {
            return Answer::Says("不清楚".to_owned());
        }
        let turn = request.said_by("assistant").len();
        let over = || Answer::Says("没有更多可说的。".to_owned());
        script.get(turn).cloned().unwrap_or_else(over)
    })
    .await
}

async fn app_with(model: &FakeLlm) -> TestApp {
    TestApp::with_model(&study(), model).await
}

fn says(text: &str) -> Answer {
    Answer::Says(text.to_owned())
}

fn read(record: &str) -> Answer {
    Answer::call("read_clinical_data", json!({ "record_id": record }))
}

/// What the tools gave, as the request shows it.
fn shown(request: &Request) -> Vec<&str> {
    request.said_by("tool")
}

/// The requests that are ours.
fn asked(model: &FakeLlm) -> Vec<Request> {
    model.log().into_iter().filter(is_reasoning).collect()
}

/// The one run of kind `react`, as the API shows it, with its steps and its trace.
async fn run(app: &TestApp) -> Value {
    let ids: Vec<uuid::Uuid> =
        sqlx::query_scalar("SELECT id FROM iit_task_run WHERE kind = 'react' ORDER BY created_at")
            .fetch_all(&app.db.pool)
            .await
            .unwrap();
    assert_eq!(ids.len(), 1, "{ids:?}");
    let (status, mut run) = app.get(&format!("/api/v1/runs/{}", ids[0])).await;
    assert_eq!(status, 200);
    for part in ["steps", "trace"] {
        let (status, value) = app.get(&format!("/api/v1/runs/{}/{part}", ids[0])).await;
        assert_eq!(status, 200);
        run[part] = value;
    }
    run
}

fn outcomes(run: &Value) -> Vec<&str> {
    let steps = run["steps"].as_array().unwrap();
    steps
        .iter()
        .map(|step| step["outcome"].as_str().unwrap())
        .collect()
}

/// Kinds of the rows of the transcript, in order.
fn kinds(run: &Value) -> Vec<&str> {
    let said = run["trace"]["said"].as_array().unwrap();
    said.iter()
        .map(|line| line["kind"].as_str().unwrap())
        .collect()
}

/// The text that answers a message, without the time of the data and without the word that keywords read it.
fn text(message: &Value) -> String {
    let replies = message["replies"].as_array().unwrap();
    assert_eq!(replies.len(), 1, "{message}");
    without_time(replies[0]["text"].as_str().unwrap())
}

fn without_time(text: &str) -> String {
    let time = regex::Regex::new(r"数据读取于 [-0-9: ]+").unwrap();
    let text = time.replace_all(text, "数据读取于 …");
    let is_mark = |line: &str| line.starts_with('（') && line.contains("关键词");
    let lines = text.lines().filter(|line| !is_mark(line));
    lines.collect::<Vec<_>>().join("\n")
}

/// Nothing was changed or begun: no batch, no skill's run, nothing in the ledger.
async fn assert_nothing_happened(app: &TestApp) {
    assert_eq!(app.count("iit_batches").await, 0);
    assert_eq!(app.count("iit_task_run WHERE kind = 'sop'").await, 0);
    assert_eq!(app.count("iit_pending_actions").await, 0);
}
