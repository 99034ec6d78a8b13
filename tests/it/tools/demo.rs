//! The sample study as people ask about it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{demo, told};

#[tokio::test]
async fn the_mean_age_of_the_women_enrolled_last_can_be_found_step_by_step() {
    let rig = demo().await;
    let last = rig
        .ok("search_records", json!({
            "filter": { "==": [{ "var": "性别" }, "女"] }, "sort": "recent", "fields": ["年龄"], "limit": 5,
        }))
        .await;
    insta::assert_json_snapshot!(told(&last));
    // By a plain loop over the export.
    let mut women: Vec<(String, f64)> = Vec::new();
    for record in rig.data.records.iter() {
        let base = record.base_row(None).unwrap();
        if base.get("sex") == Some("2")
            && base.get("enroll_date").is_some_and(|date| date.len() == 10)
        {
            women.push((
                base.get("enroll_date").unwrap().to_owned(),
                base.get("age").unwrap().parse().unwrap(),
            ));
        }
    }
    let told = rig
        .ok(
            "aggregate",
            json!({
                "op": "mean", "field": "年龄",
                "filter": { "and": [
                    { "==": [{ "var": "sex" }, "2"] }, { "!": [{ "is_blank": "enroll_date" }] },
                ] },
            }),
        )
        .await;
    let mean = women.iter().map(|(_, age)| age).sum::<f64>() / women.len() as f64;
    assert_eq!(told.value["n"], women.len());
    assert!((told.value["value"].as_f64().unwrap() - mean).abs() < 1e-4);
}

#[tokio::test]
async fn adverse_events_are_counted_by_row_and_by_subject() {
    let rig = demo().await;
    let told = rig
        .ok(
            "aggregate",
            json!({ "op": "count", "field": "不良事件", "group_by": "严重程度" }),
        )
        .await;
    let mut rows: BTreeMap<String, usize> = BTreeMap::new();
    for record in rig.data.records.iter() {
        for row in record
            .rows
            .iter()
            .filter(|row| row.instrument.as_deref() == Some("ae"))
        {
            *rows
                .entry(row.get("aesev").unwrap().to_owned())
                .or_default() += 1;
        }
    }
    assert_eq!(told.value["n"], 1191);
    for group in told.value["groups"].as_array().unwrap() {
        let code = group["group"].as_str().unwrap().split('（').next().unwrap();
        assert_eq!(group["n"], rows[code], "{group}");
    }
    insta::assert_json_snapshot!(super::told(&told));
}

#[tokio::test]
async fn the_visit_tool_agrees_with_the_rule_for_every_subject_and_visit() {
    use iit_manager::engines::rules::{Outcome, RuleSet};
    use iit_manager::types::rule::RuleSpec;
    let rig = demo().await;
    let study =
        iit_manager::engines::rules::Study::of(&rig.project.file, Some(&rig.data.dictionary));
    let mut seen = [0; 3];
    for visit in &rig.project.file.visits {
        let spec: RuleSpec = serde_json::from_value(json!({
            "field": visit.date_field,
            "logic": { "function_name": "visit_window", "args": { "visit": visit.id } },
        }))
        .unwrap();
        let set = RuleSet::compile(&[spec], &study).unwrap();
        for record in rig.data.records.iter() {
            let args = json!({ "record_id": record.id, "visit_id": visit.id });
            let told = rig.ok("check_visit_window", args).await;
            let by_rule = set.evaluate(record, super::day("2026-06-01"));
            let wanted = match by_rule.first().map(|result| &result.outcome) {
                Some(Outcome::Pass) => json!(true),
                Some(Outcome::Fail) => json!(false),
                _ => Value::Null,
            };
            assert_eq!(told.value["inWindow"], wanted, "{}", told.value);
            seen[match wanted {
                Value::Bool(true) => 0,
                Value::Bool(false) => 1,
                _ => 2,
            }] += 1;
        }
    }
    assert!(
        seen.iter().all(|count| *count > 20),
        "all three happen: {seen:?}"
    );
}

#[tokio::test]
async fn every_subject_can_be_read_whole_and_within_bounds() {
    let rig = demo().await;
    for record in rig.data.records.iter() {
        let read = rig
            .ok("read_clinical_data", json!({ "record_id": record.id }))
            .await;
        assert!(read.value.to_string().len() < 20_000, "{}", record.id);
        assert!(!read.value["fields"].as_array().unwrap().is_empty());
        let ethics = rig
            .ok("check_ethics_compliance", json!({ "record_id": record.id }))
            .await;
        assert_eq!(ethics.value["checks"].as_array().unwrap().len(), 3);
    }
}
