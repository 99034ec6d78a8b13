//! `Idempotency-Key`: a repeat gets the first answer. Pages of the ledger: every row once.

use serde_json::{Value, json};

use crate::support::app::{TOKEN, TestApp};
use crate::support::study::{StudyFolder, Subject};

async fn keyed(app: &TestApp, path: &str, key: &str, body: &Value) -> (u16, Value) {
    let response = app
        .http()
        .post(app.url(path))
        .bearer_auth(TOKEN)
        .header("Idempotency-Key", key)
        .body(body.to_string())
        .send()
        .await
        .unwrap();
    let status = response.status().as_u16();
    (
        status,
        serde_json::from_str(&response.text().await.unwrap()).unwrap(),
    )
}

async fn app() -> TestApp {
    let young = Subject::fit("P001").with("age", "16");
    TestApp::with(&StudyFolder::with_eligibility("lung", [young])).await
}

#[tokio::test]
async fn a_repeated_message_is_stored_once_and_gets_the_first_answer() {
    let app = app().await;
    let path = "/api/v1/projects/lung/messages";
    let body = json!({ "user": "ZhangSan", "text": "质控 P001" });
    let sends = (0..4).map(|_| keyed(&app, path, "key-1", &body));
    let answers = futures::future::join_all(sends).await;
    assert!(
        answers.iter().all(|answer| *answer == answers[0]),
        "{answers:?}"
    );
    assert_eq!(answers[0].0, 202);
    app.settled().await;
    assert_eq!(keyed(&app, path, "key-1", &body).await, answers[0]);
    assert_eq!(app.count("iit_inbox").await, 1);
    assert_eq!(app.count("iit_task_run").await, 1);

    let other = json!({ "user": "ZhangSan", "text": "质控 P002" });
    let (status, refusal) = keyed(&app, path, "key-1", &other).await;
    assert_eq!(status, 422);
    insta::assert_snapshot!(refusal["detail"].as_str().unwrap());
    assert_eq!(app.count("iit_inbox").await, 1);
    // Another key, or none, is another message.
    assert_ne!(keyed(&app, path, "key-2", &body).await.1, answers[0].1);
    app.chat("lung", "ZhangSan", "质控 P001").await;
    assert_eq!(app.count("iit_inbox").await, 3);
    for key in ["", &"k".repeat(201)] {
        assert_eq!(keyed(&app, path, key, &body).await.0, 400);
    }
    app.stop().await;
}

#[tokio::test]
async fn a_repeated_check_is_one_batch_and_a_repeated_decision_one_decision() {
    let app = app().await;
    let body = json!({ "records": ["P001"] });
    let path = "/api/v1/projects/lung/qc";
    let first = keyed(&app, path, "key", &body).await;
    assert_eq!(keyed(&app, path, "key", &body).await, first);
    app.settled().await;
    assert_eq!(app.count("iit_batches").await, 1);

    let action = app.action("lung", "IE-01").await;
    let path = format!(
        "/api/v1/pending-actions/{}/decision",
        action["id"].as_str().unwrap()
    );
    let body = json!({ "decision": "dismiss", "reason": "方案允许" });
    let first = keyed(&app, &path, "key", &body).await;
    assert_eq!(first.0, 200);
    assert_eq!(keyed(&app, &path, "key", &body).await, first);
    assert_eq!(
        app.count("iit_audit_log WHERE action = 'pending_action.dismissed'")
            .await,
        1
    );
    app.stop().await;
}

#[tokio::test]
async fn a_refused_request_may_be_repeated_with_the_same_key_once_it_is_right() {
    let app = app().await;
    let path = "/api/v1/projects/lung/messages";
    let (status, _) = keyed(&app, path, "key", &json!({ "user": "a", "text": " " })).await;
    assert_eq!(status, 422);
    let (status, _) = keyed(&app, path, "key", &json!({ "user": "a", "text": "帮助" })).await;
    assert_eq!(status, 202);
    app.stop().await;
}

#[tokio::test]
async fn pages_of_the_ledger_hold_every_row_once() {
    let subjects = (1..=450).map(|no| Subject::fit(&format!("P{no:03}")).with("age", "16"));
    let app = TestApp::with(&StudyFolder::with_eligibility("lung", subjects)).await;
    app.qc("lung", None).await;
    let base = "/api/v1/projects/lung/pending-actions";
    let (mut query, mut sizes, mut ids) = (String::new(), Vec::new(), Vec::new());
    loop {
        let response = app
            .http()
            .get(app.url(&format!("{base}{query}")))
            .bearer_auth(TOKEN)
            .send()
            .await
            .unwrap();
        let next = response
            .headers()
            .get("link")
            .map(|link| link.to_str().unwrap().to_owned());
        let rows: Vec<Value> = serde_json::from_str(&response.text().await.unwrap()).unwrap();
        sizes.push(rows.len());
        ids.extend(
            rows.iter()
                .map(|row| row["id"].as_str().unwrap().to_owned()),
        );
        let Some(next) = next else { break };
        query = next.split(['<', '>']).nth(1).unwrap().to_owned();
    }
    assert_eq!(sizes, [200, 200, 50]);
    let mut once = ids.clone();
    once.sort();
    once.dedup();
    assert_eq!((ids.len(), once.len()), (450, 450));
    assert_eq!(
        app.ledger("lung", "record=P007&status=open&rule=IE-01")
            .await
            .len(),
        1
    );
    assert!(app.ledger("lung", "status=closed").await.is_empty());
    app.stop().await;
}

#[tokio::test]
async fn the_next_page_keeps_the_filters_of_the_first() {
    let subjects = (1..=250).map(|no| {
        Subject::fit(&format!("P{no:03}"))
            .with("age", "16")
            .with("ecog", "3")
    });
    let app = TestApp::with(&StudyFolder::with_eligibility("lung", subjects)).await;
    app.qc("lung", None).await;
    let url = app.url("/api/v1/projects/lung/pending-actions?rule=IE-03");
    let response = app.http().get(url).bearer_auth(TOKEN).send().await.unwrap();
    let link = response.headers()["link"].to_str().unwrap().to_owned();
    let next = link.split(['<', '>']).nth(1).unwrap();
    let rest = app.ledger("lung", next.trim_start_matches('?')).await;
    assert_eq!(rest.len(), 50);
    assert!(rest.iter().all(|row| row["rule"] == "IE-03"));
    app.stop().await;
}
