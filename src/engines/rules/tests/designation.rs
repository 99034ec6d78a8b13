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

#[test]
fn values_of_another_form_at_other_events_are_not_passed_over() {
    let dictionary = project(&[
        ("screening", &["base", "vitals"]),
        ("v1", &["vitals"]),
        ("v2", &["vitals"]),
    ]);
    let logic = json!({"and": [{">=": [{"var": "age"}, 18]}, {"<": [{"var": "sbp"}, 180]}]});
    let rows = [
        row("screening", json!({"age": "50", "sbp": "120"})),
        row("v1", json!({"sbp": "220"})),
        row("v2", json!({"sbp": "130"})),
    ];
    for about_field in ["age", "sbp", ""] {
        assert_eq!(
            asked(&dictionary, about(about_field, logic.clone()), &rows),
            [
                at("screening", Outcome::Pass),
                at("v1", Outcome::Fail),
                at("v2", Outcome::Pass)
            ],
            "about {about_field}"
        );
    }
    // One that fails by the field read from elsewhere fails wherever it is asked.
    let young = [
        row("screening", json!({"age": "16", "sbp": "120"})),
        row("v1", json!({"sbp": "120"})),
    ];
    assert_eq!(
        asked(&dictionary, about("age", logic), &young),
        [at("screening", Outcome::Fail), at("v1", Outcome::Fail)]
    );
}

#[test]
fn forms_at_the_same_events_are_asked_at_each() {
    let dictionary = project(&[
        ("screening", &["base"]),
        ("v1", &["vitals", "lab"]),
        ("v2", &["vitals", "lab"]),
    ]);
    let logic = json!({"<": [{"var": "hr"}, {"var": "sbp"}]});
    let rows = [
        row("v1", json!({"sbp": "120", "hr": "60"})),
        row("v2", json!({"sbp": "100", "hr": "160"})),
    ];
    assert_eq!(
        asked(&dictionary, rule(logic), &rows),
        [at("v1", Outcome::Pass), at("v2", Outcome::Fail)]
    );
}

#[test]
fn an_unclear_event_is_refused_with_its_name_and_a_way_out() {
    let both = || json!({"<": [{"var": "hr"}, {"var": "sbp"}]});
    let overlapping = project(&[
        ("e1", &["vitals"]),
        ("e2", &["vitals", "lab"]),
        ("e3", &["lab"]),
    ]);
    let narrower = project(&[
        ("e1", &["vitals", "lab"]),
        ("e2", &["vitals", "lab"]),
        ("e3", &["vitals"]),
    ]);
    let mut repeats = project(&[("e1", &["vitals"]), ("e2", &["vitals"]), ("log", &["lab"])]);
    repeats.repeating.insert(("log".to_owned(), String::new()));
    let mut instances = project(&[("log", &["ae"]), ("e1", &["vitals"]), ("e2", &["vitals"])]);
    instances
        .repeating
        .insert(("log".to_owned(), "ae".to_owned()));
    let in_or =
        json!({"or": [{"<": [{"var": "sbp"}, 180]}, {"<=": [{"var": "ae_start"}, "today"]}]});
    insta::assert_snapshot!(
        [
            refused(&overlapping, &[rule(both())]),
            refused(&narrower, &[about("hr", both())]),
            refused(&repeats, &[rule(both())]),
            refused(&instances, &[rule(in_or)]),
        ]
        .concat()
    );
    // Naming the event is the way out.
    let named = json!({"<": [{"var": "e2.hr"}, {"var": "sbp"}]});
    let rows = [
        row("e1", json!({"sbp": "50"})),
        row("e2", json!({"sbp": "100", "hr": "60"})),
    ];
    assert_eq!(
        asked(&overlapping, rule(named), &rows),
        [at("e1", Outcome::Fail), at("e2", Outcome::Pass)]
    );
}

#[test]
fn events_are_weighed_arm_by_arm() {
    // In each arm the vitals stand at all visits and the age at one.
    let sound = project(&[
        ("s_a", &["base"]),
        ("v_a", &["vitals"]),
        ("w_a", &["vitals"]),
        ("s_b:2", &["base", "vitals"]),
        ("v_b:2", &["vitals"]),
    ]);
    let logic = || json!({"and": [{">=": [{"var": "age"}, 18]}, {"<": [{"var": "sbp"}, 180]}]});
    let arm_b = [
        row("s_b", json!({"age": "50", "sbp": "120"})),
        row("v_b", json!({"sbp": "220"})),
    ];
    assert_eq!(
        asked(&sound, about("age", logic()), &arm_b),
        [at("s_b", Outcome::Pass), at("v_b", Outcome::Fail)]
    );
    // Wide enough over the whole project, but not in arm 2.
    let crossed = project(&[
        ("v_a", &["vitals", "lab"]),
        ("w_a", &["vitals", "lab"]),
        ("x_b:2", &["lab"]),
        ("y_b:2", &["lab"]),
    ]);
    // An arm that lacks the one form the rule is about is not asked; lacking another, it is refused.
    let partly = project(&[("s_a", &["base", "ecg"]), ("s_b:2", &["base"])]);
    let ecg = || json!({"and": [{">=": [{"var": "age"}, 18]}, {"<": [{"var": "ecg"}, 450]}]});
    assert_eq!(
        asked(
            &partly,
            about("ecg", ecg()),
            &[row("s_b", json!({"age": "50"}))]
        ),
        []
    );
    let apart = project(&[("s_a", &["base"]), ("s_b:2", &["ecg"])]);
    insta::assert_snapshot!(
        [
            refused(
                &crossed,
                &[rule(json!({"<": [{"var": "hr"}, {"var": "sbp"}]}))]
            ),
            refused(&partly, &[about("age", ecg())]),
            refused(&apart, &[rule(ecg())]),
        ]
        .concat()
    );
}

#[test]
fn a_rule_that_names_its_events_is_asked_when_the_first_has_no_row() {
    let dictionary = project(&[
        ("v1", &["vitals"]),
        ("v2", &["vitals"]),
        ("v_b:2", &["vitals"]),
    ]);
    let logic =
        || json!({"and": [{"<": [{"var": "v1.sbp"}, 180]}, {"<": [{"var": "v2.sbp"}, 180]}]});
    assert_eq!(
        asked(
            &dictionary,
            rule(logic()),
            &[row("v2", json!({"sbp": "220"}))]
        ),
        [at("v2", Outcome::Fail)]
    );
    assert_eq!(
        asked(
            &dictionary,
            rule(logic()),
            &[row("v2", json!({"sbp": "120"}))]
        ),
        [at("v2", Outcome::FormNotOpened)]
    );
    let either = json!({"or": [{"<": [{"var": "v1.sbp"}, 180]}, {"<": [{"var": "v_b.sbp"}, 180]}]});
    assert_eq!(
        asked(
            &dictionary,
            rule(either),
            &[row("v_b", json!({"sbp": "120"}))]
        ),
        [at("v_b", Outcome::Pass)]
    );
}

#[test]
fn a_rule_about_the_rows_event_is_asked_on_every_row() {
    let dictionary = project(&[("v1", &["vitals"]), ("v2", &["vitals"])]);
    let logic = json!({"!=": [{"var": "redcap_event_name"}, "v2"]});
    let rows = [
        row("v1", json!({"sbp": "1"})),
        row("v2", json!({"sbp": "1"})),
    ];
    assert_eq!(
        asked(&dictionary, rule(logic), &rows),
        [at("v1", Outcome::Pass), at("v2", Outcome::Fail)]
    );
}
