//! "质控 ID=…" for one subject: what is found, what is said, and what stands in the tables.

use serde_json::json;

use crate::support::app::{TestApp, assert_trace, redacted};
use crate::support::study::{StudyFolder, Subject, one_node, rule};

#[tokio::test]
async fn a_subject_of_16_breaks_the_age_rule_and_stands_in_the_ledger() {
    let young = Subject::fit("P001").with("age", "16").with("ecog", "1");
    let study = StudyFolder::with_eligibility("lung", [young]);
    let app = TestApp::with(&study).await;
    let reply = app.ask("ZhangSan", "质控 ID=P001").await;
    insta::assert_snapshot!(reply);
    app.settled().await;
    let ledger = app.ledger("lung", "").await;
    insta::assert_json_snapshot!(redacted(json!(ledger)));
    let runs = app.runs_of("P001").await;
    insta::assert_json_snapshot!(redacted(json!(runs)));
    assert_trace(&app, "P001").await;

    let message = app.wecom_message(1).await;
    assert_eq!(message["status"], "answered");
    assert_eq!(message["runs"], json!([runs[0]["id"]]));
    assert_eq!(message["replies"][0]["state"], "sent");
    app.stop().await;
}

#[tokio::test]
async fn a_subject_within_all_limits_ends_in_success_and_leaves_no_finding() {
    let study = StudyFolder::with_eligibility("lung", [Subject::fit("P001")]);
    let app = TestApp::with(&study).await;
    let reply = app.ask("ZhangSan", "质控 ID=P001").await;
    insta::assert_snapshot!(reply);
    app.settled().await;
    let runs = app.runs_of("P001").await;
    assert_eq!(runs.len(), 1);
    assert_eq!(
        [
            &runs[0]["status"],
            &runs[0]["final_state"],
            &runs[0]["standing"]
        ],
        ["done", "end_success", "clean"]
    );
    assert_eq!(runs[0]["steps"][0]["outcome"], "pass");
    assert_trace(&app, "P001").await;
    assert!(app.ledger("lung", "").await.is_empty());
    app.stop().await;
}

#[tokio::test]
async fn a_visit_five_days_out_of_its_window_is_a_deviation_with_both_dates() {
    // Day 28 ± 3 after 2 March is 27 March to 2 April; 7 April is five days late.
    let late = Subject::fit("P001").with("visit3_date", "2026-04-07");
    let last_day = Subject::fit("P002").with("visit3_date", "2026-04-02");
    let study = StudyFolder::new("lung", [late, last_day]);
    let logic = json!({ "function_name": "visit_window", "args": { "visit": "V3" } });
    let rules = [rule("VW-03", "visit3_date", logic, "V3 超窗")];
    study.write_skill("visit_window", &one_node(&rules));
    let app = TestApp::with(&study).await;
    let reply = app.ask("ZhangSan", "质控 P001").await;
    insta::assert_snapshot!(reply);
    let reply = app.ask("ZhangSan", "质控 P002").await;
    assert!(reply.contains("未发现问题"), "{reply}");
    app.settled().await;
    let action = app.action("lung", "VW-03").await;
    assert_eq!(action["record"], "P001");
    let message = action["message"].as_str().unwrap();
    for part in ["2026-03-02", "2026-04-07", "5"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert_trace(&app, "P001").await;
    assert_trace(&app, "P002").await;
    app.stop().await;
}

#[tokio::test]
async fn consent_after_enrollment_is_an_ethics_violation() {
    let late = Subject::fit("P001").with("icf_date", "2026-03-05");
    let same_day = Subject::fit("P002").with("icf_date", "2026-03-02");
    let unknown = Subject::fit("P003").with("icf_date", "");
    let study = StudyFolder::new("lung", [late, same_day, unknown]);
    let logic = json!({ "function_name": "informed_consent", "args": {} });
    let rules = [rule("ETH-1", "icf_date", logic, "入组早于签署知情同意")];
    study.write_skill("ethics", &one_node(&rules));
    let app = TestApp::with(&study).await;
    insta::assert_snapshot!(app.ask("ZhangSan", "检查 P001 的伦理").await);
    let reply = app.ask("ZhangSan", "质控 P002").await;
    assert!(reply.contains("未发现问题"), "{reply}");
    // A blank consent date must not look like a consent.
    insta::assert_snapshot!(app.ask("ZhangSan", "质控 P003").await);
    app.settled().await;
    let outcome = |row: &serde_json::Value| format!("{} {}", row["record"], row["outcome"]);
    let rows: Vec<String> = app
        .ledger("lung", "rule=ETH-1")
        .await
        .iter()
        .map(outcome)
        .collect();
    assert_eq!(rows.len(), 2, "{rows:?}");
    let runs = app.runs_of("P001").await;
    assert_eq!(runs[0]["standing"], "violation");
    assert_ne!(app.runs_of("P003").await[0]["standing"], "clean");
    for record in ["P001", "P002", "P003"] {
        assert_trace(&app, record).await;
    }
    app.stop().await;
}
