//! What people read.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::support::{about, one_form, only, record, rule, today, typed};
use crate::{
    engines::rules::{RuleSet, Study},
    types::{finding::Severity, rule::RuleSpec},
};

fn told(message: Option<&str>, logic: Value, cells: Value) -> String {
    let dictionary = one_form();
    let spec = RuleSpec {
        message: message.map(str::to_owned),
        ..rule(logic)
    };
    let set = RuleSet::compile(&[spec], &Study::typed_by(&dictionary)).unwrap();
    let mut row = cells.as_object().unwrap().clone();
    row.insert("base_complete".to_owned(), "2".into());
    only(set.evaluate(&record(&dictionary, &[row.into()]), today())).message
}

#[test]
fn a_message_carries_the_values_it_rests_on() {
    let age = || json!({">=": [{"var": "age"}, 18]});
    let messages = [
        told(Some("年龄<18岁"), age(), json!({"age": "16"})),
        told(
            Some("年龄 {age} 岁，小于 18 岁"),
            age(),
            json!({"age": "16"}),
        ),
        told(Some("见 {方案} 4.1 条 {"), age(), json!({"age": "16"})),
        told(None, age(), json!({"age": "16"})),
        told(Some("年龄<18岁"), age(), json!({"age": ""})),
        told(Some("年龄<18岁"), age(), json!({"age": "NI"})),
        told(Some("年龄<18岁"), age(), json!({"age": "5,3"})),
        told(
            None,
            json!({"<=": [{"var": "icf_date"}, {"var": "enroll_date"}]}),
            json!({"icf_date": "2026-11", "enroll_date": "2026-11-05"}),
        ),
        told(
            None,
            json!({"<=": [{"var": "icf_date"}, {"var": "enroll_date"}]}),
            json!({}),
        ),
        told(
            None,
            json!({"and": [{"<=": [{"var": "age"}, 75]}, {"<=": [{"var": "ecog"}, 2]}]}),
            json!({"ecog": "9"}),
        ),
        told(
            None,
            json!({"<": [{"/": [{"var": "weight"}, {"-": [{"var": "age"}, 18]}]}, 3]}),
            json!({"age": "18", "weight": "60"}),
        ),
        told(
            Some("有症状"),
            json!({"!": {"in_codes": [{"var": "symptoms"}, ["1", "fever"]]}}),
            json!({"symptoms___1": "1", "symptoms___2": "1"}),
        ),
        told(
            Some("病史过长"),
            json!({"!": {"in": ["肺炎", {"var": "history"}]}}),
            json!({"history": "间质性肺炎，".repeat(20)}),
        ),
    ];
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn a_rule_without_a_message_is_told_in_words() {
    let rules = [
        json!({"and": [{"<": [{"var": "age"}, 18]}, {"==": [{"var": "arm"}, "B"]}]}),
        json!({"or": [{"between": [{"var": "weight"}, 40, 50, "[)"]}, {"!": {"in": [{"var": "ecog"}, [2, 3]]}}]}),
        json!({"if": [{"==": [{"var": "preg"}, 1]}, {"is_blank": "birth"}, {"date_before": [{"var": "birth"}, "today"]}]}),
        json!({"missing": ["age", "weight"]}),
        json!({">=": [{"age_at": [{"var": "birth"}, {"var": "icf_date"}]}, 99]}),
        json!({"==": [{"date_diff_days": [{"var": "icf_date"}, {"var": "enroll_date"}]}, {"-": [{"var": "age"}]}]}),
        json!({"matches": [{"var": "initials"}, "[a-z]+"]}),
        json!({"!=": [{"cat": [{"var": "initials"}, {"substr": [{"var": "history"}, 0, 1]}]}, "WLH无"]}),
        json!({"==": [{"var": "age"}, ""]}),
    ];
    let cells = json!({
        "age": "30", "arm": "A", "weight": "60", "ecog": "2", "preg": "1", "birth": "1990-01-01", "initials": "WLH",
        "icf_date": "2026-01-01", "enroll_date": "2026-01-09", "history": "无特殊",
    });
    let told: Vec<String> = rules
        .into_iter()
        .map(|logic| told(None, logic, cells.clone()))
        .collect();
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn a_finding_names_rule_place_values_and_severity() {
    let dictionary = one_form();
    let aliases = BTreeMap::from([("年龄".to_owned(), "age".to_owned())]);
    let study = Study {
        aliases: &aliases,
        ..Study::typed_by(&dictionary)
    };
    let mut spec = about("年龄", json!({">=": [{"var": "年龄"}, 18]}));
    spec.id = Some("IC-01".to_owned());
    spec.message = Some("年龄 {年龄} 不足".to_owned());
    spec.severity = Some(Severity::Warning);
    let set = RuleSet::compile(&[spec], &study).unwrap();
    let ask = |age: &str| {
        let row = json!({"record_id": "P001", "base_complete": "2", "age": age});
        only(set.evaluate(&record(&dictionary, &[row]), today()))
            .to_finding("P001")
            .unwrap()
    };
    insta::assert_json_snapshot!([ask("16"), ask("")]);
}

#[test]
fn a_message_may_show_any_field_of_the_dictionary_and_an_alias() {
    let dictionary = one_form();
    let aliases = BTreeMap::from([("年龄".to_owned(), "age".to_owned())]);
    let study = Study {
        aliases: &aliases,
        ..Study::typed_by(&dictionary)
    };
    let mut spec = rule(json!({">=": [{"var": "age"}, 18]}));
    spec.message = Some("{initials}：{年龄} 岁 {nobody}".to_owned());
    let set = RuleSet::compile(&[spec], &study).unwrap();
    let row = json!({"base_complete": "2", "age": "16", "initials": "WLH"});
    let result = only(set.evaluate(&record(&dictionary, &[row]), today()));
    assert_eq!(result.message, "WLH：16 岁 {nobody}");
}

#[test]
fn a_pass_says_nothing_and_is_no_finding() {
    let result = typed(json!({">=": [{"var": "age"}, 18]}), &json!({"age": "18"}));
    assert!(result.passed() && result.message.is_empty() && result.values.is_empty());
    assert!(result.to_finding("P001").is_none());
}
