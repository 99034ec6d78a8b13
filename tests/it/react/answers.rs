//! Answers: what the tools give, and what of an answer is believed.

use serde_json::json;

use super::{
    app_with, asked, assert_nothing_happened, kinds, outcomes, read, run, says, scripted, shown,
    study, text, without_time,
};
use crate::support::app::TestApp;
use crate::support::binary::Iit;
use crate::support::fake_llm::{Answer, FakeLlm};

#[tokio::test]
async fn the_latest_subjects_are_listed_with_what_the_answer_rests_on() {
    let model = scripted(vec![
        Answer::call("search_records", json!({ "sort": "recent", "limit": 2 })),
        says("最近入组的是 P004（2026-06-02）和 P003（2026-05-02）。"),
    ])
    .await;
    let app = app_with(&model).await;
    let reply = app.ask("ZhangSan", "查下最近入组的病人").await;
    insta::assert_snapshot!(without_time(&reply));
    app.settled().await;
    let run = run(&app).await;
    assert_eq!(outcomes(&run), ["turn", "answer"]);
    assert_eq!(
        kinds(&run),
        ["system", "question", "calls", "result", "reply", "note"]
    );
    assert_eq!(
        [
            &run["kind"],
            &run["status"],
            &run["final_state"],
            &run["standing"]
        ],
        ["react", "done", "answered", "clean"]
    );
    assert_eq!(run["tokens"], 240);
    assert_eq!(run["trace"]["calls"].as_array().unwrap().len(), 2);
    let log = asked(&model);
    let found = shown(&log[1])[0];
    assert!(found.find("P004").unwrap() < found.find("P003").unwrap());
    assert!(!found.contains("P001"), "{found}");
    let tools = log[0].body["tools"].to_string();
    for hidden in ["update_record", "manage_issue", "send_notification"] {
        assert!(!tools.contains(hidden), "{hidden} is not offered");
    }
    app.stop().await;
}

