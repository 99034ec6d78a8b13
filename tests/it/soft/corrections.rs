//! Mistakes that models make: most are put right when the model is told what was wrong.

use serde_json::json;

use super::study;
use crate::support::app::TestApp;
use crate::support::fake_llm::{Answer, FakeLlm, Request, verdict};
use crate::support::study::Subject;

/// A first answer that can't be used, and the word the correction must hold.
fn mistakes(record: &str) -> Vec<(Answer, &'static str)> {
    let says = |text: &str| Answer::Says(text.to_owned());
    let pass = |evidence: serde_json::Value| {
        Answer::Says(
            json!({ "verdict": "pass", "reason": "无异常", "evidence": evidence }).to_string(),
        )
    };
    vec![
        (says("我认为没有问题。"), "JSON"),
        (says(""), "空的"),
        (says("{\"verdict\":\"pass\",\"reason\":\"无异常\""), "JSON"),
        (
            says("{\"verdict\":\"ok\",\"reason\":\"x\",\"evidence\":[]}"),
            "JSON",
        ),
        (says("{\"verdict\":\"pass\"}"), "reason"),
        (pass(json!([])), "evidence"),
        (
            pass(json!([{ "field": "histroy", "quote": "无特殊" }])),
            "history",
        ),
        (
            pass(json!([{ "record": "P999", "field": "history", "quote": "无特殊" }])),
            "受试者",
        ),
        (
            pass(json!([{ "event": "v9", "field": "history", "quote": "无特殊" }])),
            "event",
        ),
        (
            pass(json!([{ "instance": "第一条", "field": "history", "quote": "无特殊" }])),
            "instance",
        ),
        (pass(json!([{ "quote": "无特殊" }])), "field"),
        (
            Answer::call(
                "read_clinical_data",
                json!({ "record_id": record, "fields": ["不存在的名字"] }),
            ),
            "不存在的名字",
        ),
        (
            Answer::call("read_clinical_data", json!({ "subject": record })),
            "record_id",
        ),
        // Nobody is asked until the quote is one that exists.
        (
            pass(json!([{ "field": "history", "quote": "既往体健" }])),
            "",
        ),
    ]
}

/// The mistake made with the subject of a question.
fn mistake_of(request: &Request) -> (Answer, &'static str) {
    let data = request.data();
    let record = data["record"].as_str().unwrap();
    mistakes(record).swap_remove(record[1..].parse().unwrap())
}

#[tokio::test]
async fn more_than_four_fifths_of_seeded_mistakes_are_put_right() {
    let all = mistakes("");
    let ids: Vec<String> = (0..all.len()).map(|n| format!("P{n:03}")).collect();
    let model = FakeLlm::answering(|request| {
        let (mistake, word) = mistake_of(request);
        let said = request.body["messages"].as_array().unwrap();
        let last = said.last().unwrap()["content"].as_str().unwrap();
        // It puts right what it is told, and only then.
        match request.said_by("assistant").is_empty() {
            true => mistake,
            false if last.contains(word) => Answer::Says(verdict(request, "pass", "history")),
            false => mistake,
        }
    })
    .await;
    let study = study(ids.iter().map(|id| Subject::fit(id)));
    let app = TestApp::with_model(&study, &model).await;
    app.qc("lung", None).await;
    let mut right = 0;
    let mut wrong = Vec::new();
    for id in &ids {
        let run = app.runs_of(id).await.remove(0);
        let steps = run["steps"].as_array().unwrap();
        let is_right = run["standing"] == "clean" && steps.len() == 2;
        right += usize::from(is_right);
        if !is_right {
            wrong.push(format!("{id}: {}", run["steps"]));
        }
        assert_ne!(run["standing"], "violation", "{run}");
    }
    assert!(right * 5 > ids.len() * 4, "{right} of {}", ids.len());
    assert_eq!(
        right,
        ids.len() - 1,
        "all but the invented quote: {wrong:#?}"
    );
    app.stop().await;
}
