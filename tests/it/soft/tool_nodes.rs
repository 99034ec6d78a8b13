//! Nodes that are one tool call: no model, the tool's own ruling.

use serde_json::{Value, json};

use super::{kinds, outcomes, run};
use crate::support::app::TestApp;
use crate::support::study::{StudyFolder, Subject};

fn node(tool: &str, args: Value) -> Value {
    json!({
        "start_node": "check",
        "nodes": { "check": {
            "type": "tool", "tool": tool, "args": args,
            "on_pass": "end_success", "on_fail": "end_with_violation",
            "on_not_evaluable": "end_review_required", "on_error": "end_review_required"
        }}
    })
}

async fn ran(subject: Subject, tool: &str, args: Value) -> (TestApp, Value) {
    let study = StudyFolder::new("lung", [subject, Subject::fit("P002")]);
    study.write_skill("visit", &node(tool, args));
    let app = TestApp::with(&study).await;
    app.qc("lung", Some(&["P001"])).await;
    let run = run(&app).await;
    (app, run)
}

#[tokio::test]
async fn a_visit_in_its_window_passes_and_the_call_stands_in_the_transcript() {
    let args = json!({ "record_id": "{record}", "visit_id": "V3" });
    let (app, run) = ran(Subject::fit("P001"), "check_visit_window", args).await;
    assert_eq!(outcomes(&run), ["pass"]);
    assert_eq!(
        [&run["final_state"], &run["standing"]],
        ["end_success", "clean"]
    );
    assert_eq!(kinds(&app, &run).await, ["calls", "result"]);
    assert!(app.ledger("lung", "").await.is_empty());
    app.stop().await;
}

#[tokio::test]
async fn a_visit_five_days_out_of_its_window_is_a_deviation() {
    // Day 28 ± 3 of 2026-03-02.
    let late = Subject::fit("P001").with("visit3_date", "2026-04-07");
    let (app, run) = ran(late, "check_visit_window", json!({ "visit_id": "V3" })).await;
    assert_eq!(outcomes(&run), ["fail"]);
    assert_eq!(
        [&run["final_state"], &run["standing"]],
        ["end_with_violation", "violation"]
    );
    let finding = app.action("lung", "visit/check").await;
    assert_eq!(
        [&finding["outcome"], &finding["severity"]],
        ["fail", "error"]
    );
    insta::assert_snapshot!(finding["message"].as_str().unwrap());
    app.stop().await;
}

#[tokio::test]
async fn a_visit_without_a_date_is_no_pass() {
    let open = Subject::fit("P001").with("visit3_date", "");
    let (app, run) = ran(open, "check_visit_window", json!({ "visit_id": "V3" })).await;
    assert_eq!(outcomes(&run), ["not_evaluable"]);
    assert_eq!(
        [&run["final_state"], &run["standing"]],
        ["end_review_required", "review"]
    );
    let finding = app.action("lung", "visit/check").await;
    assert_eq!(finding["severity"], "query");
    app.stop().await;
}

#[tokio::test]
async fn consent_after_enrolment_is_a_violation() {
    let late = Subject::fit("P001").with("icf_date", "2026-03-05");
    let args = json!({ "check_type": "informed_consent" });
    let (app, run) = ran(late, "check_ethics_compliance", args).await;
    assert_eq!(outcomes(&run), ["fail"]);
    let finding = app.action("lung", "visit/check").await;
    insta::assert_snapshot!(finding["message"].as_str().unwrap());
    app.stop().await;
}

#[tokio::test]
async fn one_open_check_among_fine_ones_is_no_pass() {
    // Nothing says which field tells a vulnerable subject.
    let (app, run) = ran(Subject::fit("P001"), "check_ethics_compliance", json!({})).await;
    assert_eq!(outcomes(&run), ["not_evaluable"]);
    app.stop().await;
}

#[tokio::test]
async fn a_tool_that_is_not_there_or_is_asked_wrongly_or_about_another_subject_is_an_error() {
    for (tool, args) in [
        ("read_chronicle", json!({})),
        ("check_visit_window", json!({ "visit_id": "V99" })),
        ("check_visit_window", json!({ "visit": "V3" })),
        ("read_clinical_data", json!({ "record_id": "P002" })),
        (
            "update_record",
            json!({ "values": { "age": 5 }, "reason": "x" }),
        ),
    ] {
        let (app, run) = ran(Subject::fit("P001"), tool, args).await;
        assert_eq!(outcomes(&run), ["error"], "{tool}");
        assert_eq!(run["standing"], "review");
        let finding = app.action("lung", "visit/check").await;
        assert_eq!(finding["outcome"], "not_evaluable");
        app.stop().await;
    }
}

#[tokio::test]
async fn a_tool_that_rules_nothing_passes_when_it_answered() {
    let (app, run) = ran(Subject::fit("P001"), "read_clinical_data", json!({})).await;
    assert_eq!(outcomes(&run), ["pass"]);
    app.stop().await;
}

#[tokio::test]
async fn a_notice_leaves_once_with_the_record_filled_in() {
    let args = json!({ "text": "请核对 {record}", "to": ["LiSi"] });
    let (app, run) = ran(Subject::fit("P001"), "send_notification", args).await;
    assert_eq!(outcomes(&run), ["pass"]);
    let text = app.text("SELECT text FROM iit_outbox").await.unwrap();
    assert_eq!(text, "请核对 P001");
    assert_eq!(app.count("iit_outbox").await, 1);
    app.stop().await;
}
