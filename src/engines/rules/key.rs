//! How a rule is told to be the same rule: its id, else what it says.

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::types::rule::RuleSpec;

/// The rule's id, or `h-` and 16 hex digits of the hash of field and canonical logic.
///
/// Keys of objects are sorted and `18.0` is `18`, so reformatting a rule does not make it another rule;
/// message and severity are not part of it.
#[must_use]
pub fn rule_key(spec: &RuleSpec) -> String {
    if let Some(id) = id_of(spec) {
        return id.to_owned();
    }
    let mut hash = Sha256::new();
    hash.update((spec.field.len() as u64).to_be_bytes());
    hash.update(spec.field.as_bytes());
    hash.update(canonical(&spec.logic).as_bytes());
    let hex: String = hash
        .finalize()
        .iter()
        .take(8)
        .map(|b| format!("{b:02x}"))
        .collect();
    format!("h-{hex}")
}

/// The written id, trimmed; `None` when blank.
pub(super) fn id_of(spec: &RuleSpec) -> Option<&str> {
    spec.id
        .as_deref()
        .map(str::trim)
        .filter(|id| !id.is_empty())
}

/// JSON with sorted keys and integral numbers without a fraction. Works on a stack of its own, so depth
/// is no danger.
fn canonical(value: &Value) -> String {
    enum Todo<'a> {
        Value(&'a Value),
        Text(&'static str),
        Key(&'a str),
    }
    let mut out = String::new();
    let mut todo = vec![Todo::Value(value)];
    while let Some(next) = todo.pop() {
        match next {
            Todo::Text(text) => out.push_str(text),
            Todo::Key(key) => {
                out.push_str(&Value::from(key).to_string());
                out.push(':');
            }
            Todo::Value(Value::Array(items)) => {
                todo.push(Todo::Text("]"));
                for (at, item) in items.iter().enumerate().rev() {
                    todo.push(Todo::Value(item));
                    if at > 0 {
                        todo.push(Todo::Text(","));
                    }
                }
                todo.push(Todo::Text("["));
            }
            Todo::Value(Value::Object(map)) => {
                let mut entries: Vec<_> = map.iter().collect();
                entries.sort_by(|a, b| b.0.cmp(a.0));
                todo.push(Todo::Text("}"));
                let last = entries.len().saturating_sub(1);
                for (at, (key, item)) in entries.into_iter().enumerate() {
                    todo.push(Todo::Value(item));
                    todo.push(Todo::Key(key));
                    if at < last {
                        todo.push(Todo::Text(","));
                    }
                }
                todo.push(Todo::Text("{"));
            }
            Todo::Value(Value::Number(n)) => match n.as_f64() {
                Some(x) if n.is_f64() && x.fract() == 0.0 && x.abs() < 1e15 => {
                    out.push_str(&format!("{x:.0}"));
                }
                _ => out.push_str(&n.to_string()),
            },
            Todo::Value(leaf) => out.push_str(&leaf.to_string()),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec(field: &str, logic: Value) -> RuleSpec {
        RuleSpec {
            id: None,
            field: field.to_owned(),
            logic,
            message: None,
            severity: None,
        }
    }

    #[test]
    fn canonical_json_sorts_keys_and_keeps_the_order_of_lists() {
        let value = json!({"b": [1.0, "x\"", {"z": null, "a": 2.5}], "a": {}});
        assert_eq!(
            canonical(&value),
            r#"{"a":{},"b":[1,"x\"",{"a":2.5,"z":null}]}"#
        );
    }

    #[test]
    fn a_rule_without_an_id_is_known_by_what_it_says_and_not_by_how_it_is_spelled() {
        let a = spec("age", json!({">=": [{"var": "age"}, 18]}));
        let mut b = spec("age", json!({">=": [{"var": "age"}, 18.0]}));
        b.message = Some("年龄<18岁".to_owned());
        assert_eq!(rule_key(&a), rule_key(&b));
        assert_ne!(
            rule_key(&a),
            rule_key(&spec("age", json!({">=": [{"var": "age"}, 19]})))
        );
        assert_ne!(
            rule_key(&a),
            rule_key(&spec("ag", json!({">=": [{"var": "age"}, 18]})))
        );
    }

    #[test]
    fn a_blank_id_is_no_id() {
        let mut a = spec("age", json!({">=": [{"var": "age"}, 18]}));
        let hash = rule_key(&a);
        a.id = Some("  ".to_owned());
        assert_eq!(rule_key(&a), hash);
        a.id = Some("IC-01".to_owned());
        assert_eq!(rule_key(&a), "IC-01");
    }
}
