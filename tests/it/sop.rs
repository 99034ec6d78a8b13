//! A skill file over real rows: which branch is taken, what is found, how the run ends.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed expectation is the test's verdict"
)]

use chrono::NaiveDate;
use iit_manager::{
    engines::{
        rules::Study,
        sop::{CompiledSkill, FinalState, NO_MODEL, Next, NodeOutcome, NodeResult, Standing, Walk},
    },
    skills,
    types::{
        dictionary::{Dictionary, Field, FieldKind},
        finding::{FindingOutcome, Severity},
        record::{Columns, Record, Row},
    },
};

const HARD_ONLY: &str = r#"{
  "name": "入排",
  "start_node": "baseline",
  "nodes": {
    "baseline": {
      "type": "hard_rule",
      "rules": [
        { "id": "IC-01", "field": "age", "logic": { ">=": [{ "var": "age" }, 18] }, "message": "年龄<18岁" },
        { "id": "IC-02", "field": "ecog", "logic": { "<=": [{ "var": "ecog" }, 2] }, "message": "ECOG>2", "severity": "warning" }
      ],
      "on_pass": "follow_up",
      "on_fail": "end_with_violation",
      "on_not_evaluable": "end_review_required"
    },
    "follow_up": {
      "type": "hard_rule",
      "rules": [
        { "id": "FU-01", "field": "weight", "logic": { ">": [{ "var": "weight" }, 30] } }
      ],
      "on_pass": "end_success",
      "on_fail": "end_with_violation"
    }
  }
}"#;

fn number(name: &str, form: &str, branching: &str) -> Field {
    Field {
        name: name.to_owned(),
        form: form.to_owned(),
        label: name.to_owned(),
        kind: FieldKind::Text,
        validation: "number".to_owned(),
        min: String::new(),
        max: String::new(),
        choices: Vec::new(),
        calculation: String::new(),
        branching: branching.to_owned(),
        required: false,
        identifier: false,
        annotation: String::new(),
    }
}

fn dictionary() -> Dictionary {
    let mut id = number("record_id", "baseline", "");
    id.validation = String::new();
    Dictionary::new(vec![
        id,
        number("age", "baseline", ""),
        number("ecog", "baseline", "[age] < 60"),
        number("weight", "follow_up", ""),
    ])
}

/// A record with its cells; forms that are not opened have a blank status, as in an export.
fn record(cells: &[(&str, &str)]) -> Record {
    let columns = Columns::new(cells.iter().map(|(name, _)| (*name).to_owned()).collect());
    let cells = cells.iter().map(|(_, value)| Box::from(*value)).collect();
    Record {
        id: "001".to_owned(),
        rows: vec![Row::new(None, None, None, columns, cells)],
    }
}

fn subject(age: &str, ecog: &str, weight: &str, follow_up: &str) -> Record {
    record(&[
        ("record_id", "001"),
        ("age", age),
        ("ecog", ecog),
        ("baseline_complete", "2"),
        ("weight", weight),
        ("follow_up_complete", follow_up),
    ])
}

fn today() -> NaiveDate {
    NaiveDate::from_ymd_opt(2026, 1, 5).unwrap()
}

fn run(subject: &Record) -> (Walk, Vec<NodeOutcome>) {
    let skill = skills::load(HARD_ONLY.as_bytes(), "eligibility").expect("a sound skill");
    let dictionary = dictionary();
    let skill = CompiledSkill::compile(&skill, &Study::typed_by(&dictionary)).expect("sound rules");
    let mut walk = skill.begin();
    let outcomes = skill.run_leading(&mut walk, subject, today()).unwrap();
    (walk, outcomes)
}

#[test]
fn a_minor_is_a_violation_and_stands_in_the_ledger() {
    let (walk, outcomes) = run(&subject("16", "1", "60", "2"));
    assert_eq!(walk.final_state(), Some(&FinalState::WithViolation));
    assert_eq!(walk.standing(), Some(Standing::Violation));
    let [outcome] = outcomes.as_slice() else {
        panic!("the run ended at its first node: {outcomes:?}");
    };
    let [finding] = outcome.findings.as_slice() else {
        panic!("one finding: {:?}", outcome.findings);
    };
    assert_eq!(
        (finding.rule.as_str(), finding.field.as_str()),
        ("IC-01", "age")
    );
    assert_eq!(finding.outcome, FindingOutcome::Fail);
    assert!(finding.message.contains("年龄<18岁"), "{}", finding.message);
    assert_eq!(
        outcome.rules_checked,
        ["IC-01", "IC-02", "eligibility/baseline"]
    );
}

