//! What a soft rule may look at beside the record it is shown, and what of it is believed.

use serde_json::{Value, json};

use super::{kinds, outcomes, run};
use crate::queue::program::{Gate, Program, until_batches_done, until_waiting};
use crate::support::app::TestApp;
use crate::support::binary::Iit;
use crate::support::fake_llm::{Answer, FakeLlm, Request};
use crate::support::postgres::TestDb;
use crate::support::study::{StudyFolder, Subject};

/// A soft rule with these tools, over P001 and P002.
fn study(tools: &[&str]) -> StudyFolder {
    let other = Subject::fit("P002").with("history", "别人的秘密病史");
    let study = StudyFolder::new("lung", [Subject::fit("P001"), other]);
    let skill = json!({
        "start_node": "window",
        "nodes": { "window": {
            "type": "soft_instruction", "instruction": "V3 访视须在方案窗口内", "tools": tools,
            "on_pass": "end_success", "on_fail": "end_review_required", "on_error": "end_review_required"
        }}
    });
    study.write_skill("visits", &skill);
    study
}

/// A model that takes these turns one after the other; asked the same again, it answers the same.
async fn scripted(script: Vec<Answer>) -> FakeLlm {
    FakeLlm::answering(move |request| {
        let turn = request.said_by("assistant").len();
        let last = script.last().unwrap();
        script.get(turn).unwrap_or(last).clone()
    })
    .await
}

fn window(record: &str) -> Answer {
    Answer::call(
        "check_visit_window",
        json!({ "record_id": record, "visit_id": "V3" }),
    )
}

fn verdict(verdict: &str, evidence: &Value) -> Answer {
    let answer = json!({ "verdict": verdict, "reason": "依据工具结果", "evidence": [evidence] });
    Answer::Says(answer.to_string())
}

async fn judged(tools: &[&str], script: Vec<Answer>) -> (TestApp, FakeLlm, Value) {
    let model = scripted(script).await;
    let app = TestApp::with_model(&study(tools), &model).await;
    app.qc("lung", Some(&["P001"])).await;
    let run = run(&app).await;
    (app, model, run)
}

fn offered(request: &Request) -> Vec<&str> {
    let tools = request.body["tools"].as_array();
    tools
        .into_iter()
        .flatten()
        .map(|tool| tool["function"]["name"].as_str().unwrap())
        .collect()
}

const BOTH: [&str; 2] = ["read_clinical_data", "check_visit_window"];

#[tokio::test]
async fn a_tool_call_is_a_step_of_its_own_and_its_words_are_evidence() {
    let quote = json!({ "tool": "check_visit_window", "quote": "2026-03-30 在窗口" });
    let (app, model, run) = judged(&BOTH, vec![window("P001"), verdict("pass", &quote)]).await;
    assert_eq!(outcomes(&run), ["tools", "pass"]);
    assert_eq!(
        [&run["final_state"], &run["standing"]],
        ["end_success", "clean"]
    );
    assert_eq!(run["steps"][0]["note"], "check_visit_window ✓");
    assert_eq!(
        kinds(&app, &run).await,
        ["system", "instruction", "data", "calls", "result", "reply"]
    );
    let log = model.log();
    assert_eq!(
        offered(&log[0]),
        ["check_visit_window", "read_clinical_data"]
    );
    assert!(log[0].body.get("response_format").is_none());
    assert!(log[1].said_by("tool")[0].contains("\"inWindow\":true"));
    app.stop().await;
}

#[tokio::test]
async fn what_was_read_can_be_cited_by_its_field_and_one_changed_character_is_no_verdict() {
    let read = || {
        Answer::call(
            "read_clinical_data",
            json!({ "record_id": "P001", "fields": ["年龄"] }),
        )
    };
    let age = |quote: &str| json!({ "record": "P001", "event": null, "instance": null, "field": "age", "quote": quote });
    let (app, _model, passed) = judged(&BOTH, vec![read(), verdict("pass", &age("45"))]).await;
    assert_eq!(outcomes(&passed), ["tools", "pass"]);
    app.stop().await;
    let tool = |quote: &str| json!({ "tool": "check_visit_window", "quote": quote });
    for wrong in [
        age("46"),
        tool("2026-03-31 在窗口"),
        tool(""),
        // Names of members and the record's id say nothing of it.
        tool("inWindow"),
        tool("P002"),
    ] {
        let script = vec![window("P001"), verdict("pass", &wrong)];
        let (app, _model, run) = judged(&BOTH, script).await;
        assert_eq!(outcomes(&run), ["tools", "not_evaluable"], "{wrong}");
        assert_eq!(run["standing"], "review");
        app.stop().await;
    }
}

