//! Every fault by name, and text as people really send it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed expectation is the test's verdict"
)]

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    Body, Fault, FaultKind, FinalState, JSON_SCHEMA, Place, TOOLS, Target, Work, from_config, load,
    node_type::{NAMES, NodeType, RULE_KEYS},
};
use crate::types::catch_up::Policy;

/// The faults of `text`, one a line.
fn faults(text: impl AsRef<[u8]>) -> String {
    let lines = match load(text.as_ref(), "qc_process") {
        Ok(_) => vec!["no fault".to_owned()],
        Err(faults) => faults.iter().map(ToString::to_string).collect(),
    };
    lines.join("\n")
}

fn sop(nodes: &str) -> String {
    format!("{{\n\"start_node\": \"a\",\n\"nodes\": {{\n{nodes}\n}}}}")
}

const RULE: &str = r#""type": "hard_rule", "logic": { ">=": [{ "var": "age" }, 18] }"#;
const OUT: &str = r#""on_pass": "end_success", "on_fail": "end_with_violation""#;

#[test]
fn graph_faults_name_the_place_and_the_name_that_was_meant() {
    let cases = [
        (
            "unknown node",
            sop(&format!(
                "\"a\": {{ {RULE}, \"on_pass\": \"chek_history\", \"on_fail\": \"nowhere\" }},\n\"check_history\": {{ {RULE}, {OUT} }}"
            )),
        ),
        (
            "unreachable node",
            sop(&format!(
                "\"a\": {{ {RULE}, {OUT} }},\n\"b\": {{ {RULE}, {OUT} }}"
            )),
        ),
        (
            "missing branch",
            sop(&format!(
                "\"a\": {{ {RULE}, \"on_pass\": \"end_success\" }}"
            )),
        ),
        (
            "mistyped branch",
            sop(&format!(
                "\"a\": {{ {RULE}, \"on_pass\": \"end_success\", \"on_fial\": \"end_with_error\" }}"
            )),
        ),
        ("missing type", sop(&format!("\"a\": {{ {OUT} }}"))),
        (
            "unknown type",
            sop(&format!("\"a\": {{ \"type\": \"hard_rules\", {OUT} }}")),
        ),
        (
            "mistyped end",
            sop(&format!(
                "\"a\": {{ {RULE}, \"on_pass\": \"end_sucess\", \"on_fail\": \"end_custom\" }}"
            )),
        ),
        (
            "reserved name",
            sop(&format!(
                "\"a\": {{ {RULE}, {OUT} }},\n\"endpoint\": {{ {RULE}, {OUT} }}"
            )),
        ),
        (
            "cycle",
            sop(&format!(
                "\"a\": {{ {RULE}, \"on_pass\": \"b\", \"on_fail\": \"end_with_error\" }},\n\"b\": {{ {RULE}, \"on_pass\": \"end_success\", \"on_fail\": \"a\" }}"
            )),
        ),
        (
            "no end",
            sop(&format!(
                "\"a\": {{ {RULE}, \"on_pass\": \"b\", \"on_fail\": \"b\", \"max_visits\": 3 }},\n\"b\": {{ {RULE}, \"on_pass\": \"a\", \"on_fail\": \"a\" }}"
            )),
        ),
        (
            "no start",
            format!("{{ \"nodes\": {{ \"a\": {{ {RULE}, {OUT} }} }} }}"),
        ),
        (
            "wrong start",
            format!(
                "{{ \"start_node\": \"chek\", \"nodes\": {{ \"check\": {{ {RULE}, {OUT} }} }} }}"
            ),
        ),
        ("no nodes", "{ \"start_node\": \"a\" }".to_owned()),
        (
            "nodes as a list",
            "{ \"start_node\": \"a\", \"nodes\": [] }".to_owned(),
        ),
        (
            "a branch notify never takes",
            sop(&format!(
                "\"a\": {{ \"type\": \"notify\", \"message\": \"x\", {OUT} }}"
            )),
        ),
        (
            "null branch",
            sop(&format!("\"a\": {{ {RULE}, {OUT}, \"on_error\": null }}")),
        ),
    ];
    insta::assert_snapshot!("graph_faults", table(&cases));
}

