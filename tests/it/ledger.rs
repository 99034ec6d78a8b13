//! A finding over its whole life: found, fixed, broken again, dismissed, closed; never twice, and every
//! change with its history and its audit row.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed expectation is the test's verdict"
)]

use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::study::{StudyFolder, Subject, eligibility, one_node, rule};

fn study() -> StudyFolder {
    StudyFolder::with_eligibility(
        "lung",
        [Subject::fit("P001").with("age", "16"), Subject::fit("P002")],
    )
}

async fn check(app: &TestApp) {
    app.qc("lung", Some(&["P001"])).await;
}

/// From, to, why and by whom, oldest first.
async fn history(app: &TestApp, action: &Value) -> Vec<[String; 4]> {
    let rows: Vec<(Option<String>, String, String, String)> = sqlx::query_as(
        "SELECT from_status, to_status, reason, actor FROM iit_pending_action_history
         WHERE action_id = $1::uuid ORDER BY id",
    )
    .bind(action["id"].as_str().unwrap())
    .fetch_all(&app.db.pool)
    .await
    .unwrap();
    rows.into_iter()
        .map(|(from, to, reason, actor)| [from.unwrap_or_default(), to, reason, actor])
        .collect()
}

/// Actions of the audit log about a row, oldest first.
async fn audited(app: &TestApp, action: &Value) -> Vec<String> {
    sqlx::query_scalar("SELECT action FROM iit_audit_log WHERE entity_id = $1 ORDER BY seq")
        .bind(action["id"].as_str().unwrap())
        .fetch_all(&app.db.pool)
        .await
        .unwrap()
}

#[tokio::test]
async fn the_same_finding_again_is_the_same_row_untouched() {
    let app = TestApp::with(&study()).await;
    check(&app).await;
    let first = app.ledger("lung", "").await;
    assert_eq!(first.len(), 1);
    check(&app).await;
    app.qc("lung", None).await;
    let message = app.chat("lung", "ZhangSan", "质控 P001").await;
    assert_eq!(message["status"], "answered");
    assert_eq!(app.ledger("lung", "").await, first);
    assert_eq!(history(&app, &first[0]).await.len(), 1);
    assert_eq!(audited(&app, &first[0]).await, ["pending_action.opened"]);
    app.stop().await;
}

#[tokio::test]
async fn fixed_data_proposes_to_close_and_broken_data_opens_again_with_all_of_its_history() {
    let mut study = study();
    let app = TestApp::with(&study).await;
    check(&app).await;
    let found = app.action("lung", "IE-01").await;
    study.set("P001", "age", "45");
    check(&app).await;
    let fixed = app.action("lung", "IE-01").await;
    assert_eq!(
        [&fixed["status"], &fixed["id"]],
        [&json!("close_proposed"), &found["id"]]
    );
    assert_eq!(fixed["created_at"], found["created_at"]);
    check(&app).await;
    study.set("P001", "age", "17");
    check(&app).await;
    let again = app.action("lung", "IE-01").await;
    assert_eq!(
        [&again["status"], &again["id"]],
        [&json!("open"), &found["id"]]
    );
    assert_eq!(again["message"], "年龄<18岁（age=17）");
    assert_eq!(again["values"], json!([{ "field": "age", "value": "17" }]));
    insta::assert_json_snapshot!(json!({
        "history": history(&app, &found).await,
        "audit": audited(&app, &found).await,
    }));
    app.stop().await;
}

#[tokio::test]
async fn a_changed_value_updates_the_message_of_an_open_finding() {
    let mut study = study();
    let app = TestApp::with(&study).await;
    check(&app).await;
    study.set("P001", "age", "15");
    check(&app).await;
    let action = app.action("lung", "IE-01").await;
    assert_eq!(
        [&action["status"], &action["message"]],
        ["open", "年龄<18岁（age=15）"]
    );
    assert_ne!(action["updated_at"], action["created_at"]);
    assert_eq!(
        audited(&app, &action).await,
        ["pending_action.opened", "pending_action.updated"]
    );
    app.stop().await;
}

