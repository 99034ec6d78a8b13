//! On fully populated records and standard operators, the answer is the reference's.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::support::plain;
use crate::engines::rules::Outcome;

fn number() -> impl Strategy<Value = Value> {
    prop_oneof![
        (-6i64..7).prop_map(Value::from),
        (-6i64..6).prop_map(|n| Value::from(n as f64 + 0.5)),
    ]
}

fn nonzero() -> impl Strategy<Value = Value> {
    prop_oneof![
        (1i64..5).prop_map(Value::from),
        (-4i64..0).prop_map(Value::from)
    ]
}

fn word() -> impl Strategy<Value = Value> {
    prop::sample::select(vec!["a", "b", "ab", "bab", "x y"]).prop_map(Value::from)
}

fn num_var() -> impl Strategy<Value = Value> {
    prop::sample::select(vec!["n1", "n2", "deep.n3"]).prop_map(|name| json!({"var": name}))
}

fn text_var() -> impl Strategy<Value = Value> {
    prop::sample::select(vec!["s1", "s2"]).prop_map(|name| json!({"var": [name]}))
}

fn numeric(depth: u32) -> BoxedStrategy<Value> {
    let leaf = prop_oneof![number(), num_var()];
    leaf.prop_recursive(depth, 24, 3, |inner| {
        let operands = prop::collection::vec(inner.clone(), 1..4);
        prop_oneof![
            (prop::sample::select(vec!["+", "*", "min", "max"]), operands)
                .prop_map(|(op, operands)| json!({op: operands})),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| json!({"-": [a, b]})),
            inner.clone().prop_map(|a| json!({"-": [a]})),
            (prop::sample::select(vec!["/", "%"]), inner, nonzero())
                .prop_map(|(op, a, b)| json!({op: [a, b]})),
        ]
    })
    .boxed()
}

fn text() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![word(), text_var()];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..4).prop_map(|parts| json!({"cat": parts})),
            (inner, -3i64..4, prop::option::of(-2i64..3)).prop_map(|(text, from, length)| {
                match length {
                    Some(length) => json!({"substr": [text, from, length]}),
                    None => json!({"substr": [text, from]}),
                }
            }),
        ]
    })
    .boxed()
}

fn condition() -> impl Strategy<Value = Value> {
    let order = || prop::sample::select(vec!["<", "<=", ">", ">="]);
    let equality = || prop::sample::select(vec!["==", "!=", "===", "!=="]);
    let leaf = prop_oneof![
        Just(json!({"var": "yes"})),
        Just(json!({"var": "no"})),
        any::<bool>().prop_map(Value::from),
        (order(), prop::collection::vec(numeric(2), 2..4))
            .prop_map(|(op, items)| json!({op: items})),
        (equality(), numeric(2), numeric(2)).prop_map(|(op, a, b)| json!({op: [a, b]})),
        (equality(), text(), text()).prop_map(|(op, a, b)| json!({op: [a, b]})),
        (num_var(), prop::collection::vec(number(), 1..4))
            .prop_map(|(a, list)| json!({"in": [a, list]})),
        (text_var(), prop::collection::vec(word(), 1..4))
            .prop_map(|(a, list)| json!({"in": [a, list]})),
        (word(), text_var()).prop_map(|(a, b)| json!({"in": [a, b]})),
        Just(json!({"missing": ["n1", "s1"]})),
        Just(json!({"missing_some": [1, ["n1", "s1"]]})),
        text().prop_map(|a| json!({"!!": [a]})),
        numeric(2).prop_map(|a| json!({"!": [a]})),
    ];
    leaf.prop_recursive(4, 40, 4, |inner| {
        let operands = || prop::collection::vec(inner.clone(), 1..4);
        let branches = prop_oneof![
            prop::collection::vec(inner.clone(), 3),
            prop::collection::vec(inner.clone(), 5)
        ];
        prop_oneof![
            operands().prop_map(|operands| json!({"and": operands})),
            operands().prop_map(|operands| json!({"or": operands})),
            inner.clone().prop_map(|a| json!({"!": [a]})),
            inner.clone().prop_map(|a| json!({"!!": a})),
            branches.prop_map(|parts| json!({"if": parts})),
        ]
    })
}

/// Rules compare data; what compares two literals only is refused or the same for every patient.
fn is_compilable(logic: &Value) -> bool {
    logic.is_object() && !logic.to_string().contains(r#""""#)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, max_global_rejects: 100_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_fully_populated_record_gets_the_answer_of_the_reference(
        logic in condition(),
        n1 in number(), n2 in number(), n3 in number(), s1 in word(), s2 in word(),
    ) {
        prop_assume!(is_compilable(&logic));
        let data = json!({
            "n1": n1, "n2": n2, "deep": {"n3": n3}, "s1": s1, "s2": s2, "yes": true, "no": false,
        });
        let reference = jsonlogic_rs::apply(&logic, &data).unwrap();
        let expected = match &reference {
            Value::Bool(b) => *b,
            Value::Array(items) => !items.is_empty(),
            Value::Number(n) => n.as_f64() != Some(0.0),
            Value::String(text) => !text.is_empty(),
            other => panic!("the reference gave {other}"),
        };
        let ours = plain(logic.clone(), &data);
        prop_assert_eq!(ours, if expected { Outcome::Pass } else { Outcome::Fail }, "{} over {}", logic, data);
    }
}

#[test]
fn the_deviations_from_the_reference_are_these() {
    let reference = |logic: &Value, data: &Value| {
        jsonlogic_rs::apply(logic, data).unwrap_or_else(|_| json!("error"))
    };
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
    ]
    .into_iter()
    .map(|(logic, data)| {
        let ours = match plain(logic.clone(), &data) {
            Outcome::Pass => "pass",
            Outcome::Fail => "fail",
            _ => "not evaluable",
        };
        format!(
            "{logic} over {data}: {ours}, reference {}",
            reference(&logic, &data)
        )
    })
    .collect();
    insta::assert_snapshot!(rows.join("\n"));
}
