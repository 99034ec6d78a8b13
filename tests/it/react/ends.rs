//! The ends: no answer, but never silence.

use serde_json::json;

use super::{
    app_with, asked, assert_nothing_happened, outcomes, read, run, says, scripted, shown, study,
    text,
};
use crate::support::app::TestApp;
use crate::support::fake_llm::{Answer, FakeLlm};

async fn app_with_limits(model: &FakeLlm, limits: &str) -> TestApp {
    let study = study();
    study.write_project(&format!("[llm]\n{limits}"));
    TestApp::with_model(&study, model).await
}

#[tokio::test]
async fn a_model_that_only_ever_looks_is_asked_without_tools_in_its_last_turn_and_then_ended() {
    let model = FakeLlm::answering(|request| {
        if !super::is_reasoning(request) {
            return says("不清楚");
        }
        let turn = request.said_by("assistant").len();
        Answer::call("search_records", json!({ "limit": turn + 1 }))
    })
    .await;
    let app = app_with(&model).await;
    let message = app.chat("lung", "ZhangSan", "查下最近入组的病人").await;
    assert_eq!(
        text(&message).lines().next().unwrap(),
        "抱歉，我无法在有限步骤内完成这个查询。请尝试更具体的问题。"
    );
    let log = asked(&model);
    assert_eq!(log.len(), 5);
    assert!(
        log[..4]
            .iter()
            .all(|request| request.body.get("tools").is_some())
    );
    assert!(log[4].body.get("tools").is_none());
    let run = run(&app).await;
    assert_eq!(outcomes(&run), ["turn", "turn", "turn", "turn", "gave_up"]);
    assert_eq!(run["final_state"], "out_of_turns");
    app.stop().await;
}

#[tokio::test]
async fn a_model_that_answers_in_its_last_turn_is_heard() {
    let model = scripted(vec![
        read("P001"),
        read("P002"),
        says("P001 45 岁，P002 60 岁。"),
    ])
    .await;
    let app = app_with_limits(&model, "react_max_iterations = 3").await;
    let message = app
        .chat("lung", "ZhangSan", "P001 和 P002 的年龄是多少")
        .await;
    assert!(
        text(&message).starts_with("P001 45 岁，P002 60 岁。"),
        "{message}"
    );
    app.stop().await;
}

#[tokio::test]
async fn a_question_that_uses_up_its_tokens_ends_politely_and_they_are_counted_from_rows() {
    let model = scripted(vec![
        Answer::call(
            "search_records",
            json!({ "fields": ["age", "sex", "history", "enroll_date"] }),
        ),
        says("不会问到这里。"),
    ])
    .await;
    let app = app_with_limits(&model, "react_max_tokens = 120").await;
    let message = app.chat("lung", "ZhangSan", "查下最近入组的病人").await;
    assert_eq!(
        text(&message).lines().next().unwrap(),
        "抱歉，这个问题比较复杂，请尝试更具体的描述。"
    );
    assert_eq!(asked(&model).len(), 1);
    assert_eq!(run(&app).await["final_state"], "over_budget");
    app.stop().await;
}

#[tokio::test]
async fn tools_that_keep_failing_are_handed_to_a_person_and_the_coordinators_are_told() {
    let model = scripted(vec![
        Answer::call("read_clinical_data", json!({ "record_id": "P999" })),
        Answer::call("dance", json!({})),
        says("不会问到这里。"),
    ])
    .await;
    let app = app_with(&model).await;
    app.says("ZhangSan", "P001 的年龄是多少").await;
    let messages = app.wecom.wait_for_messages(2).await;
    let to = |user: &str| {
        let found = messages.iter().find(|message| message.to == [user]);
        found
            .unwrap_or_else(|| panic!("{user}: {messages:?}"))
            .content
            .clone()
    };
    assert!(to("ZhangSan").starts_with("抱歉，我遇到了一些技术问题"));
    assert!(
        to("LiSi").starts_with("【转人工】"),
        "the study's coordinator"
    );
    app.settled().await;
    assert_eq!(asked(&model).len(), 2);
    assert_eq!(outcomes(&run(&app).await), ["turn", "gave_up"]);
    let action = app.action("lung", "react/tools_failed").await;
    assert_eq!([&action["record"], &action["status"]], ["P001", "open"]);
    insta::assert_snapshot!(action["message"].as_str().unwrap());
    app.stop().await;
}

#[tokio::test]
async fn data_that_can_not_be_read_blow_the_fuse_in_one_turn() {
    let study = study();
    let model = scripted(vec![Answer::Calls(
        String::new(),
        vec![
            ("search_records".to_owned(), "{}".to_owned()),
            ("aggregate".to_owned(), json!({ "op": "count" }).to_string()),
        ],
    )])
    .await;
    let app = TestApp::with_model(&study, &model).await;
    study.break_records("no export\n1\n");
    let body = json!({ "user": "ZhangSan", "text": "查下最近入组的病人" });
    let (_, sent) = app.post("/api/v1/projects/lung/messages", &body).await;
    app.settled_at_once().await;
    let path = format!("/api/v1/messages/{}", sent["message_id"].as_str().unwrap());
    let message = app.get(&path).await.1;
    assert!(
        text(&message).starts_with("抱歉，我遇到了一些技术问题"),
        "{message}"
    );
    assert_eq!(app.ledger("lung", "rule=react/tools_failed").await.len(), 1);
    app.stop().await;
}

