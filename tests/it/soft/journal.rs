//! The journal: an answer is paid for once, and what was asked in vain is known to have perhaps been
//! billed. The workers here are processes of their own, killed with SIGKILL.

use nix::sys::signal::Signal;
use sqlx::Row as _;

use super::{app_with, keys, outcomes, run, study};
use crate::queue::program::{Gate, Program, until_batches_done, until_waiting};
use crate::support::app::{TestApp, eventually};
use crate::support::binary::Iit;
use crate::support::fake_llm::{Answer, FakeLlm, Hold, verdict};
use crate::support::postgres::TestDb;
use crate::support::study::{StudyFolder, Subject};

/// A study on a database of its own, and a QC of it asked for.
async fn asked_for() -> (TestDb, StudyFolder) {
    let db = TestDb::new().await;
    let study = study([Subject::fit("P001")]);
    TestApp::apply_to(&db, &study).await;
    Iit::on(&db).ok(&["qc", "--project", "lung", "--all"]).await;
    (db, study)
}

/// (ask, state, maybe_billed, settled) of every call, in order.
async fn calls(db: &TestDb) -> Vec<(i32, String, bool, bool)> {
    sqlx::query("SELECT ask, state, maybe_billed, settled FROM iit_llm_calls ORDER BY id")
        .fetch_all(&db.pool)
        .await
        .unwrap()
        .into_iter()
        .map(|row| (row.get(0), row.get(1), row.get(2), row.get(3)))
        .collect()
}

async fn spent(db: &TestDb) -> (i64, i64) {
    sqlx::query_as("SELECT tokens, reserved_tokens FROM iit_llm_spend WHERE scope = 'all'")
        .fetch_one(&db.pool)
        .await
        .unwrap()
}

#[tokio::test]
async fn a_worker_killed_after_the_answer_makes_no_new_call() {
    let model = FakeLlm::passing().await;
    let (db, _study) = asked_for().await;
    // The step's row waits here: inside the settlement, after the answer was stored.
    let gate = Gate::at_step(&db, 0).await;
    let first = Program::worker(&db, "edc,llm", &model.variables());
    until_waiting(&db, "advisory", 1).await;
    assert_eq!(calls(&db).await, [(1, "answered".to_owned(), false, true)]);
    first.kill().await;
    gate.open().await;

    let second = Program::worker(&db, "edc,llm", &model.variables());
    until_batches_done(&db, 1).await;
    second.stop().await;
    assert_eq!(keys(&model.log()), ["0/1"], "asked once");
    assert_eq!(calls(&db).await, [(1, "answered".to_owned(), false, true)]);
    let (attempt, llm_calls): (i32, i32) =
        sqlx::query_as("SELECT attempt, llm_calls FROM iit_task_step")
            .fetch_one(&db.pool)
            .await
            .unwrap();
    assert_eq!((attempt, llm_calls), (2, 1));
    assert_eq!(spent(&db).await, (120, 0));
}

#[tokio::test]
async fn a_worker_killed_while_it_is_answered_leaves_a_call_that_may_be_billed_and_asks_once_more()
{
    let model = FakeLlm::passing().await;
    let hold = Hold::default();
    model.next([Answer::Held(hold.clone(), String::new())]);
    let (db, _study) = asked_for().await;
    let first = Program::worker(&db, "edc,llm", &model.variables());
    hold.reached.notified().await;
    assert_eq!(calls(&db).await, [(1, "asked".to_owned(), false, false)]);
    first.kill().await;
    hold.open.notify_one();

    let second = Program::worker(&db, "edc,llm", &model.variables());
    until_batches_done(&db, 1).await;
    second.stop().await;
    let log = model.log();
    assert_eq!(keys(&log), ["0/1", "0/2"]);
    assert_eq!(log[0].body, log[1].body, "the very same question");
    assert_eq!(
        calls(&db).await,
        [
            (1, "asked".to_owned(), true, true),
            (2, "answered".to_owned(), false, true)
        ]
    );
    let reserved: i64 =
        sqlx::query_scalar("SELECT reserved_tokens FROM iit_llm_calls WHERE ask = 1")
            .fetch_one(&db.pool)
            .await
            .unwrap();
    assert_eq!(
        spent(&db).await,
        (reserved + 120, 0),
        "the lost one counts as it was reserved"
    );
}

