//! Taking a value away never makes a rule pass.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{
    populated::{Populated, populated},
    standard_rules::{FILLED, TYPED, UNTYPED, rule_logic},
    support::{one_form, plain, record, rule, today},
};
use crate::engines::rules::{Outcome, RuleSet, Study};

fn var(name: &str) -> Value {
    json!({"var": name})
}

fn pick(names: &'static [&'static str]) -> impl Strategy<Value = Value> {
    prop::sample::select(names.to_vec()).prop_map(var)
}

fn numeric() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        pick(&["age", "weight", "ecog", "bmi", "preg"]),
        (-3i64..40).prop_map(Value::from),
        Just(json!({"date_diff_days": [{"var": "icf_date"}, {"var": "enroll_date"}]})),
        Just(json!({"age_at": [{"var": "birth"}, {"var": "icf_date"}]})),
    ];
    leaf.prop_recursive(2, 12, 3, |inner| {
        let operands = prop::collection::vec(inner.clone(), 1..4);
        prop_oneof![
            (prop::sample::select(vec!["+", "*", "min", "max"]), operands)
                .prop_map(|(op, operands)| json!({op: operands})),
            (
                prop::sample::select(vec!["-", "/", "%"]),
                inner.clone(),
                inner
            )
                .prop_map(|(op, a, b)| json!({op: [a, b]})),
        ]
    })
}

fn date() -> impl Strategy<Value = Value> {
    prop_oneof![
        pick(&["icf_date", "enroll_date", "birth", "seen_at"]),
        Just(json!("today")),
        Just(json!("2026-06-15")),
    ]
}

/// Conditions of everything but what is made to look at a blank.
fn condition() -> impl Strategy<Value = Value> {
    let order = || prop::sample::select(vec!["<", "<=", ">", ">="]);
    let equality = || prop::sample::select(vec!["==", "!=", "===", "!=="]);
    let codes = || prop::sample::subsequence(vec!["1", "2", "fever"], 1..3);
    let leaf = prop_oneof![
        (order(), prop::collection::vec(numeric(), 2..4))
            .prop_map(|(op, items)| json!({op: items})),
        (equality(), numeric(), numeric()).prop_map(|(op, a, b)| json!({op: [a, b]})),
        (numeric(), numeric(), numeric()).prop_map(|(a, b, c)| json!({"between": [a, b, c]})),
        (
            prop::sample::select(vec!["date_before", "date_after"]),
            date(),
            date()
        )
            .prop_map(|(op, a, b)| json!({op: [a, b]})),
        (order(), pick(&["icf_date", "seen_at"]), date())
            .prop_map(|(op, a, b)| json!({op: [a, b]})),
        (
            equality(),
            pick(&["icf_date", "birth"]),
            pick(&["enroll_date", "seen_at"])
        )
            .prop_map(|(op, a, b)| json!({op: [a, b]})),
        (equality(), 0..5i64).prop_map(|(op, code)| json!({op: [{"var": "ecog"}, code]})),
        (equality(), prop::sample::select(vec!["A", "B"]))
            .prop_map(|(op, code)| json!({op: [{"var": "arm"}, code]})),
        (0..5i64, 0..5i64).prop_map(|(a, b)| json!({"in": [{"var": "ecog"}, [a, b]]})),
        codes().prop_map(|codes| json!({"in_codes": [{"var": "symptoms"}, codes]})),
        codes().prop_map(|codes| json!({"in": [codes[0], {"var": "symptoms"}]})),
        Just(json!({"==": [{"var": "symptoms___fever"}, 0]})),
        Just(json!({"in": ["肺炎", {"var": "history"}]})),
        Just(json!({"matches": [{"var": "initials"}, "[A-M].*"]})),
        Just(json!({"!=": [{"substr": [{"var": "initials"}, 0, 1]}, "W"]})),
        Just(json!({"==": [{"cat": [{"var": "initials"}, "-", {"var": "arm"}]}, "WLH-A"]})),
        pick(&["preg", "age", "history"]),
        any::<bool>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 4, |inner| {
        let operands = || prop::collection::vec(inner.clone(), 1..4);
        prop_oneof![
            operands().prop_map(|operands| json!({"and": operands})),
            operands().prop_map(|operands| json!({"or": operands})),
            inner.clone().prop_map(|a| json!({"!": [a]})),
            prop::collection::vec(inner.clone(), 2..6).prop_map(|parts| json!({"if": parts})),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| json!({"==": [{"!!": a}, {"!!": b}]})),
        ]
    })
}