#[test]
fn node_and_rule_faults_name_the_place_and_what_to_write() {
    let hard = |rules: &str| {
        sop(&format!(
            "\"a\": {{ \"type\": \"hard_rule\", \"rules\": {rules}, {OUT} }}"
        ))
    };
    let cases = [
        ("empty rules", hard("[]")),
        ("no rules", sop(&format!("\"a\": {{ \"type\": \"hard_rule\", {OUT} }}"))),
        ("rules as an object", hard("{}")),
        ("rule as a text", hard("[\"age\"]")),
        ("rule without logic", hard("[{ \"field\": \"age\" }]")),
        ("logic that is always true", hard("[{ \"field\": \"age\", \"logic\": true }]")),
        ("both logic and rules", sop(&format!("\"a\": {{ {RULE}, \"rules\": [{{ \"logic\": {{ \"var\": \"x\" }} }}], {OUT} }}"))),
        ("both logic and function", hard("[{ \"logic\": { \"var\": \"x\" }, \"function_name\": \"visit_window\" }]")),
        ("duplicate ids", hard("[{ \"id\": \"R1\", \"logic\": { \"var\": \"x\" } },\n{ \"id\": \"R1\", \"logic\": { \"var\": \"y\" } }]")),
        ("bad severity", hard("[{ \"logic\": { \"var\": \"x\" }, \"severity\": \"eror\" }]")),
        ("unknown rule key", hard("[{ \"logic\": { \"var\": \"x\" }, \"msg\": \"…\" }]")),
        ("numeric id", hard("[{ \"id\": 1, \"logic\": { \"var\": \"x\" } }]")),
        ("unknown tool", sop(&format!("\"a\": {{ \"type\": \"soft_instruction\", \"instruction\": \"x\", \"tools\": [\"read_clinical_dat\", \"rm\"], {OUT} }}"))),
        ("no instruction", sop(&format!("\"a\": {{ \"type\": \"soft_instruction\", {OUT} }}"))),
        ("blank instruction", sop(&format!("\"a\": {{ \"type\": \"soft_instruction\", \"instruction\": \" \", {OUT} }}"))),
        ("no tool", sop(&format!("\"a\": {{ \"type\": \"tool\", {OUT} }}"))),
        ("bad cap", sop(&format!("\"a\": {{ {RULE}, {OUT}, \"max_visits\": 0 }}"))),
        ("bad schedule", r#"{ "skillType": "r", "schedule": "0 9 * * 8", "config": { "sections": [] } }"#.to_owned()),
        ("two schedules", r#"{ "skillType": "r", "schedule": "0 9 * * 1", "config": { "schedule": "0 8 * * 1", "sections": [] } }"#.to_owned()),
        ("six fields", r#"{ "skillType": "r", "config": { "schedule": "0 0 9 * * 1", "sections": [] } }"#.to_owned()),
        ("unknown policy", r#"{ "skillType": "r", "schedule": "0 9 * * 1", "catchup": "lst", "config": { "sections": [] } }"#.to_owned()),
        ("bad window", r#"{ "skillType": "r", "config": { "schedule": "0 9 * * 1", "catchup_window": "1 day", "sections": [] } }"#.to_owned()),
        ("window as a number", r#"{ "skillType": "r", "schedule": "0 9 * * 1", "catchup_window": 24, "config": { "sections": [] } }"#.to_owned()),
        ("a window for nothing", r#"{ "skillType": "r", "schedule": "0 9 * * 1", "catchup": "none", "config": { "catchup_window": "24h", "sections": [] } }"#.to_owned()),
        ("two policies", r#"{ "skillType": "r", "schedule": "0 9 * * 1", "catchup": "all", "config": { "catchup": "last", "sections": [] } }"#.to_owned()),
        ("catch-up without a schedule", r#"{ "skillType": "r", "catchup": "all", "config": { "catchup_window": "2h", "sections": [] } }"#.to_owned()),
        ("wrapper without config", r#"{ "skillType": "r", "start_node": "a" }"#.to_owned()),
        ("bad type name", r#"{ "skillType": "../r", "config": { "sections": [] } }"#.to_owned()),
        ("mistyped report key", r#"{ "skillType": "r", "config": { "recipient": "x", "sections": [] } }"#.to_owned()),
        ("not an object", "[]".to_owned()),
    ];
    insta::assert_snapshot!("node_and_rule_faults", table(&cases));
}

#[test]
fn text_that_is_no_json_is_refused_with_its_line_and_column() {
    let cases: [(&str, &str); 15] = [
        ("empty", ""),
        ("comment only", "// nothing"),
        ("unclosed", "{ \"name\": \"x\""),
        ("missing comma", "{ \"a\": 1\n \"b\": 2 }"),
        ("single quotes", "{ 'a': 1 }"),
        ("bare key", "{ a: 1 }"),
        ("full-width quotes", "{\n  “name”: \"x\" }"),
        ("full-width comma", "{ \"a\": 1，\n \"b\": 2 }"),
        ("full-width colon", "{ \"年龄\"： 1 }"),
        ("no-break space", "{\u{a0}\"a\": 1 }"),
        ("forgotten backslash", "{ \"m\": \"^[0-9]\\.[0-9]$\" }"),
        ("lone surrogate", "{ \"m\": \"\\ud800\" }"),
        ("NUL escape", "{ \"m\": \"a\\u0000\" }"),
        (
            "duplicate keys",
            "{ \"a\": 1,\n \"b\": { \"c\": 1, \"c\": 2 }, \"a\": 3 }",
        ),
        ("ambiguous Markdown", "{ \"rules\": \\[\"^\\\\d\"\\] }"),
    ];
    let cases = cases.map(|(name, text)| (name, text.to_owned()));
    insta::assert_snapshot!("text_faults", table(&cases));
}

fn table(cases: &[(&str, String)]) -> String {
    let parts = cases
        .iter()
        .map(|(name, text)| format!("# {name}\n{}\n", faults(text)));
    parts.collect::<Vec<_>>().join("\n")
}

#[test]
fn bytes_that_are_no_text_are_refused_in_one_sentence() {
    assert_eq!(
        faults(b"{\n \"a\": \"\xff\" }"),
        "文件无法读取 unreadable: 第 2 行起不是 UTF-8 编码 (请另存为 UTF-8 save the file as UTF-8)"
    );
    assert_eq!(
        faults(b"{\n\n \"a\": \"\0\" }"),
        "文件无法读取 unreadable: 第 3 行含有 NUL 字符 (请删除 delete it)"
    );
    let large = vec![b' '; super::text::MAX_BYTES + 1];
    assert_eq!(
        faults(large),
        "文件无法读取 unreadable: 文件有 1048577 字节，超过 1 MB 上限"
    );
}

#[test]
fn deep_nesting_is_a_fault_and_no_crash() {
    for depth in [65, 300, 600, 100_000] {
        let text = format!("{{ \"a\": {}1{} }}", "[".repeat(depth), "]".repeat(depth));
        let found = load(text.as_bytes(), "t").unwrap_err();
        assert_eq!(found[0].kind, FaultKind::TooDeep, "{depth}");
    }
}

#[test]
fn a_hostile_file_of_full_size_is_refused_with_a_readable_list() {
    let keys: Vec<String> = (0..60_000).map(|n| format!("\"\\_k{n}\": 1")).collect();
    let found = load(format!("{{{}}}", keys.join(",")).as_bytes(), "t").unwrap_err();
    assert_eq!(found.len(), super::text::MAX_FAULTS);
    let nodes: Vec<String> = (0..5_000)
        .map(|n| format!("\"n{n}\": {{ {RULE}, {OUT} }}"))
        .collect();
    let found = load(sop(&nodes.join(",")).as_bytes(), "t").unwrap_err();
    assert!(found.iter().any(|fault| fault.what.contains("5000 个节点")));
}

#[test]
fn all_faults_of_a_file_are_found_at_once_in_the_order_of_the_file() {
    let text = sop(&format!(
        "\"a\": {{ {RULE}, \"on_pass\": \"b\", \"on_fial\": \"end\" }},\n\
         \"b\": {{ \"type\": \"soft\", {OUT} }},\n\
         \"c\": {{ \"type\": \"hard_rule\", \"rules\": [], {OUT} }}"
    ));
    let found = load(text.as_bytes(), "t").unwrap_err();
    let kinds: BTreeSet<FaultKind> = found.iter().map(|fault| fault.kind).collect();
    assert_eq!(
        kinds,
        BTreeSet::from([
            FaultKind::UnknownKey,
            FaultKind::MissingBranch,
            FaultKind::NodeType,
            FaultKind::EmptyRule,
            FaultKind::Unreachable,
        ])
    );
    assert!(found.is_sorted_by_key(|fault| fault.place));
    assert!(found.iter().all(|fault| fault.place.is_some()));
}

#[test]
fn windows_files_load_and_their_faults_have_the_right_place() {
    let text = format!(
        "\u{feff}{}",
        sop(&format!("\"a\": {{ {RULE}, {OUT}, }}, // 逗号"))
    )
    .replace('\n', "\r\n");
    assert_eq!(faults(&text), "no fault");
    let text = text.replace("end_success", "nowhere");
    let found = load(text.as_bytes(), "t").unwrap_err();
    let column = text.lines().nth(3).unwrap().find("\"nowhere").unwrap() + 1;
    assert_eq!(found[0].place, Some(Place { line: 4, column }));
}

#[test]
fn a_study_may_name_its_own_ends() {
    for end in [
        "end",
        "end_withdrawn",
        "end_screen_failed",
        "end_lost_to_follow_up",
        "end_不合格",
    ] {
        let node =
            format!("\"a\": {{ {RULE}, \"on_pass\": \"end_success\", \"on_fail\": \"{end}\" }}");
        assert_eq!(faults(sop(&node)), "no fault", "{end}");
    }
}

#[test]
fn defaults_fill_what_a_node_does_not_say() {
    let config = json!({
        "start_node": "h",
        "nodes": {
            "h": { "type": "hard_rule", "logic": { "<=": [{ "var": ["age", 0] }, 75] }, "on_pass": "s", "on_fail": "review_required" },
            "s": { "type": "soft_instruction", "instruction": "x", "on_pass": "t", "on_fail": "end_with_violation" },
            "t": { "type": "tool", "tool": "check_visit_window", "on_pass": "end_success" },
        }
    });
    let skill = from_config("qc", "质控", None, &config).unwrap();
    let nodes = &skill.sop().unwrap().nodes;
    let review = Target::End(FinalState::ReviewRequired);
    let violation = Target::End(FinalState::WithViolation);
    assert_eq!(nodes["h"].routes.on_error, review);
    assert_eq!(nodes["h"].routes.on_not_evaluable, review, "on_fail");
    assert_eq!(nodes["s"].routes.on_fail, violation);
    assert_eq!(
        nodes["s"].routes.on_not_evaluable, review,
        "a person judges"
    );
    assert_eq!(nodes["t"].routes.on_fail, review, "never a pass");
    let Work::SoftInstruction { tools, .. } = &nodes["s"].work else {
        unreachable!("s is soft")
    };
    assert_eq!(tools, &["read_clinical_data"]);
    let Work::HardRule { rules } = &nodes["h"].work else {
        unreachable!("h is hard")
    };
    assert_eq!(rules[0].field, "age");
    assert_eq!(rules[0].message, None, "the rule engine words it");
}

#[test]
fn a_function_may_stand_in_the_rule_or_under_logic() {
    let function = json!({ "function_name": "visit_window", "args": { "visit": "V3" } });
    let node = |rule: Value| {
        json!({ "start_node": "a", "nodes": { "a": {
        "type": "hard_rule", "rules": [rule], "on_pass": "end_success", "on_fail": "end_with_violation",
    } } })
    };
    let inline = from_config("v", "v", None, &node(function.clone())).unwrap();
    let under = from_config("v", "v", None, &node(json!({ "logic": function }))).unwrap();
    assert_eq!(inline.body, under.body);
}

#[test]
fn a_stored_skill_loads_to_what_its_file_loaded_to() {
    let text = br#"{ "skillType": "weekly_report", "config": { "schedule": "0 9 * * 7", "recipients": "admin_group" } }"#;
    let skill = load(text, "other").unwrap();
    assert_eq!(skill.skill_type, "weekly_report");
    assert_eq!(skill.name, "weekly_report");
    assert!(matches!(&skill.body, Body::Report(report) if report.recipients == ["admin_group"]));
    let stored = from_config(
        &skill.skill_type,
        &skill.name,
        skill.schedule.as_deref(),
        &skill.config,
    )
    .unwrap();
    assert_eq!(stored.body, skill.body);
    assert_eq!(stored.schedule.as_deref(), Some("0 9 * * 7"));
}

#[test]
fn catch_up_stands_beside_the_schedule_and_is_the_last_time_of_a_day_by_default() {
    let catch_up = |envelope: &str, config: &str| {
        let text = format!(
            r#"{{ "skillType": "r", {envelope} "config": {{ {config} "sections": [] }} }}"#
        );
        let skill = load(text.as_bytes(), "r").unwrap();
        (skill.catch_up.policy, skill.catch_up.window.to_string())
    };
    let at_nine = r#""schedule": "0 9 * * 1","#;
    assert_eq!(catch_up("", ""), (Policy::Last, "24h".to_owned()));
    assert_eq!(
        catch_up(at_nine, r#""catchup": "all", "catchup_window": "7d","#),
        (Policy::All, "7d".to_owned())
    );
    assert_eq!(
        catch_up(&format!(r#"{at_nine} "catchup": "none","#), ""),
        (Policy::None, "24h".to_owned())
    );
    // A stored skill has its schedule in a column beside its configuration.
    let config = json!({ "catchup": "all", "sections": [] });
    assert!(from_config("r", "r", None, &config).is_ok());
}

#[test]
fn the_schema_for_editors_knows_the_same_words_as_the_loader() {
    let schema: Value = serde_json::from_str(JSON_SCHEMA).unwrap();
    let defs = &schema["$defs"];
    let keys = |name: &str| -> BTreeSet<String> {
        defs[name]["properties"]
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect()
    };
    for name in NAMES {
        let node_type = NodeType::parse(name).unwrap();
        let known: BTreeSet<String> = node_type
            .keys()
            .into_iter()
            .map(ToOwned::to_owned)
            .collect();
        assert_eq!(keys(name), known, "{name}");
        let required = defs[name]["required"].as_array().unwrap();
        assert!(
            node_type
                .branches()
                .0
                .iter()
                .all(|branch| required.contains(&json!(branch)))
        );
    }
    assert_eq!(
        keys("rule"),
        RULE_KEYS.into_iter().map(ToOwned::to_owned).collect()
    );
    assert_eq!(defs["tool_name"]["enum"], json!(TOOLS));
    assert_eq!(defs["catchup"]["enum"], json!(Policy::NAMES));
    for name in ["sop", "report", "wrapped"] {
        for key in ["schedule", "catchup", "catchup_window"] {
            assert!(keys(name).contains(key), "{name} {key}");
        }
    }
}

proptest! {
    #[test]
    fn no_bytes_make_the_loader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _: Result<_, Vec<Fault>> = load(&bytes, "t");
    }

    #[test]
    fn no_json_like_text_makes_the_loader_panic(text in "[{}\\[\\]\",:\\\\/*a年0 \n“]{0,60}") {
        if let Err(found) = load(text.as_bytes(), "t") {
            prop_assert!(!found.is_empty());
        }
    }

    /// Escaping a good skill the way Markdown does changes nothing about it.
    #[test]
    fn a_skill_escaped_for_markdown_is_the_same_skill(escaped in proptest::collection::vec(any::<bool>(), 400)) {
        let plain = include_str!("../../skills/examples/lung_screening_v26.json");
        let mut pasted = String::new();
        let mut flags = escaped.into_iter();
        for c in plain.chars() {
            let is_bracket = matches!(c, '[' | ']');
            if is_bracket || (matches!(c, '_' | '>' | '<' | '=' | '-') && flags.next().unwrap_or(true)) {
                pasted.push('\\');
            }
            pasted.push(c);
        }
        prop_assert_eq!(load(pasted.as_bytes(), "t").unwrap(), load(plain.as_bytes(), "t").unwrap());
    }
}
