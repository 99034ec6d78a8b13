//! Messages understood by a language model, with a model's server that is ours: what is believed, what is
//! asked again, and what happens when it is slow, broken, fooled or gone.

mod believed;
mod evaluation;
mod fallback;
mod journal;

use iit_manager::types::clock::Clock;
use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::fake_llm::{FakeLlm, Request};
use crate::support::postgres::TestDb;
use crate::support::study::{StudyFolder, Subject};

/// Ids nobody could have foreseen: two that fit, and one who is too young.
struct Ids {
    one: String,
    two: String,
    young: String,
}

impl Ids {
    fn random() -> Self {
        let n = rand::random_range(100..300);
        Self {
            one: format!("P{n}"),
            two: format!("P{}", n + 300),
            young: format!("S01-{}", n + 600),
        }
    }

    fn study(&self) -> StudyFolder {
        StudyFolder::with_eligibility(
            "lung",
            [
                Subject::fit(&self.one),
                Subject::fit(&self.two),
                Subject::fit(&self.young).with("age", "16"),
            ],
        )
    }
}

/// Whether the model is asked what a message wants, and not the question in it.
fn is_reading(request: &Request) -> bool {
    request.said_by("user")[0].contains("【用户消息】")
}

/// The person's words as the model was shown them; nothing when it is asked something else.
fn asked(request: &Request) -> String {
    let shown = request.said_by("user")[0];
    let Some((_, rest)) = shown.split_once("【用户消息】") else {
        return String::new();
    };
    let mut lines = rest.lines().skip(2).collect::<Vec<_>>();
    let end = lines
        .iter()
        .position(|line| line.starts_with("</"))
        .unwrap();
    lines.truncate(end);
    lines.join("\n")
}

fn intent(kind: &str, text: &str, ids: &[&str]) -> Value {
    json!({
        "type": kind, "text": text, "confidence": 0.92, "record_ids": ids, "visit": null, "form": null,
        "field": null, "whole_project": false, "write": false, "past": false, "missing_info": null,
        "clarification_question": null,
    })
}

fn intents(all: impl IntoIterator<Item = Value>) -> String {
    json!({ "intents": all.into_iter().collect::<Vec<_>>() }).to_string()
}

/// A model that takes the whole message for one intent of this kind.
async fn always(kind: &'static str) -> FakeLlm {
    FakeLlm::start(move |request| intents([intent(kind, &asked(request), &[])])).await
}

/// The program with a study of these people, this model, and these settings beside it.
async fn app(ids: &Ids, model: &FakeLlm, more: &[(&'static str, &str)]) -> TestApp {
    let mut variables = model.variables();
    variables.extend(
        more.iter()
            .map(|(name, value)| (*name, (*value).to_owned())),
    );
    let app = TestApp::start_with(TestDb::new().await, Clock::system(), &variables).await;
    app.apply(&ids.study()).await;
    app
}

/// Nothing was started: no run of a skill, no batch.
async fn assert_nothing_started(app: &TestApp) {
    app.settled().await;
    assert_eq!(app.count("iit_task_run WHERE kind = 'sop'").await, 0);
    assert_eq!(app.count("iit_batches").await, 0);
}

/// Outcomes of the steps of every run that understood a message, in order.
async fn outcomes(db: &TestDb) -> Vec<String> {
    sqlx::query_scalar(
        "SELECT s.outcome FROM iit_task_step s JOIN iit_task_run r ON r.id = s.run_id
         WHERE r.kind = 'intent' ORDER BY r.created_at, s.no",
    )
    .fetch_all(&db.pool)
    .await
    .unwrap()
}

fn keys(log: &[Request]) -> Vec<String> {
    log.iter()
        .map(|request| request.key.split_once('/').unwrap().1.to_owned())
        .collect()
}
