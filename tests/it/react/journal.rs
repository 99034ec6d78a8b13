//! A worker killed in the middle: the same answer, and nothing paid for twice.

use serde_json::json;

use super::{asked, says, scripted, study};
use crate::queue::program::{Gate, Program, until_waiting};
use crate::support::app::{TestApp, eventually};
use crate::support::fake_llm::{Answer, FakeLlm, Hold};
use crate::support::postgres::TestDb;
use crate::support::study::StudyFolder;

fn script() -> Vec<Answer> {
    vec![
        Answer::call("search_records", json!({ "sort": "recent", "limit": 2 })),
        Answer::call("aggregate", json!({ "op": "mean", "field": "age" })),
        says("共四例，平均年龄 57 岁，最近入组的是 P004。"),
    ]
}

/// A database with the study and a question that waits for a worker.
async fn asked_for(limits: &str) -> (TestDb, StudyFolder) {
    let db = TestDb::new().await;
    let study = study();
    study.write_project(limits);
    TestApp::apply_to(&db, &study).await;
    let mut conn = db.pool.acquire().await.unwrap();
    let message = iit_manager::store::inbox::NewMessage {
        channel: iit_manager::store::inbox::Channel::Rest,
        dedupe_key: None,
        project: Some("lung"),
        sender: "ZhangSan",
        kind: "text",
        text: "最近入组的病人平均年龄是多少",
        detail: json!({}),
    };
    iit_manager::jobs::intent::receive(&mut conn, &message)
        .await
        .unwrap();
    (db, study)
}

async fn until_answered(db: &TestDb) -> String {
    let text = eventually("the answer", async || {
        sqlx::query_scalar::<_, String>("SELECT text FROM iit_outbox WHERE NOT is_progress")
            .fetch_optional(&db.pool)
            .await
            .unwrap()
    })
    .await;
    super::without_time(&text)
}

async fn count(db: &TestDb, what: &str) -> i64 {
    sqlx::query_scalar(sqlx::AssertSqlSafe(format!("SELECT count(*) FROM {what}")))
        .fetch_one(&db.pool)
        .await
        .unwrap()
}

fn worker(db: &TestDb, model: &FakeLlm) -> Program {
    Program::worker(db, "chat,llm,edc", &model.variables())
}

/// Steps and answered calls of the run.
async fn assert_whole(db: &TestDb, steps: i64) {
    let of_run = "WHERE run_id = (SELECT id FROM iit_task_run WHERE kind = 'react')";
    assert_eq!(count(db, &format!("iit_task_step {of_run}")).await, steps);
    let answered = format!("iit_llm_calls {of_run} AND state = 'answered'");
    assert_eq!(count(db, &answered).await, steps);
    let results = format!("iit_agent_trace {of_run} AND kind = 'result'");
    assert_eq!(count(db, &results).await, 2, "no call is answered twice");
}

#[tokio::test]
async fn a_worker_killed_after_each_answer_leaves_it_to_be_used() {
    let undisturbed = {
        let model = scripted(script()).await;
        let (db, _study) = asked_for("").await;
        let only = worker(&db, &model);
        let text = until_answered(&db).await;
        only.stop().await;
        text
    };
    assert!(undisturbed.contains("平均年龄 57 岁"), "{undisturbed}");
    for step in 0..3 {
        let model = scripted(script()).await;
        let (db, _study) = asked_for("").await;
        // The step's row waits here: inside the settlement, after the answer was stored and the tools ran.
        let gate = Gate::at_step(&db, step).await;
        let first = worker(&db, &model);
        until_waiting(&db, "advisory", 1).await;
        first.kill().await;
        gate.open().await;
        let second = worker(&db, &model);
        assert_eq!(
            until_answered(&db).await,
            undisturbed,
            "killed at step {step}"
        );
        second.stop().await;
        assert_eq!(asked(&model).len(), 3, "each turn is asked for once");
        assert_whole(&db, 3).await;
    }
}

#[tokio::test]
async fn a_worker_killed_while_the_model_thinks_costs_one_more_question_and_no_other_answer() {
    let hold = Hold::default();
    let model = scripted(script()).await;
    let (db, _study) = asked_for("").await;
    let gate = Gate::at_step(&db, 1).await;
    let first = worker(&db, &model);
    until_waiting(&db, "advisory", 1).await;
    first.kill().await;
    // The third turn is held: its worker dies as well.
    model.next([Answer::Held(hold.clone(), String::new())]);
    gate.open().await;
    let second = worker(&db, &model);
    hold.reached.notified().await;
    second.kill().await;
    hold.open.notify_one();
    let third = worker(&db, &model);
    let text = until_answered(&db).await;
    third.stop().await;
    assert!(text.contains("平均年龄 57 岁"), "{text}");
    let log = asked(&model);
    assert_eq!(log.len(), 4, "steps + 1");
    assert_eq!(log[2].body, log[3].body, "the very same question");
    assert_whole(&db, 3).await;
}

#[tokio::test]
async fn turns_and_tokens_are_counted_over_the_death_of_a_worker() {
    // Two turns alone: after the kill there must be one left, and not two.
    let model = scripted(script()).await;
    let (db, _study) = asked_for("[llm]\nreact_max_iterations = 2").await;
    let gate = Gate::at_step(&db, 0).await;
    let first = worker(&db, &model);
    until_waiting(&db, "advisory", 1).await;
    first.kill().await;
    gate.open().await;
    let second = worker(&db, &model);
    let text = until_answered(&db).await;
    second.stop().await;
    assert!(text.contains("无法在有限步骤内完成"), "{text}");
    let log = asked(&model);
    assert_eq!(log.len(), 2);
    assert!(log[1].body.get("tools").is_none());

    let model = scripted(script()).await;
    let (db, _study) = asked_for("[llm]\nreact_max_tokens = 100").await;
    let gate = Gate::at_step(&db, 0).await;
    let first = worker(&db, &model);
    until_waiting(&db, "advisory", 1).await;
    first.kill().await;
    gate.open().await;
    let second = worker(&db, &model);
    let text = until_answered(&db).await;
    second.stop().await;
    assert!(text.contains("这个问题比较复杂"), "{text}");
    assert_eq!(asked(&model).len(), 1);
}
