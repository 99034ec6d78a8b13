//! Whole walks over small graphs.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed expectation is the test's verdict"
)]

use std::sync::Arc;

use chrono::NaiveDate;
use serde_json::{Value, json};

use super::{
    CompiledSkill, Decision, FinalState, Found, NO_MODEL, Next, NodeResult, Standing, StepError,
    Walk,
    step::{answered, judge},
};
use crate::{
    engines::rules::{Outcome, Reason, RuleResult, Study},
    skills::{Skill, from_config},
    types::{
        finding::{Finding, FindingOutcome, Severity},
        record::{Columns, Record, Row},
    },
};

fn load(config: &Value) -> Skill {
    from_config("qc_process", "质控", None, config).expect("the graph is sound")
}

fn compiled(config: &Value) -> CompiledSkill {
    CompiledSkill::compile(&load(config), &Study::default()).expect("the rules compile")
}

pub(super) fn rule() -> Value {
    json!({ ">=": [{ "var": "age" }, 18] })
}

pub(super) fn today() -> NaiveDate {
    NaiveDate::from_ymd_opt(2026, 1, 5).unwrap()
}

pub(super) fn record(cells: &[(&str, &str)]) -> Record {
    let columns = Columns::new(cells.iter().map(|(name, _)| (*name).to_owned()).collect());
    let cells = cells.iter().map(|(_, value)| Box::from(*value)).collect();
    Record {
        id: "001".to_owned(),
        rows: vec![Row::new(None, None, None, columns, cells)],
    }
}

fn result(rule: &str, at: usize, outcome: Outcome) -> RuleResult {
    RuleResult {
        rule: Arc::from(rule),
        rule_index: at,
        event: None,
        instance: None,
        field: Arc::from("age"),
        outcome,
        message: String::new(),
        severity: Severity::Error,
        values: Vec::new(),
    }
}

fn missing() -> Outcome {
    Outcome::NotEvaluable {
        reason: Reason::Missing,
        fields: vec![Arc::from("age")],
    }
}

#[test]
fn the_worst_answer_of_a_hard_nodes_rules_decides_the_branch() {
    use Outcome::{Fail, FormNotOpened, Hidden, Pass};
    let cases: [(&[Outcome], NodeResult); 8] = [
        (&[Pass, Fail, missing(), FormNotOpened], NodeResult::Fail),
        (&[Pass, missing(), FormNotOpened], NodeResult::NotEvaluable),
        (&[Pass, FormNotOpened, Hidden], NodeResult::Incomplete),
        (&[FormNotOpened], NodeResult::Incomplete),
        (&[Pass, Hidden], NodeResult::Pass),
        (&[Hidden], NodeResult::Pass),
        (&[Pass], NodeResult::Pass),
        (&[], NodeResult::Pass),
    ];
    for (outcomes, expected) in cases {
        let results: Vec<RuleResult> = outcomes
            .iter()
            .enumerate()
            .map(|(at, outcome)| result(&at.to_string(), at, outcome.clone()))
            .collect();
        assert_eq!(judge(&results), expected, "{outcomes:?}");
    }
}

#[test]
fn only_rules_with_an_answer_may_close_earlier_findings() {
    let results = [
        result("held", 0, Outcome::Pass),
        result("held", 0, Outcome::FormNotOpened),
        result("broken", 1, Outcome::Fail),
        result("hidden", 2, Outcome::Hidden),
        result("blank", 3, missing()),
        result("unopened", 4, Outcome::FormNotOpened),
    ];
    assert_eq!(answered(&results), ["held", "broken", "hidden"]);
}

/// hard → review → (dismiss) hard2 → end_success
fn reviewed() -> CompiledSkill {
    compiled(&json!({
        "start_node": "age",
        "nodes": {
            "age": { "type": "hard_rule", "logic": rule(), "on_pass": "ecog", "on_fail": "tell" },
            "tell": { "type": "notify", "message": "{record}：{findings} {其他}", "to": "ZhangSan", "on_pass": "review" },
            "review": { "type": "human_review", "on_pass": "ecog", "on_fail": "end_with_violation" },
            "ecog": { "type": "hard_rule", "logic": { "<=": [{ "var": "ecog" }, 2] },
                      "on_pass": "end_success", "on_fail": "end_with_violation" },
        }
    }))
}

