//! What a blank, a hidden blank and an unreadable value may decide.

use serde_json::{Value, json};

use super::support::{field, one_form, only, plain, record, rule, today, typed, unknown};
use crate::{
    engines::rules::{Outcome, Reason, RuleSet, Study},
    types::dictionary::Dictionary,
};

/// A pregnancy test hidden from men.
fn hiding() -> Dictionary {
    let mut fields: Vec<_> = [
        "record_id:base:text",
        "sex:base:radio:1,2",
        "preg_date:base:text:date_ymd",
        "sbp:base:text:integer",
        "age:base:text:integer",
    ]
    .map(field)
    .into();
    fields
        .iter_mut()
        .filter(|f| f.name == "preg_date")
        .for_each(|f| f.branching = "[sex] = '2'".to_owned());
    Dictionary::new(fields)
}

fn man(logic: &Value, sbp: &str, age: &str) -> Outcome {
    let dictionary = hiding();
    let set = RuleSet::compile(&[rule(logic.clone())], &Study::typed_by(&dictionary)).unwrap();
    let row =
        json!({"record_id": "P001", "sex": "1", "sbp": sbp, "age": age, "base_complete": "2"});
    only(set.evaluate(&record(&dictionary, &[row]), today())).outcome
}

fn given() -> Value {
    json!({"!": {"is_blank": "preg_date"}})
}

#[test]
fn a_hidden_blank_does_not_swallow_an_unknown_sibling() {
    let sbp = || json!({"<": [{"var": "sbp"}, 180]});
    let age = || json!({">=": [{"var": "age"}, 18]});
    let missing = unknown(Reason::Missing, &["sbp"]);
    for (logic, blank, low, high) in [
        (
            json!({"and": [given(), sbp()]}),
            missing.clone(),
            Outcome::Hidden,
            Outcome::Fail,
        ),
        (
            json!({"and": [sbp(), {"and": [given(), age()]}]}),
            missing.clone(),
            Outcome::Hidden,
            Outcome::Fail,
        ),
        // The same, by De Morgan.
        (
            json!({"!": {"or": [{"is_blank": "preg_date"}, {">=": [{"var": "sbp"}, 180]}]}}),
            missing.clone(),
            Outcome::Hidden,
            Outcome::Fail,
        ),
        (
            json!({"!!": {"and": [given(), sbp()]}}),
            missing.clone(),
            Outcome::Hidden,
            Outcome::Fail,
        ),
        // One of two ways to pass waits for the pressure, the other is closed.
        (
            json!({"or": [{"and": [given(), sbp()]}, {"<": [{"var": "age"}, 18]}]}),
            missing.clone(),
            Outcome::Hidden,
            Outcome::Fail,
        ),
        // Filled in, either alone would do.
        (
            json!({"or": [given(), sbp()]}),
            missing.clone(),
            Outcome::Pass,
            Outcome::Hidden,
        ),
        (
            json!({"if": [{"is_blank": "preg_date"}, false, sbp()]}),
            missing.clone(),
            Outcome::Hidden,
            Outcome::Fail,
        ),
        (
            json!({"if": [{"==": [{"var": "sex"}, "1"]}, {"and": [given(), sbp()]}, true]}),
            missing.clone(),
            Outcome::Hidden,
            Outcome::Fail,
        ),
    ] {
        assert_eq!(man(&logic, "", "40"), blank, "{logic} blank");
        assert_eq!(man(&logic, "120", "40"), low, "{logic} low");
        assert_eq!(man(&logic, "200", "40"), high, "{logic} high");
    }
}

#[test]
fn an_unknown_sibling_is_not_swallowed_deeper_down() {
    let logic = json!({"and": [given(), {"<=": [{"var": "preg_date"}, "today"]}, {"<": [{"var": "sbp"}, 180]}]});
    assert_eq!(man(&logic, "", "40"), unknown(Reason::Missing, &["sbp"]));
    assert_eq!(man(&logic, "120", "40"), Outcome::Hidden);
    assert_eq!(man(&logic, "200", "40"), Outcome::Fail);
}

