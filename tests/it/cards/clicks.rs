//! A click on a choice says what typing it says.

use serde_json::json;

use super::{answer_to, app_with_an_old_patient, asked, nothing_came_but_help, study};
use crate::support::app::{TestApp, eventually};
use crate::support::fake_wecom::Endpoint;

#[tokio::test]
async fn a_question_leaves_as_a_text_with_numbers_and_then_as_a_card() {
    let app = app_with_an_old_patient().await;
    let (question, card) = asked(&app, "ZhangSan", "质控他").await;
    assert!(question.contains("1. 是，P001"), "{question}");
    let mut sent = app.wecom.requests().pop().unwrap();
    assert_eq!(sent["template_card"], card.card);
    let task_id = card.task_id();
    let outbox = app
        .text("SELECT outbox_id::text FROM iit_outbox_parts WHERE kind = 'card'")
        .await
        .unwrap();
    assert_eq!(task_id, format!("chips-{}", outbox.replace('-', "")));
    sent["template_card"]["task_id"] = json!("[task id]");
    insta::assert_json_snapshot!(sent);
    app.settled().await;
    assert_eq!(app.count("iit_outbox_parts WHERE state <> 'sent'").await, 0);
    app.stop().await;
}

#[tokio::test]
async fn a_click_completes_the_wish_and_the_card_shows_the_choice() {
    let app = app_with_an_old_patient().await;
    let (_, card) = asked(&app, "ZhangSan", "质控他").await;
    let reply = answer_to(&app, "ZhangSan", &card, 0).await;
    assert!(
        reply.contains("受试者 P001") && reply.contains("未发现问题"),
        "{reply}"
    );
    let shown = app.wecom.wait_for_replaced(&card.task_id()).await;
    assert_eq!(shown, "已选 是，P001");
    app.settled().await;
    assert_eq!(app.count("iit_task_run").await, 2);
    // Read as a message like any other, in the inbox, by its sender's next words and over REST.
    let id = app
        .text("SELECT id::text FROM iit_inbox WHERE kind = 'event'")
        .await
        .unwrap();
    let (_, message) = app.get(&format!("/api/v1/messages/{id}")).await;
    assert_eq!(message["text"], "是，P001");
    assert_eq!(message["status"], "answered");
    assert_eq!(
        message["intents"][0]["entities"]["record_ids"],
        json!(["P001"])
    );
    let reply = app.ask("ZhangSan", "质控他").await;
    assert!(reply.contains("受试者 P001"), "{reply}");
    app.stop().await;
}

#[tokio::test]
async fn clicking_another_patient_asks_for_the_id_and_keeps_the_wish() {
    let app = app_with_an_old_patient().await;
    let (_, card) = asked(&app, "ZhangSan", "质控他").await;
    assert_eq!(card.buttons()[1], "其他患者");
    let reply = answer_to(&app, "ZhangSan", &card, 1).await;
    assert!(reply.contains("请直接回复患者编号"), "{reply}");
    let reply = app.ask("ZhangSan", "P002").await;
    assert!(
        reply.contains("受试者 P002") && reply.contains("年龄<18岁"),
        "{reply}"
    );
    app.stop().await;
}

#[tokio::test]
async fn long_ids_are_numbered_and_a_click_means_the_one_beside_its_number() {
    let app = TestApp::with(&study()).await;
    let (_, card) = asked(&app, "ZhangSan", "质控 ID=1015").await;
    assert_eq!(card.buttons(), ["选项 1", "选项 2"]);
    assert_eq!(
        card.card["horizontal_content_list"],
        json!([
            { "keyname": "选项 1", "value": "01-701-1015" },
            { "keyname": "选项 2", "value": "01-702-1015" }
        ])
    );
    let reply = answer_to(&app, "ZhangSan", &card, 1).await;
    assert!(
        reply.contains("受试者 01-702-1015") && reply.contains("年龄>75岁"),
        "{reply}"
    );
    let shown = app.wecom.wait_for_replaced(&card.task_id()).await;
    assert_eq!(shown, "已选 选项 2");
    app.stop().await;
}