/// Settles the current node with `result`, whatever its type.
fn settle(skill: &CompiledSkill, walk: &mut Walk, result: NodeResult) -> Next {
    let node = walk.node().unwrap().to_owned();
    skill
        .settle(walk, node, Found::only(result, String::new()))
        .next
}

fn finding(message: &str) -> Finding {
    Finding {
        record: "001".to_owned(),
        event: None,
        instance: None,
        rule: "IC-01".to_owned(),
        field: "age".to_owned(),
        outcome: FindingOutcome::Fail,
        severity: Severity::Error,
        message: message.to_owned(),
        values: Vec::new(),
    }
}

#[test]
fn a_dismissed_review_clears_what_led_to_it_and_a_confirmed_one_is_a_violation() {
    let skill = reviewed();
    for (decision, end, standing) in [
        (Decision::Dismiss, FinalState::Success, Standing::Clean),
        (
            Decision::Confirm,
            FinalState::WithViolation,
            Standing::Violation,
        ),
    ] {
        let mut walk = skill.begin();
        settle(&skill, &mut walk, NodeResult::Fail);
        let (notice, told) = skill
            .notify(&mut walk, "001", &[finding("年龄<18岁 {record}")])
            .unwrap();
        assert_eq!(notice.text, "001：1. 年龄<18岁 {record} {其他}");
        assert_eq!(notice.to, ["ZhangSan"]);
        assert_eq!(told.next, Next::Node("review".to_owned()));
        skill.decide(&mut walk, decision).unwrap();
        if walk.node().is_some() {
            settle(&skill, &mut walk, NodeResult::Pass);
        }
        assert_eq!(walk.final_state(), Some(&end));
        assert_eq!(walk.standing(), Some(standing));
    }
}

#[test]
fn a_dismissed_review_does_not_clear_what_it_was_not_about() {
    let skill = compiled(&json!({
        "start_node": "a",
        "nodes": {
            "a": { "type": "hard_rule", "logic": rule(), "on_pass": "b", "on_fail": "b" },
            "b": { "type": "hard_rule", "logic": rule(), "on_pass": "r", "on_fail": "r" },
            "r": { "type": "human_review", "on_pass": "end_success", "on_fail": "end_with_violation" },
        }
    }));
    let mut walk = skill.begin();
    settle(&skill, &mut walk, NodeResult::Fail);
    settle(&skill, &mut walk, NodeResult::Pass);
    skill.decide(&mut walk, Decision::Dismiss).unwrap();
    assert_eq!(walk.final_state(), Some(&FinalState::Success));
    assert_eq!(walk.standing(), Some(Standing::Violation));
}

#[test]
fn a_soft_rule_without_a_model_takes_on_error_and_leaves_a_query() {
    let skill = compiled(&json!({
        "start_node": "history",
        "nodes": { "history": {
            "type": "soft_instruction", "instruction": "排除间质性肺炎。",
            "on_pass": "end_success", "on_fail": "end_with_violation",
        } }
    }));
    let mut walk = skill.begin();
    let outcome = skill.unavailable(&mut walk, "001", NO_MODEL).unwrap();
    assert_eq!(outcome.result, NodeResult::Error);
    assert_eq!(outcome.next, Next::End(FinalState::ReviewRequired));
    assert_eq!(outcome.note.as_deref(), Some(NO_MODEL));
    assert!(outcome.rules_checked.is_empty());
    let [finding] = outcome.findings.as_slice() else {
        panic!("one finding, not {:?}", outcome.findings);
    };
    assert_eq!(finding.rule, "qc_process/history");
    assert_eq!(finding.severity, Severity::Query);
    assert_eq!(finding.outcome, FindingOutcome::NotEvaluable);
    assert_eq!(
        finding.message,
        "未配置大模型，软规则未执行，转人工复核（节点 history：排除间质性肺炎。）"
    );
    assert_eq!(walk.standing(), Some(Standing::Review));
}

