//! Adverse events and the study drug: judged in a run of its own, in the words of the study's scale, while
//! the run that asked waits.

use serde_json::{Value, json};

use crate::queue::program::{Gate, Program, until_batches_done, until_waiting};
use crate::support::app::{TestApp, eventually};
use crate::support::binary::Iit;
use crate::support::fake_llm::{Answer, FakeLlm, Request};
use crate::support::postgres::TestDb;
use crate::support::study::StudyFolder;

const METADATA: &str = "record_id,baseline,,text,受试者编号,,,,,,,,,,,,,
dose_date,baseline,,text,首次用药日期,,,date_ymd,,,,,,,,,,
drug_note,baseline,,notes,用药说明,,,,,,,,,,,,,
ae_no,ae,,text,编号,,,,,,,,,,,,,
ae_term,ae,,text,不良事件名称,,,,,,,,,,,,,
ae_start,ae,,text,开始日期,,,date_ymd,,,,,,,,,,
ae_ser,ae,,yesno,是否 SAE,,,,,,,,,,,,,
ae_note,ae,,notes,经过,,,,,,,,,,,,,";

/// P001 with a rash and a fever under the drug, P002 with an event before it, P003 without a date of it, P004
/// without the drug.
const RECORDS: &str = "record_id,redcap_repeat_instrument,redcap_repeat_instance,dose_date,drug_note,baseline_complete,ae_no,ae_term,ae_start,ae_ser,ae_note,ae_complete
P001,,,2026-03-02,每日一次,2,,,,,,
P001,ae,1,,,,AE-001,皮疹,2026-03-05,1,停药三天后消退,2
P001,ae,2,,,,AE-002,发热,2026-03-20,0,流感期间出现,2
P002,,,2026-03-10,每日一次,2,,,,,,
P002,ae,1,,,,AE-001,头痛,2026-03-01,0,,2
P003,,,2026-03-02,每日一次,2,,,,,,
P003,ae,1,,,,AE-001,恶心,,0,日期不详,2
P004,,,,,2,,,,,,
P004,ae,1,,,,AE-001,腹泻,2026-03-05,0,,2
";

fn study(scale: Option<&str>) -> StudyFolder {
    let study = StudyFolder::new("lung", []);
    study.write_metadata(METADATA);
    study.break_records(RECORDS);
    std::fs::write(
        study.export().join("repeating.csv"),
        "event_name,form_name,custom_form_label\n,ae,\n",
    )
    .unwrap();
    let safety = scale.map_or_else(String::new, |scale| {
        format!("[safety]\ncausality_scale = \"{scale}\"\n")
    });
    study.write_whole_project(&format!(
        r#"id = "lung"
name = "研究 lung"
timezone = "Asia/Shanghai"
[edc]
kind = "redcap_files"
dir = "study"
[fields]
record_id = "record_id"
exposure_start = "dose_date"
ae_form = "ae"
ae_term = "ae_term"
ae_start = "ae_start"
ae_serious = "ae_ser"
[[members]]
wecom_user = "ZhangSan"
name = "张三"
role = "pi"
[groups]
admin_group = ["ZhangSan"]
{safety}"#
    ));
    let skill = json!({
        "start_node": "assess",
        "nodes": { "assess": {
            "type": "tool", "tool": "assess_ae_causality", "args": { "record_id": "{record}", "instance": 1 },
            "on_pass": "end_success", "on_fail": "end_with_violation",
            "on_not_evaluable": "end_review_required", "on_error": "end_review_required"
        }}
    });
    study.write_skill("causality", &skill);
    study
}

/// Whether a request is the judgement's.
fn is_judgement(request: &Request) -> bool {
    request.said_by("system")[0].contains("药物安全员")
}

fn level(level: &str) -> Value {
    json!({ "level": level, "reason": "用药三天后出现，停药后消退", "evidence": [
        { "record": "P001", "event": null, "instance": 1, "field": "ae_note", "quote": "停药三天后消退" }
    ] })
}

fn says(answer: &Value) -> Answer {
    Answer::Says(answer.to_string())
}

async fn run_of(app: &TestApp, record: &str, kind: &str) -> Value {
    let mut runs = app.runs_of(record).await;
    runs.retain(|run| run["kind"] == kind);
    assert_eq!(runs.len(), 1, "{kind}: {runs:?}");
    runs.remove(0)
}

fn outcomes(run: &Value) -> Vec<&str> {
    let steps = run["steps"].as_array().unwrap();
    steps
        .iter()
        .map(|step| step["outcome"].as_str().unwrap())
        .collect()
}

async fn assessed(study: &StudyFolder, model: &FakeLlm, record: &str) -> TestApp {
    let app = TestApp::with_model(study, model).await;
    app.qc("lung", Some(&[record])).await;
    app
}

