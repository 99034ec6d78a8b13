//! Further ways a rule might pass on what nobody knows.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::support::{
    is_unknown, longitudinal, one_form, only, plain, record, rule, today, typed, unknown,
};
use crate::engines::rules::{Outcome, Reason, RuleSet, Study};

#[test]
fn the_negation_of_in_codes_passes_on_known_codes_only() {
    let none_of = |field: &str, code: &str| json!({"!": {"in_codes": [{"var": field}, [code]]}});
    for (field, code, cells, reason) in [
        ("ecog", "4", json!({"ecog": ""}), Reason::Missing),
        ("ecog", "4", json!({"ecog": "NI"}), Reason::CodedMissing),
        ("ecog", "4", json!({"ecog": "9"}), Reason::Invalid),
        ("age", "17", json!({"age": "<18"}), Reason::Invalid),
        (
            "initials",
            "WLH",
            json!({"initials": "UNK"}),
            Reason::CodedMissing,
        ),
        (
            "symptoms",
            "1",
            json!({"symptoms___ni": "1"}),
            Reason::CodedMissing,
        ),
        (
            "symptoms",
            "1",
            json!({"symptoms___2": "x"}),
            Reason::Invalid,
        ),
    ] {
        assert_eq!(
            typed(none_of(field, code), &cells).outcome,
            unknown(reason, &[field]),
            "{cells}"
        );
    }
}

#[test]
fn the_negation_of_matches_passes_on_known_text_only() {
    let no_match = |field: &str| json!({"!": {"matches": [{"var": field}, "X.*"]}});
    for (cells, reason) in [
        (json!({"initials": " "}), Reason::Missing),
        (json!({"initials": "NI"}), Reason::CodedMissing),
    ] {
        let outcome = typed(no_match("initials"), &cells).outcome;
        assert_eq!(outcome, unknown(reason, &["initials"]), "{cells}");
    }
    let outcome = typed(no_match("icf_date"), &json!({"icf_date": "n.d."})).outcome;
    assert_eq!(outcome, unknown(Reason::Invalid, &["icf_date"]));
    // A list has no text.
    for list in [json!(["X1"]), json!({"a": "X1"}), json!(null)] {
        let outcome = plain(no_match("x"), &json!({"x": list}));
        assert!(is_unknown(&outcome), "{list}: {outcome:?}");
    }
}

#[test]
fn arithmetic_on_partial_dates_has_no_number() {
    let days = json!({"date_diff_days": [{"var": "icf_date"}, {"var": "enroll_date"}]});
    let cells = json!({"icf_date": "2026-01", "enroll_date": "2026-02-10"});
    for number in [
        json!({"+": [days, 1]}),
        json!({"-": [days]}),
        json!({"*": [days, 0]}),
        json!({"min": [days, -1]}),
        json!({"max": [days, 999]}),
    ] {
        for op in ["<", ">=", "==", "!="] {
            let outcome = typed(json!({op: [number, 5]}), &cells).outcome;
            let partial = unknown(Reason::PartialDate, &["icf_date"]);
            assert_eq!(outcome, partial, "{op} {number}");
        }
    }
}

#[test]
fn a_blank_bound_leaves_between_open_unless_the_other_decides() {
    let ask = |logic: Value, cells: Value| typed(logic, &cells).outcome;
    let between = || json!({"between": [{"var": "age"}, {"var": "ecog"}, {"var": "weight"}]});
    let missing = unknown(Reason::Missing, &["weight"]);
    assert_eq!(ask(between(), json!({"age": "20", "ecog": "1"})), missing);
    assert_eq!(
        ask(json!({"!": between()}), json!({"age": "20", "ecog": "1"})),
        missing
    );
    assert_eq!(
        ask(between(), json!({"age": "0", "ecog": "1"})),
        Outcome::Fail
    );
    assert_eq!(
        ask(between(), json!({"age": "20", "ecog": "1", "weight": "<5"})),
        unknown(Reason::Invalid, &["weight"])
    );
}

