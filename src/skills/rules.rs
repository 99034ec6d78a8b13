//! The rules of a hard node: a list (V2.6), or one rule written into the node itself (V2.4).

use serde_json::{Map, Value, json};

use super::{
    fault::{Fault, FaultKind},
    node_type::RULE_KEYS,
    read::Reader,
    text::join,
};
use crate::types::{finding::Severity, rule::RuleSpec};

const SEVERITIES: [&str; 4] = ["info", "query", "warning", "error"];

/// Reads the rules of the hard node `map`.
pub(super) fn read_rules(
    reader: &mut Reader<'_>,
    map: &Map<String, Value>,
    path: &str,
) -> Vec<RuleSpec> {
    let inner = join(path, "rules");
    let has_own = map.contains_key("logic") || map.contains_key("function_name");
    let Some(rules) = map.get("rules") else {
        if has_own {
            return read_rule(reader, map, path).into_iter().collect();
        }
        let fault = Fault::new(FaultKind::EmptyRule, inner, "硬规则节点没有规则");
        reader.fault(fault.hint("写 `rules`（或单条 `logic`）write `rules`, or one `logic`"));
        return Vec::new();
    };
    for key in RULE_KEYS.iter().filter(|key| **key != "description") {
        if map.contains_key(*key) {
            let what = format!("节点已有 `rules`，`{key}` 不会生效");
            let fault = Fault::new(FaultKind::UnknownKey, join(path, key), what);
            reader.fault(fault.hint("移进 `rules` 的某一条 move it into a rule"));
        }
    }
    let Value::Array(rules) = rules else {
        reader.wrong_type(&inner, "列表 [{…}]", rules);
        return Vec::new();
    };
    if rules.is_empty() {
        reader.fault(Fault::new(FaultKind::EmptyRule, inner, "`rules` 是空的"));
        return Vec::new();
    }
    let mut specs = Vec::with_capacity(rules.len());
    for (at, rule) in rules.iter().enumerate() {
        let path = format!("{inner}[{at}]");
        if let Some(map) = reader.object(rule, &path) {
            reader.only_keys(map, &path, &RULE_KEYS);
            specs.extend(read_rule(reader, map, &path));
        }
    }
    specs
}

fn read_rule(reader: &mut Reader<'_>, map: &Map<String, Value>, path: &str) -> Option<RuleSpec> {
    let id = reader.text(map, path, "id");
    let message = reader.text(map, path, "message");
    let severity = reader
        .text(map, path, "severity")
        .and_then(|name| severity(reader, &name, path));
    let logic = logic(reader, map, path)?;
    let field = reader
        .text(map, path, "field")
        .or_else(|| first_var(&logic).map(ToOwned::to_owned));
    Some(RuleSpec {
        id,
        field: field.unwrap_or_default(),
        logic,
        message,
        severity,
    })
}

fn severity(reader: &mut Reader<'_>, name: &str, path: &str) -> Option<Severity> {
    let known = serde_json::from_value(Value::String(name.to_owned())).ok();
    if known.is_none() {
        let what = format!("没有 `{name}` 这个级别");
        let fault = Fault::new(FaultKind::Severity, join(path, "severity"), what);
        reader.fault(fault.hint_near(name, SEVERITIES));
    }
    known
}

/// JSON Logic, or a named function whether it stands under `logic` or in the rule itself.
fn logic(reader: &mut Reader<'_>, map: &Map<String, Value>, path: &str) -> Option<Value> {
    let inner = join(path, "logic");
    match (map.get("logic"), map.get("function_name")) {
        (Some(_), Some(_)) => {
            let what = "`logic` 和 `function_name` 只能写一个";
            reader.fault(Fault::new(
                FaultKind::BadValue,
                join(path, "function_name"),
                what,
            ));
            None
        }
        (None, Some(name)) => {
            let args = map.get("args").cloned().unwrap_or_else(|| json!({}));
            Some(json!({ "function_name": name, "args": args }))
        }
        (Some(Value::Object(logic)), None) if !logic.is_empty() => {
            Some(Value::Object(logic.clone()))
        }
        (Some(other), None) => {
            // A bare `true` would pass every record; JSON Logic allows it, a trial does not.
            let what = format!("规则应为 {{\"运算\": […]}}，写的是 {other}");
            reader.fault(Fault::new(FaultKind::EmptyRule, inner, what));
            None
        }
        (None, None) => {
            let fault = Fault::new(FaultKind::EmptyRule, inner, "规则没有写 `logic`");
            reader.fault(fault);
            None
        }
    }
}

/// The first field a rule looks at: what a finding is about when the rule does not say. Filled in here,
/// so that a rule keeps its hash when somebody later writes that field down.
fn first_var(logic: &Value) -> Option<&str> {
    match logic {
        Value::Array(items) => items.iter().find_map(first_var),
        Value::Object(map) => {
            map.iter()
                .find_map(|(operator, argument)| match (operator.as_str(), argument) {
                    ("var", Value::String(name)) => Some(name.as_str()),
                    ("var", Value::Array(items)) => items.first().and_then(Value::as_str),
                    _ => first_var(argument),
                })
        }
        _ => None,
    }
}
