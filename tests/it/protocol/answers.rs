//! Questions about the protocol where no model is there: the passages themselves.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed expectation is the test's verdict"
)]

use iit_manager::boot::cli::protocol::Prepared;
use iit_manager::types::clock::Clock;

use super::dify::{FakeDify, Says, passages};
use crate::support::app::TestApp;
use crate::support::postgres::TestDb;
use crate::support::study::StudyFolder;

async fn store_demo(app: &TestApp, project: &str) {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/demo/protocol_V1.0.md");
    let prepared = Prepared::read(std::path::Path::new(file), Some("方案"), None).unwrap();
    prepared.store(&app.db.pool, project).await.unwrap();
}

async fn answer(app: &TestApp, question: &str) -> String {
    let message = app.chat("lung", "LiSi", question).await;
    message["replies"][0]["text"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn the_passages_are_shown_word_for_word_with_their_place() {
    let study = StudyFolder::with_eligibility("lung", []);
    let app = TestApp::with(&study).await;
    assert!(
        answer(&app, "方案里的访视窗口是多少天")
            .await
            .contains("iit protocol add")
    );
    store_demo(&app, "lung").await;
    let text = answer(&app, "方案里的访视窗口是多少天").await;
    assert!(
        text.contains("【《方案》V1.0 §5.2】") && text.contains("V4 | 第 2 周 | 第 14 天 | ±5 天"),
        "{text}"
    );
    insta::assert_snapshot!(text);
    insta::assert_snapshot!(answer(&app, "方案对奥希替尼有什么规定").await);
    app.stop().await;
}

#[tokio::test]
async fn a_study_set_up_for_dify_asks_dify_and_says_so_when_it_is_away() {
    let server = FakeDify::start(passages(&["窗口 ±3 天"])).await;
    let variables = [
        ("DIFY_BASE_URL", server.base.clone()),
        ("DIFY_API_KEY", "dataset-secret".to_owned()),
    ];
    let study = StudyFolder::with_eligibility("lung", []);
    study.write_project("[protocol]\nkind = \"dify\"\ndataset_id = \"ds-lung\"\n");
    let app = TestApp::start_with(TestDb::new().await, Clock::system(), &variables).await;
    app.apply(&study).await;
    let text = answer(&app, "方案里的访视窗口是多少天").await;
    assert!(
        text.contains("《方案V2.docx》") && text.contains("窗口 ±3 天"),
        "{text}"
    );
    assert_eq!(server.asked()[0].0, "/v1/datasets/ds-lung/retrieve");
    app.stop().await;

    let trouble = FakeDify::start(Says::Http(500, "<html>".to_owned())).await;
    let variables = [
        ("DIFY_BASE_URL", trouble.base.clone()),
        ("DIFY_API_KEY", "dataset-secret".to_owned()),
    ];
    let app = TestApp::start_with(TestDb::new().await, Clock::system(), &variables).await;
    app.apply(&study).await;
    insta::assert_snapshot!(answer(&app, "方案里的访视窗口是多少天").await);
    app.stop().await;
}
