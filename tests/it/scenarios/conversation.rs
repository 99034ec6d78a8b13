//! Whom a message means: 他, a typed number, an id the study does not have, several wishes at once.

use serde_json::json;

use crate::support::app::{TestApp, assert_trace, tally};
use crate::support::study::{StudyFolder, Subject};

fn study() -> StudyFolder {
    let subjects = [
        Subject::fit("P001"),
        Subject::fit("P002").with("age", "16"),
        Subject::fit("01-701-1015"),
        Subject::fit("01-702-1015"),
    ];
    StudyFolder::with_eligibility("lung", subjects)
}

#[tokio::test]
async fn somebody_nobody_spoke_of_is_asked_about_with_choices_to_type() {
    let app = TestApp::with(&study()).await;
    insta::assert_snapshot!(app.ask("ZhangSan", "他怎么样了").await);
    // An id alone completes the question that waits.
    let reply = app.ask("ZhangSan", "质控他").await;
    assert!(reply.starts_with("请问您指的是哪位患者？"), "{reply}");
    let reply = app.ask("ZhangSan", "P002").await;
    assert!(
        reply.contains("受试者 P002") && reply.contains("年龄<18岁"),
        "{reply}"
    );
    app.settled().await;
    assert_eq!(app.count("iit_task_run").await, 1);
    app.stop().await;
}

#[tokio::test]
async fn a_patient_discussed_long_ago_is_offered_and_a_typed_1_completes_the_wish() {
    let app = TestApp::with(&study()).await;
    app.ask("ZhangSan", "质控 ID=P001").await;
    sqlx::query("UPDATE iit_conversations SET last_patient_at = now() - interval '31 minutes'")
        .execute(&app.db.pool)
        .await
        .unwrap();
    let reply = app.ask("ZhangSan", "质控他").await;
    insta::assert_snapshot!(reply);
    assert_eq!(app.count("iit_task_run").await, 1, "asking starts nothing");
    let reply = app.ask("ZhangSan", "9").await;
    assert!(reply.contains("没有这个选项"), "{reply}");
    let reply = app.ask("ZhangSan", "1").await;
    assert!(reply.contains("受试者 P001"), "{reply}");
    app.settled().await;
    assert_eq!(app.count("iit_task_run").await, 2);
    app.stop().await;
}

#[tokio::test]
async fn he_is_the_patient_just_discussed_for_the_person_who_discussed_him() {
    let app = TestApp::with(&study()).await;
    app.ask("ZhangSan", "质控 P001").await;
    let reply = app.ask("ZhangSan", "质控他").await;
    assert!(reply.contains("受试者 P001"), "{reply}");
    let id = app.says("ZhangSan", "他的入排状态").await;
    app.wecom.wait_for_messages(3).await;
    app.settled().await;
    let message = app.wecom_message(id).await;
    assert_eq!(
        message["intents"][0]["entities"]["record_ids"],
        json!(["P001"])
    );
    insta::assert_snapshot!(message["replies"][0]["text"].as_str().unwrap());
    // What one person talked about means nothing to another.
    let reply = app.ask("LiSi", "质控他").await;
    assert!(reply.starts_with("请问您指的是哪位患者？"), "{reply}");
    assert!(!reply.contains("P001"), "{reply}");
    assert_trace(&app, "P001").await;
    app.stop().await;
}

#[tokio::test]
async fn several_wishes_are_answered_in_order_in_one_reply() {
    let app = TestApp::with(&study()).await;
    let reply = app
        .ask("ZhangSan", "先质控 P002，再质控 P001，今天天气怎么样")
        .await;
    insta::assert_snapshot!(reply);
    app.settled().await;
    assert_eq!(app.wecom.messages().len(), 1);
    assert_eq!(app.count("iit_task_run").await, 2);
    app.stop().await;
}

#[tokio::test]
async fn an_id_the_study_does_not_have_is_answered_with_near_ones_to_pick_from() {
    let app = TestApp::with(&study()).await;
    let reply = app.ask("ZhangSan", "质控 ID=1015").await;
    insta::assert_snapshot!(reply);
    assert_eq!(
        app.count("iit_task_run").await,
        0,
        "never the wrong patient"
    );
    let reply = app.ask("ZhangSan", "2").await;
    assert!(reply.contains("受试者 01-702-1015"), "{reply}");
    let reply = app.ask("ZhangSan", "质控 ID=P777").await;
    insta::assert_snapshot!(reply);
    app.settled().await;
    assert_eq!(app.count("iit_task_run").await, 1);
    app.stop().await;
}