#[tokio::test]
async fn a_wish_to_change_data_is_led_to_the_sop_and_only_the_person_starts_it() {
    let model = scripted(vec![
        Answer::call(
            "update_record",
            json!({ "record_id": "P001", "field": "age", "value": "46", "reason": "笔误" }),
        ),
        says("不会问到这里。"),
    ])
    .await;
    let app = app_with(&model).await;
    let reply = app
        .ask("ZhangSan", "P001 的年龄不对，应该是 46 吧，是多少")
        .await;
    insta::assert_snapshot!(super::without_time(&reply));
    app.settled().await;
    assert_eq!(run(&app).await["final_state"], "wishes_write");
    assert_nothing_happened(&app).await;
    // The number stands for the choice.
    let led = app.ask("ZhangSan", "1").await;
    assert!(led.contains("修改"), "{led}");
    app.settled().await;
    assert_nothing_happened(&app).await;
    app.stop().await;
}

#[tokio::test]
async fn a_bill_nobody_paid_is_said_at_once() {
    let model = scripted(vec![Answer::Http(402, Vec::new(), String::new())]).await;
    let app = app_with(&model).await;
    let message = app.chat("lung", "ZhangSan", "查下最近入组的病人").await;
    insta::assert_snapshot!(text(&message));
    app.stop().await;
}

#[tokio::test]
async fn a_server_that_stays_broken_ends_in_words_and_not_in_silence() {
    let model = scripted(vec![Answer::Http(500, Vec::new(), "<html>".to_owned())]).await;
    let app = app_with(&model).await;
    let body = json!({ "user": "ZhangSan", "text": "查下最近入组的病人" });
    let (_, sent) = app.post("/api/v1/projects/lung/messages", &body).await;
    app.settled_at_once().await;
    let path = format!("/api/v1/messages/{}", sent["message_id"].as_str().unwrap());
    let message = app.get(&path).await.1;
    assert_eq!(message["status"], "answered");
    assert!(text(&message).contains("没有查完"), "{message}");
    assert_eq!(run(&app).await["status"], "failed");
    // The person was told and asks again: retried, the job would have nobody to answer.
    crate::support::binary::Iit::on(&app.db)
        .run(&["queue", "retry", "--queue", "llm"])
        .await;
    assert_eq!(
        app.count("iit_jobs WHERE kind = 'react_step' AND state = 'dead'")
            .await,
        1
    );
    app.stop_with_dead(&["react_step"]).await;
}

#[tokio::test]
async fn a_day_without_budget_is_said_so() {
    let model = scripted(vec![says("不会问到这里。")]).await;
    let app = app_with_limits(&model, "day_max_tokens = 100").await;
    let message = app.chat("lung", "ZhangSan", "查下最近入组的病人").await;
    assert!(text(&message).contains("额度已用完"), "{message}");
    assert_eq!(asked(&model).len(), 0);
    app.stop().await;
}

#[tokio::test]
async fn a_cancelled_question_is_answered_as_one_that_came_to_nothing() {
    let hold = crate::support::fake_llm::Hold::default();
    let model = scripted(vec![Answer::Held(hold.clone(), "P001 45 岁。".to_owned())]).await;
    let app = app_with(&model).await;
    let body = json!({ "user": "ZhangSan", "text": "P001 的年龄是多少" });
    let (_, sent) = app.post("/api/v1/projects/lung/messages", &body).await;
    hold.reached.notified().await;
    crate::support::binary::Iit::on(&app.db)
        .ok(&[
            "queue",
            "cancel",
            "--kind",
            "react_step",
            "--reason",
            "不问了",
        ])
        .await;
    let path = format!("/api/v1/messages/{}", sent["message_id"].as_str().unwrap());
    crate::support::app::eventually("the end of the message", async || {
        let message = app.get(&path).await.1;
        (message["status"] == "answered").then_some(())
    })
    .await;
    assert!(text(&app.get(&path).await.1).contains("没有查完"));
    hold.open.notify_one();
    app.stop().await;
}

#[tokio::test]
async fn results_are_shown_word_for_word_between_marks() {
    let model = scripted(vec![read("P001"), says("P001 今年 45 岁。")]).await;
    let app = app_with(&model).await;
    app.chat("lung", "ZhangSan", "P001 的年龄是多少").await;
    let log = asked(&model);
    let result = shown(&log[1])[0];
    let mark = result.lines().next().unwrap().trim_matches(['<', '>']);
    assert_eq!(mark.len(), 12);
    assert!(result.ends_with(&format!("</{mark}>")), "{result}");
    app.stop().await;
}