#[test]
fn an_event_without_a_row_gives_no_answer_to_any_operator() {
    let dictionary = longitudinal();
    let rows = [json!({"record_id": "P001", "redcap_event_name": "screening", "sex": "1"})];
    for logic in [
        json!({"!": {"in_codes": [{"var": "visit2.symptoms"}, ["1"]]}}),
        json!({"!=": [{"var": "visit2.pain"}, 1]}),
        json!({"is_blank": "visit2.weight"}),
        json!({"!": {"is_blank": "visit2.weight"}}),
        json!({"missing": ["visit2.weight"]}),
        json!({"!": {"between": [{"var": "visit2.weight"}, 1, 2]}}),
        json!({"!": {"var": "visit2.pain"}}),
    ] {
        let both = json!({"and": [{"==": [{"var": "screening.sex"}, "1"]}, logic]});
        let set = RuleSet::compile(&[rule(both)], &Study::typed_by(&dictionary)).unwrap();
        let result = only(set.evaluate(&record(&dictionary, &rows), today()));
        assert_eq!(result.outcome, Outcome::FormNotOpened, "{logic}");
    }
}

#[test]
fn functions_pass_on_known_values_only() {
    let dictionary = one_form();
    let roles: BTreeMap<String, String> = [
        ("consent_date", "icf_date"),
        ("enrollment_date", "enroll_date"),
        ("age", "age"),
        ("guardian_consent_date", "seen_at"),
    ]
    .map(|(role, field)| (role.to_owned(), field.to_owned()))
    .into();
    let study = Study {
        roles: &roles,
        ..Study::typed_by(&dictionary)
    };
    let ask = |function: &str, mut cells: Value| {
        let set = RuleSet::compile(&[rule(json!({"function_name": function}))], &study).unwrap();
        let more = json!({"record_id": "P001", "base_complete": "2"});
        let cells_map = cells.as_object_mut().unwrap();
        cells_map.extend(more.as_object().unwrap().clone());
        only(set.evaluate(&record(&dictionary, &[cells]), today())).outcome
    };
    let consent = |icf: &str, enrolled: &str| {
        ask(
            "informed_consent",
            json!({"icf_date": icf, "enroll_date": enrolled}),
        )
    };
    assert_eq!(consent("NI", "2026-01-05"), Outcome::Fail);
    assert_eq!(
        consent("n.d.", "2026-01-05"),
        unknown(Reason::Invalid, &["icf_date"])
    );
    assert_eq!(
        consent("2026-01-05", "UNK"),
        unknown(Reason::CodedMissing, &["enroll_date"])
    );
    assert_eq!(
        consent("2026-01-05", "5.1.26"),
        unknown(Reason::Invalid, &["enroll_date"])
    );
    assert_eq!(
        consent("2026", "2026-12-30"),
        unknown(Reason::PartialDate, &["icf_date"])
    );
    assert_eq!(
        consent("2026-01", "2026-01"),
        unknown(Reason::PartialDate, &["icf_date", "enroll_date"])
    );
    let age = |age: &str, guardian: &str| {
        ask("age_requirement", json!({"age": age, "seen_at": guardian}))
    };
    assert_eq!(age("NI", ""), unknown(Reason::CodedMissing, &["age"]));
    assert_eq!(age("17,9", ""), unknown(Reason::Invalid, &["age"]));
    assert_eq!(age("16", "NI"), Outcome::Fail);
    assert_eq!(age("16", "yes"), unknown(Reason::Invalid, &["seen_at"]));
}

#[test]
fn a_number_means_the_choice_written_like_it_and_no_other() {
    let dictionary = crate::types::dictionary::Dictionary::new(
        [
            "record_id:base:text",
            "grade:base:radio:01,1,2",
            "site:base:radio:01,02",
        ]
        .map(super::support::field)
        .to_vec(),
    );
    let study = Study::typed_by(&dictionary);
    let outcome = |logic: Value, code: &str| {
        let set = RuleSet::compile(&[rule(logic)], &study).unwrap();
        let row = json!({"record_id": "P001", "grade": code, "base_complete": "2"});
        only(set.evaluate(&record(&dictionary, &[row]), today())).outcome
    };
    for logic in [
        json!({"==": [{"var": "grade"}, 1]}),
        json!({"in": [{"var": "grade"}, [1]]}),
        json!({"in_codes": [{"var": "grade"}, [1]]}),
    ] {
        assert_eq!(outcome(logic.clone(), "1"), Outcome::Pass, "{logic}");
        assert_eq!(outcome(logic.clone(), "01"), Outcome::Fail, "{logic}");
    }
    assert_eq!(
        outcome(json!({"!=": [{"var": "grade"}, 1]}), "01"),
        Outcome::Pass
    );
    for logic in [
        json!({"==": [{"var": "site"}, 1]}),
        json!({"in": [{"var": "site"}, [1]]}),
    ] {
        assert!(RuleSet::compile(&[rule(logic)], &study).is_err());
    }
}

