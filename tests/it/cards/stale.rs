//! A click that answers nothing: on a question that is past, by somebody else, on a card that is none.

use super::{answer_to, app_with_an_old_patient, asked, nothing_came_but_help};
use crate::support::fake_wecom::Endpoint;

const PAST: &str = "这张卡片上的问题已经过去了";

#[tokio::test]
async fn a_click_after_a_newer_question_is_told_so_once_and_starts_nothing() {
    let app = app_with_an_old_patient().await;
    let (_, old) = asked(&app, "ZhangSan", "质控他").await;
    let (_, new) = asked(&app, "ZhangSan", "质控 ID=1015").await;
    let reply = answer_to(&app, "ZhangSan", &old, 0).await;
    assert!(reply.starts_with(PAST), "{reply}");
    assert_eq!(app.wecom.wait_for_replaced(&old.task_id()).await, "已失效");
    app.settled().await;
    assert_eq!(app.count("iit_task_run").await, 1);
    // The newer question still waits, and the dead card is answered no more.
    app.clicks("ZhangSan", &old, 1, 1).await;
    let reply = answer_to(&app, "ZhangSan", &new, 0).await;
    assert!(reply.contains("受试者 01-701-1015"), "{reply}");
    app.stop().await;
}

#[tokio::test]
async fn the_same_question_asked_again_is_another_question() {
    let app = app_with_an_old_patient().await;
    let (_, old) = asked(&app, "ZhangSan", "质控他").await;
    let (_, new) = asked(&app, "ZhangSan", "质控他").await;
    assert_ne!(old.task_id(), new.task_id());
    assert_eq!(old.buttons(), new.buttons());
    let reply = answer_to(&app, "ZhangSan", &old, 2).await;
    assert!(reply.starts_with(PAST), "{reply}");
    let reply = answer_to(&app, "ZhangSan", &new, 0).await;
    assert!(reply.contains("受试者 P001"), "{reply}");
    app.stop().await;
}

#[tokio::test]
async fn a_question_answered_by_its_number_is_past() {
    let app = app_with_an_old_patient().await;
    let (_, card) = asked(&app, "ZhangSan", "质控他").await;
    let reply = app.ask("ZhangSan", "1").await;
    assert!(reply.contains("受试者 P001"), "{reply}");
    let reply = answer_to(&app, "ZhangSan", &card, 2).await;
    assert!(reply.starts_with(PAST), "{reply}");
    app.settled().await;
    assert_eq!(app.count("iit_task_run").await, 2);
    assert_eq!(app.count("iit_batches").await, 2);
    app.stop().await;
}

#[tokio::test]
async fn a_message_about_something_else_makes_the_question_past() {
    let app = app_with_an_old_patient().await;
    let (_, card) = asked(&app, "ZhangSan", "质控他").await;
    app.ask("ZhangSan", "今天天气怎么样").await;
    let reply = answer_to(&app, "ZhangSan", &card, 0).await;
    assert!(reply.starts_with(PAST), "{reply}");
    app.stop().await;
}

#[tokio::test]
async fn somebody_elses_click_does_nothing_and_leaves_the_card_to_its_reader() {
    let app = app_with_an_old_patient().await;
    let (_, card) = asked(&app, "ZhangSan", "质控他").await;
    app.clicks("LiSi", &card, 0, 0).await;
    nothing_came_but_help(&app, "LiSi").await;
    assert_eq!(app.count("iit_task_run").await, 1);
    assert_eq!(app.wecom.calls(Endpoint::UpdateCard), 0);
    // WeCom writes ids in any case.
    let before = app.wecom.messages().len();
    app.clicks("zhangsan", &card, 0, 1).await;
    let messages = app.wecom.wait_for_messages(before + 1).await;
    assert!(messages[before].content.contains("受试者 P001"));
    app.stop().await;
}

#[tokio::test]
async fn a_card_or_a_button_that_was_never_sent_does_nothing() {
    let app = app_with_an_old_patient().await;
    let (_, card) = asked(&app, "ZhangSan", "质控他").await;
    let answered = app
        .text("SELECT id::text FROM iit_outbox ORDER BY created_at LIMIT 1")
        .await
        .unwrap();
    let no_card = format!("chips-{}", answered.replace('-', ""));
    let task = card.task_id();
    for (task_id, key) in [
        (task.as_str(), "chip-3"),
        (&task, "chip-5"),
        (&task, "chip-99"),
        (&task, "chip--1"),
        (&task, "1"),
        (&task, ""),
        (&task, "fb:up:ans_42"),
        (&no_card, "chip-0"),
        ("chips-0197a2b0000070008000000000000042", "chip-0"),
        ("fb-ans_42", "chip-0"),
        ("'; DROP TABLE iit_outbox; --", "chip-0"),
        ("", "chip-0"),
    ] {
        app.clicks_key("ZhangSan", task_id, key, 0).await;
    }
    app.settled().await;
    assert_eq!(app.count("iit_inbox WHERE kind = 'event'").await, 12);
    assert_eq!(app.count("iit_inbox WHERE status <> 'answered'").await, 0);
    assert_eq!(app.count("iit_card_clicks").await, 0);
    assert_eq!(app.count("iit_task_run").await, 1);
    // None of it was a message: the question still waits.
    let reply = answer_to(&app, "ZhangSan", &card, 0).await;
    assert!(reply.contains("受试者 P001"), "{reply}");
    app.stop().await;
}

#[tokio::test]
async fn who_left_the_study_in_between_is_refused() {
    let study = super::study();
    let app = crate::support::app::TestApp::with(&study).await;
    let (_, card) = asked(&app, "LiSi", "质控 ID=1015").await;
    let text = std::fs::read_to_string(study.project_file()).unwrap();
    study.write_whole_project(&text.replace("wecom_user = \"LiSi\"", "wecom_user = \"ZhaoLiu\""));
    app.apply(&study).await;
    let reply = answer_to(&app, "LiSi", &card, 0).await;
    assert!(reply.contains("还不是任何研究项目的成员"), "{reply}");
    app.settled().await;
    assert_eq!(app.count("iit_task_run").await, 0);
    app.stop().await;
}
