//! Whatever a model writes: no panic, nothing of another record, nothing without end.

use iit_manager::tools::{Effect, Registry, ToolError, registry::Caller};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Rig, five};

fn any_json() -> impl Strategy<Value = Value> {
    let words = prop::sample::select(vec![
        "S001",
        "S002",
        "age",
        "sbp",
        "aeterm",
        "性别",
        "女",
        "第1周",
        "w2_arm_1.sbp",
        "var",
        "==",
        "mean",
        "count",
        "W1",
        "2026-03",
        "2026-03-09",
        "",
        "\0",
        "raise",
        "close",
        "ZhangSan",
        "😀'; DROP TABLE iit_jobs; --",
        "NaN",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        words.clone().prop_map(Value::from),
        ".{0,40}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((words.clone(), inner), 0..4).prop_map(|pairs| {
                pairs
                    .into_iter()
                    .map(|(key, value)| (key.to_owned(), value))
                    .collect()
            }),
        ]
    })
}

const ARGUMENTS: [&str; 21] = [
    "record_id",
    "fields",
    "event",
    "filter",
    "sort",
    "order",
    "limit",
    "op",
    "field",
    "group_by",
    "take",
    "visit_id",
    "actual_date",
    "check_type",
    "action",
    "message",
    "instance",
    "issue_id",
    "values",
    "text",
    "to",
];

fn any_arguments() -> impl Strategy<Value = Value> {
    let named = prop::collection::vec((prop::sample::select(ARGUMENTS.to_vec()), any_json()), 0..6);
    prop_oneof![
        9 => named.prop_map(|pairs| pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
        1 => any_json(),
    ]
}

fn names() -> Vec<String> {
    let specs = Registry::standard(None).specs(Caller::Sop, None);
    specs.into_iter().map(|spec| spec.name).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn anything_is_answered_or_refused(
        tool in prop::sample::select(names()),
        args in any_arguments(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut rig: Rig = five();
            rig.record = Some("S002".to_owned());
            match rig.call(&tool, args).await {
                Ok(observation) => {
                    assert!(observation.value.to_string().len() < 9_000, "{observation:?}");
                    let shown = format!("{observation:?}");
                    for others in ["S001", "王小明", "肺炎"] {
                        assert!(!shown.contains(others) || shown.contains("“"), "{shown}");
                    }
                }
                Err(error) => assert!(error.to_string().chars().count() < 4_000, "{error}"),
            }
        });
    }
}

#[tokio::test]
async fn text_that_is_no_json_and_texts_without_end_are_refused() {
    let rig = five();
    for args in [
        "{",
        "[]",
        "\"x\"",
        "null",
        "{\"record_id\":}",
        &"{".repeat(5_000),
    ] {
        let refused = rig.call_text("read_clinical_data", args).await.unwrap_err();
        assert!(matches!(refused, ToolError::Arguments(_)), "{refused:?}");
    }
    let long = "年".repeat(100_000);
    for args in [
        json!({ "record_id": long }),
        json!({ "record_id": "S001", "fields": [long] }),
        json!({ "record_id": "S001", "fields": vec!["age"; 100] }),
        json!({ "record_id": { "a": 1 } }),
        json!({ "record_id": "" }),
        json!({ "record_id": "S001", "fields": [["age"]] }),
    ] {
        let refused = rig.refused("read_clinical_data", args).await;
        assert!(refused.chars().count() < 300, "{refused}");
    }
    let mut deep = json!({ "var": "age" });
    for _ in 0..100 {
        deep = json!({ "!": [deep] });
    }
    let refused = rig
        .refused("search_records", json!({ "filter": deep }))
        .await;
    assert!(
        refused.contains("嵌套过深") || refused.contains("recursion"),
        "{refused}"
    );
}

#[tokio::test]
async fn what_is_meant_is_understood_in_whatever_json_it_comes() {
    let rig = five();
    let found = rig
        .ok("search_records", json!({
            "filter": "{\"==\":[{\"var\":\"sex\"},\"2\"]}", "fields": "年龄，性别", "limit": "2", "sort": "",
        }))
        .await;
    assert_eq!(found.value["matched"], 3);
    assert_eq!(found.value["shown"], 2);
    let read = rig
        .ok(
            "read_clinical_data",
            json!({ "record_id": " Ｓ００1 ", "fields": "[\"age\"]" }),
        )
        .await;
    assert_eq!(read.records, ["S001"]);
}

#[tokio::test]
async fn the_right_brain_has_the_reading_tools_and_no_other() {
    let registry = Registry::standard(None);
    let names = |caller| -> Vec<String> {
        registry
            .specs(caller, None)
            .into_iter()
            .map(|spec| spec.name)
            .collect()
    };
    let (react, sop) = (names(Caller::React), names(Caller::Sop));
    for name in &sop {
        let reads = registry.effect(name) == Some(Effect::Read);
        assert_eq!(react.contains(name), reads, "{name}");
        assert!(
            iit_manager::skills::TOOLS.contains(&name.as_str()),
            "{name}"
        );
    }
    for name in [
        "manage_issue",
        "update_record",
        "write_clinical_data",
        "send_notification",
    ] {
        assert!(sop.iter().any(|known| known == name) && !react.iter().any(|known| known == name));
    }
    insta::assert_json_snapshot!(
        registry
            .specs(Caller::React, None)
            .iter()
            .map(|spec| { json!({ "name": spec.name, "parameters": spec.parameters }) })
            .collect::<Vec<_>>()
    );
}
