//! On which rows a rule is evaluated, and where its values come from.

use serde_json::{Value, json};

use super::support::{about, longitudinal, one_form, record, rule, today, unknown};
use crate::{
    engines::rules::{Outcome, Reason, RuleResult, RuleSet, Study},
    types::{dictionary::Dictionary, rule::RuleSpec},
};

fn evaluate(dictionary: &Dictionary, spec: RuleSpec, rows: &[Value]) -> Vec<RuleResult> {
    let set = RuleSet::compile(&[spec], &Study::typed_by(dictionary)).unwrap();
    set.evaluate(&record(dictionary, rows), today())
}

/// (event, instance, outcome) of each result.
fn places(results: &[RuleResult]) -> Vec<(&str, Option<u32>, &Outcome)> {
    results
        .iter()
        .map(|r| {
            (
                r.event.as_deref().unwrap_or_default(),
                r.instance,
                &r.outcome,
            )
        })
        .collect()
}

fn base(event: &str, more: Value) -> Value {
    let mut row = json!({"record_id": "P001", "redcap_event_name": event});
    row.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    row
}

fn instance(event: &str, form: &str, number: &str, more: Value) -> Value {
    let place = json!({"redcap_repeat_instrument": form, "redcap_repeat_instance": number});
    let mut row = base(event, place);
    row.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    row
}

#[test]
fn a_rule_is_asked_once_at_each_event_its_form_is_used_at() {
    let results = evaluate(
        &longitudinal(),
        rule(json!({"<": [{"var": "weight"}, 100]})),
        &[
            base("screening", json!({"enroll_date": "2026-01-01"})),
            base("visit1", json!({"weight": "90"})),
            instance("visit1", "ae", "1", json!({"ae_term": "x"})),
            base("visit2", json!({"weight": "101"})),
        ],
    );
    assert_eq!(
        places(&results),
        [
            ("visit1", None, &Outcome::Pass),
            ("visit2", None, &Outcome::Fail)
        ]
    );
}

#[test]
fn a_form_at_one_event_is_read_from_there() {
    let logic = json!({"<=": [{"var": "enroll_date"}, {"var": "visit_date"}]});
    let results = evaluate(
        &longitudinal(),
        about("visit_date", logic.clone()),
        &[
            base("screening", json!({"enroll_date": "2026-01-10"})),
            base("visit1", json!({"visit_date": "2026-01-11"})),
            base("visit2", json!({"visit_date": "2026-01-09"})),
        ],
    );
    assert_eq!(
        places(&results),
        [
            ("visit1", None, &Outcome::Pass),
            ("visit2", None, &Outcome::Fail)
        ]
    );
    // Written about the other field, it is the same rule.
    let results = evaluate(
        &longitudinal(),
        about("enroll_date", logic),
        &[
            base("screening", json!({"enroll_date": "2026-01-10"})),
            base("visit1", json!({"visit_date": "2026-01-11"})),
            base("visit2", json!({"visit_date": "2026-01-09"})),
        ],
    );
    assert_eq!(
        places(&results),
        [
            ("visit1", None, &Outcome::Pass),
            ("visit2", None, &Outcome::Fail)
        ]
    );
}

#[test]
fn another_event_can_be_named() {
    let results = evaluate(
        &longitudinal(),
        about(
            "enroll_date",
            json!({"<=": [{"var": "enroll_date"}, {"var": "visit2.visit_date"}]}),
        ),
        &[
            base("screening", json!({"enroll_date": "2026-01-10"})),
            base("visit1", json!({"visit_date": "2026-01-01"})),
            base("visit2", json!({"visit_date": "2026-01-12"})),
        ],
    );
    assert_eq!(places(&results), [("screening", None, &Outcome::Pass)]);
    let results = evaluate(
        &longitudinal(),
        about("weight", json!({"<": [{"var": "visit2.weight"}, 100]})),
        &[
            base("visit1", json!({"weight": "200"})),
            base("visit2", json!({"weight": "90"})),
        ],
    );
    assert_eq!(places(&results), [("visit2", None, &Outcome::Pass)]);
}

#[test]
fn a_repeating_form_is_asked_on_each_instance_and_falls_back_to_its_events_base_row() {
    let dictionary = longitudinal();
    let spec = || rule(json!({">=": [{"var": "ae_start"}, {"var": "visit_date"}]}));
    let results = evaluate(
        &dictionary,
        spec(),
        &[
            base("visit1", json!({"visit_date": "2026-02-01"})),
            instance("visit1", "ae", "1", json!({"ae_start": "2026-02-02"})),
            instance("visit1", "ae", "2", json!({"ae_start": "2026-01-31"})),
            instance("visit1", "ae", "3", json!({"ae_start": ""})),
            instance("visit1", "cm", "1", json!({"cm_start": "2026-01-01"})),
            base("visit2", json!({"visit_date": "2026-03-01"})),
        ],
    );
    let missing = unknown(Reason::Missing, &["ae_start"]);
    assert_eq!(
        places(&results),
        [
            ("visit1", Some(1), &Outcome::Pass),
            ("visit1", Some(2), &Outcome::Fail),
            ("visit1", Some(3), &missing),
        ]
    );
    // No adverse event is nothing to check, and no pass either.
    assert!(
        evaluate(
            &dictionary,
            spec(),
            &[base("visit1", json!({"visit_date": "2026-02-01"}))]
        )
        .is_empty()
    );
}

