//! Named functions: windows, consent, age.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::support::{
    about, faults, field, is_unknown, longitudinal, one_form, only, record, rule, today, unknown,
};
use crate::{
    engines::rules::{Outcome, Reason, RuleResult, RuleSet, Study},
    types::{dictionary::Dictionary, project::Visit},
};

fn visit(day: i32, minus: u32, plus: u32) -> Visit {
    Visit {
        id: "V3".to_owned(),
        date_field: "v3_date".to_owned(),
        anchor_field: "anchor".to_owned(),
        day,
        minus,
        plus,
        anchor_is_day_one: false,
        event: None,
    }
}

fn dates() -> Dictionary {
    let mut dictionary = Dictionary::new(
        [
            "record_id:base:text",
            "anchor:base:text:date_ymd",
            "v3_date:base:text:date_ymd",
        ]
        .map(field)
        .into(),
    );
    dictionary.missing_codes = one_form().missing_codes;
    dictionary
}

fn window(visit: &Visit, anchor: &str, actual: &str) -> RuleResult {
    let dictionary = dates();
    let study = Study {
        visits: std::slice::from_ref(visit),
        ..Study::typed_by(&dictionary)
    };
    let spec = about(
        "v3_date",
        json!({"function_name": "visit_window", "args": {"visit": "V3"}}),
    );
    let set = RuleSet::compile(&[spec], &study).unwrap();
    let row =
        json!({"record_id": "P001", "base_complete": "2", "anchor": anchor, "v3_date": actual});
    only(set.evaluate(&record(&dictionary, &[row]), today()))
}

#[test]
fn a_window_of_0_to_30_days_includes_both_ends() {
    let visit = visit(0, 0, 30);
    for (actual, passes) in [
        ("2025-12-31", false),
        ("2026-01-01", true),
        ("2026-01-15", true),
        ("2026-01-31", true),
        ("2026-02-01", false),
    ] {
        let outcome = window(&visit, "2026-01-01", actual).outcome;
        assert_eq!(
            outcome,
            if passes { Outcome::Pass } else { Outcome::Fail },
            "{actual}"
        );
    }
}

#[test]
fn a_deviation_shows_date_day_range_and_size() {
    let visit = visit(28, 3, 3);
    insta::assert_snapshot!(window(&visit, "2026-01-01", "2026-02-06").message);
    insta::assert_snapshot!(window(&visit, "2026-01-01", "2026-01-20").message);
    insta::assert_snapshot!(window(&visit, "2026-01-01", "2026-03").message);
}

#[test]
fn a_study_without_a_day_zero_counts_the_anchor_as_day_one() {
    let mut visit = visit(1, 2, 1);
    visit.anchor_is_day_one = true;
    for (actual, passes) in [
        ("2025-12-29", false),
        ("2025-12-30", true),
        ("2025-12-31", true),
        ("2026-01-01", true),
        ("2026-01-02", true),
        ("2026-01-03", false),
    ] {
        let outcome = window(&visit, "2026-01-01", actual).outcome;
        assert_eq!(
            outcome,
            if passes { Outcome::Pass } else { Outcome::Fail },
            "{actual}"
        );
    }
    insta::assert_snapshot!(window(&visit, "2026-01-01", "2026-01-04").message);
    visit.day = -1;
    assert_eq!(
        window(&visit, "2026-01-01", "2025-12-31").outcome,
        Outcome::Pass
    );
}

#[test]
fn a_missing_or_partial_date_is_said_and_never_guessed() {
    let visit = visit(28, 3, 3);
    for (anchor, actual, reason, field) in [
        ("", "2026-01-29", Reason::Missing, "anchor"),
        ("NI", "2026-01-29", Reason::CodedMissing, "anchor"),
        ("2026-01-01", "", Reason::Missing, "v3_date"),
        ("2026-01-01", "29/01/2026", Reason::Invalid, "v3_date"),
        ("2026-01-01", "2026-01", Reason::PartialDate, "v3_date"),
        ("2026", "2026-01-29", Reason::PartialDate, "anchor"),
    ] {
        let result = window(&visit, anchor, actual);
        assert_eq!(
            result.outcome,
            unknown(reason, &[field]),
            "{anchor} {actual}"
        );
    }
    insta::assert_snapshot!(window(&visit, "", "2026-01-29").message);
    insta::assert_snapshot!(window(&visit, "2026-01-01", "2026-01").message);
}

#[test]
fn a_visit_date_used_at_several_events_needs_its_event() {
    let dictionary = longitudinal();
    let mut visit = Visit {
        date_field: "visit_date".to_owned(),
        anchor_field: "enroll_date".to_owned(),
        ..visit(28, 3, 3)
    };
    let call = || {
        about(
            "visit_date",
            json!({"function_name": "visit_window", "args": {"visit": "V3"}}),
        )
    };
    let visits = [visit.clone()];
    let study = Study {
        visits: &visits,
        ..Study::typed_by(&dictionary)
    };
    insta::assert_snapshot!(faults(&[call()], &study)[0].to_string());
    visit.event = Some("visit2".to_owned());
    // So does an anchor: one event's visit date is not another's.
    let visits = [Visit {
        anchor_field: "visit_date".to_owned(),
        ..visit.clone()
    }];
    let study = Study {
        visits: &visits,
        ..Study::typed_by(&dictionary)
    };
    insta::assert_snapshot!(faults(&[call()], &study)[0].to_string());
    let visits = [visit];
    let study = Study {
        visits: &visits,
        ..Study::typed_by(&dictionary)
    };
    let set = RuleSet::compile(&[call()], &study).unwrap();
    let rows = [
        json!({"record_id": "P001", "redcap_event_name": "screening", "enroll_date": "2026-01-01"}),
        json!({"record_id": "P001", "redcap_event_name": "visit1", "visit_date": "2026-01-08"}),
        json!({"record_id": "P001", "redcap_event_name": "visit2", "visit_date": "2026-02-06"}),
    ];
    let result = only(set.evaluate(&record(&dictionary, &rows), today()));
    assert_eq!(
        (result.event.as_deref(), &result.outcome),
        (Some("visit2"), &Outcome::Fail)
    );
    let result = only(set.evaluate(&record(&dictionary, &rows[..2]), today()));
    assert_eq!(
        (result.event.as_deref(), &result.outcome),
        (Some("visit2"), &Outcome::FormNotOpened)
    );
}

