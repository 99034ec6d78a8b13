//! What does not compile, and what is said about it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::support::{about, faults, longitudinal, one_form, rule};
use crate::{
    engines::rules::{RuleSet, Study},
    types::rule::RuleSpec,
};

fn said(specs: &[RuleSpec], study: &Study<'_>) -> String {
    faults(specs, study)
        .iter()
        .map(|fault| format!("{fault}\n"))
        .collect()
}

fn rules(logics: Vec<Value>) -> Vec<RuleSpec> {
    logics.into_iter().map(rule).collect()
}

#[test]
fn slips_that_need_no_dictionary_are_found_in_every_branch() {
    let deep = (0..40).fold(json!({"var": "x"}), |inner, _| json!({"!": [inner]}));
    insta::assert_snapshot!(said(
        &rules(vec![
            json!({"=>": [{"var": "age"}, 18]}),
            json!({"if": [{"var": "x"}, true, {"or": [true, {"grater": [1, 2]}]}]}),
            json!({"map": [{"var": "x"}, {"var": ""}]}),
            json!({"log": "x"}),
            json!({">=": [{"var": "age"}, 18], "<=": [{"var": "age"}, 75]}),
            json!({}),
            json!({"and": [{"==": [{}, 1]}]}),
            json!({">=": [{"var": "age"}]}),
            json!({"==": [1, 2, 3]}),
            json!({"between": [{"var": "age"}, 75, 18]}),
            json!({"between": [{"var": "age"}, 18, 75, "[["]}),
            json!({"var": [{"if": [true, "a", "b"]}]}),
            json!({"var": ""}),
            json!({"var": 1}),
            json!({"var": ["a", {"+": [1, 2]}]}),
            json!({"missing": {"merge": ["a"]}}),
            json!({"missing": ["a", {"var": "b"}]}),
            json!({"missing_some": [3, ["a", "b"]]}),
            json!({"missing_some": ["1", ["a", "b"]]}),
            deep,
            json!({"<": [{"var": "x"}, "abc"]}),
            json!({"<": [{"var": "x"}, "05/01/2026"]}),
            json!({"<": [{"var": "x"}, ""]}),
            json!({"<": [{"var": "x"}, null]}),
            json!({"==": [{"var": "x"}, null]}),
            json!({"==": [{"+": [{"var": "x"}, 1]}, ""]}),
            json!({"==": [{"missing": ["x"]}, []]}),
            json!({"in": [{"var": "x"}, []]}),
            json!({"in": [{"var": "x"}, ["", 1]]}),
            json!({"in": ["", {"var": "x"}]}),
            json!({"in_codes": [{"var": "x"}, []]}),
            json!({"in_codes": ["x", ["1"]]}),
            json!({"is_blank": {"+": [1, {"var": "x"}]}}),
            json!({"matches": [{"var": "x"}, "a)|(b"]}),
            json!({"matches": [{"var": "x"}, "((a{99}){99}){99}"]}),
            json!({"matches": [{"var": "x"}, {"var": "y"}]}),
            json!({"matches": [{"var": "x"}, "x".repeat(1001)]}),
            json!({"date_before": [{"var": "x"}, "2026-13-01"]}),
            json!({"age_at": [{"var": "x"}, 18]}),
            json!({"+": [{"var": "x"}, "5,3"]}),
            json!({"substr": [{"var": "x"}, {"var": "y"}]}),
            json!({"today": []}),
            json!("{\">=\": [1]}"),
            json!(true),
            json!(null),
            json!([{"var": "x"}]),
        ]),
        &Study::default()
    ));
}

