//! Small studies and shorthands.

use std::sync::Arc;

use chrono::NaiveDate;
use serde_json::{Map, Value};

use crate::{
    engines::rules::{Outcome, Reason, RuleFault, RuleResult, RuleSet, Study},
    types::{
        dictionary::{Choice, Dictionary, Event, Field, FieldKind},
        record::{Columns, Record, Row},
        rule::RuleSpec,
    },
};

pub fn today() -> NaiveDate {
    NaiveDate::from_ymd_opt(2026, 11, 30).unwrap()
}

pub fn rule(logic: Value) -> RuleSpec {
    RuleSpec {
        id: None,
        field: String::new(),
        logic,
        message: None,
        severity: None,
    }
}

pub fn about(field: &str, logic: Value) -> RuleSpec {
    RuleSpec {
        field: field.to_owned(),
        ..rule(logic)
    }
}

/// Compiles one rule without a dictionary and evaluates it over one JSON object.
pub fn plain(logic: Value, data: &Value) -> Outcome {
    let set = RuleSet::compile(&[rule(logic)], &Study::default()).unwrap();
    only(set.evaluate_json(data, today())).outcome
}

pub fn only(mut results: Vec<RuleResult>) -> RuleResult {
    assert_eq!(results.len(), 1, "{results:?}");
    results.remove(0)
}

pub fn is_unknown(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::NotEvaluable { .. })
}

pub fn unknown(reason: Reason, fields: &[&str]) -> Outcome {
    Outcome::NotEvaluable {
        reason,
        fields: fields.iter().map(|name| Arc::from(*name)).collect(),
    }
}

pub fn faults(specs: &[RuleSpec], study: &Study<'_>) -> Vec<RuleFault> {
    RuleSet::compile(specs, study).expect_err("the rules should not compile")
}

/// A field as `name:form:kind[:validation or choices]`.
pub fn field(written: &str) -> Field {
    let parts: Vec<&str> = written.split(':').collect();
    let kind = match parts[2] {
        "text" => FieldKind::Text,
        "notes" => FieldKind::Notes,
        "radio" => FieldKind::Radio,
        "checkbox" => FieldKind::Checkbox,
        "yesno" => FieldKind::YesNo,
        "calc" => FieldKind::Calc,
        "sql" => FieldKind::Sql,
        other => panic!("no kind {other}"),
    };
    let last = parts.get(3).copied().unwrap_or_default();
    let codes: Vec<&str> = match kind {
        FieldKind::YesNo => vec!["1", "0"],
        FieldKind::Radio | FieldKind::Checkbox => last.split(',').collect(),
        _ => Vec::new(),
    };
    Field {
        name: parts[0].to_owned(),
        form: parts[1].to_owned(),
        label: String::new(),
        kind,
        validation: if codes.is_empty() {
            last.to_owned()
        } else {
            String::new()
        },
        min: String::new(),
        max: String::new(),
        choices: codes
            .iter()
            .map(|code| Choice {
                code: (*code).to_owned(),
                label: format!("choice {code}"),
            })
            .collect(),
        calculation: String::new(),
        branching: String::new(),
        required: false,
        identifier: false,
        annotation: String::new(),
    }
}

/// One form of every type, in a classic project with the missing codes NI and UNK.
pub fn one_form() -> Dictionary {
    let mut fields: Vec<Field> = [
        "record_id:base:text",
        "age:base:text:integer",
        "weight:base:text:number",
        "dose:base:text:number_1dp_comma_decimal",
        "icf_date:base:text:date_ymd",
        "enroll_date:base:text:date_dmy",
        "birth:base:text:date_mdy",
        "seen_at:base:text:datetime_ymd",
        "slept_at:base:text:time",
        "ecog:base:radio:0,1,2,3,4",
        "arm:base:radio:A,B",
        "preg:base:yesno",
        "symptoms:base:checkbox:1,2,fever",
        "history:base:notes",
        "initials:base:text",
        "bmi:base:calc",
    ]
    .map(field)
    .into();
    for (name, label) in [
        ("age", "年龄"),
        ("icf_date", "知情同意日期"),
        ("ecog", "ECOG 评分"),
    ] {
        fields.iter_mut().find(|f| f.name == name).unwrap().label = label.to_owned();
    }
    let mut dictionary = Dictionary::new(fields);
    dictionary.missing_codes = ["NI", "UNK"]
        .map(|code| Choice {
            code: code.to_owned(),
            label: code.to_owned(),
        })
        .into();
    dictionary
}

