//! Whole walks over small graphs, and over random ones.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed expectation is the test's verdict"
)]

use std::{collections::BTreeMap, sync::Arc};

use chrono::NaiveDate;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    CompiledSkill, Decision, FinalState, Found, NO_MODEL, Next, NodeResult, Standing, StepError,
    Walk,
    step::{answered, judge},
};
use crate::{
    engines::rules::{Outcome, Reason, RuleResult, Study},
    skills::{Skill, Target, Work, from_config},
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

fn rule() -> Value {
    json!({ ">=": [{ "var": "age" }, 18] })
}

fn today() -> NaiveDate {
    NaiveDate::from_ymd_opt(2026, 1, 5).unwrap()
}

fn record(cells: &[(&str, &str)]) -> Record {
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

const ENDS: [&str; 6] = [
    "end_success",
    "end_with_violation",
    "end_with_error",
    "review_required",
    "end_incomplete",
    "end_screened",
];

fn node_json(kind: u8, targets: [&str; 4], cap: Option<u32>) -> Value {
    let [pass, fail, error, not_evaluable] = targets;
    let mut node = match kind % 5 {
        0 => json!({ "type": "hard_rule", "logic": rule() }),
        1 => json!({ "type": "soft_instruction", "instruction": "x" }),
        2 => json!({ "type": "human_review" }),
        3 => json!({ "type": "tool", "tool": "aggregate" }),
        _ => json!({ "type": "notify", "message": "x" }),
    };
    node["on_pass"] = json!(pass);
    if kind % 5 != 4 {
        node["on_fail"] = json!(fail);
    }
    if kind >= 128 {
        node["on_error"] = json!(error);
        if matches!(kind % 5, 0 | 1 | 3) {
            node["on_not_evaluable"] = json!(not_evaluable);
        }
    }
    if let Some(cap) = cap {
        node["max_visits"] = json!(cap);
    }
    node
}

type Draw = (u8, [u8; 4], Option<u32>);

fn draws(most: usize) -> impl Strategy<Value = Vec<Draw>> {
    let cap = proptest::option::of(1_u32..4);
    proptest::collection::vec((any::<u8>(), any::<[u8; 4]>(), cap), 1..most)
}

/// Any graph at all over `n0`, `n1`, … and the final states.
fn wild(draws: &[Draw]) -> Value {
    let names: Vec<String> = (0..draws.len()).map(|at| format!("n{at}")).collect();
    let mut all: Vec<&str> = names.iter().map(String::as_str).collect();
    all.extend(ENDS);
    let nodes: BTreeMap<&str, Value> = names
        .iter()
        .zip(draws)
        .map(|(name, (kind, targets, cap))| {
            let targets = targets.map(|t| all[usize::from(t) % all.len()]);
            (name.as_str(), node_json(*kind, targets, *cap))
        })
        .collect();
    json!({ "start_node": "n0", "nodes": nodes })
}

/// A sound graph: `on_pass` leads to the next node, other branches on, to an end, or back to a capped one.
fn sound(draws: &[Draw]) -> Value {
    let names: Vec<String> = (0..draws.len()).map(|at| format!("n{at}")).collect();
    let nodes: BTreeMap<&str, Value> = names
        .iter()
        .zip(draws)
        .enumerate()
        .map(|(at, (name, (kind, targets, cap)))| {
            let mut choices: Vec<&str> = ENDS.to_vec();
            choices.extend(names.iter().skip(at + 1).map(String::as_str));
            choices.extend(
                names
                    .iter()
                    .zip(draws)
                    .filter(|(_, draw)| draw.2.is_some())
                    .map(|(name, _)| name.as_str()),
            );
            let mut targets = targets.map(|t| choices[usize::from(t) % choices.len()]);
            targets[0] = names.get(at + 1).map_or("end_success", String::as_str);
            (name.as_str(), node_json(*kind, targets, *cap))
        })
        .collect();
    json!({ "start_node": "n0", "nodes": nodes })
}

const RESULTS: [NodeResult; 5] = [
    NodeResult::Pass,
    NodeResult::Fail,
    NodeResult::NotEvaluable,
    NodeResult::Incomplete,
    NodeResult::Error,
];

/// Walks with the given results (then passes) to the end, checking each step against the declared graph.
fn walk_through(skill: &CompiledSkill, results: &[u8]) -> Result<(), TestCaseError> {
    let nodes = &skill.sop().nodes;
    let caps: u32 = nodes.values().filter_map(|node| node.max_visits).sum();
    let bound = (usize::try_from(caps).unwrap() + 1) * (nodes.len() + 1);
    let mut results = results
        .iter()
        .map(|r| RESULTS[usize::from(*r) % RESULTS.len()]);
    let mut visits: BTreeMap<String, u32> = BTreeMap::new();
    let mut walk = skill.begin();
    let mut raised = false;
    let mut steps = 0;
    while let Some(id) = walk.node().map(ToOwned::to_owned) {
        steps += 1;
        prop_assert!(steps <= bound, "{steps} steps, at most {bound}");
        let node = nodes.get(&id);
        prop_assert!(node.is_some(), "`{id}` is not declared");
        let node = node.unwrap();
        *visits.entry(id.clone()).or_default() += 1;
        let result = results.next().unwrap_or(NodeResult::Pass);
        raised |= !matches!(result, NodeResult::Pass | NodeResult::Incomplete);
        let next = skill
            .settle(&mut walk, id, Found::only(result, String::new()))
            .next;
        let declared = match result {
            NodeResult::Pass => node.routes.on_pass.clone(),
            NodeResult::Fail => node.routes.on_fail.clone(),
            NodeResult::NotEvaluable => node.routes.on_not_evaluable.clone(),
            NodeResult::Error => node.routes.on_error.clone(),
            NodeResult::Incomplete => Target::End(FinalState::Incomplete),
        };
        match (&next, declared) {
            (Next::Node(went), Target::Node(said)) => prop_assert_eq!(went, &said),
            (Next::End(went), Target::End(said)) => prop_assert_eq!(went, &said),
            (Next::End(went), Target::Node(said)) => {
                prop_assert_eq!(went, &FinalState::ReviewRequired);
                let most = nodes.get(&said).and_then(|node| node.max_visits);
                prop_assert_eq!(most, visits.get(&said).copied(), "the cap was used up");
            }
            (went, said) => prop_assert!(false, "went to {:?}, declared {:?}", went, said),
        }
    }
    prop_assert!(!(raised && walk.standing() <= Some(Standing::Incomplete)));
    Ok(())
}

proptest! {
    #[test]
    fn every_graph_the_check_accepts_ends_and_stays_inside(
        draws in draws(6),
        results in proptest::collection::vec(any::<u8>(), 0..60),
    ) {
        if let Ok(skill) = from_config("wild", "wild", None, &wild(&draws)) {
            let skill = CompiledSkill::compile(&skill, &Study::default()).unwrap();
            walk_through(&skill, &results)?;
        }
    }

    #[test]
    fn a_graph_with_caps_on_its_ways_back_is_accepted_and_ends(
        draws in draws(9),
        results in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let skill = from_config("sound", "sound", None, &sound(&draws));
        prop_assert!(skill.is_ok(), "{:?}", skill.err());
        let skill = CompiledSkill::compile(&skill.unwrap(), &Study::default()).unwrap();
        walk_through(&skill, &results)?;
    }

    #[test]
    fn leading_hard_nodes_stop_at_the_first_other_node(draws in draws(9)) {
        let Ok(skill) = from_config("sound", "sound", None, &sound(&draws)) else {
            return Ok(());
        };
        let skill = CompiledSkill::compile(&skill, &Study::default()).unwrap();
        let mut walk = skill.begin();
        let outcomes = skill.run_leading(&mut walk, &record(&[("age", "30")]), today()).unwrap();
        let all_hard = outcomes.iter().all(|outcome| {
            matches!(skill.sop().nodes.get(&outcome.node).map(|n| &n.work), Some(Work::HardRule { .. }))
        });
        prop_assert!(all_hard);
        let stands_at_hard = matches!(skill.work(&walk), Some(Work::HardRule { .. }));
        prop_assert!(!stands_at_hard);
        for pair in outcomes.windows(2) {
            prop_assert_eq!(&pair[0].next, &Next::Node(pair[1].node.clone()));
        }
    }
}