#[tokio::test]
async fn a_dismissed_finding_stays_dismissed_until_its_values_change() {
    let mut study = study();
    let app = TestApp::with(&study).await;
    check(&app).await;
    let action = app.action("lung", "IE-01").await;
    assert_eq!(
        app.decide(&action, "dismiss", "方案修正案允许").await.0,
        200
    );
    check(&app).await;
    assert_eq!(app.action("lung", "IE-01").await["status"], "dismissed");
    study.set("P001", "age", "15");
    check(&app).await;
    let action = app.action("lung", "IE-01").await;
    assert_eq!(action["status"], "open");
    let last = history(&app, &action).await.pop().unwrap();
    assert_eq!(last[..2], ["dismissed", "open"]);
    app.stop().await;
}

#[tokio::test]
async fn a_dismissed_finding_whose_data_is_fixed_and_broken_the_same_way_stays_dismissed() {
    let mut study = study();
    let app = TestApp::with(&study).await;
    check(&app).await;
    let action = app.action("lung", "IE-01").await;
    app.decide(&action, "dismiss", "方案修正案允许").await;
    for age in ["45", "16"] {
        study.set("P001", "age", age);
        check(&app).await;
        assert_eq!(app.action("lung", "IE-01").await["status"], "dismissed");
    }
    app.stop().await;
}

#[tokio::test]
async fn a_closed_finding_that_is_found_again_is_open_again() {
    let app = TestApp::with(&study()).await;
    check(&app).await;
    let action = app.action("lung", "IE-01").await;
    assert_eq!(app.decide(&action, "close", "已更正").await.0, 200);
    check(&app).await;
    let again = app.action("lung", "IE-01").await;
    assert_eq!(
        [&again["status"], &again["id"]],
        [&json!("open"), &action["id"]]
    );
    assert_eq!(
        audited(&app, &action).await,
        [
            "pending_action.opened",
            "pending_action.closed",
            "pending_action.reopened"
        ]
    );
    let reason: Option<String> = app
        .text("SELECT reason FROM iit_audit_log WHERE action = 'pending_action.closed'")
        .await;
    assert_eq!(reason.as_deref(), Some("已更正"));
    app.stop().await;
}

#[tokio::test]
async fn only_a_person_closes_and_a_closed_row_takes_no_further_decision() {
    let mut study = study();
    let app = TestApp::with(&study).await;
    check(&app).await;
    study.set("P001", "age", "45");
    check(&app).await;
    let action = app.action("lung", "IE-01").await;
    let (status, body) = app.decide(&action, "close", "已核对").await;
    assert_eq!((status, &body["status"]), (200, &json!("closed")));
    for decision in ["close", "confirm", "dismiss", "answer"] {
        assert_eq!(
            app.decide(&action, decision, "再来").await.0,
            409,
            "{decision}"
        );
    }
    app.stop().await;
}

#[tokio::test]
async fn what_could_not_be_checked_does_not_count_as_fixed() {
    let mut study = study();
    let app = TestApp::with(&study).await;
    check(&app).await;
    study.set("P001", "age", "");
    check(&app).await;
    let action = app.action("lung", "IE-01").await;
    assert_eq!(
        [&action["status"], &action["outcome"]],
        ["open", "not_evaluable"]
    );
    study.remove("P001");
    app.qc("lung", None).await;
    assert_eq!(app.action("lung", "IE-01").await["status"], "open");
    app.stop().await;
}

#[tokio::test]
async fn a_rule_without_an_id_is_known_by_its_field_and_logic() {
    let study = study();
    let nameless = |logic: Value, message: &str| {
        let mut rule = rule("x", "age", logic, message);
        rule.as_object_mut().unwrap().remove("id");
        rule
    };
    let adult = || json!({ ">=": [{ "var": "age" }, 18] });
    study.write_skill("eligibility", &one_node(&[nameless(adult(), "太小")]));
    let app = TestApp::with(&study).await;
    check(&app).await;
    let first = app.ledger("lung", "").await.remove(0);
    // Another place in the file and other words: the same rule.
    let other = nameless(json!({ "<=": [{ "var": "age" }, 75] }), "太大");
    let moved = [other, nameless(adult(), "未满 18 岁")];
    study.write_skill("eligibility", &one_node(&moved));
    app.apply(&study).await;
    check(&app).await;
    let rows = app.ledger("lung", "").await;
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!(
        [&rows[0]["id"], &rows[0]["rule"]],
        [&first["id"], &first["rule"]]
    );
    assert_eq!(rows[0]["message"], "未满 18 岁（age=16）");
    // Another bound: another rule, and the old one's finding is nobody's to settle but a person's.
    let stricter = nameless(json!({ ">=": [{ "var": "age" }, 20] }), "未满 20 岁");
    study.write_skill("eligibility", &one_node(&[stricter]));
    app.apply(&study).await;
    check(&app).await;
    assert_eq!(app.ledger("lung", "status=open").await.len(), 2);
    app.stop().await;
}

