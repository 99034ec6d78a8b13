//! A rule in words, for people who don't read JSON Logic.

use serde_json::Value;

/// The condition in Chinese. `name` gives what people call a field.
///
/// Only for rules that compiled: their depth is bounded.
pub(super) fn in_words(logic: &Value, name: &dyn Fn(&str) -> String) -> String {
    words(logic, name, false)
}

fn words(logic: &Value, name: &dyn Fn(&str) -> String, nested: bool) -> String {
    let Value::Object(map) = logic else {
        return literal(logic, name);
    };
    let Some((operator, operands)) = map.iter().next() else {
        return String::new();
    };
    let operands: &[Value] = match operands {
        Value::Array(items) => items,
        single => std::slice::from_ref(single),
    };
    let at = |at: usize| {
        operands
            .get(at)
            .map_or_else(String::new, |o| words(o, name, true))
    };
    let all = |between: &str| {
        let parts: Vec<String> = operands.iter().map(|o| words(o, name, true)).collect();
        parts.join(between)
    };
    let bracket = |text: String| {
        if nested {
            format!("（{text}）")
        } else {
            text
        }
    };
    let field = |at: usize| match operands.get(at) {
        Some(Value::String(text)) => name(text),
        Some(other) => words(other, name, true),
        None => String::new(),
    };
    let is_empty =
        |at: usize| matches!(operands.get(at), Some(Value::String(text)) if text.trim().is_empty());
    match operator.as_str() {
        "var" => field(0),
        "today" => "今天".to_owned(),
        "and" => bracket(all(" 且 ")),
        "or" => bracket(all(" 或 ")),
        "!" => format!(
            "并非（{}）",
            words(operands.first().unwrap_or(&Value::Null), name, false)
        ),
        "!!" => format!("{} 成立", at(0)),
        "if" | "?:" => bracket(branches(operands, name)),
        "==" | "===" if is_empty(1) => format!("{} 为空", at(0)),
        "!=" | "!==" if is_empty(1) => format!("{} 不为空", at(0)),
        "==" | "===" => format!("{} = {}", at(0), at(1)),
        "!=" | "!==" => format!("{} ≠ {}", at(0), at(1)),
        "<=" => all(" ≤ "),
        ">=" => all(" ≥ "),
        "<" | ">" => all(&format!(" {operator} ")),
        "-" if operands.len() == 1 => format!("-{}", at(0)),
        "+" | "-" | "*" | "/" | "%" => bracket(all(&format!(" {operator} "))),
        "between" => {
            let open = match operands.get(3).and_then(Value::as_str) {
                Some("()" | "exclusive") => "（不含两端）",
                Some("[)") => "（不含上限）",
                Some("(]") => "（不含下限）",
                _ => "",
            };
            format!("{} 在 {} 与 {} 之间{open}", at(0), at(1), at(2))
        }
        "in" => format!("{} 属于 {}", at(0), at(1)),
        "in_codes" => format!("{} 属于 {}", at(0), at(1)),
        "is_blank" => format!("{} 为空", field(0)),
        "missing" | "missing_some" => {
            let listed = match operands {
                [Value::Array(names)] | [_, Value::Array(names)] => names.as_slice(),
                names => names,
            };
            let names: Vec<String> = listed.iter().filter_map(Value::as_str).map(name).collect();
            if operator == "missing" {
                format!("{} 有缺失", names.join("、"))
            } else {
                format!("{} 中已填的不足 {} 项", names.join("、"), at(0))
            }
        }
        "date_before" => format!("{} 早于 {}", at(0), at(1)),
        "date_after" => format!("{} 晚于 {}", at(0), at(1)),
        "date_diff_days" => format!("从 {} 到 {} 的天数", at(0), at(1)),
        "age_at" => format!("{} 出生者在 {} 的年龄", at(0), at(1)),
        "matches" => format!("{} 符合格式 {}", at(0), at(1)),
        "min" => format!("最小值（{}）", all("、")),
        "max" => format!("最大值（{}）", all("、")),
        "cat" => all(" & "),
        "substr" => format!("{} 的一段", at(0)),
        other => format!("{other}（{}）", all("、")),
    }
}

fn branches(parts: &[Value], name: &dyn Fn(&str) -> String) -> String {
    let mut text = String::new();
    let mut rest = parts;
    while let [condition, then, tail @ ..] = rest {
        if !text.is_empty() {
            text.push('；');
        }
        text.push_str(&format!(
            "若 {} 则 {}",
            words(condition, name, true),
            words(then, name, true)
        ));
        rest = tail;
    }
    if let [otherwise] = rest {
        text.push_str(&format!("；否则 {}", words(otherwise, name, true)));
    }
    text
}

fn literal(value: &Value, name: &dyn Fn(&str) -> String) -> String {
    match value {
        Value::Null => "空".to_owned(),
        Value::Bool(true) => "是".to_owned(),
        Value::Bool(false) => "否".to_owned(),
        Value::Number(n) => n.as_f64().map(super::number::show).unwrap_or_default(),
        Value::String(text) if text.eq_ignore_ascii_case("today") => "今天".to_owned(),
        Value::String(text) => format!("“{text}”"),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| words(item, name, true)).collect();
            format!("[{}]", items.join("、"))
        }
        Value::Object(_) => words(value, name, true),
    }
}
