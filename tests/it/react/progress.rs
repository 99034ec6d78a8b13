//! “One moment, please”: once, and never after the answer.

use serde_json::json;

use super::{says, scripted, study};
use crate::support::app::{TestApp, eventually};
use crate::support::binary::Iit;
use crate::support::fake_llm::{Answer, FakeLlm, Hold};
use crate::support::postgres::TestDb;

async fn app_after(model: &FakeLlm, seconds: &str) -> TestApp {
    let mut variables = model.variables();
    variables.push(("IIT_PROGRESS_AFTER_S", seconds.to_owned()));
    let clock = iit_manager::types::clock::Clock::system();
    let app = TestApp::start_with(TestDb::new().await, clock, &variables).await;
    app.apply(&study()).await;
    app
}

/// Lets the job that looks at the clock look now.
async fn look_now(app: &TestApp) {
    sqlx::query("UPDATE iit_jobs SET run_at = now() WHERE kind = 'progress'")
        .execute(&app.db.pool)
        .await
        .unwrap();
    app.wiring.wake().queues(["chat".to_owned()]);
}

#[tokio::test]
async fn a_person_who_waits_is_told_once_and_then_answered() {
    let hold = Hold::default();
    let model = scripted(vec![Answer::Held(hold.clone(), "没有查到。".to_owned())]).await;
    let app = app_after(&model, "60").await;
    app.says("ZhangSan", "查下最近入组的病人").await;
    hold.reached.notified().await;
    assert_eq!(app.wecom.messages().len(), 0, "not before its time");
    look_now(&app).await;
    let told = app.wecom.wait_for_messages(1).await;
    assert_eq!(told[0].content, "正在查询，请稍候…");
    // Asked for again, by whatever: it was said.
    sqlx::query(
        "INSERT INTO iit_jobs (queue, kind, payload, job_key, max_attempts)
         SELECT 'chat', 'progress', payload, job_key, 3 FROM iit_jobs WHERE kind = 'progress'",
    )
    .execute(&app.db.pool)
    .await
    .unwrap();
    look_now(&app).await;
    eventually("the end of the second look", async || {
        let open =
            app.count("iit_jobs WHERE kind = 'progress' AND state IN ('available', 'running')");
        (open.await == 0).then_some(())
    })
    .await;
    hold.open.notify_one();
    let all = app.wecom.wait_for_messages(2).await;
    assert!(all[1].content.starts_with("没有查到。"), "{all:?}");
    app.settled().await;
    assert_eq!(app.wecom.messages().len(), 2);
    app.stop().await;
}

#[tokio::test]
async fn over_rest_the_text_stands_beside_the_status_and_is_no_reply() {
    let hold = Hold::default();
    let model = scripted(vec![Answer::Held(hold.clone(), "没有查到。".to_owned())]).await;
    let app = app_after(&model, "60").await;
    let body = json!({ "user": "ZhangSan", "text": "查下最近入组的病人" });
    let (_, sent) = app.post("/api/v1/projects/lung/messages", &body).await;
    let path = format!("/api/v1/messages/{}", sent["message_id"].as_str().unwrap());
    hold.reached.notified().await;
    look_now(&app).await;
    let waiting = eventually("the word", async || {
        let message = app.get(&path).await.1;
        message["progress"].is_string().then_some(message)
    })
    .await;
    assert_eq!(
        [&waiting["status"], &waiting["progress"]],
        ["working", "正在查询，请稍候…"]
    );
    assert_eq!(waiting["replies"], json!([]));
    hold.open.notify_one();
    let answered = eventually("the answer", async || {
        let message = app.get(&path).await.1;
        (message["status"] == "answered").then_some(message)
    })
    .await;
    assert_eq!(answered["progress"], json!(null));
    assert_eq!(answered["replies"].as_array().unwrap().len(), 1);
    app.stop().await;
}

#[tokio::test]
async fn whoever_was_answered_is_not_told_to_wait() {
    let model = scripted(vec![says("没有查到。")]).await;
    let app = app_after(&model, "60").await;
    app.ask("ZhangSan", "查下最近入组的病人").await;
    look_now(&app).await;
    app.settled().await;
    assert_eq!(app.wecom.messages().len(), 1);
    assert_eq!(app.count("iit_outbox WHERE is_progress").await, 0);
    app.stop().await;
}

#[tokio::test]
async fn a_word_that_could_not_leave_before_the_answer_is_taken_back() {
    let hold = Hold::default();
    let model = scripted(vec![Answer::Held(hold.clone(), "没有查到。".to_owned())]).await;
    let app = app_after(&model, "60").await;
    let iit = Iit::on(&app.db);
    iit.ok(&["queue", "pause", "--queue", "deliver"]).await;
    app.says("ZhangSan", "查下最近入组的病人").await;
    hold.reached.notified().await;
    look_now(&app).await;
    eventually("the word", async || {
        (app.count("iit_outbox WHERE is_progress").await == 1).then_some(())
    })
    .await;
    hold.open.notify_one();
    eventually("the answer", async || {
        (app.count("iit_outbox WHERE NOT is_progress").await == 1).then_some(())
    })
    .await;
    iit.ok(&["queue", "resume", "--queue", "deliver"]).await;
    let all = app.wecom.wait_for_messages(1).await;
    assert!(all[0].content.starts_with("没有查到。"), "{all:?}");
    app.settled().await;
    assert_eq!(app.wecom.messages().len(), 1);
    assert_eq!(app.count("iit_outbox WHERE is_progress").await, 0);
    app.stop().await;
}

#[tokio::test]
async fn zero_seconds_switch_it_off() {
    let model = scripted(vec![says("没有查到。")]).await;
    let app = app_after(&model, "0").await;
    app.ask("ZhangSan", "查下最近入组的病人").await;
    assert_eq!(app.count("iit_jobs WHERE kind = 'progress'").await, 0);
    app.stop().await;
}