#[tokio::test]
async fn findings_of_two_studies_with_the_same_subject_are_two_rows() {
    let app = TestApp::with(&study()).await;
    let colon = StudyFolder::with_eligibility("colon", [Subject::fit("P001").with("age", "16")]);
    app.apply(&colon).await;
    check(&app).await;
    app.qc("colon", None).await;
    let [one, two] = [
        app.action("lung", "IE-01").await,
        app.action("colon", "IE-01").await,
    ];
    assert_ne!(one["fingerprint"], two["fingerprint"]);
    app.stop().await;
}

#[tokio::test]
async fn two_checks_of_one_subject_at_once_leave_one_row() {
    let app = TestApp::with(&study()).await;
    let checks = (0..6).map(|_| app.qc("lung", Some(&["P001"])));
    let batches = futures::future::join_all(checks).await;
    assert!(
        batches.iter().all(|batch| batch["done"] == 1),
        "{batches:?}"
    );
    let rows = app.ledger("lung", "").await;
    assert_eq!(rows.len(), 1);
    assert_eq!(history(&app, &rows[0]).await.len(), 1);
    app.stop().await;
}

#[tokio::test]
async fn every_change_of_settings_has_its_audit_row() {
    let study = study();
    let app = TestApp::with(&study).await;
    app.apply(&study).await;
    study.write_project("target_enrollment_note = 1");
    study.write_project("[report]\nrecipients = [\"admin_group\"]\n");
    let mut config = eligibility();
    config["nodes"]["check"]["rules"][0]["logic"] = json!({ ">=": [{ "var": "age" }, 20] });
    study.write_skill("eligibility", &config);
    app.apply(&study).await;
    let rows: Vec<(String, String, bool, bool)> = sqlx::query_as(
        "SELECT action, entity_id, old IS NULL, new IS NULL FROM iit_audit_log ORDER BY seq",
    )
    .fetch_all(&app.db.pool)
    .await
    .unwrap();
    let rows: Vec<(&str, &str, bool, bool)> = rows
        .iter()
        .map(|(action, id, old, new)| (action.as_str(), id.as_str(), *old, *new))
        .collect();
    assert_eq!(
        rows,
        [
            ("project.created", "lung", true, false),
            ("skill.created", "eligibility", true, false),
            ("project.changed", "lung", false, false),
            ("skill.changed", "eligibility", false, false),
        ]
    );
    app.stop().await;
}

#[tokio::test]
async fn steps_and_audit_rows_refuse_to_be_changed() {
    let app = TestApp::with(&study()).await;
    check(&app).await;
    for statement in [
        "UPDATE iit_task_step SET outcome = 'pass'",
        "DELETE FROM iit_task_step",
        "TRUNCATE iit_task_step",
        "DELETE FROM iit_task_run",
        "TRUNCATE iit_task_run CASCADE",
        "UPDATE iit_audit_log SET actor = 'nobody'",
        "DELETE FROM iit_audit_log",
        "TRUNCATE iit_audit_log",
    ] {
        let refused = sqlx::query(statement)
            .execute(&app.db.pool)
            .await
            .unwrap_err();
        let code = refused
            .as_database_error()
            .unwrap()
            .code()
            .unwrap()
            .into_owned();
        assert!(code == "42501" || code == "23503", "{statement}: {refused}");
        assert!(
            code == "42501" || statement.contains("iit_task_run"),
            "{statement}: {refused}"
        );
    }
    assert_eq!(app.count("iit_task_step").await, 1);
    app.stop().await;
}
