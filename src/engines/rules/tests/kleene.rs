//! Three-valued logic over blanks.

use serde_json::{Value, json};

use super::support::{is_unknown, plain, unknown};
use crate::engines::rules::{Outcome, Reason};

/// `t`, `f` and a comparison of a blank.
fn term(truth: Option<bool>) -> Value {
    match truth {
        Some(true) => json!({"==": [{"var": "one"}, 1]}),
        Some(false) => json!({"==": [{"var": "one"}, 2]}),
        None => json!({"==": [{"var": "blank"}, 1]}),
    }
}

fn truth(logic: Value) -> Option<bool> {
    match plain(logic, &json!({"one": 1})) {
        Outcome::Pass => Some(true),
        Outcome::Fail => Some(false),
        outcome => {
            assert_eq!(outcome, unknown(Reason::Missing, &["blank"]));
            None
        }
    }
}

const ALL: [Option<bool>; 3] = [Some(true), Some(false), None];

#[test]
fn and_or_and_not_follow_kleenes_tables() {
    for a in ALL {
        assert_eq!(truth(json!({"!": [term(a)]})), a.map(|b| !b));
        assert_eq!(truth(json!({"!!": [term(a)]})), a);
        for b in ALL {
            let both = match (a, b) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            };
            assert_eq!(
                truth(json!({"and": [term(a), term(b)]})),
                both,
                "{a:?} and {b:?}"
            );
            let either = match (a, b) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            };
            assert_eq!(
                truth(json!({"or": [term(a), term(b)]})),
                either,
                "{a:?} or {b:?}"
            );
        }
    }
}

#[test]
fn an_unknown_condition_leaves_if_unknown_even_when_both_branches_agree() {
    for operator in ["if", "?:"] {
        let unknown = term(None);
        assert_eq!(
            truth(json!({operator: [unknown, term(Some(true)), term(Some(true))]})),
            None
        );
    }
    assert_eq!(
        truth(json!({"if": [term(Some(false)), term(None), term(Some(true))]})),
        Some(true)
    );
    assert_eq!(
        truth(json!({"if": [term(Some(true)), term(None), term(Some(true))]})),
        None
    );
    assert_eq!(
        truth(
            json!({"if": [term(Some(false)), term(Some(true)), term(None), term(Some(true)), term(Some(true))]})
        ),
        None
    );
}

#[test]
fn the_fields_named_are_those_that_would_decide() {
    let data = json!({"x": 1});
    let blank = |name: &str| json!({">": [{"var": name}, 0]});
    assert_eq!(
        plain(json!({"and": [blank("a"), blank("x"), blank("b")]}), &data),
        unknown(Reason::Missing, &["a", "b"])
    );
    // `a` was unknown on the way, but the `or` was decided without it.
    assert_eq!(
        plain(
            json!({"and": [{"or": [blank("a"), blank("x")]}, blank("b")]}),
            &data
        ),
        unknown(Reason::Missing, &["b"])
    );
    assert_eq!(
        plain(json!({"if": [blank("c"), blank("a"), blank("b")]}), &data),
        unknown(Reason::Missing, &["c"])
    );
}

#[test]
fn the_value_of_and_is_unknown_when_an_unknown_came_first() {
    // With `a` = false the `and` would be false and not 0, and `===` tells them apart.
    let logic = json!({"===": [{"and": [{"var": "a"}, {"var": "zero"}]}, 0]});
    assert!(is_unknown(&plain(logic, &json!({"zero": 0}))));
}

#[test]
fn every_spelling_of_a_blank_is_unknown_to_every_comparison() {
    for blank in [
        json!(null),
        json!(""),
        json!("  "),
        json!("\u{a0}\t"),
        json!("\u{feff}"),
    ] {
        for logic in [
            json!({"<=": [{"var": "age"}, 75]}),
            json!({"<": [{"var": "age"}, 75]}),
            json!({"<=": [0, {"var": "age"}, 75]}),
            json!({"==": [{"var": "age"}, 0]}),
            json!({"!=": [{"var": "age"}, 1]}),
            json!({"!==": [{"var": "age"}, 1]}),
            json!({"between": [{"var": "age"}, 0, 75]}),
            json!({"in": [{"var": "age"}, [0, 1]]}),
            json!({"!": {"in": [{"var": "age"}, [5]]}}),
            json!({"in_codes": [{"var": "age"}, [0]]}),
            json!({"!": {"in": ["肺炎", {"var": "age"}]}}),
            json!({"<": [{"+": [{"var": "age"}, 1]}, 75]}),
            json!({"<": [{"max": [{"var": "age"}, 1]}, 75]}),
            json!({"date_before": [{"var": "age"}, "2026-01-01"]}),
            json!({"<=": [{"date_diff_days": [{"var": "age"}, "today"]}, 9999]}),
            json!({"<": [{"age_at": [{"var": "age"}, "today"]}, 75]}),
            json!({"matches": [{"var": "age"}, ".*"]}),
            json!({"!": {"matches": [{"var": "age"}, "x"]}}),
            json!({"!=": [{"cat": ["a", {"var": "age"}]}, "b"]}),
            json!({"!=": [{"substr": [{"var": "age"}, 0, 1]}, "b"]}),
            json!({"!": {"var": "age"}}),
            json!({"var": "age"}),
            // A default may not answer for a blank.
            json!({"<=": [{"var": ["age", 50]}, 75]}),
        ] {
            assert_eq!(
                plain(logic.clone(), &json!({"age": blank})),
                unknown(Reason::Missing, &["age"]),
                "{logic} over {blank}"
            );
        }
    }
}

