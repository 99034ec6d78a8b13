//! Events a subject has not come to yet: an empty row says no more than none.

use serde_json::{Value, json};

use super::support::{longitudinal, record, rule, today, unknown};
use crate::engines::rules::{Outcome, Reason, RuleSet, Study};

fn row(event: &str, more: Value) -> Value {
    let mut row = json!({"record_id": "P001", "redcap_event_name": event});
    row.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    row
}

fn asked(logic: &Value, rows: &[Value]) -> Vec<(String, Outcome)> {
    let dictionary = longitudinal();
    let set = RuleSet::compile(&[rule(logic.clone())], &Study::typed_by(&dictionary)).unwrap();
    set.evaluate(&record(&dictionary, rows), today())
        .into_iter()
        .map(|result| {
            let event = result.event.as_deref().unwrap_or_default().to_owned();
            (event, result.outcome)
        })
        .collect()
}

fn at(event: &str, outcome: Outcome) -> (String, Outcome) {
    (event.to_owned(), outcome)
}

/// As exported before the visit: no value, and a status of "incomplete" or none.
fn empty(event: &str) -> [Value; 2] {
    [
        row(event, json!({})),
        row(event, json!({"vitals_complete": "0", "symptoms___1": "0"})),
    ]
}

#[test]
fn an_empty_row_and_no_row_lead_to_the_same() {
    let screening = || {
        row(
            "screening",
            json!({"sex": "1", "enroll_date": "2026-01-01"}),
        )
    };
    let visit1 = || {
        row(
            "visit1",
            json!({"weight": "90", "visit_date": "2026-02-01"}),
        )
    };
    for logic in [
        json!({"<": [{"var": "weight"}, 100]}),
        json!({"!": {"is_blank": "weight"}}),
        json!({"or": [{"is_blank": "weight"}, {"<": [{"var": "weight"}, 100]}]}),
        json!({"<=": [{"var": "enroll_date"}, {"var": "visit_date"}]}),
        json!({"<=": [{"var": "enroll_date"}, {"var": "visit2.visit_date"}]}),
        json!({"<": [{"var": "visit2.weight"}, 100]}),
    ] {
        for blank in empty("visit2") {
            let without = asked(&logic, &[screening(), visit1()]);
            let with = asked(&logic, &[screening(), visit1(), blank]);
            assert_eq!(with, without, "{logic}");
        }
        for (first, second) in empty("visit1").into_iter().zip(empty("visit2")) {
            let without = asked(&logic, &[screening()]);
            let with = asked(&logic, &[screening(), first, second]);
            assert_eq!(with, without, "{logic}");
            assert!(
                without
                    .iter()
                    .all(|(_, outcome)| *outcome == Outcome::FormNotOpened)
            );
            assert!(!without.is_empty(), "{logic}");
        }
    }
}

#[test]
fn a_blank_on_an_opened_form_is_asked_for() {
    let logic = json!({"<": [{"var": "weight"}, 100]});
    for opened in [
        json!({"vitals_complete": "1"}),
        json!({"vitals_complete": "2"}),
        json!({"pain": "0"}),
        json!({"symptoms___2": "1"}),
    ] {
        assert_eq!(
            asked(
                &logic,
                &[
                    row("visit1", json!({"weight": "90"})),
                    row("visit2", opened)
                ]
            ),
            [
                at("visit1", Outcome::Pass),
                at("visit2", unknown(Reason::Missing, &["weight"]))
            ]
        );
    }
}

#[test]
fn an_event_with_an_instance_is_reached_with_and_without_its_base_row() {
    let logic = json!({"<": [{"var": "weight"}, 100]});
    let instance = || {
        row(
            "visit1",
            json!({"redcap_repeat_instrument": "ae", "redcap_repeat_instance": "1", "ae_term": "x"}),
        )
    };
    let visit2 = || row("visit2", json!({"weight": "90"}));
    let sorted = |mut results: Vec<(String, Outcome)>| {
        results.sort_by(|a, b| a.0.cmp(&b.0));
        results
    };
    let expected = [
        at("visit1", Outcome::FormNotOpened),
        at("visit2", Outcome::Pass),
    ];
    assert_eq!(sorted(asked(&logic, &[instance(), visit2()])), expected);
    for blank in empty("visit1") {
        assert_eq!(
            sorted(asked(&logic, &[blank, instance(), visit2()])),
            expected
        );
    }
}

#[test]
fn another_form_filled_in_at_the_event_means_that_it_is_reached() {
    let mut dictionary = longitudinal();
    let place = ("visit2".to_owned(), "demo".to_owned());
    dictionary.designations.insert(place);
    let set = RuleSet::compile(
        &[rule(json!({"<": [{"var": "weight"}, 100]}))],
        &Study::typed_by(&dictionary),
    )
    .unwrap();
    let rows = [
        row("visit1", json!({"weight": "90"})),
        row("visit2", json!({"sex": "1"})),
    ];
    let outcomes: Vec<Outcome> = set
        .evaluate(&record(&dictionary, &rows), today())
        .into_iter()
        .map(|result| result.outcome)
        .collect();
    assert_eq!(outcomes, [Outcome::Pass, Outcome::FormNotOpened]);
}
