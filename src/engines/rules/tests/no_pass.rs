//! Further ways a rule might pass on what nobody knows.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::support::{
    faults, is_unknown, longitudinal, one_form, only, plain, record, rule, today, typed, unknown,
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
            (json!({"!": {"in": ["1", {"var": "symptoms"}]}}), "symptoms"),
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

#[test]
fn an_event_the_project_does_not_have_is_a_fault_of_the_rule() {
    let dictionary = longitudinal();
    let study = Study::typed_by(&dictionary);
    let event = || json!({"var": "redcap_event_name"});
    for logic in [
        json!({"!=": [event(), "visit_1"]}),
        json!({"==": ["visit_1", event()]}),
        json!({"!": {"in": [event(), ["screening", "visit_1"]]}}),
        json!({"!": {"in_codes": [event(), ["visit_1"]]}}),
    ] {
        let found = faults(&[rule(logic.clone())], &study);
        assert_eq!(found.len(), 1, "{logic}: {found:?}");
        let what = &found[0].what;
        assert!(
            what.contains("no event `visit_1`; did you mean `visit1`"),
            "{what}"
        );
    }
    let part = rule(json!({"!": {"in": ["visit_", event()]}}));
    assert_eq!(faults(&[part], &study).len(), 1);

    let ask = |logic: Value, event: &str| {
        let set = RuleSet::compile(&[rule(logic)], &study).unwrap();
        let row = json!({"redcap_event_name": event, "pain": "1", "vitals_complete": "2"});
        only(set.evaluate(&record(&dictionary, &[row]), today())).outcome
    };
    for (logic, outcome) in [
        (json!({"!=": [event(), "visit2"]}), Outcome::Pass),
        (
            json!({"in": [event(), ["visit1", "visit2"]]}),
            Outcome::Pass,
        ),
        (json!({"in_codes": [event(), ["visit2"]]}), Outcome::Fail),
        (json!({"in": ["visit", event()]}), Outcome::Pass),
    ] {
        assert_eq!(ask(logic.clone(), "visit1"), outcome, "{logic}");
        let elsewhere = ask(logic.clone(), "visit_1");
        assert_eq!(
            elsewhere,
            unknown(Reason::Invalid, &["redcap_event_name"]),
            "{logic}"
        );
    }
}

#[test]
fn json_of_a_type_the_field_cannot_have_is_invalid() {
    for (field, literal, given) in [
        ("age", json!(17), json!(true)),
        ("weight", json!(17), json!(false)),
        ("weight", json!(17), json!([70])),
        ("bmi", json!(17), json!(true)),
        ("initials", json!("WLH"), json!(["WLH"])),
        ("initials", json!("WLH"), json!({"a": "WLH"})),
        ("initials", json!("WLH"), json!(true)),
        ("history", json!("ILD"), json!(["ILD"])),
        ("icf_date", json!("2026-01-01"), json!(["2026-01-01"])),
        ("icf_date", json!("2026-01-01"), json!(true)),
        ("ecog", json!("4"), json!(["4"])),
        ("ecog", json!("4"), json!({"code": 4})),
        ("ecog", json!("4"), json!(true)),
        ("preg", json!("1"), json!([1])),
        ("symptoms___1", json!("1"), json!(["1"])),
        ("base_complete", json!("0"), json!(true)),
    ] {
        let data = json!({field: given});
        for logic in [
            json!({"!=": [{"var": field}, literal]}),
            json!({"!": {"in": [{"var": field}, [literal]]}}),
            json!({"is_blank": field}),
            json!({"!": {"is_blank": field}}),
        ] {
            let outcome = flat(logic.clone(), &data);
            assert_eq!(
                outcome,
                unknown(Reason::Invalid, &[field]),
                "{logic} {data}"
            );
        }
    }
    let no_ild = json!({"!": {"in": ["ILD", {"var": "history"}]}});
    assert!(is_unknown(&flat(no_ild, &json!({"history": {"a": 1}}))));
    let no_fever = json!({"!": {"in_codes": [{"var": "symptoms"}, ["fever"]]}});
    for contradictory in [
        json!({"symptoms": ["fever"], "symptoms___fever": 0}),
        json!({"symptoms": [], "symptoms___1": 1}),
    ] {
        let outcome = flat(no_fever.clone(), &contradictory);
        assert_eq!(outcome, unknown(Reason::Invalid, &["symptoms"]));
    }
}

#[test]
fn json_numbers_with_a_useless_fraction_and_truth_values_of_yes_or_no_are_read() {
    for (field, literal, given) in [
        ("age", json!(7), json!(7.0)),
        ("weight", json!(7.5), json!(7.5)),
        ("ecog", json!("1"), json!(1.0)),
        ("ecog", json!("0"), json!(-0.0)),
        ("preg", json!("1"), json!(1.0)),
        ("preg", json!("1"), json!(true)),
        ("preg", json!("0"), json!(false)),
        ("base_complete", json!("2"), json!(2.0)),
        ("initials", json!("7"), json!(7.0)),
    ] {
        let data = json!({field: given});
        let equal = json!({"==": [{"var": field}, literal]});
        assert_eq!(flat(equal, &data), Outcome::Pass, "{data}");
        let differs = json!({"!=": [{"var": field}, literal]});
        assert_eq!(flat(differs, &data), Outcome::Fail, "{data}");
    }
    let fever = json!({"in_codes": [{"var": "symptoms"}, ["fever"]]});
    let columns = json!({"symptoms___1": 0.0, "symptoms___2": false, "symptoms___fever": true});
    assert_eq!(flat(fever, &columns), Outcome::Pass);
    for (field, given) in [("age", json!(7.5)), ("ecog", json!(1.5))] {
        let outcome = flat(json!({"!=": [{"var": field}, 3]}), &json!({field: given}));
        assert_eq!(outcome, unknown(Reason::Invalid, &[field]));
    }
}

#[test]
fn a_missing_data_code_written_with_decimals_is_the_code() {
    let mut dictionary = one_form();
    dictionary.missing_codes[0].code = "-99".to_owned();
    let study = Study::typed_by(&dictionary);
    let ask = |logic: Value, field: &str, cell: &str| {
        let set = RuleSet::compile(&[rule(logic)], &study).unwrap();
        let row = json!({"record_id": "P001", "base_complete": "2", field: cell});
        only(set.evaluate(&record(&dictionary, &[row]), today())).outcome
    };
    for (field, cell) in [
        ("weight", "-99"),
        ("weight", "-99.0"),
        ("weight", "-99.00"),
        ("dose", "-99,0"),
        ("dose", "-99.0"),
        ("age", "-99.0"),
        ("bmi", "-99.0"),
    ] {
        let low = json!({"<": [{"var": field}, 50]});
        let coded = unknown(Reason::CodedMissing, &[field]);
        assert_eq!(ask(low, field, cell), coded, "{field} {cell}");
        let blank = json!({"is_blank": field});
        assert_eq!(ask(blank, field, cell), Outcome::Pass, "{field} {cell}");
    }
    let low = json!({"<": [{"var": "weight"}, 50]});
    assert_eq!(ask(low, "weight", "-99.1"), Outcome::Pass);
    // Text is no number.
    let text = json!({"!=": [{"var": "initials"}, "x"]});
    assert_eq!(ask(text, "initials", "-99.0"), Outcome::Pass);
}
