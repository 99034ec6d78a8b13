//! Fully populated records, at random, and the values that stand in them.

use proptest::{prelude::*, sample::select};
use serde_json::{Map, Value, json};

/// A record with every field filled in, twice: the cells of an export, and the same as JSON of the fields'
/// types.
#[derive(Debug, Clone)]
pub struct Populated {
    pub cells: Map<String, Value>,
    pub json: Value,
}

pub fn populated() -> impl Strategy<Value = Populated> {
    (
        (0i64..45, number(), number(), number(), 0i64..2, 0i64..5),
        (day(), day(), day(), clock()),
        (select(&["A", "B"][..]), word(), prose()),
        (any::<bool>(), any::<bool>(), any::<bool>()),
    )
        .prop_map(|(numbers, times, texts, checked)| {
            let (age, weight, bmi, hb, preg, ecog) = numbers;
            let boxes = [("1", checked.0), ("2", checked.1), ("fever", checked.2)];
            let list: Vec<&str> = boxes
                .iter()
                .filter(|(_, on)| *on)
                .map(|(code, _)| *code)
                .collect();
            let mut shared = json!({
                "ecog": ecog.to_string(), "arm": texts.0, "initials": texts.1, "history": texts.2,
                "icf_date": times.0, "enroll_date": times.1, "birth": times.2, "slept_at": times.3,
            });
            let shared = shared.as_object_mut().unwrap();
            for (code, on) in boxes {
                shared.insert(
                    format!("symptoms___{code}"),
                    if on { "1" } else { "0" }.into(),
                );
            }
            let with = |more: Value| {
                let mut all = shared.clone();
                all.extend(more.as_object().unwrap().clone());
                all
            };
            Populated {
                cells: with(json!({
                    "record_id": "P001", "base_complete": "2", "preg": preg.to_string(),
                    "age": age.to_string(), "weight": weight.to_string(), "bmi": bmi.to_string(),
                })),
                json: Value::Object(with(json!({
                    "age": age, "weight": weight, "bmi": bmi, "preg": preg, "lab": {"hb": hb},
                    "yes": true, "no": false, "symptoms": list,
                }))),
            }
        })
}

pub fn number() -> impl Strategy<Value = Value> {
    prop_oneof![
        (-4i64..45).prop_map(Value::from),
        (-4i64..45).prop_map(|n| Value::from(n as f64 + 0.5)),
    ]
}

pub fn day() -> impl Strategy<Value = &'static str> {
    select(
        &[
            "2025-12-31",
            "2026-01-01",
            "2026-01-10",
            "2026-02-09",
            "2026-10-01",
        ][..],
    )
}

pub fn clock() -> impl Strategy<Value = &'static str> {
    select(&["00:00", "08:30", "08:31", "19:05", "23:59"][..])
}

pub fn word() -> impl Strategy<Value = &'static str> {
    select(&["a", "b", "ab", "bab", "x y", "WLH"][..])
}

pub fn prose() -> impl Strategy<Value = &'static str> {
    select(&["间质性肺炎", "无特殊", "肺炎", "a 肺"][..])
}