#[tokio::test]
async fn a_worker_frozen_past_its_lease_still_stores_its_late_answer_and_commits_nothing() {
    let model = FakeLlm::passing().await;
    let hold = Hold::default();
    let late = r#"{"verdict":"fail","reason":"晚到的回答","evidence":[{"field":"history","quote":"无特殊"}]}"#;
    model.next([Answer::Held(hold.clone(), late.to_owned())]);
    let (db, _study) = asked_for().await;
    let first = Program::worker(&db, "edc,llm", &model.variables());
    hold.reached.notified().await;
    first.signal(Signal::SIGSTOP);
    let second = Program::worker(&db, "edc,llm", &model.variables());
    until_batches_done(&db, 1).await;
    first.signal(Signal::SIGCONT);
    hold.open.notify_one();
    eventually("the late answer", async || {
        let calls = calls(&db).await;
        (calls.first()?.1 == "answered").then_some(())
    })
    .await;
    first.stop().await;
    second.stop().await;
    assert_eq!(keys(&model.log()), ["0/1", "0/2"]);
    let steps: Vec<(String,)> = sqlx::query_as("SELECT outcome FROM iit_task_step")
        .fetch_all(&db.pool)
        .await
        .unwrap();
    assert_eq!(steps, [("pass".to_owned(),)], "only the second worker's");
    let findings: i64 = sqlx::query_scalar("SELECT count(*) FROM iit_pending_actions")
        .fetch_one(&db.pool)
        .await
        .unwrap();
    assert_eq!(findings, 0);
}

#[tokio::test]
async fn what_the_model_was_shown_stays_what_it_is_judged_by_when_the_data_change_meanwhile() {
    let model = FakeLlm::passing().await;
    let hold = Hold::default();
    model.next([Answer::Held(hold.clone(), String::new())]);
    let (db, mut study) = asked_for().await;
    let first = Program::worker(&db, "edc,llm", &model.variables());
    hold.reached.notified().await;
    first.kill().await;
    study.set("P001", "history", "间质性肺炎");
    let second = Program::worker(&db, "edc,llm", &model.variables());
    until_batches_done(&db, 1).await;
    second.stop().await;
    let log = model.log();
    assert_eq!(log[0].body, log[1].body);
    assert_eq!(log[1].data()["rows"][0]["values"]["history"], "无特殊");
}

#[tokio::test]
async fn a_server_in_trouble_is_asked_again_by_the_queue_and_every_question_is_on_record() {
    let model = FakeLlm::passing().await;
    model.next([
        Answer::Http(500, Vec::new(), "<html>患者张三</html>".to_owned()),
        Answer::Http(504, Vec::new(), String::new()),
    ]);
    let app = app_with(&model).await;
    app.post(
        "/api/v1/projects/lung/qc",
        &serde_json::json!({ "records": null }),
    )
    .await;
    app.settled_at_once().await;
    assert_eq!(outcomes(&run(&app).await), ["pass"]);
    assert_eq!(
        calls(&app.db).await,
        [
            (1, "failed".to_owned(), false, true),
            (2, "failed".to_owned(), true, true),
            (3, "answered".to_owned(), false, true)
        ]
    );
    let errors: Vec<(Option<String>,)> =
        sqlx::query_as("SELECT error FROM iit_llm_calls ORDER BY id")
            .fetch_all(&app.db.pool)
            .await
            .unwrap();
    insta::assert_debug_snapshot!(errors);
    app.stop().await;
}

#[tokio::test]
async fn a_server_that_does_not_know_the_json_mode_is_asked_without_it() {
    let model = FakeLlm::passing().await;
    let refusal =
        r#"{"error":{"code":400,"message":"response_format","type":"invalid_request_error"}}"#;
    model.next([Answer::Http(400, Vec::new(), refusal.to_owned())]);
    let app = app_with(&model).await;
    app.qc("lung", None).await;
    assert_eq!(outcomes(&run(&app).await), ["pass"]);
    let log = model.log();
    assert!(log[0].body.get("response_format").is_some());
    assert!(log[1].body.get("response_format").is_none());
    app.stop().await;
}

#[tokio::test]
async fn the_reply_is_kept_as_it_came() {
    let model = FakeLlm::start(|request| verdict(request, "pass", "history")).await;
    let app = app_with(&model).await;
    app.qc("lung", None).await;
    let reply = app.text("SELECT reply FROM iit_llm_calls").await.unwrap();
    let reply: serde_json::Value = serde_json::from_str(&reply).unwrap();
    assert_eq!(reply["id"], "chatcmpl-1");
    let kinds: Vec<(String,)> = sqlx::query_as("SELECT kind FROM iit_agent_trace ORDER BY seq")
        .fetch_all(&app.db.pool)
        .await
        .unwrap();
    let kinds: Vec<&str> = kinds.iter().map(|kind| kind.0.as_str()).collect();
    assert_eq!(kinds, ["system", "instruction", "data", "reply"]);
    app.stop().await;
}
