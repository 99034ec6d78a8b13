//! A run that waits for a person: it holds no job, and one decision carries it on.

use crate::support::app::{TestApp, assert_trace, redacted};
use crate::support::study::{StudyFolder, Subject, reviewed_eligibility};
use serde_json::{Value, json};

async fn waiting() -> (TestApp, Value) {
    let study = StudyFolder::new("lung", [Subject::fit("P001").with("age", "16")]);
    study.write_skill("eligibility", &reviewed_eligibility());
    let app = TestApp::with(&study).await;
    let reply = app.ask("ZhangSan", "质控 P001").await;
    assert!(reply.contains("等待人工复核"), "{reply}");
    app.settled().await;
    let run = app.runs_of("P001").await.remove(0);
    assert_eq!([&run["status"], &run["node"]], ["waiting", "review"]);
    let action = app.action("lung", "eligibility/review").await;
    (app, action)
}

async fn end_of(app: &TestApp) -> [Value; 3] {
    app.settled().await;
    let run = app.runs_of("P001").await.remove(0);
    [&run["status"], &run["final_state"], &run["standing"]].map(Value::clone)
}

#[tokio::test]
async fn a_confirmed_review_takes_on_fail_and_the_violation_stays_open() {
    let (app, action) = waiting().await;
    assert_eq!(
        app.count("iit_jobs WHERE state IN ('available', 'running')")
            .await,
        0
    );
    let (status, body) = app.decide(&action, "confirm", "PI 已核对原始病历").await;
    assert_eq!((status, &body["status"]), (200, &json!("open")));
    assert_eq!(
        end_of(&app).await,
        ["done", "end_with_violation", "violation"]
    );
    assert_eq!(app.action("lung", "IE-01").await["status"], "open");
    let steps: Vec<Value> = app.runs_of("P001").await[0]["steps"]
        .as_array()
        .unwrap()
        .clone();
    let steps: Vec<&Value> = steps.iter().map(|step| &step["outcome"]).collect();
    assert_eq!(steps, ["fail", "waiting", "fail"]);
    assert_trace(&app, "P001").await;
    assert_eq!(app.wecom.messages().len(), 1, "the reply left before");
    app.stop().await;
}

#[tokio::test]
async fn a_dismissed_review_takes_on_pass() {
    let (app, action) = waiting().await;
    let (status, body) = app.decide(&action, "dismiss", "方案允许").await;
    assert_eq!((status, &body["status"]), (200, &json!("dismissed")));
    assert_eq!(end_of(&app).await, ["done", "end_success", "clean"]);
    assert_trace(&app, "P001").await;
    app.stop().await;
}

#[tokio::test]
async fn a_second_decision_on_a_review_is_refused() {
    for first in ["confirm", "dismiss"] {
        for second in ["confirm", "dismiss"] {
            let (app, action) = waiting().await;
            assert_eq!(app.decide(&action, first, "第一次").await.0, 200);
            let (status, body) = app.decide(&action, second, "第二次").await;
            assert_eq!(status, 409, "{first}, then {second}: {body}");
            let wanted = if first == "confirm" {
                "violation"
            } else {
                "clean"
            };
            assert_eq!(end_of(&app).await[2], wanted);
            app.stop().await;
        }
    }
}

#[tokio::test]
async fn two_decisions_at_once_are_one() {
    let (app, action) = waiting().await;
    let (one, two) = tokio::join!(
        app.decide(&action, "confirm", "同时"),
        app.decide(&action, "dismiss", "同时")
    );
    let mut statuses = [one.0, two.0];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409]);
    let wanted = if one.0 == 200 { "violation" } else { "clean" };
    assert_eq!(end_of(&app).await[2], wanted);
    app.stop().await;
}

#[tokio::test]
async fn a_decision_without_a_reason_or_of_no_kind_changes_nothing() {
    let (app, action) = waiting().await;
    let mut answers = Vec::new();
    for (decision, reason) in [
        ("confirm", ""),
        ("confirm", " \n"),
        ("approve", "因为"),
        ("close", "因为"),
    ] {
        let (status, body) = app.decide(&action, decision, reason).await;
        answers.push(json!([decision, status, body["detail"]]));
    }
    insta::assert_json_snapshot!(answers);
    let path = format!(
        "/api/v1/pending-actions/{}/decision",
        action["id"].as_str().unwrap()
    );
    let (status, _) = app.post(&path, &json!({ "decision": "confirm" })).await;
    assert_eq!(status, 422);
    assert_eq!(app.action("lung", "eligibility/review").await, action);
    assert_eq!(end_of(&app).await[0], "waiting");
    app.stop().await;
}

#[tokio::test]
async fn a_question_answered_lets_the_run_wait_on() {
    let (app, action) = waiting().await;
    assert_eq!(app.decide(&action, "answer", "已请中心核实").await.0, 200);
    assert_eq!(end_of(&app).await[0], "waiting");
    assert_eq!(
        app.decide(&action, "dismiss", "录入错误，已说明").await.0,
        200
    );
    assert_eq!(end_of(&app).await[2], "clean");
    app.stop().await;
}

#[tokio::test]
async fn a_newer_run_takes_the_place_of_the_one_that_waits() {
    let (app, action) = waiting().await;
    app.ask("ZhangSan", "质控 P001").await;
    app.settled().await;
    let states: Vec<Value> = app
        .runs_of("P001")
        .await
        .iter()
        .map(|run| json!([run["status"], run["final_state"]]))
        .collect();
    assert_eq!(
        states,
        [json!(["cancelled", "superseded"]), json!(["waiting", null])]
    );
    let now = app.action("lung", "eligibility/review").await;
    assert_eq!(now["id"], action["id"]);
    assert_eq!(app.decide(&now, "confirm", "确认").await.0, 200);
    app.settled().await;
    let runs = app.runs_of("P001").await;
    assert_eq!(
        [&runs[0]["status"], &runs[1]["status"]],
        ["cancelled", "done"]
    );
    app.stop().await;
}

#[tokio::test]
async fn an_edited_skill_does_not_touch_the_run_that_waits() {
    let study = StudyFolder::new("lung", [Subject::fit("P001").with("age", "16")]);
    study.write_skill("eligibility", &reviewed_eligibility());
    let app = TestApp::with(&study).await;
    app.ask("ZhangSan", "质控 P001").await;
    app.settled().await;
    // The new version has no review at all, and a confirmed one would not be a violation.
    study.write_skill("eligibility", &crate::support::study::eligibility());
    app.apply(&study).await;
    let action = app.action("lung", "eligibility/review").await;
    assert_eq!(app.decide(&action, "confirm", "确认").await.0, 200);
    app.settled().await;
    let run = app.runs_of("P001").await.remove(0);
    assert_eq!(
        [&run["skill_version"], &run["step_no"]],
        [&json!(1), &json!(3)]
    );
    assert_eq!(
        [&run["status"], &run["final_state"]],
        ["done", "end_with_violation"]
    );
    app.ask("ZhangSan", "质控 P001").await;
    app.settled().await;
    let run = app.runs_of("P001").await.remove(1);
    assert_eq!(
        [&run["skill_version"], &run["status"]],
        [&json!(2), &json!("done")]
    );
    insta::assert_json_snapshot!(redacted(run));
    app.stop().await;
}