#[tokio::test]
async fn a_result_that_rests_on_a_date_the_model_made_up_proves_nothing() {
    let made_up = Answer::call(
        "check_visit_window",
        json!({ "record_id": "P001", "visit_id": "V3", "actual_date": "2026-04-01" }),
    );
    let quote = json!({ "tool": "check_visit_window", "quote": "2026-04-01" });
    let (app, _model, run) = judged(&BOTH, vec![made_up, verdict("pass", &quote)]).await;
    assert_eq!(
        outcomes(&run),
        ["tools", "invalid_reply", "invalid_reply", "not_evaluable"]
    );
    app.stop().await;
}

#[tokio::test]
async fn another_subjects_record_is_refused_whatever_the_model_writes() {
    let read = Answer::call("read_clinical_data", json!({ "record_id": "P002" }));
    let quote = json!({ "tool": "check_visit_window", "quote": "在窗口" });
    let (app, model, run) =
        judged(&BOTH, vec![read, window("P001"), verdict("pass", &quote)]).await;
    assert_eq!(outcomes(&run), ["tools", "tools", "pass"]);
    assert_eq!(run["steps"][0]["note"], "read_clinical_data ✗");
    let log = model.log();
    insta::assert_snapshot!(
        log[1].said_by("tool")[0].lines().nth(1).unwrap(),
        @"调用没有成功：本次只能查看受试者 P001 的数据，不能查看其他受试者"
    );
    assert!(
        log.iter()
            .all(|request| !request.body.to_string().contains("秘密")),
        "nothing of the other subject left"
    );
    app.stop().await;
}

