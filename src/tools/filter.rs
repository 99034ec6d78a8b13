//! Conditions as models write them: names people use instead of fields, what people see instead of codes. They
//! are turned into what the rules compile; the rules decide whether that is a condition at all.

use serde_json::{Map, Value};

use super::{
    fields::{Meaning, Names, plain},
    tool::ToolError,
};
use crate::{engines::rules::RuleFault, types::dictionary::Field};

/// Deepest nesting that is looked at; the rules refuse less.
const MOST_DEPTH: usize = 40;

/// Turns `logic` into what the rules understand. What was taken for what is noted.
///
/// # Errors
/// [`ToolError::Unmapped`] with all names that mean no field; [`ToolError::Arguments`] for too deep a nesting.
pub fn understand(logic: &mut Value, names: &mut Names<'_>) -> Result<(), ToolError> {
    let mut refused = Vec::new();
    walk(logic, names, &mut refused, 0)?;
    if refused.is_empty() {
        return Ok(());
    }
    Err(ToolError::Unmapped {
        names: names.unmapped.clone(),
        what: format!("筛选条件里，{}", refused.join("；")),
    })
}

/// What is wrong with a condition or a field that the rules refused, for the model.
#[must_use]
pub fn refusal(faults: &[RuleFault]) -> ToolError {
    let told: Vec<String> = faults
        .iter()
        .take(3)
        .map(|fault| match fault.rule.as_str() {
            "filter" => format!("筛选条件 {}：{}", fault.path, fault.what),
            _ => fault.what.clone(),
        })
        .collect();
    ToolError::Arguments(told.join("；"))
}

fn walk(
    value: &mut Value,
    names: &mut Names<'_>,
    refused: &mut Vec<String>,
    depth: usize,
) -> Result<(), ToolError> {
    if depth > MOST_DEPTH {
        return Err(ToolError::Arguments("筛选条件嵌套过深，请拆分".to_owned()));
    }
    match value {
        Value::Array(items) => {
            for item in items {
                walk(item, names, refused, depth + 1)?;
            }
        }
        Value::Object(map) => {
            for (operator, operands) in map.iter() {
                for name in named(operator, operands) {
                    if let Err(error) = note(name, names) {
                        refused.push(error.to_string());
                    }
                }
            }
            choose(map, names);
            for (_, operands) in map.iter_mut() {
                walk(operands, names, refused, depth + 1)?;
            }
        }
        _ => {}
    }
    Ok(())
}

/// The names of fields an operator is written with.
fn named<'v>(operator: &str, operands: &'v Value) -> Vec<&'v str> {
    let first = |value: &'v Value| match value {
        Value::Array(items) => items.first().and_then(Value::as_str),
        other => other.as_str(),
    };
    let all = |value: &'v Value| -> Vec<&'v str> {
        match value {
            Value::Array(items) => items
                .iter()
                .flat_map(|item| match item {
                    Value::Array(inner) => inner.iter().filter_map(Value::as_str).collect(),
                    other => other.as_str().into_iter().collect::<Vec<_>>(),
                })
                .collect(),
            other => other.as_str().into_iter().collect(),
        }
    };
    match operator {
        "var" | "is_blank" => first(operands).into_iter().collect(),
        "missing" => all(operands),
        "missing_some" => operands.get(1).map(all).unwrap_or_default(),
        _ => Vec::new(),
    }
}

fn note(name: &str, names: &mut Names<'_>) -> Result<(), ToolError> {
    match names.meaning(name) {
        Meaning::Field(field) => {
            names.learn(name, &field);
            Ok(())
        }
        other => Err(names.not_found(name, &other)),
    }
}

/// Puts codes where what people see is compared with a field that has choices.
fn choose(map: &mut Map<String, Value>, names: &mut Names<'_>) {
    for (operator, operands) in map.iter_mut() {
        if !matches!(
            operator.as_str(),
            "==" | "!=" | "===" | "!==" | "in" | "in_codes"
        ) {
            continue;
        }
        let Value::Array(items) = operands else {
            continue;
        };
        let field = items.iter().find_map(|item| {
            let written = item.get("var").map_or(item, |var| match var {
                Value::Array(parts) => parts.first().unwrap_or(var),
                other => other,
            });
            let is_name = item.is_object() || operator == "in_codes";
            let written = written.as_str().filter(|_| is_name)?;
            match names.meaning(written) {
                Meaning::Field(field) => names.definition(&field),
                _ => None,
            }
        });
        let Some(field) = field.filter(|field| !field.choices.is_empty()) else {
            continue;
        };
        for item in items.iter_mut() {
            match item {
                Value::Array(inner) => inner.iter_mut().for_each(|one| code(one, field, names)),
                other => code(other, field, names),
            }
        }
    }
}

/// Puts the code in the place of what people see, when that is one choice's only.
fn code(value: &mut Value, field: &Field, names: &mut Names<'_>) {
    let Some(written) = value.as_str() else {
        return;
    };
    if field.choices.iter().any(|choice| choice.code == written) {
        return;
    }
    let wanted = plain(written);
    let is_meant = |label: &str| {
        let whole = plain(label);
        let words = label.split(|c: char| c.is_whitespace() || matches!(c, '/' | '|'));
        whole == wanted || words.map(plain).any(|word| word == wanted)
    };
    let mut meant = field
        .choices
        .iter()
        .filter(|choice| is_meant(&choice.label));
    if wanted.is_empty() {
        return;
    }
    if let (Some(choice), None) = (meant.next(), meant.next()) {
        names.notes.push(format!(
            "“{written}”按 {} 的选项 {} 理解",
            field.name, choice.code
        ));
        *value = Value::String(choice.code.clone());
    }
}
