//! Choices as buttons: what leaves, what a click does, and what a click does not do.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed expectation is the test's verdict"
)]

mod clicks;
mod shown;
mod stale;
mod whose;

use crate::support::app::TestApp;
use crate::support::fake_wecom::ShownCard;
use crate::support::study::{StudyFolder, Subject};

/// A study with somebody fit, somebody too young, and two whose ids look alike.
fn study() -> StudyFolder {
    let subjects = [
        Subject::fit("P001"),
        Subject::fit("P002").with("age", "16"),
        Subject::fit("01-701-1015"),
        Subject::fit("01-702-1015").with("age", "80"),
    ];
    StudyFolder::with_eligibility("lung", subjects)
}

/// The program, and P001 discussed by ZhangSan so long ago that 他 is asked about.
async fn app_with_an_old_patient() -> TestApp {
    let app = TestApp::with(&study()).await;
    app.ask("ZhangSan", "质控 P001").await;
    let statement = "UPDATE iit_conversations SET last_patient_at = now() - interval '31 minutes'";
    sqlx::query(statement).execute(&app.db.pool).await.unwrap();
    app
}

/// Writes a message that is answered with a question; returns the question and its card.
async fn asked(app: &TestApp, user: &str, text: &str) -> (String, ShownCard) {
    let before = app.wecom.cards().len();
    let question = app.ask(user, text).await;
    let cards = app.wecom.wait_for_cards(before + 1).await;
    assert_eq!(cards[before].to, user);
    (question, cards[before].clone())
}

/// Clicks and waits for the one text that answers it.
async fn answer_to(app: &TestApp, user: &str, card: &ShownCard, button: usize) -> String {
    let before = app.wecom.messages().len();
    app.clicks(user, card, button, 0).await;
    let messages = app.wecom.wait_for_messages(before + 1).await;
    assert_eq!(messages[before].to, [user]);
    messages[before].content.clone()
}

/// The message everybody can handle after everything before it: what did nothing until then does nothing.
async fn nothing_came_but_help(app: &TestApp, user: &str) {
    let before = app.wecom.messages().len();
    let help = app.ask(user, "帮助").await;
    assert!(help.contains("我是临床研究助手"), "{help}");
    app.settled().await;
    assert_eq!(app.wecom.messages().len(), before + 1);
}