const FIELDS: [&str; 13] = [
    "age",
    "weight",
    "ecog",
    "bmi",
    "preg",
    "icf_date",
    "enroll_date",
    "birth",
    "seen_at",
    "arm",
    "history",
    "initials",
    "symptoms",
];

fn cells() -> impl Strategy<Value = Map<String, Value>> {
    let date = || {
        prop::sample::select(vec![
            "2026-06-14",
            "2026-06-15",
            "2026-06-16",
            "2026-06",
            "2026",
            "2026-12-01",
            "2008-06-15",
            "15/06/2026",
        ])
    };
    let box_ = || prop::sample::select(vec!["0", "1"]);
    (
        (0..40i64, prop::sample::select(vec!["50.5", "60", "<5", "5,3"]), 0..6i64, box_()),
        (date(), date(), date(), prop::sample::select(vec!["2026-06-15 08:30", "2026-06-15", "2026"])),
        (
            prop::sample::select(vec!["A", "B", "C"]),
            prop::sample::select(vec!["间质性肺炎", "无特殊"]),
            prop::sample::select(vec!["WLH", "ABC"]),
        ),
        (box_(), box_(), box_()),
    )
        .prop_map(|(numbers, dates, texts, boxes)| {
            let object = json!({
                "record_id": "P001", "base_complete": "2",
                "age": numbers.0.to_string(), "weight": numbers.1, "ecog": numbers.2.to_string(), "bmi": "22.5",
                "preg": numbers.3, "icf_date": dates.0, "enroll_date": dates.1, "birth": dates.2,
                "seen_at": dates.3, "arm": texts.0, "history": texts.1, "initials": texts.2,
                "symptoms___1": boxes.0, "symptoms___2": boxes.1, "symptoms___fever": boxes.2,
            });
            object.as_object().unwrap().clone()
        })
}

