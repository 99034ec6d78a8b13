//! Values typed by the data dictionary, never by their look.

use serde_json::{Value, json};

use super::support::{typed, unknown};
use crate::engines::rules::{Outcome, Reason};

fn passes(logic: Value, cells: Value) {
    let result = typed(logic.clone(), &cells);
    assert_eq!(result.outcome, Outcome::Pass, "{logic} over {cells}");
}

fn fails(logic: Value, cells: Value) {
    let result = typed(logic.clone(), &cells);
    assert_eq!(result.outcome, Outcome::Fail, "{logic} over {cells}");
}

fn undecided(logic: Value, cells: Value, reason: Reason, fields: &[&str]) {
    let result = typed(logic.clone(), &cells);
    assert_eq!(
        result.outcome,
        unknown(reason, fields),
        "{logic} over {cells}"
    );
}

#[test]
fn a_value_that_is_not_of_its_type_is_invalid() {
    for bad in ["5,3", "<5", "inf", "0x10", "5.0", "NaN", "abc", "1e3", "５"] {
        undecided(
            json!({"<=": [{"var": "age"}, 75]}),
            json!({"age": bad}),
            Reason::Invalid,
            &["age"],
        );
    }
    for bad in ["5,3", "<5", "inf", "1.", "--1"] {
        undecided(
            json!({"!=": [{"var": "weight"}, 0]}),
            json!({"weight": bad}),
            Reason::Invalid,
            &["weight"],
        );
    }
    for bad in ["5.3", "5,3,1"] {
        undecided(
            json!({"<": [{"var": "dose"}, 9]}),
            json!({"dose": bad}),
            Reason::Invalid,
            &["dose"],
        );
    }
    for bad in [
        "2026-1-5",
        "05/01/2026",
        "2026-02-30",
        "2026-01-05 08:00",
        "20260105",
    ] {
        undecided(
            json!({"<=": [{"var": "icf_date"}, "today"]}),
            json!({"icf_date": bad}),
            Reason::Invalid,
            &["icf_date"],
        );
    }
    undecided(
        json!({"!=": [{"var": "ecog"}, "4"]}),
        json!({"ecog": "9"}),
        Reason::Invalid,
        &["ecog"],
    );
    undecided(
        json!({"==": [{"var": "preg"}, 0]}),
        json!({"preg": "No"}),
        Reason::Invalid,
        &["preg"],
    );
    undecided(
        json!({"!": {"in_codes": [{"var": "symptoms"}, ["1"]]}}),
        json!({"symptoms___1": "yes"}),
        Reason::Invalid,
        &["symptoms"],
    );
}

#[test]
fn values_are_read_by_the_type_of_their_field() {
    passes(
        json!({"<=": [{"var": "age"}, "75"]}),
        json!({"age": " 18 "}),
    );
    passes(json!({"<": [{"var": "dose"}, 5.4]}), json!({"dose": "5,3"}));
    passes(
        json!({"<=": [{"var": "icf_date"}, {"var": "enroll_date"}]}),
        json!({"icf_date": "2026-01-05", "enroll_date": "2026-01-05"}),
    );
    fails(
        json!({"<=": [{"var": "icf_date"}, {"var": "enroll_date"}]}),
        json!({"icf_date": "2026-01-06", "enroll_date": "2026-01-05"}),
    );
    passes(
        json!({"date_before": [{"var": "icf_date"}, {"var": "seen_at"}]}),
        json!({"icf_date": "2026-01-05", "seen_at": "2026-01-06 00:10"}),
    );
    fails(
        json!({"date_after": [{"var": "icf_date"}, {"var": "seen_at"}]}),
        json!({"icf_date": "2026-01-05", "seen_at": "2026-01-05 08:10"}),
    );
    passes(
        json!({"<": [{"var": "slept_at"}, "23:30"]}),
        json!({"slept_at": "22:15"}),
    );
    passes(json!({"<=": [{"var": "ecog"}, 2]}), json!({"ecog": "2"}));
    fails(json!({"<=": [{"var": "ecog"}, 2]}), json!({"ecog": "3"}));
    passes(json!({"==": [{"var": "ecog"}, "0"]}), json!({"ecog": "0"}));
    passes(
        json!({"in": [{"var": "arm"}, ["A", "B"]]}),
        json!({"arm": "B"}),
    );
    passes(json!({"!": {"var": "preg"}}), json!({"preg": "0"}));
    passes(json!({"==": [{"var": "preg"}, true]}), json!({"preg": "1"}));
    passes(
        json!({"==": [{"age_at": [{"var": "birth"}, {"var": "icf_date"}]}, 17]}),
        json!({"birth": "2008-12-01", "icf_date": "2026-11-30"}),
    );
    passes(
        json!({"matches": [{"var": "initials"}, "[A-Z]{2,4}"]}),
        json!({"initials": "WLH"}),
    );
    fails(
        json!({"matches": [{"var": "initials"}, "[A-Z]{2}"]}),
        json!({"initials": "WLH"}),
    );
    passes(
        json!({"matches": [{"var": "age"}, "\\d{3}"]}),
        json!({"age": "018"}),
    );
    passes(
        json!({"in": ["肺炎", {"var": "history"}]}),
        json!({"history": "间质性肺炎"}),
    );
    passes(
        json!({"<": [{"var": "bmi"}, 30]}),
        json!({"bmi": "22.857142857"}),
    );
}