#[tokio::test]
async fn each_scale_is_answered_in_its_own_words_and_in_no_others() {
    let naranjo = |level_name: &str, items: [&str; 10]| {
        let mut answer = level(level_name);
        answer["items"] = json!(items);
        answer
    };
    let likely = [
        "不详", "是", "是", "不详", "否", "不详", "不详", "不详", "不详", "是",
    ];
    // First the words of another scale (or a level the score does not say), then its own.
    for (scale, foreign, own) in [
        (None, level("很可能"), level("可能相关")),
        (Some("five"), level("Probable"), level("可能相关")),
        (Some("six"), level("可能相关"), level("很可能")),
        (Some("who_umc"), level("很可能"), level("Probable")),
        (
            Some("naranjo"),
            naranjo("肯定", likely),
            naranjo("很可能", likely),
        ),
    ] {
        let model = FakeLlm::passing().await;
        model.next([says(&foreign), says(&own)]);
        let app = assessed(&study(scale), &model, "P001").await;
        let child = run_of(&app, "P001", "judge").await;
        assert_eq!(outcomes(&child), ["invalid_reply", "pass"], "{scale:?}");
        let run = run_of(&app, "P001", "sop").await;
        assert_eq!(outcomes(&run), ["tools", "pass"], "{scale:?}");
        assert_eq!(run["standing"], "clean");
        let note = run["steps"][1]["note"].as_str().unwrap();
        let word = own["level"].as_str().unwrap();
        assert!(note.contains(&format!("：{word}（")), "{note}");
        let log = model.log();
        assert_eq!(log.len(), 2);
        // The scale's own words are told, and what was wrong.
        assert!(log[0].said_by("user")[0].contains(word));
        let told = log[1].said_by("user");
        let wrong = foreign["level"].as_str().unwrap();
        assert!(told.last().unwrap().contains(wrong), "{told:?}");
        app.stop().await;
    }
}

#[tokio::test]
async fn the_question_holds_the_event_and_the_exposure_and_no_other_event() {
    let model = FakeLlm::passing().await;
    model.next([says(&level("可能相关"))]);
    let app = assessed(&study(None), &model, "P001").await;
    let log = model.log();
    let asked = log[0].said_by("user")[0];
    assert!(asked.contains("首次用药到事件发生：3 天"), "{asked}");
    assert!(asked.contains("皮疹") && !asked.contains("发热"), "{asked}");
    assert_eq!(
        log[0].data()["rows"],
        json!([
            { "event": null, "form": null, "instance": null, "values":
                { "dose_date": "2026-03-02", "drug_note": "每日一次" } },
            { "event": null, "form": "ae", "instance": 1, "values":
                { "ae_no": "AE-001", "ae_note": "停药三天后消退", "ae_ser": "1", "ae_start": "2026-03-05",
                  "ae_term": "皮疹" } },
        ])
    );
    app.stop().await;
}

#[tokio::test]
async fn without_a_date_of_the_event_or_the_drug_nothing_is_said_and_no_model_is_asked() {
    for record in ["P003", "P004"] {
        let model = FakeLlm::passing().await;
        let app = assessed(&study(Some("six")), &model, record).await;
        let run = run_of(&app, record, "sop").await;
        assert_eq!(outcomes(&run), ["not_evaluable"], "{record}");
        assert!(model.log().is_empty());
        assert_eq!(app.count("iit_task_run WHERE kind = 'judge'").await, 0);
        let finding = app.action("lung", "causality/assess").await;
        let message = finding["message"].as_str().unwrap();
        assert!(message.contains("无法评估"), "{message}");
        app.stop().await;
    }
}

#[tokio::test]
async fn an_invented_quote_or_words_that_never_fit_leave_it_to_a_person() {
    let mut invented = level("肯定相关");
    invented["evidence"][0]["quote"] = json!("再次用药后复发");
    let unable = level("无法评估");
    for (answers, steps) in [
        (vec![invented], vec!["not_evaluable"]),
        (vec![unable], vec!["not_evaluable"]),
        (
            vec![level("相关"), level("有关"), level("也许相关")],
            vec!["invalid_reply", "invalid_reply", "not_evaluable"],
        ),
    ] {
        let model = FakeLlm::passing().await;
        model.next(answers.iter().map(says));
        let app = assessed(&study(None), &model, "P001").await;
        assert_eq!(outcomes(&run_of(&app, "P001", "judge").await), steps);
        let run = run_of(&app, "P001", "sop").await;
        assert_eq!(outcomes(&run), ["tools", "not_evaluable"]);
        assert_eq!(run["standing"], "review");
        app.stop().await;
    }
}