#[test]
fn only_the_operators_made_for_it_look_at_a_blank() {
    let data = json!({"there": "x", "blank": " "});
    for (logic, passes) in [
        (json!({"is_blank": {"var": "blank"}}), true),
        (json!({"is_blank": "blank"}), true),
        (json!({"is_blank": ["there"]}), false),
        (json!({"==": [{"var": "blank"}, ""]}), true),
        (json!({"===": ["", {"var": "there"}]}), false),
        (json!({"!=": [{"var": "there"}, ""]}), true),
        (json!({"!==": [{"var": "nowhere"}, ""]}), false),
        (json!({"missing": ["there", "blank"]}), true),
        (json!({"!": {"missing": [["there"]]}}), true),
        (
            json!({"!": {"missing_some": [1, ["there", "blank"]]}}),
            true,
        ),
        (
            json!({"!": {"missing_some": [2, ["there", "blank"]]}}),
            false,
        ),
        (
            json!({"in": ["blank", {"missing": ["there", "blank"]}]}),
            true,
        ),
        (
            json!({"if": [{"is_blank": "blank"}, true, {">": [{"var": "blank"}, 1]}]}),
            true,
        ),
    ] {
        let outcome = plain(logic.clone(), &data);
        assert_eq!(
            outcome,
            if passes { Outcome::Pass } else { Outcome::Fail },
            "{logic}"
        );
    }
}

#[test]
fn what_has_no_answer_is_not_evaluable() {
    let data = json!({
        "zero": 0, "big": 1e308, "word": "abc", "lt": "<5", "comma": "5,3", "hex": "0x10", "inf": "inf",
        "unpadded": "2026-1-5", "dmy": "05/01/2026", "object": {"a": 1}, "nested": [[1]],
    });
    for logic in [
        json!({">": [{"/": [1, {"var": "zero"}]}, 0]}),
        json!({"!=": [{"%": [1, {"var": "zero"}]}, 5]}),
        json!({">": [{"*": [{"var": "big"}, 10]}, 0]}),
        json!({"<": [{"+": [{"var": "word"}, 1]}, 5]}),
        json!({"<": [{"var": "word"}, 5]}),
        json!({"!=": [{"var": "word"}, 5]}),
        json!({"<=": [{"var": "lt"}, 5]}),
        json!({"<=": [{"var": "comma"}, 6]}),
        json!({"<=": [{"var": "hex"}, 20]}),
        json!({">=": [{"var": "inf"}, 20]}),
        json!({"<": [{"var": "unpadded"}, "2026-12-31"]}),
        json!({"<": [{"var": "dmy"}, "2026-12-31"]}),
        json!({"<": [{"var": "dmy"}, {"var": "unpadded"}]}),
        json!({"<": [{"var": "word"}, {"var": "dmy"}]}),
        json!({"date_before": [{"var": "dmy"}, "today"]}),
        json!({"!=": [{"var": "object"}, 1]}),
        json!({"!": {"in": [1, {"var": "nested"}]}}),
        json!({"!": {"in": ["a", {"var": "zero"}]}}),
        json!({"!=": [{"cat": [{"var": "nested"}]}, "x"]}),
    ] {
        let outcome = plain(logic.clone(), &data);
        assert!(is_unknown(&outcome), "{logic}: {outcome:?}");
    }
}

#[test]
fn numeric_text_counts_as_a_number_and_iso_text_as_a_date() {
    let data = json!({
        "a": "100", "b": "20", "yes": "1", "no": "0", "icf": "2026-01-05", "enrolled": "2026-01-10",
        "month": "2026-11", "list": ["1", "x"],
    });
    for (logic, passes) in [
        (json!({"<": [{"var": "a"}, {"var": "b"}]}), false),
        (json!({"==": [{"var": "yes"}, 1]}), true),
        (json!({"===": [{"var": "yes"}, 1]}), true),
        (json!({"!==": [{"var": "yes"}, 1]}), false),
        (json!({"!=": [{"var": "yes"}, "01"]}), false),
        (json!({"in": [{"var": "yes"}, [0, 1]]}), true),
        (json!({"var": "no"}), false),
        (json!({"<=": [{"var": "icf"}, {"var": "enrolled"}]}), true),
        (json!({">": [{"var": "icf"}, {"var": "enrolled"}]}), false),
        (json!({"<": [{"var": "month"}, "2026-12-05"]}), true),
        (json!({"<=": [{"var": "icf"}, "today"]}), true),
        (
            json!({"between": [{"var": "icf"}, "2026-01-05", "2026-01-31", "(]"]}),
            false,
        ),
        (
            json!({"between": [{"var": "icf"}, "2026-01-05", "2026-01-31", "[)"]}),
            true,
        ),
        (json!({"in": ["x", {"var": "list"}]}), true),
        (json!({"in_codes": [{"var": "list"}, ["x", "y"]]}), true),
        (
            json!({"==": [{"date_diff_days": [{"var": "icf"}, {"var": "enrolled"}]}, 5]}),
            true,
        ),
    ] {
        let outcome = plain(logic.clone(), &data);
        assert_eq!(
            outcome,
            if passes { Outcome::Pass } else { Outcome::Fail },
            "{logic}"
        );
    }
    let partial = json!({"<": [{"var": "month"}, "2026-11-15"]});
    assert_eq!(
        plain(partial, &data),
        unknown(Reason::PartialDate, &["month"])
    );
}
