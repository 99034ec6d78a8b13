//! What of a model's answer is believed.

use serde_json::json;

use super::{app_with, outcomes, run, study};
use crate::support::app::{TestApp, assert_trace};
use crate::support::fake_llm::{Answer, FakeLlm, verdict};
use crate::support::study::Subject;

#[tokio::test]
async fn a_clean_history_passes_and_the_run_ends_well() {
    let model = FakeLlm::passing().await;
    let app = app_with(&model).await;
    let reply = app.ask("ZhangSan", "质控 P001").await;
    insta::assert_snapshot!(reply);
    app.settled().await;
    let run = run(&app).await;
    assert_eq!(
        [&run["status"], &run["final_state"], &run["standing"]],
        ["done", "end_success", "clean"]
    );
    assert_eq!(run["tokens"], 120);
    assert_eq!(run["steps"][0]["llm_calls"], 1);
    assert_eq!(app.ledger("lung", "").await.len(), 0);
    assert_trace(&app, "P001").await;
    app.stop().await;
}

#[tokio::test]
async fn a_forbidden_history_fails_with_its_quote_and_waits_for_a_person() {
    let model = FakeLlm::start(|request| {
        let history = request.data()["rows"][0]["values"]["history"].to_string();
        let is_bad = history.contains("间质性肺炎");
        verdict(request, if is_bad { "fail" } else { "pass" }, "history")
    })
    .await;
    let subject = Subject::fit("P001").with("history", "2019 年间质性肺炎，已愈");
    let app = TestApp::with_model(&study([subject]), &model).await;
    insta::assert_snapshot!(app.ask("ZhangSan", "质控 P001").await);
    app.settled().await;
    let finding = app.action("lung", "history/history").await;
    assert_eq!(
        [
            &finding["outcome"],
            &finding["severity"],
            &finding["status"]
        ],
        ["fail", "warning", "open"]
    );
    assert_eq!(
        finding["values"][0],
        json!({ "field": "history", "value": "2019 年间质性肺炎，已愈" })
    );
    assert_eq!(run(&app).await["final_state"], "end_review_required");

    // Asked again tomorrow: the same finding, whatever is quoted.
    app.qc("lung", None).await;
    let again = app.action("lung", "history/history").await;
    assert_eq!(again["id"], finding["id"]);
    app.stop().await;
}

#[tokio::test]
async fn the_model_sees_neither_what_identifies_a_person_nor_what_the_dictionary_does_not_know() {
    let model = FakeLlm::passing().await;
    let study = study([Subject::fit("P001").with("history", "无特殊")]);
    let metadata = std::fs::read_to_string(study.export().join("metadata.csv")).unwrap();
    let (_, rows) = metadata.split_once('\n').unwrap();
    let sex = "sex,baseline,,radio,性别,\"1, 男 | 2, 女\",,,,,";
    assert!(rows.contains(sex));
    let rows = rows
        .replace(sex, &format!("{sex}y"))
        .lines()
        .filter(|row| !row.starts_with("ecog"))
        .collect::<Vec<_>>()
        .join("\n");
    study.write_metadata(&rows);
    let app = TestApp::with_model(&study, &model).await;
    app.qc("lung", None).await;
    let log = model.log();
    let data = log[0].data();
    let shown: Vec<&String> = data["rows"][0]["values"]
        .as_object()
        .unwrap()
        .keys()
        .collect();
    assert_eq!(
        shown,
        ["age", "enroll_date", "history", "icf_date", "visit3_date"]
    );
    assert_eq!(data["fields"]["age"]["label"], "年龄");
    app.stop().await;
}