#[test]
fn slips_in_a_call_are_found() {
    let dictionary = dates();
    let visits = [visit(28, 3, 3)];
    let study = Study {
        visits: &visits,
        ..Study::typed_by(&dictionary)
    };
    let calls = [
        json!({"function_name": "visit_windw", "args": {"visit": "V3"}}),
        json!({"function_name": "causality"}),
        json!({"function_name": 3}),
        json!({"function_name": "visit_window", "args": {"visit": "V33"}}),
        json!({"function_name": "visit_window"}),
        json!({"function_name": "visit_window", "args": ["V3"]}),
        json!({"function_name": "visit_window", "args": {"visit": "V3", "plus": 9}}),
        json!({"function_name": "visit_window", "arg": {"visit": "V3"}}),
        json!({"or": [true, {"function_name": "informed_consent", "args": {"consent_date": "anchr"}}]}),
        json!({"function_name": "age_requirement", "args": {"age": "anchor"}}),
        json!({"function_name": "age_requirement", "args": {"age": "anchor", "min_age": "18"}}),
    ];
    let specs: Vec<_> = calls.into_iter().map(rule).collect();
    let said: String = faults(&specs, &study)
        .iter()
        .map(|fault| format!("{fault}\n"))
        .collect();
    insta::assert_snapshot!(said);
}

fn ethics(function: &str, roles: &[(&str, &str)], data: &Value) -> RuleResult {
    let roles: BTreeMap<String, String> = roles
        .iter()
        .map(|(a, b)| ((*a).to_owned(), (*b).to_owned()))
        .collect();
    let study = Study {
        roles: &roles,
        ..Study::default()
    };
    let set = RuleSet::compile(&[rule(json!({"function_name": function}))], &study).unwrap();
    only(set.evaluate_json(data, today()))
}

#[test]
fn consent_must_exist_and_not_be_later_than_the_enrolment() {
    let roles = [
        ("consent_date", "icf_date"),
        ("enrollment_date", "enroll_date"),
    ];
    let ask = |icf: &str, enrolled: &str| {
        ethics(
            "informed_consent",
            &roles,
            &json!({"icf_date": icf, "enroll_date": enrolled}),
        )
    };
    assert_eq!(ask("2026-01-05", "2026-01-05").outcome, Outcome::Pass);
    assert_eq!(ask("2026-01", "2026-02-01").outcome, Outcome::Pass);
    let late = ask("2026-01-06", "2026-01-05");
    assert_eq!(late.outcome, Outcome::Fail);
    insta::assert_snapshot!(late.message);
    let none = ask("", "2026-01-05");
    assert_eq!(none.outcome, Outcome::Fail);
    insta::assert_snapshot!(none.message);
    assert!(is_unknown(&ask("2026-01-05", "").outcome));
    assert!(is_unknown(&ask("", "").outcome));
    assert!(is_unknown(&ask("05/01/2026", "2026-01-06").outcome));
    assert!(is_unknown(&ask("2026-01", "2026-01-20").outcome));
}

#[test]
fn a_minor_needs_a_guardians_consent() {
    let guardian = [("age", "age"), ("guardian_consent_date", "guardian")];
    let ask = |age: Value, date: &str| {
        ethics(
            "age_requirement",
            &guardian,
            &json!({"age": age, "guardian": date}),
        )
        .outcome
    };
    assert_eq!(ask(json!(18), ""), Outcome::Pass);
    assert_eq!(ask(json!("17"), ""), Outcome::Fail);
    assert_eq!(ask(json!(17), "2026-01-05"), Outcome::Pass);
    assert!(is_unknown(&ask(json!(null), "")));
    assert!(is_unknown(&ask(json!("<18"), "")));
    assert!(is_unknown(&ask(json!(-1), "")));
    assert!(is_unknown(&ask(json!(17), "soon")));
    let alone = ethics(
        "age_requirement",
        &[("guardian_consent_date", "")],
        &json!({"age": 16}),
    );
    assert_eq!(alone.outcome, Outcome::Fail);
    insta::assert_snapshot!(alone.message);
}

#[test]
fn a_function_can_be_part_of_a_rule() {
    let logic = json!({"or": [{"==": [{"var": "screen_failed"}, 1]}, {"function_name": "age_requirement"}]});
    let set = RuleSet::compile(&[rule(logic)], &Study::default()).unwrap();
    let ask = |data: Value| only(set.evaluate_json(&data, today())).outcome;
    assert_eq!(ask(json!({"screen_failed": 1})), Outcome::Pass);
    assert_eq!(ask(json!({"screen_failed": 0, "age": 16})), Outcome::Fail);
    assert_eq!(
        ask(json!({"screen_failed": 0})),
        unknown(Reason::Missing, &["age"])
    );
}
