//! An answer is paid for once, also when the process dies with it. The workers are processes of their own.

use iit_manager::jobs::intent;
use iit_manager::store::inbox::{Channel, NewMessage};
use serde_json::json;

use super::{Ids, always, intents, keys, outcomes};
use crate::queue::program::{Gate, Program, until_waiting};
use crate::support::app::{TestApp, eventually};
use crate::support::fake_llm::{Answer, FakeLlm, Hold};
use crate::support::postgres::TestDb;
use crate::support::study::StudyFolder;

async fn asked_for(ids: &Ids, text: &str) -> (TestDb, StudyFolder) {
    let db = TestDb::new().await;
    let study = ids.study();
    TestApp::apply_to(&db, &study).await;
    let mut tx = db.pool.begin().await.unwrap();
    let message = NewMessage {
        channel: Channel::Rest,
        dedupe_key: None,
        project: Some("lung"),
        sender: "ZhangSan",
        kind: "text",
        text,
        detail: json!({}),
    };
    intent::receive(&mut tx, &message).await.unwrap().unwrap();
    tx.commit().await.unwrap();
    (db, study)
}

async fn answered(db: &TestDb) -> (bool, i64) {
    eventually("the answer", async || {
        let row: Option<(bool,)> =
            sqlx::query_as("SELECT degraded FROM iit_inbox WHERE status = 'answered'")
                .fetch_optional(&db.pool)
                .await
                .unwrap();
        row.map(|(degraded,)| degraded)
    })
    .await;
    sqlx::query_as("SELECT i.degraded, (SELECT count(*) FROM iit_outbox) FROM iit_inbox i LIMIT 1")
        .fetch_one(&db.pool)
        .await
        .unwrap()
}

async fn finish(db: &TestDb, model: &FakeLlm) -> (bool, i64) {
    let second = Program::worker(db, "chat", &model.variables());
    let end = answered(db).await;
    second.stop().await;
    end
}

#[tokio::test]
async fn a_worker_killed_between_the_answer_and_the_settlement_asks_nothing_again() {
    let ids = Ids::random();
    let model = always("OUT_OF_SCOPE").await;
    let (db, _study) = asked_for(&ids, "帮我想个团建方案").await;
    let gate = Gate::at_step(&db, 0).await;
    let first = Program::worker(&db, "chat", &model.variables());
    until_waiting(&db, "advisory", 1).await;
    first.kill().await;
    gate.open().await;
    assert_eq!(finish(&db, &model).await, (false, 1));
    assert_eq!(keys(&model.log()), ["0/1"], "asked once");
    assert_eq!(outcomes(&db).await, ["understood"]);
}

#[tokio::test]
async fn a_worker_killed_during_the_repair_repeats_only_the_repair() {
    let ids = Ids::random();
    let model = always("OUT_OF_SCOPE").await;
    let hold = Hold::default();
    model.next([
        Answer::Says("与研究无关".to_owned()),
        Answer::Held(hold.clone(), intents([])),
    ]);
    let (db, _study) = asked_for(&ids, "帮我想个团建方案").await;
    let first = Program::worker(&db, "chat", &model.variables());
    hold.reached.notified().await;
    first.kill().await;
    hold.open.notify_one();
    assert_eq!(finish(&db, &model).await, (false, 1));
    let log = model.log();
    assert_eq!(keys(&log), ["0/1", "1/1", "1/2"]);
    assert_eq!(log[1].body, log[2].body, "the very same question");
    assert_eq!(outcomes(&db).await, ["invalid_reply", "understood"]);
    let kinds: Vec<String> = sqlx::query_scalar("SELECT kind FROM iit_agent_trace ORDER BY seq")
        .fetch_all(&db.pool)
        .await
        .unwrap();
    assert_eq!(
        kinds,
        [
            "system",
            "history",
            "question",
            "reply",
            "correction",
            "reply"
        ]
    );
}
