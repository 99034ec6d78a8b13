//! Branching logic: what is understood, what is not, and what is decided.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed expectation is the test's verdict"
)]

use std::collections::BTreeMap;

use super::{BinaryOp, Expr, Lookup, Source, decide, parse};

struct Row(BTreeMap<&'static str, &'static str>);

impl Source for Row {
    fn lookup(&self, event: Option<&str>, field: &str, code: Option<&str>) -> Lookup<'_> {
        let mut key = field.to_owned();
        if let Some(code) = code {
            key = format!("{key}({code})");
        }
        if let Some(event) = event {
            key = format!("{event}.{key}");
        }
        self.0
            .get(key.as_str())
            .map_or(Lookup::Unknown, |text| Lookup::Value(text))
    }
}

fn decided(logic: &str) -> Option<bool> {
    let row = Row(BTreeMap::from([
        ("sex", "2"),
        ("age", "18.0"),
        ("blank", " "),
        ("date", "2026-01-05"),
        ("later", "2026-01-10"),
        ("word", "Abc"),
        ("zero", "0"),
        ("sym(1)", "1"),
        ("sym(-4)", "0"),
        ("base.sex", "1"),
    ]));
    decide(&parse(logic).unwrap().unwrap(), &row)
}

#[test]
fn logic_is_decided_as_redcap_decides_it() {
    for logic in [
        "[sex] = '2'",
        "[sex]=2",
        "[sex] = \"2\"",
        "[age] = 18",
        "[age] >= 18 and [sex] <> 1",
        "[age] > 20 or [sex] != '1'",
        "NOT [sex] = '1'",
        "not ([sex] = '1' OR [age] < 3)",
        "[blank] = ''",
        "[blank] <> '1'",
        "[zero] <> ''",
        "[date] < [later]",
        "[date] >= '2026-01-05'",
        "[sym(1)] = '1' and [sym(-4)] = '0'",
        "[sym('1')] = 1",
        "[base][sex] = '1'",
        "[word] = 'Abc'",
        "[sex]",
        "[sex] = '1' or [sex] = '2' and [age] = 18 // a comment\n",
        "# first\n[sex] = '2'",
        "([sex] = '2')\r\nand\t([age]=18)",
    ] {
        assert_eq!(decided(logic), Some(true), "{logic}");
    }
    for logic in [
        "[sex] = '1'",
        "[blank] = '1'",
        "[word] = 'abc'",
        "[zero]",
        "[blank]",
        "[zero] = ''",
        "[word] = 5",
    ] {
        assert_eq!(decided(logic), Some(false), "{logic}");
    }
}

#[test]
fn what_nobody_can_know_is_not_decided_unless_the_rest_decides() {
    for logic in [
        "[nothing] = '1'",
        "[blank] > 5",
        "[blank] < 5",
        "[word] < 'b'",
        "not [nothing] = '1'",
        "[date] < '2026-01'",
        "[sex] = '2' and [nothing] = '1'",
    ] {
        assert_eq!(decided(logic), None, "{logic}");
    }
    assert_eq!(decided("[sex] = '1' and [nothing] = '1'"), Some(false));
    assert_eq!(decided("[sex] = '2' or [nothing] = '1'"), Some(true));
}

#[test]
fn and_binds_tighter_than_or() {
    let Some(Expr::Binary(BinaryOp::Or, _, right)) = parse("[a] or [b] and [c]").unwrap() else {
        panic!("not an or");
    };
    assert!(matches!(*right, Expr::Binary(BinaryOp::And, ..)));
}

#[test]
fn no_logic_is_none() {
    for text in ["", "  \n", "\u{feff}", "// only a comment"] {
        assert_eq!(parse(text), Ok(None), "{text:?}");
    }
}

#[test]
fn what_is_not_understood_is_named_and_placed() {
    let deep = format!("{}1{}", "(".repeat(100_000), ")".repeat(100_000));
    let long = vec!["[a] = 1"; 100_000].join(" or ");
    let said: String = [
        "datediff([a], 'today', 'd') > 3",
        "[a] + 1 > 3",
        "if([a] = 1, 1, 0)",
        "[user-dag-label] = 'x'",
        "[previous-event-name][a] = '1'",
        "[event][a][2] = '1'",
        "[a][2] = '1'",
        "[a] = ",
        "[a = 1",
        "[a] = 'x",
        "([a] = 1",
        "[a] = 1)",
        "[a] == 1",
        "[a] = 1 = 1",
        "[a] = ‘1’",
        "[a] and",
        "[] = 1",
        "[a(] = 1",
        "[a] = 1.2.3",
        "[a] && [b]",
        deep.as_str(),
        long.as_str(),
    ]
    .iter()
    .map(|logic| {
        let shown: String = logic.chars().take(40).collect();
        format!("{shown}: {}\n", parse(logic).unwrap_err())
    })
    .collect();
    insta::assert_snapshot!(said);
}