/// Screening and two visits, in two arms; adverse events repeat at `visit1`, `log` is a repeating event.
pub fn longitudinal() -> Dictionary {
    let mut dictionary = Dictionary::new(
        [
            "record_id:demo:text",
            "enroll_date:demo:text:date_ymd",
            "sex:demo:radio:1,2",
            "preg_date:demo:text:date_ymd",
            "visit_date:vitals:text:date_ymd",
            "weight:vitals:text:number",
            "symptoms:vitals:checkbox:1,2",
            "pain:vitals:yesno",
            "ae_term:ae:text",
            "ae_start:ae:text:date_ymd",
            "cm_start:cm:text:date_ymd",
            "call_date:call:text:date_ymd",
        ]
        .map(field)
        .into(),
    );
    for (name, arm) in [
        ("screening", 1),
        ("visit1", 1),
        ("visit2", 1),
        ("log", 1),
        ("screening_b", 2),
    ] {
        dictionary.events.push(Event {
            unique_name: name.to_owned(),
            label: name.to_owned(),
            arm,
        });
    }
    for (event, form) in [
        ("screening", "demo"),
        ("screening_b", "demo"),
        ("visit1", "vitals"),
        ("visit2", "vitals"),
        ("visit1", "ae"),
        ("visit1", "cm"),
        ("log", "call"),
    ] {
        dictionary
            .designations
            .insert((event.to_owned(), form.to_owned()));
    }
    for (event, form) in [("visit1", "ae"), ("visit1", "cm"), ("log", "")] {
        dictionary
            .repeating
            .insert((event.to_owned(), form.to_owned()));
    }
    dictionary
}

/// A record of rows, each an object of cells; `redcap_*` keys place the row. Columns are those of the
/// dictionary, as in an export.
pub fn record(dictionary: &Dictionary, rows: &[Value]) -> Record {
    let mut names: Vec<String> = Vec::new();
    for field in dictionary.fields() {
        match field.kind {
            FieldKind::Checkbox => names.extend(
                field
                    .choices
                    .iter()
                    .chain(&dictionary.missing_codes)
                    .map(|choice| field.checkbox_column(&choice.code)),
            ),
            _ => names.push(field.name.clone()),
        }
    }
    names.extend(
        dictionary
            .forms
            .iter()
            .map(|form| format!("{form}_complete")),
    );
    let columns = Columns::new(names.clone());
    let rows = rows
        .iter()
        .map(|row| {
            let row = row.as_object().unwrap();
            let get = |name: &str| row.get(name).map(|v| v.as_str().unwrap().to_owned());
            let cells = names
                .iter()
                .map(|name| {
                    // A checkbox column is never empty in an export, opened or not.
                    let unset = if name.contains("___") { "0" } else { "" };
                    get(name)
                        .unwrap_or_else(|| unset.to_owned())
                        .into_boxed_str()
                })
                .collect();
            let known = |key: &String| names.contains(key) || key.starts_with("redcap_");
            assert!(row.keys().all(known), "{row:?}");
            Row::new(
                get("redcap_event_name"),
                get("redcap_repeat_instrument"),
                get("redcap_repeat_instance").map(|n| n.parse().unwrap()),
                Arc::clone(&columns),
                cells,
            )
        })
        .collect();
    Record {
        id: "P001".to_owned(),
        rows,
    }
}

/// Evaluates one rule over a one-row record of [`one_form`] whose form was opened.
pub fn typed(logic: Value, cells: &Value) -> RuleResult {
    let dictionary = one_form();
    let set = RuleSet::compile(&[rule(logic)], &Study::typed_by(&dictionary)).unwrap();
    let mut row: Map<String, Value> = cells.as_object().unwrap().clone();
    row.entry("record_id").or_insert("P001".into());
    row.entry("base_complete").or_insert("2".into());
    only(set.evaluate(&record(&dictionary, &[row.into()]), today()))
}