#[test]
fn slips_that_the_dictionary_tells_are_found() {
    let dictionary = one_form();
    insta::assert_snapshot!(said(
        &rules(vec![
            json!({">=": [{"var": "agee"}, 18]}),
            json!({">=": [{"var": "nothing_like_it"}, 18]}),
            json!({"<": [{"var": "initials"}, {"var": "history"}]}),
            json!({"<": [{"var": "initials"}, 5]}),
            json!({"<": [{"var": "age"}, {"var": "history"}]}),
            json!({"==": [{"var": "initials"}, 5]}),
            json!({"==": [{"var": "history"}, {"var": "age"}]}),
            json!({"<=": [{"var": "icf_date"}, 20260105]}),
            json!({"<=": [{"var": "icf_date"}, "05/01/2026"]}),
            json!({"==": [{"var": "icf_date"}, "2026-01"]}),
            json!({"<=": [{"var": "icf_date"}, {"var": "age"}]}),
            json!({"==": [{"var": "icf_date"}, {"var": "initials"}]}),
            json!({"<=": ["2026-01-01", {"var": "icf_date"}, {"var": "age"}]}),
            json!({"<": [{"var": "slept_at"}, "8:30"]}),
            json!({"<": [{"var": "slept_at"}, {"var": "seen_at"}]}),
            json!({"==": [{"var": "ecog"}, 5]}),
            json!({"!=": [{"var": "ecog"}, "01"]}),
            json!({"in": [{"var": "arm"}, ["A", "b"]]}),
            json!({"in_codes": [{"var": "symptoms"}, ["1", "feber"]]}),
            json!({"in": ["9", {"var": "symptoms"}]}),
            json!({"==": [{"var": "symptoms"}, "1"]}),
            json!({"in": [{"var": "symptoms"}, ["1"]]}),
            json!({"<": [{"var": "symptoms"}, 1]}),
            json!({"<": [{"var": "arm"}, "B"]}),
            json!({"+": [{"var": "arm"}, 1]}),
            json!({"+": [{"var": "icf_date"}, 1]}),
            json!({"var": "ecog"}),
            json!({"and": [{"var": "arm"}, true]}),
            json!({"==": [{"var": "preg"}, 2]}),
            json!({"==": [{"var": "age"}, "young"]}),
            json!({"==": [{"var": "age"}, true]}),
            json!({"in": [1, {"var": "history"}]}),
            json!({"in": ["A", {"var": "arm"}]}),
            json!({"in": ["1", {"var": "age"}]}),
            json!({"date_before": [{"var": "age"}, "today"]}),
            json!({"in_codes": [{"var": "icf_date"}, ["1"]]}),
            json!({"cat": [{"var": "symptoms"}]}),
            json!({"==": [{"var": "symptoms___9"}, 1]}),
            json!({"==": [{"var": "visit1.age"}, 1]}),
            json!({"!=": ["preg", 1]}),
            json!({"or": [{"!=": ["preg", 1]}, {"==": [{"var": "preg"}, 1]}]}),
            json!({"today": []}),
        ]),
        &Study::typed_by(&dictionary)
    ));
}

#[test]
fn places_that_cannot_be_told_are_found() {
    let dictionary = longitudinal();
    let study = Study::typed_by(&dictionary);
    insta::assert_snapshot!(said(
        &[
            rule(json!({"<=": [{"var": "ae_start"}, {"var": "cm_start"}]})),
            rule(json!({"<=": [{"var": "visit1.ae_start"}, "today"]})),
            rule(json!({"<=": [{"var": "log.call_date"}, "today"]})),
            rule(json!({"<=": [{"var": "visit1.enroll_date"}, "today"]})),
            rule(json!({"<=": [{"var": "visit9.weight"}, 100]})),
            about("wight", json!({"<=": [{"var": "weight"}, 100]})),
        ],
        &study
    ));
}

#[test]
fn an_alias_must_lead_to_a_field() {
    let dictionary = one_form();
    let aliases = BTreeMap::from([("年龄".to_owned(), "age_calculated".to_owned())]);
    let study = Study {
        aliases: &aliases,
        ..Study::typed_by(&dictionary)
    };
    insta::assert_snapshot!(said(
        &rules(vec![json!({">=": [{"var": "年龄"}, 18]})]),
        &study
    ));
}

#[test]
fn an_id_names_one_rule() {
    let mut a = rule(json!({">=": [{"var": "age"}, 18]}));
    a.id = Some("IC-01".to_owned());
    let mut b = rule(json!({"<=": [{"var": "age"}, 75]}));
    b.id = Some(" IC-01 ".to_owned());
    insta::assert_snapshot!(said(&[a, b], &Study::default()));
}

#[test]
fn a_rule_nested_as_deep_as_json_goes_is_refused_without_harm() {
    // `json!` would serialise what it is given, and so recurse.
    let not = |inner: Value| {
        let mut map = serde_json::Map::new();
        map.insert("!".to_owned(), Value::Array(vec![inner]));
        Value::Object(map)
    };
    let deep = (0..20_000).fold(json!({"var": "x"}), |inner, _| not(inner));
    let spec = rule(deep);
    let found = faults(std::slice::from_ref(&spec), &Study::default());
    assert_eq!(found.len(), 1);
    assert!(found[0].what.contains("deeper than 32"), "{}", found[0]);
    // Dropping a value this deep recurses; take it apart from the outside.
    let mut rest = spec.logic;
    while let Value::Object(map) = rest {
        rest = match map.into_iter().next() {
            Some((_, Value::Array(mut items))) => items.pop().unwrap_or_default(),
            _ => Value::Null,
        };
    }
}

#[test]
fn a_rule_with_huge_lists_compiles_and_answers() {
    let codes: Vec<Value> = (0..200_000).map(Value::from).collect();
    let logic =
        json!({"and": [{"in": [{"var": "x"}, codes]}, {"in_codes": [{"var": "x"}, codes]}]});
    let set = RuleSet::compile(&[rule(logic)], &Study::default()).unwrap();
    let results = set.evaluate_json(&json!({"x": 199_999}), super::support::today());
    assert!(results[0].passed());
    let many: Vec<Value> = (0..100_000)
        .map(|n| json!({"!=": [{"var": "x"}, n]}))
        .collect();
    let set = RuleSet::compile(&[rule(json!({"and": many}))], &Study::default()).unwrap();
    let results = set.evaluate_json(&json!({"x": -1}), super::support::today());
    assert!(results[0].passed());
}