#[test]
fn each_instance_of_a_repeating_event_is_asked() {
    let row = |number: &str, date: &str| {
        base(
            "log",
            json!({"redcap_repeat_instance": number, "call_date": date}),
        )
    };
    let results = evaluate(
        &longitudinal(),
        rule(json!({"<=": [{"var": "call_date"}, "today"]})),
        &[row("1", "2026-01-01"), row("2", "2027-01-01"), row("3", "")],
    );
    // The third was made but nothing of its form was filled in.
    assert_eq!(
        places(&results),
        [
            ("log", Some(1), &Outcome::Pass),
            ("log", Some(2), &Outcome::Fail),
            ("log", Some(3), &Outcome::FormNotOpened),
        ]
    );
}

#[test]
fn a_record_without_a_row_for_the_rule_has_not_passed_it() {
    let dictionary = longitudinal();
    let spec = || rule(json!({"<": [{"var": "weight"}, 100]}));
    let results = evaluate(
        &dictionary,
        spec(),
        &[base("screening", json!({"sex": "1"}))],
    );
    assert_eq!(
        places(&results),
        [("visit1", None, &Outcome::FormNotOpened)]
    );
    assert!(!results[0].message.is_empty());
    // In the other arm there is no such visit.
    assert!(
        evaluate(
            &dictionary,
            spec(),
            &[base("screening_b", json!({"sex": "1"}))]
        )
        .is_empty()
    );
}

#[test]
fn an_event_not_reached_is_not_opened_for_a_rule_that_names_it() {
    let results = evaluate(
        &longitudinal(),
        about(
            "enroll_date",
            json!({"<=": [{"var": "enroll_date"}, {"var": "visit2.visit_date"}]}),
        ),
        &[base("screening", json!({"enroll_date": "2026-01-10"}))],
    );
    assert_eq!(
        places(&results),
        [("screening", None, &Outcome::FormNotOpened)]
    );
}

#[test]
fn the_finding_of_a_named_event_is_about_the_bare_field() {
    let results = evaluate(
        &longitudinal(),
        rule(json!({"<": [{"var": "visit2.weight"}, 100]})),
        &[base("visit2", json!({"weight": "101"}))],
    );
    assert_eq!(places(&results), [("visit2", None, &Outcome::Fail)]);
    assert_eq!(&*results[0].field, "weight");
}

#[test]
fn rows_of_events_the_dictionary_does_not_know_are_not_lost() {
    // The structure of the project could not be read, so it looks classic.
    let dictionary = Dictionary::new(longitudinal().fields().to_vec());
    let rows = [
        base("visit1", json!({"weight": "90"})),
        instance("visit1", "ae", "1", json!({"ae_term": "x"})),
        base("visit2", json!({"weight": "101"})),
    ];
    let results = evaluate(
        &dictionary,
        rule(json!({"<": [{"var": "weight"}, 100]})),
        &rows,
    );
    assert_eq!(
        places(&results),
        [
            ("visit1", None, &Outcome::Pass),
            ("visit2", None, &Outcome::Fail)
        ]
    );
    let results = evaluate(
        &dictionary,
        rule(json!({"==": [{"var": "ae_term"}, "x"]})),
        &rows[1..2],
    );
    assert_eq!(places(&results), [("visit1", Some(1), &Outcome::Pass)]);
    // In a project with events, a row of another event passes nothing.
    let results = evaluate(
        &longitudinal(),
        rule(json!({"<": [{"var": "weight"}, 100]})),
        &[base("visit9", json!({"weight": "90"}))],
    );
    assert_eq!(
        places(&results),
        [("visit1", None, &Outcome::FormNotOpened)]
    );
}

#[test]
fn a_column_the_export_lacks_is_unknown_and_not_blank() {
    let dictionary = one_form();
    let study = Study::typed_by(&dictionary);
    let specs = [
        rule(json!({"<=": [{"var": "age"}, 75]})),
        rule(json!({"is_blank": "age"})),
    ];
    let set = RuleSet::compile(&specs, &study).unwrap();
    let columns =
        crate::types::record::Columns::new(vec!["record_id".to_owned(), "weight".to_owned()]);
    let row =
        crate::types::record::Row::new(None, None, None, columns, vec!["1".into(), "60".into()]);
    let record = crate::types::record::Record {
        id: "1".to_owned(),
        rows: vec![row],
    };
    for result in set.evaluate(&record, today()) {
        assert_eq!(result.outcome, unknown(Reason::NotExported, &["age"]));
    }
}