fn flat(logic: Value, data: &Value) -> Outcome {
    let dictionary = one_form();
    let set = RuleSet::compile(&[rule(logic)], &Study::typed_by(&dictionary)).unwrap();
    only(set.evaluate_json(data, today())).outcome
}

#[test]
fn a_checkbox_with_a_blank_or_absent_choice_beside_others_has_no_answer() {
    let questions = || {
        [
            (
                json!({"!": {"in_codes": [{"var": "symptoms"}, ["1"]]}}),
                "symptoms",
            ),
            (
                json!({"!": {"in": ["1", {"var": "symptoms"}]}}),
                "symptoms",
            ),
            (json!({"is_blank": "symptoms"}), "symptoms"),
            (json!({"!": {"is_blank": "symptoms"}}), "symptoms"),
            (json!({"!": {"missing": ["symptoms"]}}), "symptoms"),
            (
                json!({"!=": [{"var": "symptoms___1"}, "1"]}),
                "symptoms___1",
            ),
            (
                json!({"==": [{"var": "symptoms___1"}, "0"]}),
                "symptoms___1",
            ),
            (json!({"is_blank": "symptoms___1"}), "symptoms___1"),
        ]
    };
    for beside in ["0", "1"] {
        let blank = json!({"symptoms___1": " ", "symptoms___2": "0", "symptoms___fever": beside});
        let absent = json!({"symptoms___2": 0, "symptoms___fever": beside, "base_complete": 2});
        for (logic, field) in questions() {
            for outcome in [
                typed(logic.clone(), &blank).outcome,
                flat(logic.clone(), &blank),
            ] {
                assert_eq!(outcome, unknown(Reason::Missing, &[field]), "{logic}");
            }
            let outcome = flat(logic.clone(), &absent);
            assert_eq!(outcome, unknown(Reason::NotExported, &[field]), "{logic}");
        }
        let known = json!({"!=": [{"var": "symptoms___2"}, "1"]});
        assert_eq!(typed(known.clone(), &blank).outcome, Outcome::Pass);
        assert_eq!(flat(known, &absent), Outcome::Pass);
    }
    // All of them blank is a blank, and of a form nobody opened no answer.
    let all_blank = json!({"symptoms___1": "", "symptoms___2": "", "symptoms___fever": ""});
    let blank = json!({"is_blank": "symptoms"});
    assert_eq!(typed(blank.clone(), &all_blank).outcome, Outcome::Pass);
    for mut untouched in [all_blank, json!({})] {
        untouched["base_complete"] = "0".into();
        for (logic, _) in questions() {
            let outcome = typed(logic.clone(), &untouched).outcome;
            assert_eq!(outcome, Outcome::FormNotOpened, "{logic}");
        }
    }
}

#[test]
fn branching_on_a_blank_choice_beside_others_excuses_nothing() {
    let mut dictionary = one_form();
    let mut fields = dictionary.fields().to_vec();
    for field in fields.iter_mut().filter(|field| field.name == "history") {
        field.branching = "[symptoms(1)] = '1'".to_owned();
    }
    let missing_codes = std::mem::take(&mut dictionary.missing_codes);
    dictionary = crate::types::dictionary::Dictionary::new(fields);
    dictionary.missing_codes = missing_codes;
    let given = rule(json!({"!": {"is_blank": "history"}}));
    let set = RuleSet::compile(&[given], &Study::typed_by(&dictionary)).unwrap();
    let ask = |first: &str| {
        let row = json!({
            "record_id": "P001", "base_complete": "2", "symptoms___1": first, "symptoms___2": "0",
        });
        only(set.evaluate(&record(&dictionary, &[row]), today())).outcome
    };
    assert_ne!(ask("0"), Outcome::Fail);
    assert_eq!(ask("1"), Outcome::Fail);
    assert_eq!(ask(""), Outcome::Fail);
}