#[tokio::test]
async fn an_event_before_the_drug_is_said_to_be_one() {
    let model = FakeLlm::passing().await;
    let mut answer = level("肯定无关");
    answer["evidence"] = json!([{ "instance": 1, "field": "ae_start", "quote": "2026-03-01" }]);
    model.next([says(&answer)]);
    let app = assessed(&study(None), &model, "P002").await;
    assert_eq!(
        outcomes(&run_of(&app, "P002", "sop").await),
        ["tools", "pass"]
    );
    let log = model.log();
    assert!(log[0].said_by("user")[0].contains("事件发生在首次用药之前"));
    app.stop().await;
}

#[tokio::test]
async fn a_model_that_is_not_to_be_had_answers_the_call_with_an_error() {
    let model = FakeLlm::passing().await;
    model.always(Some(Answer::Http(402, Vec::new(), String::new())));
    let app = assessed(&study(None), &model, "P001").await;
    assert_eq!(outcomes(&run_of(&app, "P001", "judge").await), ["error"]);
    let run = run_of(&app, "P001", "sop").await;
    assert_eq!(outcomes(&run), ["tools", "error"]);
    assert_eq!(run["final_state"], "end_review_required");
    app.stop().await;
}

/// A model that asks for `calls` in its first turn and then answers.
async fn reasoning(calls: Vec<Value>, answer: &'static str) -> FakeLlm {
    FakeLlm::answering(move |request| {
        if is_judgement(request) {
            let asked = request.said_by("user")[0];
            let field = if asked.contains("皮疹") {
                ("ae_term", "皮疹", 1)
            } else {
                ("ae_term", "发热", 2)
            };
            let answer = json!({ "level": "可能相关", "reason": "时间相符", "evidence": [
                { "instance": field.2, "field": field.0, "quote": field.1 } ] });
            return Answer::Says(answer.to_string());
        }
        if !request.said_by("system")[0].contains("数据助手") {
            return Answer::Says("不清楚".to_owned());
        }
        match request.said_by("assistant").is_empty() {
            true => Answer::Calls(
                String::new(),
                calls
                    .iter()
                    .map(|args| ("assess_ae_causality".to_owned(), args.to_string()))
                    .chain([(
                        "read_clinical_data".to_owned(),
                        json!({ "record_id": "P001", "fields": ["ae_term"] }).to_string(),
                    )])
                    .collect(),
            ),
            false => Answer::Says(answer.to_owned()),
        }
    })
    .await
}

const QUESTION: &str = "P001 的不良事件和用药有关系吗";

#[tokio::test]
async fn a_question_waits_for_its_judgements_and_goes_on_once() {
    let calls = vec![
        json!({ "record_id": "P001", "ae_id": "皮疹" }),
        json!({ "record_id": "P001", "ae_id": "AE-002" }),
    ];
    let model = reasoning(calls, "P001 的皮疹和发热均为“可能相关”，须由研究者判定。").await;
    let app = TestApp::with_model(&study(None), &model).await;
    let message = app.chat("lung", "ZhangSan", QUESTION).await;
    let text = message["replies"][0]["text"].as_str().unwrap();
    assert!(text.contains("均为“可能相关”"), "{text}");
    assert!(text.contains("依据：受试者 P001"), "{text}");
    assert_eq!(app.count("iit_task_run WHERE kind = 'judge'").await, 2);
    assert_eq!(
        app.count("iit_task_run WHERE kind = 'judge' AND status = 'done' AND parent_step = 0")
            .await,
        2
    );
    assert_eq!(app.count("iit_agent_trace WHERE kind = 'result'").await, 3);
    assert_eq!(
        app.count("iit_jobs WHERE kind = 'react_step'").await
            + app.count("iit_job_history WHERE kind = 'react_step'").await,
        2
    );
    let last = model.log().pop().unwrap();
    let shown = last.said_by("tool").join("\n");
    assert_eq!(
        shown.matches("\"level\":\"可能相关\"").count(),
        2,
        "{shown}"
    );
    app.stop().await;
}

#[tokio::test]
async fn an_event_that_can_not_be_told_is_asked_about() {
    let calls = vec![json!({ "record_id": "P001" })];
    let model = reasoning(calls, "请说明是哪一件不良事件：皮疹还是发热？").await;
    let app = TestApp::with_model(&study(None), &model).await;
    app.chat("lung", "ZhangSan", QUESTION).await;
    let log = model.log();
    let shown = log.last().unwrap().said_by("tool")[0].to_owned();
    assert!(shown.contains("皮疹（第1条）、发热（第2条）"), "{shown}");
    assert_eq!(app.count("iit_task_run WHERE kind = 'judge'").await, 0);
    app.stop().await;
}