#[test]
fn a_value_that_cannot_be_read_is_neither_there_nor_missing() {
    let cells = json!({"icf_date": "n.d.", "weight": "70"});
    let invalid = unknown(Reason::Invalid, &["icf_date"]);
    for logic in [
        given_of("icf_date"),
        json!({"is_blank": "icf_date"}),
        json!({"!=": [{"var": "icf_date"}, ""]}),
        json!({"==": [{"var": "icf_date"}, ""]}),
        json!({"!": {"missing": ["weight", "icf_date"]}}),
        json!({"!": {"missing_some": [2, ["weight", "icf_date"]]}}),
    ] {
        assert_eq!(typed(logic.clone(), &cells).outcome, invalid, "{logic}");
    }
    // What does not rest on it is decided all the same.
    assert_eq!(
        typed(
            json!({"!": {"missing_some": [1, ["weight", "icf_date"]]}}),
            &cells
        )
        .outcome,
        Outcome::Pass
    );
    assert_eq!(
        typed(json!({"!": {"missing": ["age", "icf_date"]}}), &cells).outcome,
        Outcome::Fail
    );
    assert_eq!(
        typed(given_of("ecog"), &json!({"ecog": "9"})).outcome,
        unknown(Reason::Invalid, &["ecog"])
    );
}

fn given_of(field: &str) -> Value {
    json!({"!": {"is_blank": field}})
}

#[test]
fn an_empty_list_of_plain_json_is_blank() {
    for (list, outcome) in [
        (json!([]), Outcome::Fail),
        (json!(["1"]), Outcome::Pass),
        (json!([null]), unknown(Reason::Invalid, &["symptoms"])),
        (json!({"a": 1}), unknown(Reason::Invalid, &["symptoms"])),
    ] {
        let data = json!({"symptoms": list});
        assert_eq!(plain(given_of("symptoms"), &data), outcome, "{data}");
    }
}

fn flat(logic: Value, data: &Value) -> Outcome {
    let dictionary = one_form();
    let set = RuleSet::compile(&[rule(logic)], &Study::typed_by(&dictionary)).unwrap();
    only(set.evaluate_json(data, today())).outcome
}

#[test]
fn a_checkbox_list_with_a_code_that_is_no_choice_is_invalid() {
    let no_fever = || json!({"!": {"in_codes": [{"var": "symptoms"}, ["fever"]]}});
    let invalid = unknown(Reason::Invalid, &["symptoms"]);
    for given in [
        json!(["Fever"]),
        json!(["1", 9]),
        json!(["1", "2", "fever", "x"]),
        json!(["NI", "x"]),
        json!([["fever"]]),
        json!({"fever": 1}),
        json!("fiever"),
        json!(9),
    ] {
        let data = json!({"symptoms": given});
        assert_eq!(flat(no_fever(), &data), invalid, "{data}");
        assert_eq!(flat(given_of("symptoms"), &data), invalid, "{data}");
        assert_eq!(
            flat(json!({"==": [{"var": "symptoms___fever"}, 0]}), &data),
            unknown(Reason::Invalid, &["symptoms___fever"]),
            "{data}"
        );
    }
    assert_eq!(
        flat(
            no_fever(),
            &json!({"symptoms___9": "1", "symptoms___1": "0"})
        ),
        invalid
    );
    for (given, outcome) in [
        (json!(["1", 2]), Outcome::Pass),
        (json!([]), Outcome::Pass),
        (json!(["", null]), Outcome::Pass),
        (json!(["fever"]), Outcome::Fail),
        (json!("fever"), Outcome::Fail),
        (json!(2), Outcome::Pass),
        (json!(["NI"]), unknown(Reason::CodedMissing, &["symptoms"])),
        (json!(null), unknown(Reason::Missing, &["symptoms"])),
        (json!(" "), unknown(Reason::Missing, &["symptoms"])),
    ] {
        let data = json!({"symptoms": given});
        assert_eq!(flat(no_fever(), &data), outcome, "{data}");
    }
}
