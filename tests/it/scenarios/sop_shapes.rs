//! SOPs as study teams wrote them, without a language model: what could not be checked is said.

use serde_json::json;

use crate::support::app::{TestApp, assert_trace};
use crate::support::study::{StudyFolder, Subject};

async fn app_with(file: &str, subject: Subject) -> TestApp {
    let study = StudyFolder::new("lung", [subject]);
    let path = format!("{}/tests/data/skills/{file}", env!("CARGO_MANIFEST_DIR"));
    let name = if file.ends_with(".txt") {
        "v24.jsonc"
    } else {
        file
    };
    study.write_skill_file(name, &std::fs::read_to_string(path).unwrap());
    TestApp::with(&study).await
}

/// A fit subject passes the hard node; the soft node after it can't run, and everybody is told.
async fn the_soft_node_is_left_to_a_person(file: &str, node: &str) -> String {
    let app = app_with(file, Subject::fit("P001")).await;
    let reply = app.ask("ZhangSan", "质控 P001").await;
    app.settled().await;
    let run = app.runs_of("P001").await.remove(0);
    assert_eq!(
        [&run["status"], &run["final_state"], &run["standing"]],
        ["done", "end_review_required", "review"]
    );
    let outcomes: Vec<_> = run["steps"].as_array().unwrap().iter().collect();
    assert_eq!(outcomes.len(), 2);
    assert_eq!(
        [&outcomes[0]["outcome"], &outcomes[1]["outcome"]],
        ["pass", "error"]
    );
    assert_eq!(outcomes[1]["node"], node);
    let ledger = app.ledger("lung", "status=open").await;
    assert_eq!(ledger.len(), 1, "{ledger:?}");
    assert_eq!(
        [&ledger[0]["outcome"], &ledger[0]["severity"]],
        ["not_evaluable", "query"]
    );
    assert!(!reply.contains("未发现问题"), "{reply}");
    assert_trace(&app, "P001").await;
    app.stop().await;
    reply
}

#[tokio::test]
async fn v24_runs_as_written_and_leaves_its_soft_nodes_to_a_person() {
    let reply = the_soft_node_is_left_to_a_person("v24.jsonc", "check_history").await;
    insta::assert_snapshot!(reply);
}

#[tokio::test]
async fn v24_out_of_markdown_runs_the_same() {
    the_soft_node_is_left_to_a_person("v24_markdown.txt", "check_history").await;
}

#[tokio::test]
async fn v26_runs_as_written_and_leaves_its_soft_nodes_to_a_person() {
    let reply = the_soft_node_is_left_to_a_person("v26.json", "history_check").await;
    insta::assert_snapshot!(reply);
}

#[tokio::test]
async fn v24_ends_with_error_for_somebody_too_young() {
    let app = app_with("v24.jsonc", Subject::fit("P001").with("age", "17")).await;
    insta::assert_snapshot!(app.ask("ZhangSan", "质控 P001").await);
    app.settled().await;
    let run = app.runs_of("P001").await.remove(0);
    assert_eq!(
        [&run["final_state"], &run["standing"]],
        ["end_with_error", "violation"]
    );
    assert_eq!(app.ledger("lung", "").await.len(), 1);
    app.stop().await;
}

#[tokio::test]
async fn v26_without_an_age_is_no_pass() {
    let app = app_with("v26.json", Subject::fit("P001").with("age", "")).await;
    insta::assert_snapshot!(app.ask("ZhangSan", "质控 P001").await);
    app.settled().await;
    let run = app.runs_of("P001").await.remove(0);
    // on_not_evaluable defaults to on_fail.
    assert_eq!(run["final_state"], "end_with_violation");
    let ledger = app.ledger("lung", "").await;
    assert_eq!(ledger.len(), 2, "both age rules: {ledger:?}");
    assert!(
        ledger
            .iter()
            .all(|row| row["outcome"] == "not_evaluable" && row["severity"] == "query")
    );
    app.stop().await;
}

#[tokio::test]
async fn a_form_nobody_opened_is_incomplete_not_fine() {
    let mut empty = Subject::fit("P001");
    for field in [
        "age",
        "ecog",
        "history",
        "sex",
        "enroll_date",
        "icf_date",
        "visit3_date",
        "baseline_complete",
    ] {
        empty = empty.with(field, "");
    }
    let app = app_with("v26.json", empty).await;
    let reply = app.ask("ZhangSan", "质控 P001").await;
    insta::assert_snapshot!(reply);
    app.settled().await;
    let run = app.runs_of("P001").await.remove(0);
    assert_eq!(
        [&run["final_state"], &run["standing"]],
        ["end_incomplete", "incomplete"]
    );
    assert!(app.ledger("lung", "").await.is_empty());
    app.stop().await;
}

#[tokio::test]
async fn a_notice_reaches_everybody_of_its_group_once() {
    let study = StudyFolder::new("lung", [Subject::fit("P001").with("age", "16")]);
    let mut config = crate::support::study::eligibility();
    config["nodes"]["check"]["on_fail"] = json!("tell");
    config["nodes"]["tell"] = json!({
        "type": "notify",
        "message": "受试者 {record}：\n{findings}",
        "to": ["everyone", "zhangsan"],
        "on_pass": "end_with_violation",
    });
    study.write_skill("eligibility", &config);
    let app = TestApp::with(&study).await;
    app.says("ZhangSan", "质控 P001").await;
    app.wecom.wait_for_messages(3).await;
    app.settled().await;
    let mut notices: Vec<(String, String)> = app
        .wecom
        .messages()
        .into_iter()
        .filter(|message| !message.content.contains("【质控】"))
        .map(|message| (message.to.join("|"), message.content))
        .collect();
    notices.sort();
    let text = "受试者 P001：\n1. 年龄<18岁（age=16）";
    assert_eq!(
        notices,
        ["LiSi", "ZhangSan"].map(|to| (to.to_owned(), text.to_owned()))
    );
    assert_eq!(app.count("iit_outbox WHERE state = 'sent'").await, 3);
    assert_trace(&app, "P001").await;
    app.stop().await;
}