#[tokio::test]
async fn a_person_whose_judgement_never_comes_is_answered_all_the_same() {
    let model = FakeLlm::answering(|request| {
        if is_judgement(request) {
            return Answer::Http(400, Vec::new(), "{}".to_owned());
        }
        match request.said_by("tool").is_empty() {
            true => Answer::call(
                "assess_ae_causality",
                json!({ "record_id": "P001", "instance": 1 }),
            ),
            false => Answer::Says("目前没有评估结果。".to_owned()),
        }
    })
    .await;
    let app = TestApp::with_model(&study(None), &model).await;
    let message = app.chat("lung", "ZhangSan", QUESTION).await;
    let text = message["replies"][0]["text"].as_str().unwrap();
    assert!(text.contains("目前没有评估结果"), "{text}");
    app.stop().await;
}

/// A worker dies inside the settlement of the judgement: its answer is stored, and nothing is written yet.
#[tokio::test]
async fn a_kill_between_the_answer_and_its_settlement_loses_nothing_and_asks_nothing_twice() {
    for node in [
        "NEW.node = 'judge'",
        "NEW.node = 'assess' AND NEW.no = 0",
        "NEW.node = 'assess' AND NEW.no = 1",
    ] {
        let model = FakeLlm::start(|_| level("可能相关").to_string()).await;
        let db = TestDb::new().await;
        let study = study(None);
        TestApp::apply_to(&db, &study).await;
        Iit::on(&db)
            .ok(&["qc", "--project", "lung", "--record", "P001"])
            .await;
        let gate = Gate::when(&db, node).await;
        let first = Program::worker(&db, "edc,llm", &model.variables());
        until_waiting(&db, "advisory", 1).await;
        first.kill().await;
        gate.open().await;
        let second = Program::worker(&db, "edc,llm", &model.variables());
        until_batches_done(&db, 1).await;
        second.stop().await;
        assert_eq!(model.log().len(), 1, "{node}");
        let rows: Vec<(String, String, i64)> = sqlx::query_as(
            "SELECT r.kind, r.status, (SELECT count(*) FROM iit_agent_trace t WHERE t.run_id = r.id)
             FROM iit_task_run r ORDER BY r.kind",
        )
        .fetch_all(&db.pool)
        .await
        .unwrap();
        assert_eq!(
            rows,
            [
                ("judge".to_owned(), "done".to_owned(), 4),
                ("sop".to_owned(), "done".to_owned(), 2)
            ],
            "{node}"
        );
    }
}

#[tokio::test]
async fn a_judgement_that_is_given_up_lets_the_run_that_waits_go_on() {
    let model = FakeLlm::passing().await;
    model.always(Some(Answer::Http(200, Vec::new(), "no json".to_owned())));
    let study = study(None);
    let app = TestApp::with_model(&study, &model).await;
    let body = json!({ "records": ["P001"] });
    app.post("/api/v1/projects/lung/qc", &body).await;
    app.settled_at_once().await;
    let run = eventually("the end of the run", async || {
        let run = run_of(&app, "P001", "sop").await;
        (run["status"] == "done").then_some(run)
    })
    .await;
    assert_eq!(outcomes(&run), ["tools", "error"]);
    assert_eq!(run_of(&app, "P001", "judge").await["status"], "failed");
    app.stop_with_dead(&["judge_step"]).await;
}

#[tokio::test]
async fn a_soft_rule_may_ask_for_an_assessment_and_quote_it() {
    let study = study(None);
    let skill = json!({
        "start_node": "rule",
        "nodes": { "rule": {
            "type": "soft_instruction", "instruction": "与用药相关的不良事件须记录经过",
            "tools": ["assess_ae_causality"],
            "on_pass": "end_success", "on_fail": "end_review_required"
        }}
    });
    std::fs::remove_file(study.skills().join("causality.json")).unwrap();
    study.write_skill("safety", &skill);
    let model = FakeLlm::answering(|request| {
        if is_judgement(request) {
            return says(&level("可能相关"));
        }
        match request.said_by("tool").is_empty() {
            true => Answer::call(
                "assess_ae_causality",
                json!({ "record_id": "P001", "instance": "1" }),
            ),
            false => Answer::Says(
                json!({ "verdict": "pass", "reason": "相关且已记录", "evidence": [
                    { "tool": "assess_ae_causality", "quote": "可能相关" },
                    { "instance": 1, "field": "ae_note", "quote": "停药三天后消退" } ] })
                .to_string(),
            ),
        }
    })
    .await;
    let app = assessed(&study, &model, "P001").await;
    let run = run_of(&app, "P001", "sop").await;
    assert_eq!(outcomes(&run), ["tools", "pass"]);
    assert_eq!(run["standing"], "clean");
    assert_eq!(model.log().len(), 3);
    app.stop().await;
}