#[tokio::test]
async fn an_invented_quote_is_no_verdict_and_a_person_decides() {
    for invented in ["pass", "fail"] {
        let model = FakeLlm::passing().await;
        let answer = json!({
            "verdict": invented, "reason": "明确记载",
            "evidence": [{ "record": "P001", "event": null, "instance": null, "field": "history", "quote": "否认间质性肺炎" }],
        });
        model.always(Some(Answer::Says(answer.to_string())));
        let app = app_with(&model).await;
        app.qc("lung", None).await;
        let run = run(&app).await;
        assert_eq!(outcomes(&run), ["not_evaluable"], "{invented}");
        assert_eq!(run["standing"], "review");
        let finding = app.action("lung", "history/history").await;
        assert_eq!(
            [&finding["outcome"], &finding["severity"]],
            ["not_evaluable", "query"]
        );
        assert_eq!(model.log().len(), 1, "not asked until it says what we like");
        app.stop().await;
    }
}

#[tokio::test]
async fn a_pass_without_a_quote_is_told_so_and_each_try_is_a_step() {
    let model = FakeLlm::passing().await;
    model.next([
        Answer::Says("我认为没有问题。".to_owned()),
        Answer::Says(r#"{"verdict":"pass","reason":"没有问题","evidence":[]}"#.to_owned()),
    ]);
    let app = app_with(&model).await;
    app.qc("lung", None).await;
    let run = run(&app).await;
    assert_eq!(outcomes(&run), ["invalid_reply", "invalid_reply", "pass"]);
    assert_eq!(run["standing"], "clean");
    assert_eq!(run["tokens"], 360);
    let log = model.log();
    assert_eq!(log.len(), 3);
    assert_eq!(log[0].body["response_format"]["type"], "json_object");
    assert!(log[1].body.get("response_format").is_none());
    assert_eq!(log[2].said_by("assistant")[0], "我认为没有问题。");
    insta::assert_snapshot!(log[2].said_by("user")[1..].join("\n---\n"));
    app.stop().await;
}

#[tokio::test]
async fn an_empty_answer_in_json_mode_is_asked_for_again_without_it() {
    let model = FakeLlm::passing().await;
    model.next([Answer::Says(" \n".to_owned())]);
    let app = app_with(&model).await;
    app.qc("lung", None).await;
    assert_eq!(outcomes(&run(&app).await), ["invalid_reply", "pass"]);
    let log = model.log();
    assert!(log[0].body.get("response_format").is_some());
    assert!(log[1].body.get("response_format").is_none());
    assert_eq!(log[1].said_by("assistant"), ["（空）"]);
    app.stop().await;
}

#[tokio::test]
async fn a_model_that_never_answers_to_the_point_leaves_it_to_a_person_after_three_tries() {
    let model = FakeLlm::passing().await;
    model.always(Some(Answer::Says("```json\n{}\n```".to_owned())));
    let app = app_with(&model).await;
    app.qc("lung", None).await;
    let run = run(&app).await;
    assert_eq!(
        outcomes(&run),
        ["invalid_reply", "invalid_reply", "not_evaluable"]
    );
    assert_eq!(
        [&run["final_state"], &run["standing"]],
        ["end_review_required", "review"]
    );
    assert_eq!(model.log().len(), 3);
    app.stop().await;
}

#[tokio::test]
async fn an_answer_that_was_cut_off_is_not_acted_on() {
    let model = FakeLlm::passing().await;
    let body = json!({
        "choices": [{ "finish_reason": "length", "message": { "content":
            r#"{"verdict":"pass","reason":"依据 history","evidence":[{"field":"history","quote":"无特殊"}]}"# } }],
    });
    model.next([Answer::Http(200, Vec::new(), body.to_string())]);
    let app = app_with(&model).await;
    app.qc("lung", None).await;
    assert_eq!(outcomes(&run(&app).await), ["invalid_reply", "pass"]);
    app.stop().await;
}

#[tokio::test]
async fn a_study_that_forbids_external_models_sends_nothing() {
    let study = study([Subject::fit("P001")]);
    let variables = [
        // Nothing listens there, and nothing may be sent there.
        ("LLM_BASE_URL", "https://llm.example.invalid/v1".to_owned()),
        ("LLM_MODEL", "m".to_owned()),
    ];
    let db = crate::support::postgres::TestDb::new().await;
    let clock = iit_manager::types::clock::Clock::system();
    let app = TestApp::start_with(db, clock, &variables).await;
    app.apply(&study).await;
    app.qc("lung", None).await;
    assert_eq!(outcomes(&run(&app).await), ["error"]);
    assert_eq!(app.count("iit_llm_calls").await, 0);
    let finding = app.action("lung", "history/history").await;
    insta::assert_snapshot!(finding["message"].as_str().unwrap());
    app.stop().await;
}

#[tokio::test]
async fn a_rule_about_a_field_that_is_not_shown_is_left_to_a_person_and_not_asked() {
    let model = FakeLlm::passing().await;
    let study = study([Subject::fit("P001")]);
    let metadata = std::fs::read_to_string(study.export().join("metadata.csv")).unwrap();
    let (_, rows) = metadata.split_once('\n').unwrap();
    let history = "history,baseline,,notes,既往史,\"\",,,,,";
    assert!(rows.contains(history), "{rows}");
    study.write_metadata(&rows.replace(history, &format!("{history}y")));
    let app = TestApp::with_model(&study, &model).await;
    app.qc("lung", None).await;
    assert_eq!(outcomes(&run(&app).await), ["error"]);
    assert_eq!(model.log().len(), 0);
    let finding = app.action("lung", "history/history").await;
    insta::assert_snapshot!(finding["message"].as_str().unwrap());
    app.stop().await;
}

/// The soft rule, and a person's review of whatever it does not pass.
fn reviewed_study(subject: Subject) -> crate::support::study::StudyFolder {
    let study = crate::support::study::StudyFolder::new("lung", [subject]);
    let mut skill = super::soft_skill();
    skill["nodes"]["history"]["on_fail"] = json!("look");
    skill["nodes"]["history"]["on_error"] = json!("look");
    skill["nodes"]["history"]["on_not_evaluable"] = json!("look");
    skill["nodes"]["look"] = json!({
        "type": "human_review", "message": "请看病历",
        "on_pass": "end_success", "on_fail": "end_review_required"
    });
    study.write_skill("history", &skill);
    study
}

#[tokio::test]
async fn a_dismissal_holds_for_the_data_that_was_shown_and_no_other() {
    let model = FakeLlm::passing().await;
    model.always(Some(Answer::Says(
        r#"{"verdict":"unable","reason":"记录不清"}"#.to_owned(),
    )));
    let mut study = reviewed_study(Subject::fit("P001"));
    let app = TestApp::with_model(&study, &model).await;
    app.qc("lung", None).await;
    let review = app.action("lung", "history/look").await;
    assert_eq!(app.decide(&review, "dismiss", "已核对病历").await.0, 200);
    app.settled().await;
    let standing = async || {
        let runs = app.runs_of("P001").await;
        let last = runs.last().unwrap();
        (last["status"].clone(), last["standing"].clone())
    };
    app.qc("lung", None).await;
    assert_eq!(
        standing().await,
        (json!("done"), json!("clean")),
        "the same data"
    );
    study.set("P001", "history", "间质性肺炎");
    app.qc("lung", None).await;
    assert_eq!(
        standing().await,
        (json!("waiting"), json!(null)),
        "asked anew"
    );
    app.stop().await;
}

#[tokio::test]
async fn a_dismissal_made_while_the_model_was_away_holds_for_no_other_time() {
    let model = FakeLlm::passing().await;
    model.always(Some(Answer::Http(402, Vec::new(), String::new())));
    let app = TestApp::with_model(&reviewed_study(Subject::fit("P001")), &model).await;
    app.qc("lung", None).await;
    let review = app.action("lung", "history/look").await;
    assert_eq!(app.decide(&review, "dismiss", "已核对病历").await.0, 200);
    app.settled().await;
    app.qc("lung", None).await;
    let runs = app.runs_of("P001").await;
    assert_eq!(runs.last().unwrap()["status"], "waiting");
    app.stop().await;
}