fn with_branching(field: &str, logic: &str) -> Dictionary {
    let longitudinal = longitudinal();
    let fields = longitudinal
        .fields()
        .iter()
        .cloned()
        .map(|mut f| {
            if f.name == field {
                logic.clone_into(&mut f.branching);
            }
            f
        })
        .collect();
    let mut dictionary = Dictionary::new(fields);
    dictionary.events.clone_from(&longitudinal.events);
    dictionary
        .designations
        .clone_from(&longitudinal.designations);
    dictionary.repeating.clone_from(&longitudinal.repeating);
    dictionary
}

fn outcome(dictionary: &Dictionary, logic: Value, rows: &[Value]) -> Outcome {
    let results = evaluate(dictionary, rule(logic), rows);
    assert_eq!(results.len(), 1, "{results:?}");
    results[0].outcome.clone()
}

#[test]
fn what_branching_logic_hides_is_not_asked_for() {
    let dictionary = with_branching("preg_date", "[sex] = '2'");
    let man = [base("screening", json!({"sex": "1"}))];
    let woman = [base("screening", json!({"sex": "2"}))];
    let nobody = [base("screening", json!({"enroll_date": "2026-01-01"}))];
    let missing = unknown(Reason::Missing, &["preg_date"]);
    for logic in [
        json!({"<=": [{"var": "preg_date"}, "today"]}),
        json!({"and": [{"!": {"is_blank": "preg_date"}}, {"<=": [{"var": "preg_date"}, "today"]}]}),
    ] {
        assert_eq!(
            outcome(&dictionary, logic.clone(), &man),
            Outcome::Hidden,
            "{logic}"
        );
        assert_eq!(
            outcome(&dictionary, logic.clone(), &nobody),
            Outcome::Hidden,
            "{logic}"
        );
    }
    assert_eq!(
        outcome(
            &dictionary,
            json!({"<=": [{"var": "preg_date"}, "today"]}),
            &woman
        ),
        missing
    );
    let required = json!({"!": {"is_blank": "preg_date"}});
    assert_eq!(
        outcome(&dictionary, required.clone(), &man),
        Outcome::Hidden
    );
    assert_eq!(outcome(&dictionary, required, &woman), Outcome::Fail);
    let required = json!({"!": {"missing": ["sex", "preg_date"]}});
    assert_eq!(
        outcome(&dictionary, required.clone(), &man),
        Outcome::Hidden
    );
    assert_eq!(outcome(&dictionary, required, &nobody), Outcome::Fail);
}

#[test]
fn a_failure_that_rests_on_more_than_a_hidden_blank_stands() {
    let dictionary = with_branching("preg_date", "[sex] = '2'");
    let man = [base(
        "screening",
        json!({"sex": "1", "enroll_date": "2027-01-01"}),
    )];
    let logic = json!({"if": [{"is_blank": "preg_date"}, {"<": [{"var": "enroll_date"}, "today"]},
        {"<": [{"var": "preg_date"}, "today"]}]});
    assert_eq!(outcome(&dictionary, logic, &man), Outcome::Fail);
    let logic = json!({"and": [{"!": {"is_blank": "preg_date"}}, {"<": [{"var": "enroll_date"}, "today"]}]});
    assert_eq!(outcome(&dictionary, logic, &man), Outcome::Fail);
}

#[test]
fn branching_logic_that_cannot_be_read_or_decided_hides_nothing() {
    let missing = unknown(Reason::Missing, &["preg_date"]);
    let rows = [base("screening", json!({"sex": "1"}))];
    for logic in [
        "datediff([enroll_date], 'today', 'd') > 3",
        "[sex] = ",
        "[unknown_field] = '2'",
        "[enroll_date] > '2026-01-01'",
        "[visit1][nothing] = '1'",
    ] {
        let dictionary = with_branching("preg_date", logic);
        let asked = json!({"<=": [{"var": "preg_date"}, "today"]});
        assert_eq!(outcome(&dictionary, asked, &rows), missing, "{logic}");
    }
}

#[test]
fn branching_logic_reads_other_events_and_checkboxes() {
    let dictionary = with_branching("pain", "[screening][sex] = '2' and [symptoms(1)] = '1'");
    let asked = || json!({"==": [{"var": "pain"}, 1]});
    let rows = |sex: &str, checked: &str| {
        [
            base("screening", json!({"sex": sex})),
            base(
                "visit1",
                json!({"visit_date": "2026-01-01", "symptoms___1": checked}),
            ),
        ]
    };
    assert_eq!(
        outcome(&dictionary, asked(), &rows("2", "1")),
        unknown(Reason::Missing, &["pain"])
    );
    assert_eq!(
        outcome(&dictionary, asked(), &rows("2", "0")),
        Outcome::Hidden
    );
    assert_eq!(
        outcome(&dictionary, asked(), &rows("1", "1")),
        Outcome::Hidden
    );
}