#[test]
fn a_missing_data_code_is_a_blank_with_a_reason() {
    for code in ["NI", " UNK "] {
        undecided(
            json!({"<=": [{"var": "age"}, 75]}),
            json!({"age": code}),
            Reason::CodedMissing,
            &["age"],
        );
        undecided(
            json!({"!=": [{"var": "history"}, "x"]}),
            json!({"history": code}),
            Reason::CodedMissing,
            &["history"],
        );
        undecided(
            json!({"!=": [{"var": "ecog"}, "1"]}),
            json!({"ecog": code}),
            Reason::CodedMissing,
            &["ecog"],
        );
        passes(json!({"is_blank": "age"}), json!({"age": code}));
    }
    undecided(
        json!({"!": {"in_codes": [{"var": "symptoms"}, ["1"]]}}),
        json!({"symptoms___ni": "1"}),
        Reason::CodedMissing,
        &["symptoms"],
    );
}

#[test]
fn a_partial_date_is_never_guessed() {
    let before = json!({"<": [{"var": "icf_date"}, "2026-12-05"]});
    passes(before.clone(), json!({"icf_date": "2026-11"}));
    fails(before.clone(), json!({"icf_date": "2027"}));
    for partial in ["2026-12", "2026"] {
        undecided(
            before.clone(),
            json!({"icf_date": partial}),
            Reason::PartialDate,
            &["icf_date"],
        );
    }
    undecided(
        json!({"<=": [{"date_diff_days": [{"var": "icf_date"}, "2026-12-05"]}, 3]}),
        json!({"icf_date": "2026-12"}),
        Reason::PartialDate,
        &["icf_date"],
    );
    passes(
        json!({"<=": [{"date_diff_days": [{"var": "icf_date"}, "2026-12-05"]}, 4]}),
        json!({"icf_date": "2026-12"}),
    );
    undecided(
        json!({"!=": [{"+": [1, {"date_diff_days": [{"var": "icf_date"}, "2026-12-05"]}]}, 99]}),
        json!({"icf_date": "2026-12"}),
        Reason::PartialDate,
        &["icf_date"],
    );
    let of_age = json!({">=": [{"age_at": [{"var": "birth"}, "today"]}, 18]});
    passes(of_age.clone(), json!({"birth": "2007"}));
    undecided(
        of_age.clone(),
        json!({"birth": "2008"}),
        Reason::PartialDate,
        &["birth"],
    );
    // An age of minus something would pass an upper limit.
    undecided(
        json!({"<=": [{"age_at": [{"var": "birth"}, "today"]}, 75]}),
        json!({"birth": "2062-01-01"}),
        Reason::Undefined,
        &["birth"],
    );
}

#[test]
fn an_unchecked_box_is_an_answer_only_on_a_form_somebody_opened() {
    let none = json!({"!": {"in": ["1", {"var": "symptoms"}]}});
    passes(none.clone(), json!({}));
    fails(none.clone(), json!({"symptoms___1": "1"}));
    passes(json!({"==": [{"var": "symptoms___fever"}, 0]}), json!({}));
    passes(
        json!({"in_codes": [{"var": "symptoms"}, ["fever", "2"]]}),
        json!({"symptoms___fever": "1"}),
    );
    passes(json!({"is_blank": "symptoms"}), json!({}));
    // Zeros are also what an unopened form exports.
    for logic in [
        none,
        json!({"==": [{"var": "symptoms___fever"}, 0]}),
        json!({"is_blank": "symptoms"}),
        json!({"<=": [{"var": "age"}, 75]}),
        json!({"is_blank": "age"}),
    ] {
        let result = typed(logic.clone(), &json!({"base_complete": "0"}));
        assert_eq!(result.outcome, Outcome::FormNotOpened, "{logic}");
        assert!(result.to_finding("P001").is_none());
    }
    // One value, and the form was opened; a calculation is none that a person entered.
    let opened = json!({"base_complete": "0", "weight": "60"});
    undecided(
        json!({"<=": [{"var": "age"}, 75]}),
        opened,
        Reason::Missing,
        &["age"],
    );
    let result = typed(
        json!({"<=": [{"var": "age"}, 75]}),
        &json!({"base_complete": "", "bmi": "22"}),
    );
    assert_eq!(result.outcome, Outcome::FormNotOpened);
}

#[test]
fn a_known_failure_stands_although_something_else_is_not_filled_in_yet() {
    let logic =
        json!({"and": [{"==": [{"var": "record_id"}, "P002"]}, {"<=": [{"var": "age"}, 75]}]});
    let result = typed(logic, &json!({"base_complete": "0"}));
    assert_eq!(result.outcome, Outcome::Fail);
}