#[tokio::test]
async fn with_two_questions_in_one_reply_a_number_means_the_choice_it_stands_before() {
    let app = TestApp::with(&study()).await;
    let reply = app.ask("ZhangSan", "质控他，再质控 ID=1015").await;
    insta::assert_snapshot!(reply);
    let number = reply
        .lines()
        .find(|line| line.ends_with(". 01-702-1015"))
        .and_then(|line| line.split('.').next())
        .unwrap();
    let reply = app.ask("ZhangSan", number).await;
    assert!(reply.contains("受试者 01-702-1015"), "{reply}");
    app.settled().await;
    assert_eq!(app.count("iit_task_run").await, 1);
    app.stop().await;
}

#[tokio::test]
async fn known_and_unknown_ids_of_one_message_are_each_answered() {
    let app = TestApp::with(&study()).await;
    let reply = app.ask("ZhangSan", "质控 P001 和 P777").await;
    assert!(reply.contains("受试者 P001"), "{reply}");
    assert!(reply.contains("研究中没有受试者 P777"), "{reply}");
    app.settled().await;
    app.stop().await;
}

#[tokio::test]
async fn the_same_message_three_times_is_one_run_and_one_reply() {
    let app = TestApp::with(&study()).await;
    let id = app.says("ZhangSan", "质控 P001").await;
    tokio::join!(
        app.says_as("ZhangSan", "质控 P001", id),
        app.says_as("ZhangSan", "质控 P001", id)
    );
    app.wecom.wait_for_messages(1).await;
    app.says_as("ZhangSan", "质控 P001", id).await;
    // A later message by the same person is handled after everything before it.
    app.ask("ZhangSan", "帮助").await;
    app.settled().await;
    assert_eq!(app.wecom.messages().len(), 2);
    assert_eq!(app.count("iit_task_run").await, 1);
    assert_eq!(app.count("iit_inbox").await, 2);
    app.stop().await;
}

#[tokio::test]
async fn requests_that_start_no_check_are_answered_politely() {
    let app = TestApp::with(&study()).await;
    for (text, wanted) in [
        ("今天天气怎么样", "超出了我的范围"),
        ("帮助", "质控 ID=001"),
        ("不要质控 P001", "不启动质控"),
        ("把 P001 的年龄改成 45", "请确认是否启动【修改 SOP】"),
        ("入排标准是什么", "尚未配置语言模型"),
    ] {
        let reply = app.ask("ZhangSan", text).await;
        assert!(reply.contains(wanted), "{text}: {reply}");
        assert!(reply.contains("关键词模式"), "degraded is said: {reply}");
    }
    app.settled().await;
    let (_, message) = (0, app.wecom_message(1).await);
    assert_eq!(message["replies"][0]["degraded"], true);
    assert_eq!(app.count("iit_task_run").await, 0);
    app.stop().await;
}

#[tokio::test]
async fn messages_over_rest_take_the_same_path() {
    let app = TestApp::with(&study()).await;
    let message = app.chat("lung", "ZhangSan", "质控 P002").await;
    assert_eq!(message["status"], "answered");
    let reply = &message["replies"][0];
    assert!(
        reply["text"].as_str().unwrap().contains("年龄<18岁"),
        "{reply}"
    );
    assert_eq!(reply["degraded"], true);
    let message = app.chat("lung", "ZhangSan", "他怎么样了").await;
    assert_eq!(
        message["intents"][0]["entities"]["record_ids"],
        json!(["P002"])
    );
    let message = app.chat("lung", "WangWu", "质控他").await;
    let chips = message["replies"][0]["chips"].as_array().unwrap().clone();
    assert!(
        chips.iter().any(|chip| chip["label"] == "全项目"),
        "{chips:?}"
    );
    app.settled().await;
    assert!(app.wecom.messages().is_empty());
    let kinds: Vec<String> = sqlx::query_scalar("SELECT kind FROM iit_jobs")
        .fetch_all(&app.db.pool)
        .await
        .unwrap();
    let kinds = tally(kinds.iter().map(String::as_str));
    assert_eq!(kinds, [("intent", 3), ("sop_step", 1)].into());
    app.stop().await;
}
