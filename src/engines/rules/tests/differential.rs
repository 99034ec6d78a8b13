//! On fully populated records and standard operators, the answer is the reference's.

use std::collections::HashSet;

use proptest::{prelude::*, strategy::ValueTree, test_runner::TestRunner};
use serde_json::{Value, json};

use super::{
    populated::{Populated, populated},
    standard_rules::{TYPED, UNTYPED, expression, rule_logic},
    support::{one_form, only, plain, record, rule, today},
};
use crate::engines::rules::{Outcome, RuleSet, Study, operators};

/// The operators beside those of JSON Logic.
const OURS: [&str; 8] = [
    "age_at",
    "between",
    "date_after",
    "date_before",
    "date_diff_days",
    "in_codes",
    "is_blank",
    "matches",
];

fn reference(logic: &Value, data: &Value) -> Outcome {
    let holds = match jsonlogic_rs::apply(logic, data).unwrap() {
        Value::Null => false,
        Value::Bool(b) => b,
        Value::Number(n) => n.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(_) => panic!("{logic} over {data} gave an object"),
    };
    if holds { Outcome::Pass } else { Outcome::Fail }
}

/// The answer over a row of an export, and over the same as one JSON object.
fn typed(logic: &Value, given: &Populated) -> [Outcome; 2] {
    let dictionary = one_form();
    let study = Study::typed_by(&dictionary);
    let set = RuleSet::compile(&[rule(logic.clone())], &study)
        .unwrap_or_else(|faults| panic!("{logic}: {faults:?}"));
    let row = record(&dictionary, &[given.cells.clone().into()]);
    [
        set.evaluate(&row, today()),
        set.evaluate_json(&given.json, today()),
    ]
    .map(|results| only(results).outcome)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_populated_record_typed_by_a_dictionary_gets_the_answer_of_the_reference(
        logic in rule_logic(TYPED, 3), given in populated(),
    ) {
        let expected = reference(&logic, &given.json);
        let [row, object] = typed(&logic, &given);
        prop_assert_eq!(&row, &expected, "{} over {:?}", logic, given.cells);
        prop_assert_eq!(&object, &expected, "{} over {}", logic, given.json);
        // Nor does it matter whether anybody typed the values.
        prop_assert_eq!(plain(logic.clone(), &given.json), expected, "{} over {}", logic, given.json);
    }

    #[test]
    fn a_populated_record_without_a_dictionary_gets_the_answer_of_the_reference(
        logic in rule_logic(UNTYPED, 3), given in populated(),
    ) {
        let expected = reference(&logic, &given.json);
        prop_assert_eq!(plain(logic.clone(), &given.json), expected, "{} over {}", logic, given.json);
    }
}