#[test]
fn a_subject_who_meets_everything_ends_in_success() {
    let (walk, outcomes) = run(&subject("45", "0", "60", "2"));
    assert_eq!(walk.final_state(), Some(&FinalState::Success));
    assert_eq!(walk.standing(), Some(Standing::Clean));
    let nodes: Vec<&str> = outcomes
        .iter()
        .map(|outcome| outcome.node.as_str())
        .collect();
    assert_eq!(nodes, ["baseline", "follow_up"]);
    assert!(outcomes.iter().all(|outcome| outcome.findings.is_empty()));
}

#[test]
fn a_blank_that_decides_is_a_query_and_never_a_pass() {
    let (walk, outcomes) = run(&subject("", "1", "60", "2"));
    assert_eq!(walk.final_state(), Some(&FinalState::ReviewRequired));
    assert_eq!(outcomes[0].result, NodeResult::NotEvaluable);
    let finding = &outcomes[0].findings[0];
    assert_eq!(finding.outcome, FindingOutcome::NotEvaluable);
    assert_eq!(finding.severity, Severity::Query);
    assert!(!outcomes[0].rules_checked.contains(&"IC-01".to_owned()));
}

#[test]
fn what_could_not_be_decided_is_recorded_beside_what_is_broken() {
    let (walk, outcomes) = run(&subject("16", "", "60", "2"));
    assert_eq!(walk.final_state(), Some(&FinalState::WithViolation));
    let found: Vec<_> = outcomes[0]
        .findings
        .iter()
        .map(|finding| (finding.rule.as_str(), finding.outcome))
        .collect();
    assert_eq!(
        found,
        [
            ("IC-01", FindingOutcome::Fail),
            ("IC-02", FindingOutcome::NotEvaluable)
        ]
    );
}

#[test]
fn a_field_hidden_by_branching_logic_does_not_route() {
    let (walk, outcomes) = run(&subject("70", "", "60", "2"));
    assert_eq!(
        outcomes[0].result,
        NodeResult::Pass,
        "{:?}",
        outcomes[0].findings
    );
    assert_eq!(walk.final_state(), Some(&FinalState::Success));
}

#[test]
fn a_form_nobody_opened_ends_the_run_incomplete_without_a_finding() {
    let (walk, outcomes) = run(&subject("45", "0", "", ""));
    assert_eq!(walk.final_state(), Some(&FinalState::Incomplete));
    assert_eq!(walk.standing(), Some(Standing::Incomplete));
    let last = outcomes.last().unwrap();
    assert_eq!(last.next, Next::End(FinalState::Incomplete));
    assert!(last.findings.is_empty());
}

#[test]
fn the_same_data_gives_the_same_findings_under_the_same_fingerprints() {
    let fingerprints = |outcomes: Vec<NodeOutcome>| -> Vec<String> {
        let findings = outcomes.into_iter().flat_map(|outcome| outcome.findings);
        findings
            .map(|finding| finding.fingerprint("lung-01"))
            .collect()
    };
    let first = fingerprints(run(&subject("16", "3", "60", "2")).1);
    assert_eq!(first.len(), 2);
    assert_eq!(fingerprints(run(&subject("15", "4", "60", "2")).1), first);
}

#[test]
fn without_a_model_the_v26_shape_checks_its_hard_rules_and_hands_the_rest_to_a_person() {
    let text = include_bytes!("../data/skills/v26.json");
    let skill = skills::load(text, "qc_process").unwrap();
    let dictionary = dictionary();
    let skill = CompiledSkill::compile(&skill, &Study::typed_by(&dictionary)).unwrap();
    let mut walk = skill.begin();
    let outcomes = skill
        .run_leading(&mut walk, &subject("45", "0", "60", "2"), today())
        .unwrap();
    assert_eq!(outcomes.len(), 1);
    assert_eq!(walk.node(), Some("history_check"));
    let soft = skill.unavailable(&mut walk, "001", NO_MODEL).unwrap();
    assert_eq!(soft.findings.len(), 1);
    assert_eq!(walk.final_state(), Some(&FinalState::ReviewRequired));
    assert_eq!(walk.standing().map(Standing::label), Some("需人工复核"));
}

#[test]
fn a_faulty_rule_is_named_with_its_place_in_the_skill() {
    let text = HARD_ONLY.replace(
        "\">\": [{ \"var\": \"weight\" }",
        "\"grater\": [{ \"var\": \"weight\" }",
    );
    let skill = skills::load(text.as_bytes(), "eligibility").unwrap();
    let faults = CompiledSkill::compile(&skill, &Study::default()).unwrap_err();
    let [fault] = faults.as_slice() else {
        panic!("one fault: {faults:?}");
    };
    assert!(
        fault.path.starts_with("nodes.follow_up.rules[0].logic"),
        "{fault}"
    );
    assert!(fault.what.contains("grater"), "{fault}");
}