fn blank(cells: &mut Map<String, Value>, field: &str, how: &str) {
    if field != "symptoms" {
        cells.insert(field.to_owned(), how.into());
        return;
    }
    for code in ["1", "2", "fever"] {
        cells.insert(format!("symptoms___{code}"), "".into());
    }
    if how == "NI" {
        cells.insert("symptoms___ni".to_owned(), "1".into());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, max_global_rejects: 100_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn blanking_any_value_of_a_typed_record_never_makes_a_rule_pass(
        logic in condition(),
        full in cells(),
        first in prop::collection::vec((prop::sample::select(FIELDS.to_vec()), prop::sample::select(vec!["", "  ", "NI"])), 0..3),
        then in prop::collection::vec((prop::sample::select(FIELDS.to_vec()), prop::sample::select(vec!["", "\t", "UNK"])), 1..4),
    ) {
        prop_assume!(logic.is_object());
        let dictionary = one_form();
        let study = Study::typed_by(&dictionary);
        // A slip the compiler finds is none to test here.
        let Ok(set) = RuleSet::compile(&[rule(logic.clone())], &study) else {
            return Err(TestCaseError::reject("does not compile"));
        };
        let mut before = full;
        first.iter().for_each(|(field, how)| blank(&mut before, field, how));
        let mut after = before.clone();
        then.iter().for_each(|(field, how)| blank(&mut after, field, how));
        let ask = |cells: &Map<String, Value>| {
            set.evaluate(&record(&dictionary, &[cells.clone().into()]), today())[0].outcome.clone()
        };
        let (was, is) = (ask(&before), ask(&after));
        if is == Outcome::Pass {
            prop_assert_eq!(was, Outcome::Pass, "{} over {:?} after {:?}", logic, before, then);
        } else if is == Outcome::Fail {
            prop_assert_eq!(was, Outcome::Fail, "{} over {:?} after {:?}", logic, before, then);
        }
    }

    #[test]
    fn blanking_any_value_of_plain_json_never_makes_a_rule_pass(
        logic in condition(),
        full in cells(),
        numbers_as_json in any::<bool>(),
        then in prop::collection::vec((prop::sample::select(FIELDS.to_vec()), 0..4usize), 1..4),
    ) {
        prop_assume!(logic.is_object());
        let Ok(set) = RuleSet::compile(&[rule(logic.clone())], &Study::default()) else {
            return Err(TestCaseError::reject("does not compile"));
        };
        let mut before = full;
        before.insert("symptoms".to_owned(), json!(["1", "fever"]));
        if numbers_as_json {
            for field in ["age", "ecog", "preg"] {
                let n: i64 = before[field].as_str().unwrap().parse().unwrap();
                before.insert(field.to_owned(), n.into());
            }
        }
        let mut after = before.clone();
        for (field, how) in &then {
            match how {
                0 => { after.remove(*field); }
                1 => { after.insert((*field).to_owned(), Value::Null); }
                2 => { after.insert((*field).to_owned(), "".into()); }
                _ => { after.insert((*field).to_owned(), " \u{a0}".into()); }
            }
        }
        let ask = |cells: &Map<String, Value>| {
            set.evaluate_json(&cells.clone().into(), today())[0].outcome.clone()
        };
        let (was, is) = (ask(&before), ask(&after));
        if is == Outcome::Pass {
            prop_assert_eq!(was, Outcome::Pass, "{} over {:?} after {:?}", logic, before, then);
        } else if is == Outcome::Fail {
            prop_assert_eq!(was, Outcome::Fail, "{} over {:?} after {:?}", logic, before, then);
        }
    }
    #[test]
    fn blanking_any_value_in_whatever_nest_of_standard_operators_never_makes_a_rule_pass(
        logic in rule_logic(TYPED.blind_to_blanks(), 3),
        full in populated(),
        fields in blanked(),
        how in prop::sample::select(vec!["", "  ", "NI"]),
    ) {
        let dictionary = one_form();
        let set = RuleSet::compile(&[rule(logic.clone())], &Study::typed_by(&dictionary)).unwrap();
        let mut cells = full.cells.clone();
        fields.iter().for_each(|field| blank(&mut cells, field, how));
        let ask = |cells: &Map<String, Value>| {
            set.evaluate(&record(&dictionary, &[cells.clone().into()]), today())[0].outcome.clone()
        };
        unknown_or_as_before(&ask(&cells), &ask(&full.cells))
            .map_err(|what| TestCaseError::fail(format!("{what}: {logic} over {:?} without {fields:?}", full.cells)))?;
    }

    #[test]
    fn taking_any_key_out_of_plain_json_never_makes_a_standard_rule_pass(
        logic in rule_logic(UNTYPED.blind_to_blanks(), 3),
        full in populated(),
        fields in blanked(),
        how in prop::sample::select(vec![None, Some(Value::Null), Some("".into()), Some("\u{a0}".into())]),
    ) {
        let Populated { json: before, .. } = full;
        let mut after = before.clone();
        let object = after.as_object_mut().unwrap();
        for field in &fields {
            match &how {
                None => object.remove(*field),
                Some(blank) => object.insert((*field).to_owned(), blank.clone()),
            };
        }
        unknown_or_as_before(&plain(logic.clone(), &after), &plain(logic.clone(), &before))
            .map_err(|what| TestCaseError::fail(format!("{what}: {logic} over {before} without {fields:?}")))?;
    }
}

fn blanked() -> impl Strategy<Value = Vec<&'static str>> {
    let fields = [&FILLED[..], &["symptoms", "symptoms___1", "slept_at"]].concat();
    prop::sample::subsequence(fields, 1..6)
}

/// What is decided without a value is what any value decides.
fn unknown_or_as_before(is: &Outcome, was: &Outcome) -> Result<(), String> {
    match is {
        Outcome::NotEvaluable { .. } => Ok(()),
        decided if decided == was => Ok(()),
        decided => Err(format!("{decided:?} without what made it {was:?}")),
    }
}