/// A rule that passes when the expression comes to what the reference says it comes to.
fn comes_to_the_same(expression: Value, data: &Value) -> Value {
    match jsonlogic_rs::apply(&expression, data).unwrap() {
        // No text is compared with an empty one: that asks for a blank.
        Value::String(text) if text.trim().is_empty() => {
            json!({"===": [{"cat": [expression, "."]}, format!("{text}.")]})
        }
        value => json!({"===": [expression, value]}),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    // A comparison hides most of what it compares; this looks at the value itself.
    #[test]
    fn an_expression_comes_to_the_value_of_the_reference(
        logic in expression(TYPED, 3), untyped in expression(UNTYPED, 3), given in populated(),
    ) {
        let same = comes_to_the_same(logic, &given.json);
        let [row, object] = typed(&same, &given);
        prop_assert_eq!(row, Outcome::Pass, "{} over {:?}", same, given.cells);
        prop_assert_eq!(object, Outcome::Pass, "{} over {}", same, given.json);
        for logic in [same, comes_to_the_same(untyped, &given.json)] {
            prop_assert_eq!(plain(logic.clone(), &given.json), Outcome::Pass, "{} over {}", logic, given.json);
        }
    }
}

fn operators_in(logic: &Value, out: &mut HashSet<String>) {
    match logic {
        Value::Object(map) => map.iter().for_each(|(op, operands)| {
            out.insert(op.clone());
            operators_in(operands, out);
        }),
        Value::Array(items) => items.iter().for_each(|item| operators_in(item, out)),
        _ => {}
    }
}

#[test]
fn the_rules_compared_use_every_standard_operator_and_come_out_both_ways() {
    let standard: HashSet<String> = operators()
        .filter(|op| !OURS.contains(op) && *op != "today")
        .map(str::to_owned)
        .collect();
    for words in [TYPED, UNTYPED] {
        let mut runner = TestRunner::deterministic();
        let (mut seen, mut passed) = (HashSet::new(), 0);
        for _ in 0..1_000 {
            let logic = rule_logic(words, 3)
                .new_tree(&mut runner)
                .unwrap()
                .current();
            let given = populated().new_tree(&mut runner).unwrap().current();
            operators_in(&logic, &mut seen);
            passed += usize::from(reference(&logic, &given.json) == Outcome::Pass);
        }
        assert_eq!(seen, standard);
        assert!((250..750).contains(&passed), "{passed} of 1000 pass");
    }
}

#[test]
fn the_deviations_from_the_reference_are_these() {
    let rows: Vec<String> = [
        (json!({"<=": [{"var": "x"}, 75]}), json!({})),
        (json!({"<=": [{"var": "x"}, 75]}), json!({"x": ""})),
        (json!({"<=": [{"var": ["x", 5]}, 75]}), json!({})),
        (
            json!({"<": [{"var": "x"}, {"var": "y"}]}),
            json!({"x": "100", "y": "20"}),
        ),
        (
            json!({"<": [{"var": "x"}, {"var": "y"}]}),
            json!({"x": "2026-1-5", "y": "2026-12-05"}),
        ),
        (
            json!({"<": [{"var": "x"}, {"var": "y"}]}),
            json!({"x": "abc", "y": "abd"}),
        ),
        (json!({"!=": [{"var": "x"}, 5]}), json!({"x": "<5"})),
        (json!({"!=": [{"var": "x"}, "1"]}), json!({"x": "1.0"})),
        (json!({"!==": [{"var": "x"}, 1]}), json!({"x": "1"})),
        (json!({"in": [{"var": "x"}, ["4", "5"]]}), json!({"x": 4})),
        (json!({"!": {"var": "x"}}), json!({"x": "0"})),
        (
            json!({"<": [{"+": [{"var": "x"}, 1]}, 9]}),
            json!({"x": "5 mg"}),
        ),
        (json!({"missing": ["x"]}), json!({"x": ""})),
        // What the reference does otherwise than JSON Logic.
        (
            json!({"<": [{"+": [{"var": "x"}, 1]}, 9]}),
            json!({"x": true}),
        ),
        (
            json!({"in": [{"var": "x"}, [{"var": "y"}]]}),
            json!({"x": 4, "y": 4}),
        ),
        (
            json!({"==": [{"substr": [{"var": "x"}, -1]}, "炎"]}),
            json!({"x": "肺炎"}),
        ),
        (
            json!({"==": [{"substr": [{"var": "x"}, 0, 1]}, "4"]}),
            json!({"x": 42}),
        ),
        (
            json!({"==": [{"cat": [{"/": [{"var": "x"}, 4]}]}, "0.00000025"]}),
            json!({"x": 0.000001}),
        ),
    ]
    .into_iter()
    .map(|(logic, data)| told(&logic, &data, &plain(logic.clone(), &data)))
    .collect();
    insta::assert_snapshot!(rows.join("\n"));
}

#[test]
fn the_deviations_of_typed_fields_are_these() {
    let dictionary = one_form();
    let rows: Vec<String> = [
        (json!({"===": [{"var": "preg"}, true]}), json!({"preg": 1})),
        (json!({"===": [{"var": "ecog"}, 4]}), json!({"ecog": "4"})),
        (json!({"in": [{"var": "ecog"}, [4]]}), json!({"ecog": "4"})),
        (json!({"===": [{"var": "age"}, "18"]}), json!({"age": 18})),
        (
            json!({"<=": [{"var": "seen_at"}, {"var": "icf_date"}]}),
            json!({"seen_at": "2026-01-05 08:30", "icf_date": "2026-01-05"}),
        ),
        (
            json!({"<": [{"var": "icf_date"}, "2026-01-05"]}),
            json!({"icf_date": "2026-01"}),
        ),
        (json!({"!": {"var": "preg"}}), json!({"preg": "0"})),
        (json!({"missing": ["symptoms"]}), json!({"symptoms": []})),
        (json!({"!=": [{"var": "ecog"}, "4"]}), json!({"ecog": "IV"})),
        (
            json!({"!=": [{"var": "initials"}, "WLH"]}),
            json!({"initials": "NI"}),
        ),
    ]
    .into_iter()
    .map(|(logic, data)| {
        let set = RuleSet::compile(&[rule(logic.clone())], &Study::typed_by(&dictionary)).unwrap();
        told(
            &logic,
            &data,
            &only(set.evaluate_json(&data, today())).outcome,
        )
    })
    .collect();
    insta::assert_snapshot!(rows.join("\n"));
}

fn told(logic: &Value, data: &Value, ours: &Outcome) -> String {
    let ours = match ours {
        Outcome::Pass => "pass",
        Outcome::Fail => "fail",
        _ => "not evaluable",
    };
    let reference = jsonlogic_rs::apply(logic, data).unwrap_or_else(|_| json!("error"));
    format!("{logic} over {data}: {ours}, reference {reference}")
}