#[tokio::test]
async fn with_two_questions_on_one_card_a_click_means_its_own() {
    let app = TestApp::with(&study()).await;
    let (text, card) = asked(&app, "ZhangSan", "质控他，再质控 ID=1015").await;
    let line = text.lines().find(|line| line.ends_with(". 01-702-1015"));
    let number: usize = line.unwrap().split('.').next().unwrap().parse().unwrap();
    let reply = answer_to(&app, "ZhangSan", &card, number - 1).await;
    assert!(reply.contains("受试者 01-702-1015"), "{reply}");
    app.settled().await;
    assert_eq!(app.count("iit_task_run").await, 1);
    app.stop().await;
}

#[tokio::test]
async fn of_many_clicks_on_one_card_the_first_counts() {
    let app = app_with_an_old_patient().await;
    let (_, card) = asked(&app, "ZhangSan", "质控他").await;
    let before = app.wecom.messages().len();
    // The same event delivered twice, the same button a second later, and another button.
    for (button, second) in [(0, 0), (0, 0), (0, 1), (1, 2), (2, 3)] {
        app.clicks("ZhangSan", &card, button, second).await;
    }
    let messages = app.wecom.wait_for_messages(before + 1).await;
    assert!(messages[before].content.contains("受试者 P001"));
    nothing_came_but_help(&app, "ZhangSan").await;
    assert_eq!(app.count("iit_task_run").await, 2);
    assert_eq!(app.count("iit_card_clicks").await, 1);
    assert_eq!(app.wecom.calls(Endpoint::UpdateCard), 1);
    assert_eq!(
        app.wecom.cards()[0].replaced.as_deref(),
        Some("已选 是，P001")
    );
    app.stop().await;
}

#[tokio::test]
async fn who_reads_in_the_plug_in_sees_no_card_and_answers_by_number() {
    let app = app_with_an_old_patient().await;
    app.wecom.reads_in_plugin("ZhangSan");
    let question = app.ask("ZhangSan", "质控他").await;
    assert!(question.contains("1. 是，P001"), "{question}");
    app.settled().await;
    assert_eq!(app.count("iit_outbox_parts WHERE kind = 'card'").await, 1);
    assert!(app.wecom.cards().is_empty());
    let reply = app.ask("ZhangSan", "1").await;
    assert!(reply.contains("受试者 P001"), "{reply}");
    app.stop().await;
}

#[tokio::test]
async fn an_answer_without_choices_has_no_card_and_rest_gets_none() {
    let app = TestApp::with(&study()).await;
    app.ask("ZhangSan", "质控 P001").await;
    let message = app.chat("lung", "WangWu", "质控他").await;
    let chips = &message["replies"][0]["chips"];
    assert_eq!(
        chips[0],
        json!({ "label": "全项目", "text": "对全项目做质控" })
    );
    app.settled().await;
    assert_eq!(app.count("iit_outbox_parts WHERE kind = 'card'").await, 0);
    app.stop().await;
}

#[tokio::test]
async fn a_click_whose_understanding_dies_is_answered_and_can_be_clicked_again() {
    let app = app_with_an_old_patient().await;
    let (_, card) = asked(&app, "ZhangSan", "质控他").await;
    app.hold_queue("chat").await;
    app.clicks("ZhangSan", &card, 0, 0).await;
    app.wait_for_jobs("chat", 3).await;
    // As after so many crashes.
    sqlx::query("UPDATE iit_jobs SET crashes = 3 WHERE queue = 'chat' AND state = 'available'")
        .execute(&app.db.pool)
        .await
        .unwrap();
    app.release_queue("chat").await;
    eventually("the apology", async || {
        let last = app.wecom.messages().pop()?;
        last.content.contains("遇到了一些技术问题").then_some(())
    })
    .await;
    let before = app.wecom.messages().len();
    app.clicks("ZhangSan", &card, 0, 1).await;
    let messages = app.wecom.wait_for_messages(before + 1).await;
    assert!(messages[before].content.contains("受试者 P001"));
    app.stop_with_dead(&["intent"]).await;
}
