//! The breaker: one provider in trouble is found out once, not by each job anew.

use super::{app_with, outcomes, run, study};
use crate::support::app::{TestApp, eventually};
use crate::support::fake_llm::{Answer, FakeLlm};
use crate::support::study::Subject;

async fn provider(app: &TestApp) -> Option<(String, bool)> {
    sqlx::query_as("SELECT state, wants_person FROM iit_llm_providers")
        .fetch_optional(&app.db.pool)
        .await
        .unwrap()
}

/// As if the breaker's time were over.
async fn time_passes(app: &TestApp) {
    sqlx::query("UPDATE iit_llm_providers SET open_until = now() WHERE state <> 'closed'")
        .execute(&app.db.pool)
        .await
        .unwrap();
}

#[tokio::test]
async fn an_unpaid_bill_is_found_out_once_and_everybody_is_told_what_was_not_checked() {
    let model = FakeLlm::passing().await;
    let body = r#"{"error":{"message":"Insufficient Balance","code":"invalid_request_error"}}"#;
    model.always(Some(Answer::Http(402, Vec::new(), body.to_owned())));
    let app = app_with(&model).await;
    app.qc("lung", None).await;
    app.qc("lung", None).await;
    app.qc("lung", None).await;
    assert_eq!(model.log().len(), 1, "the second and third did not ask");
    assert_eq!(provider(&app).await, Some(("open".to_owned(), true)));
    let finding = app.action("lung", "history/history").await;
    insta::assert_snapshot!(finding["message"].as_str().unwrap());

    // Paid; the next probe finds out.
    model.always(None);
    time_passes(&app).await;
    app.qc("lung", None).await;
    assert_eq!(provider(&app).await, Some(("closed".to_owned(), false)));
    let runs = app.runs_of("P001").await;
    assert_eq!(outcomes(runs.last().unwrap()), ["pass"]);
    app.stop().await;
}

#[tokio::test]
async fn five_failures_in_a_row_hold_everybody_back_and_one_probe_lets_them_go_on() {
    let model = FakeLlm::passing().await;
    model.always(Some(Answer::Http(503, Vec::new(), String::new())));
    let subjects: Vec<Subject> = (0..6).map(|n| Subject::fit(&format!("P{n:03}"))).collect();
    let app = TestApp::with_model(&study(subjects), &model).await;
    app.post(
        "/api/v1/projects/lung/qc",
        &serde_json::json!({ "records": null }),
    )
    .await;
    eventually("the open breaker", async || {
        (provider(&app).await?.0 == "open").then_some(())
    })
    .await;
    eventually("everybody waiting", async || {
        let waiting =
            app.count("iit_jobs WHERE state = 'available' AND run_at > now() AND queue = 'llm'");
        (waiting.await == 6).then_some(())
    })
    .await;
    let asked = model.log().len();
    assert!((5..=6).contains(&asked), "{asked}");
    model.always(None);
    time_passes(&app).await;
    app.settled_at_once().await;
    assert_eq!(provider(&app).await, Some(("closed".to_owned(), false)));
    assert_eq!(app.count("iit_task_run WHERE standing = 'clean'").await, 6);
    app.stop().await;
}

#[tokio::test]
async fn a_server_that_asks_to_slow_down_is_left_alone_and_nobody_loses_an_attempt() {
    let model = FakeLlm::passing().await;
    let wait = vec![("retry-after", "7".to_owned())];
    model.next([Answer::Http(
        429,
        wait,
        r#"{"error":{"code":1302}}"#.to_owned(),
    )]);
    let app = app_with(&model).await;
    app.post(
        "/api/v1/projects/lung/qc",
        &serde_json::json!({ "records": null }),
    )
    .await;
    let attempt = eventually("the job waiting", async || {
        sqlx::query_scalar::<_, i32>(
            "SELECT attempt FROM iit_jobs WHERE state = 'available' AND run_at > now() AND kind = 'sop_step'",
        )
        .fetch_optional(&app.db.pool)
        .await
        .unwrap()
    })
    .await;
    assert_eq!(attempt, 0, "waiting uses up nothing");
    assert_eq!(provider(&app).await, Some(("open".to_owned(), false)));
    time_passes(&app).await;
    app.settled_at_once().await;
    assert_eq!(outcomes(&run(&app).await), ["pass"]);
    app.stop().await;
}

#[tokio::test]
async fn a_wrong_key_needs_a_person_and_a_wrong_model_name_is_no_fault_of_the_provider() {
    let model = FakeLlm::passing().await;
    let app = app_with(&model).await;
    model.next([Answer::Http(
        404,
        Vec::new(),
        r#"{"error":{"code":"model_not_found"}}"#.to_owned(),
    )]);
    model.next([Answer::Http(
        404,
        Vec::new(),
        r#"{"error":{"code":"model_not_found"}}"#.to_owned(),
    )]);
    app.qc("lung", None).await;
    assert_eq!(outcomes(&run(&app).await), ["error"]);
    assert_ne!(provider(&app).await.map(|p| p.0), Some("open".to_owned()));
    model.next([Answer::Http(401, Vec::new(), String::new())]);
    app.qc("lung", None).await;
    assert_eq!(provider(&app).await, Some(("open".to_owned(), true)));
    app.stop().await;
}

#[tokio::test]
async fn being_turned_away_for_nothing_ever_so_often_is_no_question_asked() {
    let model = FakeLlm::passing().await;
    let busy = Answer::Http(429, vec![("retry-after", "0".to_owned())], String::new());
    model.next(vec![busy; 12]);
    let app = app_with(&model).await;
    app.post(
        "/api/v1/projects/lung/qc",
        &serde_json::json!({ "records": null }),
    )
    .await;
    eventually("the answer", async || {
        time_passes(&app).await;
        sqlx::query("UPDATE iit_jobs SET run_at = now() WHERE state = 'available'")
            .execute(&app.db.pool)
            .await
            .unwrap();
        app.wiring.wake().queues(["llm".to_owned()]);
        (app.count("iit_task_run WHERE status = 'done'").await == 1).then_some(())
    })
    .await;
    let run = run(&app).await;
    assert_eq!(outcomes(&run), ["pass"]);
    assert_eq!(model.log().len(), 13);
    assert_eq!(run["steps"][0]["attempt"], 1, "no attempt was used up");
    app.stop().await;
}