#[tokio::test]
async fn a_search_in_a_rule_about_one_subject_finds_no_other() {
    let search = Answer::call("search_records", json!({ "fields": ["history"] }));
    let unable = Answer::Says(r#"{"verdict":"unable","reason":"不清楚"}"#.to_owned());
    let (app, model, run) = judged(&["search_records"], vec![search, unable]).await;
    assert_eq!(outcomes(&run), ["tools", "not_evaluable"]);
    assert!(!model.log()[1].body.to_string().contains("秘密"));
    app.stop().await;
}

#[tokio::test]
async fn two_calls_in_a_row_that_fail_leave_the_rule_to_a_person() {
    let twice = Answer::Calls(
        String::new(),
        vec![
            // Registered, and not of this node; and nobody's.
            ("get_project_stats".to_owned(), "{}".to_owned()),
            ("drop_table".to_owned(), "{not json".to_owned()),
        ],
    );
    let (app, model, run) = judged(&BOTH, vec![twice]).await;
    assert_eq!(outcomes(&run), ["error"]);
    assert_eq!(run["final_state"], "end_review_required");
    assert_eq!(model.log().len(), 1);
    let finding = app.action("lung", "visits/window").await;
    insta::assert_snapshot!(finding["message"].as_str().unwrap());
    app.stop().await;
}

#[tokio::test]
async fn calls_that_were_cut_off_are_not_made() {
    let torn = Answer::call("check_visit_window", "{\"record_id\": ");
    let quote = json!({ "field": "history", "quote": "无特殊" });
    let (app, model, run) = judged(&BOTH, vec![torn, verdict("pass", &quote)]).await;
    assert_eq!(outcomes(&run), ["invalid_reply", "pass"]);
    assert!(model.log()[1].said_by("tool").is_empty());
    app.stop().await;
}

#[tokio::test]
async fn a_model_that_repeats_itself_is_stopped() {
    let (app, model, run) = judged(&BOTH, vec![window("P001")]).await;
    assert_eq!(outcomes(&run), ["tools", "tools", "error"]);
    assert_eq!(model.log().len(), 3);
    app.stop().await;
}

#[tokio::test]
async fn after_five_turns_of_tools_it_has_to_answer() {
    let read = |field: &str| {
        Answer::call(
            "read_clinical_data",
            json!({ "record_id": "P001", "fields": [field] }),
        )
    };
    let script = ["age", "ecog", "history", "sex", "enroll_date", "icf_date"].map(read);
    let (app, model, run) = judged(&BOTH, script.into()).await;
    let mut wanted = vec!["tools"; 5];
    wanted.extend(["invalid_reply", "invalid_reply", "not_evaluable"]);
    assert_eq!(outcomes(&run), wanted);
    let log = model.log();
    assert!(!offered(&log[4]).is_empty());
    assert!(offered(&log[5]).is_empty(), "none is offered any more");
    app.stop().await;
}

#[tokio::test]
async fn what_a_tool_proposes_is_written_once_with_its_step() {
    let raise = Answer::call(
        "manage_issue",
        json!({ "action": "raise", "record_id": "P001", "field": "history", "message": "请说明病史来源" }),
    );
    let quote = json!({ "field": "history", "quote": "无特殊" });
    let (app, _model, run) = judged(&["manage_issue"], vec![raise, verdict("pass", &quote)]).await;
    assert_eq!(outcomes(&run), ["tools", "pass"]);
    let rows = app.ledger("lung", "").await;
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!(
        [&rows[0]["record"], &rows[0]["field"], &rows[0]["status"]],
        ["P001", "history", "open"]
    );
    app.stop().await;
}

#[tokio::test]
async fn a_server_without_tools_judges_by_what_it_is_shown() {
    let quote = json!({ "field": "history", "quote": "无特殊" });
    let model = scripted(vec![verdict("pass", &quote)]).await;
    let mut variables = model.variables();
    variables.push(("LLM_PROFILE", "minimal".to_owned()));
    let db = TestDb::new().await;
    let clock = iit_manager::types::clock::Clock::system();
    let app = TestApp::start_with(db, clock, &variables).await;
    app.apply(&study(&BOTH)).await;
    app.qc("lung", Some(&["P001"])).await;
    assert_eq!(outcomes(&run(&app).await), ["pass"]);
    assert!(offered(&model.log()[0]).is_empty());
    app.stop().await;
}

#[tokio::test]
async fn a_worker_killed_after_an_answer_runs_its_tools_again_and_asks_nothing_twice() {
    let quote = json!({ "tool": "check_visit_window", "quote": "在窗口" });
    let raise = Answer::call(
        "manage_issue",
        json!({ "action": "raise", "record_id": "P001", "field": "history", "message": "请说明" }),
    );
    let script = vec![window("P001"), raise, verdict("pass", &quote)];
    for step in 0..3 {
        let model = scripted(script.clone()).await;
        let db = TestDb::new().await;
        let study = study(&["check_visit_window", "manage_issue"]);
        TestApp::apply_to(&db, &study).await;
        Iit::on(&db)
            .ok(&["qc", "--project", "lung", "--record", "P001"])
            .await;
        // Inside the settlement: the answer is stored, and the tools have run.
        let gate = Gate::at_step(&db, step).await;
        let first = Program::worker(&db, "edc,llm", &model.variables());
        until_waiting(&db, "advisory", 1).await;
        first.kill().await;
        gate.open().await;
        let second = Program::worker(&db, "edc,llm", &model.variables());
        until_batches_done(&db, 1).await;
        second.stop().await;
        assert_eq!(model.log().len(), 3, "killed at step {step}");
        let results: i64 =
            sqlx::query_scalar("SELECT count(*) FROM iit_agent_trace WHERE kind = 'result'")
                .fetch_one(&db.pool)
                .await
                .unwrap();
        let raised: i64 = sqlx::query_scalar("SELECT count(*) FROM iit_pending_actions")
            .fetch_one(&db.pool)
            .await
            .unwrap();
        assert_eq!((results, raised), (2, 1), "killed at step {step}");
    }
}

#[tokio::test]
async fn a_history_of_lung_disease_fails_with_its_quote_and_a_person_reviews_it() {
    let subject = Subject::fit("P001")
        .with("age", "30")
        .with("ecog", "1")
        .with("history", "间质性肺炎");
    let study = StudyFolder::new("lung", [subject]);
    let mut skill = super::soft_skill();
    skill["nodes"]["history"]["on_fail"] = json!("look");
    skill["nodes"]["look"] = json!({
        "type": "human_review", "message": "请研究者确认病史",
        "on_pass": "end_success", "on_fail": "end_with_violation"
    });
    study.write_skill("history", &skill);
    let model =
        FakeLlm::start(|request| crate::support::fake_llm::verdict(request, "fail", "history"))
            .await;
    let app = TestApp::with_model(&study, &model).await;
    app.qc("lung", None).await;
    let waiting = run(&app).await;
    assert_eq!(waiting["status"], "waiting");
    let finding = app.action("lung", "history/history").await;
    assert_eq!(
        finding["values"][0],
        json!({ "field": "history", "value": "间质性肺炎" })
    );
    let review = app.action("lung", "history/look").await;
    assert_eq!(app.decide(&review, "confirm", "病历属实").await.0, 200);
    app.settled().await;
    assert_eq!(run(&app).await["final_state"], "end_with_violation");
    app.stop().await;
}
