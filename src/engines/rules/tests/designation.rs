//! Rules about forms of several events: asked wherever their values stand, or refused.

use serde_json::{Value, json};

use super::support::{about, faults, field, record, rule, today};
use crate::{
    engines::rules::{Outcome, RuleSet, Study},
    types::{
        dictionary::{Dictionary, Event},
        rule::RuleSpec,
    },
};

/// A project whose events stand in arms (`e1`, or `e1:2` in arm 2), with the forms at each.
fn project(events: &[(&str, &[&str])]) -> Dictionary {
    let mut dictionary = Dictionary::new(
        [
            "record_id:base:text",
            "age:base:text:integer",
            "icf:base:text:date_ymd",
            "sbp:vitals:text:integer",
            "hr:lab:text:integer",
            "ecg:ecg:text:integer",
            "ae_start:ae:text:date_ymd",
        ]
        .map(field)
        .into(),
    );
    for (event, forms) in events {
        let (event, arm) = event.split_once(':').unwrap_or((event, "1"));
        dictionary.events.push(Event {
            unique_name: event.to_owned(),
            label: event.to_owned(),
            arm: arm.parse().unwrap(),
        });
        for form in *forms {
            dictionary
                .designations
                .insert((event.to_owned(), (*form).to_owned()));
        }
    }
    dictionary
}

fn row(event: &str, more: Value) -> Value {
    let mut row = json!({"record_id": "P001", "redcap_event_name": event});
    row.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    row
}

fn asked(dictionary: &Dictionary, spec: RuleSpec, rows: &[Value]) -> Vec<(String, Outcome)> {
    let set = RuleSet::compile(&[spec], &Study::typed_by(dictionary)).unwrap();
    set.evaluate(&record(dictionary, rows), today())
        .into_iter()
        .map(|result| {
            (
                result.event.as_deref().unwrap_or("").to_owned(),
                result.outcome,
            )
        })
        .collect()
}

fn at(event: &str, outcome: Outcome) -> (String, Outcome) {
    (event.to_owned(), outcome)
}

fn refused(dictionary: &Dictionary, specs: &[RuleSpec]) -> String {
    faults(specs, &Study::typed_by(dictionary))
        .iter()
        .map(|fault| format!("{fault}\n"))
        .collect()
}

#[test]
fn a_rule_on_a_form_that_no_event_uses_is_refused() {
    let dictionary = project(&[("screening", &["base"]), ("v1", &["base"])]);
    let asks_nothing = json!({"==": [{"var": "record_id"}, "P001"]});
    insta::assert_snapshot!(refused(
        &dictionary,
        &[
            rule(json!({"<": [{"var": "sbp"}, 180]})),
            rule(json!({"and": [{">=": [{"var": "age"}, 18]}, {"<": [{"var": "sbp"}, 180]}]})),
            about("sbp", asks_nothing),
        ],
    ));
}

#[test]
fn a_repeating_form_without_a_designation_is_asked_on_its_instances() {
    let mut dictionary = project(&[("screening", &["base"])]);
    let place = ("screening".to_owned(), "ae".to_owned());
    dictionary.repeating.insert(place);
    let instance = row(
        "screening",
        json!({"redcap_repeat_instrument": "ae", "redcap_repeat_instance": "1", "ae_start": "2027-01-01"}),
    );
    let spec = || rule(json!({"<=": [{"var": "ae_start"}, "today"]}));
    assert_eq!(
        asked(
            &dictionary,
            spec(),
            &[row("screening", json!({"age": "50"})), instance]
        ),
        [at("screening", Outcome::Fail)]
    );
    assert_eq!(
        asked(
            &dictionary,
            spec(),
            &[row("screening", json!({"age": "50"}))]
        ),
        []
    );
}