/// A model that looks up the women, asks for their mean age in the same turn, and tells what it was given.
async fn averaging() -> FakeLlm {
    FakeLlm::answering(|request| {
        if !super::is_reasoning(request) {
            return says("不清楚");
        }
        let women = json!({ "==": [{ "var": "sex" }, "2"] });
        match request.said_by("assistant").len() {
            0 => Answer::Calls(
                "先找出女性，再算平均年龄。".to_owned(),
                vec![
                    (
                        "search_records".to_owned(),
                        json!({ "filter": women, "sort": "recent" }).to_string(),
                    ),
                    (
                        "aggregate".to_owned(),
                        json!({ "op": "mean", "field": "年龄", "filter": women }).to_string(),
                    ),
                ],
            ),
            _ => {
                let given = shown(request)[1].to_owned();
                let found = regex::Regex::new(r#""value":\s*([0-9.]+)"#).unwrap();
                let mean = found
                    .captures(&given)
                    .map_or("?", |found| found.get(1).unwrap().as_str());
                says(&format!(
                    "最近入组的女性平均年龄 {mean} 岁（P002、P003 两例）。"
                ))
            }
        }
    })
    .await
}

#[tokio::test]
async fn a_mean_is_computed_by_the_tools_of_one_turn_and_comes_out_right() {
    let model = averaging().await;
    let app = app_with(&model).await;
    let message = app
        .chat("lung", "ZhangSan", "最近入组的女性平均年龄是多少")
        .await;
    let text = text(&message);
    assert!(text.contains("平均年龄 65.5 岁"), "{text}");
    insta::assert_snapshot!(text);
    let run = run(&app).await;
    assert_eq!(message["runs"], json!([run["id"]]));
    assert_eq!(outcomes(&run), ["turn", "answer"]);
    assert_eq!(run["steps"][0]["note"], "search_records ✓，aggregate ✓");
    let log = asked(&model);
    let ids = |at: &str| -> Vec<String> {
        let messages = log[1].body["messages"].as_array().unwrap();
        messages
            .iter()
            .flat_map(|message| match at {
                "answers" => vec![message["tool_call_id"].as_str().unwrap_or("").to_owned()],
                _ => message["tool_calls"]
                    .as_array()
                    .map(|calls| {
                        calls
                            .iter()
                            .map(|call| call["id"].as_str().unwrap().to_owned())
                            .collect()
                    })
                    .unwrap_or_default(),
            })
            .filter(|id| !id.is_empty())
            .collect()
    };
    assert_eq!(ids("calls"), ids("answers"));
    let run_id = run["id"].as_str().unwrap();
    let shown = Iit::on(&app.db).ok(&["runs", "show", run_id]).await;
    let shown = shown.replace(run_id, "[id]");
    let times =
        regex::Regex::new(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}|今天是 [-0-9]+").unwrap();
    insta::assert_snapshot!(times.replace_all(&shown, "[time]"));
    app.stop().await;
}

#[tokio::test]
async fn a_figure_the_tools_never_gave_is_asked_about_once_and_then_mended() {
    let model = scripted(vec![
        read("P002"),
        says("P002 今年 62 岁。"),
        says("P002 今年 60 岁。"),
    ])
    .await;
    let app = app_with(&model).await;
    let message = app.chat("lung", "ZhangSan", "P002 的年龄是多少").await;
    insta::assert_snapshot!(text(&message));
    assert_eq!(
        outcomes(&run(&app).await),
        ["turn", "figures_unverified", "answer"]
    );
    let log = asked(&model);
    assert_eq!(log.len(), 3);
    assert!(log[2].said_by("user").last().unwrap().contains("62"));
    app.stop().await;
}

#[tokio::test]
async fn a_figure_that_stays_without_a_source_is_marked_as_such() {
    let model = scripted(vec![
        read("P002"),
        says("P002 今年 62 岁，2026-04-03 入组。"),
        says("P002 今年 62 岁，2026-04-03 入组。"),
    ])
    .await;
    let app = app_with(&model).await;
    let message = app.chat("lung", "ZhangSan", "P002 的年龄是多少").await;
    insta::assert_snapshot!(text(&message));
    let run = run(&app).await;
    assert_eq!(
        [&run["final_state"], &run["standing"]],
        ["answered", "review"]
    );
    app.stop().await;
}

#[tokio::test]
async fn broken_arguments_an_unknown_tool_and_a_repeated_call_are_answered_and_the_model_goes_on() {
    let again = json!({ "record_id": "P001", "fields": ["年龄"] });
    let model = scripted(vec![
        Answer::Calls(
            String::new(),
            vec![
                (
                    "read_clinical_data".to_owned(),
                    "{\"record_id\" 1}".to_owned(),
                ),
                ("read_clinical_data".to_owned(), again.to_string()),
                ("dance".to_owned(), "{}".to_owned()),
            ],
        ),
        Answer::Calls(
            String::new(),
            vec![
                ("search_records".to_owned(), String::new()),
                (
                    "read_clinical_data".to_owned(),
                    "{ \"fields\": [\"年龄\"], \"record_id\": \"P001\" }".to_owned(),
                ),
            ],
        ),
        says("P001 今年 45 岁。"),
    ])
    .await;
    let app = app_with(&model).await;
    let message = app.chat("lung", "ZhangSan", "P001 的年龄是多少").await;
    insta::assert_snapshot!(text(&message));
    let run = run(&app).await;
    let notes: Vec<&str> = run["steps"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|step| step["note"].as_str())
        .collect();
    assert_eq!(
        notes,
        [
            "read_clinical_data ✗，read_clinical_data ✓，dance ✗",
            "search_records ✓，read_clinical_data ✗"
        ]
    );
    let log = asked(&model);
    let results: Vec<String> = shown(&log[2])
        .iter()
        .filter(|result| result.contains("没有成功"))
        .map(|result| {
            let lines: Vec<&str> = result.lines().collect();
            lines[1..lines.len() - 1].join("\n")
        })
        .collect();
    insta::assert_snapshot!(results.join("\n---\n"));
    app.stop().await;
}

#[tokio::test]
async fn an_answer_that_can_not_be_used_is_told_so_and_tried_again() {
    let model = FakeLlm::answering(|request| {
        if !super::is_reasoning(request) {
            return says("不清楚");
        }
        let corrections = request
            .said_by("user")
            .iter()
            .map(|text| text.matches("不能用").count())
            .sum::<usize>();
        match (corrections, shown(request).len()) {
            (0, _) => says(""),
            (1, _) => says("```json\n{\"name\":\"read_clinical_data\",\"arguments\":{\"record_id\":\"P001\"}}\n```"),
            (_, 0) => read("P001"),
            _ => says("P001 今年 45 岁。"),
        }
    })
    .await;
    let app = app_with(&model).await;
    let message = app.chat("lung", "ZhangSan", "P001 的年龄是多少").await;
    assert!(text(&message).starts_with("P001 今年 45 岁。"));
    assert_eq!(
        outcomes(&run(&app).await),
        ["invalid_reply", "invalid_reply", "turn", "answer"]
    );
    app.stop().await;
}

#[tokio::test]
async fn what_is_not_there_is_told_to_the_model_in_words_and_to_the_person_as_it_is() {
    let model = scripted(vec![read("P999"), says("研究中没有受试者 P999。")]).await;
    let app = app_with(&model).await;
    let message = app.chat("lung", "ZhangSan", "P999 的年龄是多少").await;
    assert!(text(&message).contains("没有受试者 P999"), "{message}");
    let log = asked(&model);
    insta::assert_snapshot!(shown(&log[1])[0].lines().nth(1).unwrap());
    app.stop().await;
}

#[tokio::test]
async fn a_check_and_a_question_in_one_message_are_one_reply_in_order() {
    let model = scripted(vec![
        Answer::call("search_records", json!({ "sort": "recent", "limit": 1 })),
        says("最近入组的是 P004。"),
    ])
    .await;
    let app = app_with(&model).await;
    let message = app
        .chat(
            "lung",
            "ZhangSan",
            "质控 P001，另外查下最近入组的病人有哪些",
        )
        .await;
    insta::assert_snapshot!(text(&message));
    assert_eq!(message["runs"].as_array().unwrap().len(), 2);
    app.stop().await;
}

#[tokio::test]
async fn what_was_said_before_goes_along_and_counts_for_nothing() {
    let model = scripted(vec![read("P001"), says("P001 今年 45 岁。")]).await;
    let app = app_with(&model).await;
    app.chat("lung", "ZhangSan", "质控 P001").await;
    app.chat("lung", "ZhangSan", "他的年龄是多少").await;
    let log = asked(&model);
    let first = log[0].said_by("user").join("\n");
    assert!(
        first.contains("【此前对话】") && first.contains("用户：质控 P001"),
        "{first}"
    );
    assert!(first.contains("所指受试者：P001"), "{first}");
    app.stop().await;
}

#[tokio::test]
async fn without_a_model_the_keywords_answer_and_say_so() {
    let app = TestApp::with(&study()).await;
    let message = app.chat("lung", "ZhangSan", "P001 的年龄是多少").await;
    assert!(text(&message).contains("尚未配置语言模型"), "{message}");
    assert_eq!(app.count("iit_task_run").await, 0);
    app.stop().await;
}

#[tokio::test]
async fn a_study_that_forbids_external_models_is_told_why_and_nothing_leaves() {
    let variables = [
        ("LLM_BASE_URL", "https://llm.example.invalid/v1".to_owned()),
        ("LLM_MODEL", "m".to_owned()),
    ];
    let db = crate::support::postgres::TestDb::new().await;
    let clock = iit_manager::types::clock::Clock::system();
    let app = TestApp::start_with(db, clock, &variables).await;
    app.apply(&study()).await;
    let message = app.chat("lung", "ZhangSan", "P001 的年龄是多少").await;
    assert!(text(&message).contains("allow_external"), "{message}");
    assert_eq!(app.count("iit_llm_calls").await, 0);
    assert_nothing_happened(&app).await;
    app.stop().await;
}