#[test]
fn a_skipped_soft_rule_is_no_pass_even_when_the_graph_routes_its_error_to_success() {
    let skill = compiled(&json!({
        "start_node": "history",
        "nodes": { "history": {
            "type": "soft_instruction", "instruction": "x",
            "on_pass": "end_success", "on_fail": "end_with_violation", "on_error": "end_success",
        } }
    }));
    let mut walk = skill.begin();
    skill.unavailable(&mut walk, "001", NO_MODEL).unwrap();
    assert_eq!(walk.final_state(), Some(&FinalState::Success));
    assert_eq!(walk.standing(), Some(Standing::Review));
}

#[test]
fn a_node_that_could_work_again_settles_its_earlier_query() {
    let skill = reviewed();
    let mut walk = skill.begin();
    let down = skill
        .unavailable(&mut walk, "001", "REDCap 连接失败，转人工复核")
        .unwrap();
    let mut walk = skill.begin();
    let up = skill
        .check(&mut walk, &record(&[("age", "30"), ("ecog", "1")]), today())
        .unwrap();
    assert!(up.rules_checked.contains(&down.findings[0].rule));
}

#[test]
fn the_visit_after_the_last_allowed_one_ends_in_review_and_says_so() {
    let skill = compiled(&json!({
        "start_node": "ask",
        "nodes": {
            "ask": { "type": "human_review", "max_visits": 2, "on_pass": "look", "on_fail": "end_with_violation" },
            "look": { "type": "hard_rule", "logic": rule(), "on_pass": "end_success", "on_fail": "ask" },
        }
    }));
    let mut walk = skill.begin();
    let mut notes = Vec::new();
    while let Some(node) = walk.node().map(ToOwned::to_owned) {
        let result = if node == "ask" {
            NodeResult::Pass
        } else {
            NodeResult::Fail
        };
        let outcome = skill.settle(&mut walk, node, Found::only(result, String::new()));
        notes.push(outcome.note.unwrap());
    }
    assert_eq!(walk.final_state(), Some(&FinalState::ReviewRequired));
    assert_eq!(notes.len(), 4, "ask, look, ask, look");
    assert_eq!(notes[3], "节点 ask 已达访问次数上限，转人工复核");
}

#[test]
fn a_record_without_any_row_is_incomplete_and_never_a_pass() {
    let skill = reviewed();
    let mut walk = skill.begin();
    let empty = Record {
        id: "001".to_owned(),
        rows: Vec::new(),
    };
    let outcome = skill.check(&mut walk, &empty, today()).unwrap();
    assert_eq!(outcome.next, Next::End(FinalState::Incomplete));
    assert!(outcome.findings.is_empty());
    assert_eq!(walk.standing(), Some(Standing::Incomplete));
}

#[test]
fn a_step_that_does_not_fit_the_run_is_refused_and_changes_nothing() {
    let skill = reviewed();
    let mut walk = skill.begin();
    let before = walk.clone();
    assert!(matches!(
        skill.decide(&mut walk, Decision::Dismiss),
        Err(StepError::OtherType {
            found: "hard_rule",
            wanted: "human_review",
            ..
        })
    ));
    assert_eq!(walk, before);

    settle(&skill, &mut walk, NodeResult::Incomplete);
    assert_eq!(
        skill.check(&mut walk, &record(&[("age", "30")]), today()),
        Err(StepError::Over(FinalState::Incomplete))
    );

    let mut foreign: Walk =
        serde_json::from_value(json!({ "next": { "node": "gone" }, "visits": {} })).unwrap();
    assert!(matches!(
        skill.check(&mut foreign, &record(&[("age", "30")]), today()),
        Err(StepError::NoSuchNode { .. })
    ));
    assert!(
        skill
            .run_leading(&mut foreign, &record(&[]), today())
            .unwrap()
            .is_empty()
    );
}

#[test]
fn a_walk_survives_being_stored() {
    let skill = reviewed();
    let mut walk = skill.begin();
    settle(&skill, &mut walk, NodeResult::Fail);
    let stored = serde_json::to_value(&walk).unwrap();
    assert_eq!(
        serde_json::from_value::<Walk>(stored.clone()).unwrap(),
        walk
    );
    let expected = json!({
        "next": { "node": "tell" },
        "visits": { "age": 1, "tell": 1 },
        "raised": [{ "node": "age", "failed": true }],
        "just_raised": true,
    });
    assert_eq!(stored, expected, "runs in flight hold this shape");
}
