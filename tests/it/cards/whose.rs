//! Which study: asked by a card, too.

use super::{answer_to, asked};
use crate::support::app::TestApp;
use crate::support::study::{StudyFolder, Subject};

async fn app_with(ids: [&str; 2]) -> TestApp {
    let [first, second] = ids.map(|id| StudyFolder::with_eligibility(id, [Subject::fit("P001")]));
    let app = TestApp::with(&first).await;
    app.apply(&second).await;
    app
}

#[tokio::test]
async fn a_click_chooses_the_study_and_the_first_wish_is_done_there() {
    let app = app_with(["colon", "lung"]).await;
    let (question, card) = asked(&app, "ZhangSan", "质控 P001").await;
    assert!(question.contains("2. 研究 lung"), "{question}");
    assert_eq!(card.buttons(), ["研究 colon", "研究 lung"]);
    let reply = answer_to(&app, "ZhangSan", &card, 1).await;
    assert!(
        reply.contains("研究 lung") && reply.contains("受试者 P001"),
        "{reply}"
    );
    // Remembered; the card is used up.
    let reply = app.ask("ZhangSan", "质控 P001").await;
    assert!(reply.contains("研究 lung"), "{reply}");
    app.clicks("ZhangSan", &card, 0, 1).await;
    let reply = app.ask("ZhangSan", "质控 P001").await;
    assert!(reply.contains("研究 lung"), "{reply}");
    app.stop().await;
}

#[tokio::test]
async fn a_study_whose_id_is_a_number_is_not_taken_for_a_place_in_the_list() {
    let app = app_with(["0", "1"]).await;
    let (_, card) = asked(&app, "ZhangSan", "质控 P001").await;
    assert_eq!(card.buttons(), ["研究 0", "研究 1"]);
    let reply = answer_to(&app, "ZhangSan", &card, 1).await;
    assert!(reply.contains("研究 1"), "{reply}");
    app.stop().await;
}

#[tokio::test]
async fn a_click_on_which_study_after_it_was_typed_is_past() {
    let app = app_with(["colon", "lung"]).await;
    let (_, card) = asked(&app, "ZhangSan", "质控 P001").await;
    app.ask("ZhangSan", "1").await;
    let reply = answer_to(&app, "ZhangSan", &card, 1).await;
    assert!(reply.starts_with("这张卡片上的问题已经过去了"), "{reply}");
    let reply = app.ask("ZhangSan", "质控 P001").await;
    assert!(reply.contains("研究 colon"), "{reply}");
    app.stop().await;
}

#[tokio::test]
async fn a_question_of_one_study_is_past_when_another_is_talked_about() {
    let app = app_with(["colon", "lung"]).await;
    asked(&app, "ZhangSan", "质控 P001").await;
    app.ask("ZhangSan", "colon").await;
    let statement = "UPDATE iit_conversations SET last_patient_at = now() - interval '31 minutes'";
    sqlx::query(statement).execute(&app.db.pool).await.unwrap();
    let (_, card) = asked(&app, "ZhangSan", "质控他").await;
    assert_eq!(card.buttons()[0], "是，P001");
    app.ask("ZhangSan", "lung").await;
    let reply = answer_to(&app, "ZhangSan", &card, 0).await;
    assert!(reply.starts_with("这张卡片上的问题已经过去了"), "{reply}");
    app.settled().await;
    assert_eq!(app.count("iit_task_run").await, 1);
    app.stop().await;
}

#[tokio::test]
async fn who_joined_a_second_study_in_between_is_told_that_the_question_is_past() {
    let lung = StudyFolder::with_eligibility("lung", [Subject::fit("P001")]);
    let app = TestApp::with(&lung).await;
    let (_, card) = asked(&app, "ZhangSan", "质控他").await;
    app.apply(&StudyFolder::with_eligibility(
        "colon",
        [Subject::fit("P001")],
    ))
    .await;
    let reply = answer_to(&app, "ZhangSan", &card, 0).await;
    assert!(reply.starts_with("这张卡片上的问题已经过去了"), "{reply}");
    app.settled().await;
    assert_eq!(app.count("iit_task_run").await, 0);
    app.stop().await;
}
