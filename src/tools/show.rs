//! Values as a model is shown them: what was exported, what it means, and why there is nothing where there is
//! nothing. A blank is said to be one; it is never left out and never a zero.

use serde_json::{Map, Value, json};

use super::bounded;
use crate::{
    engines::rules::{Reading, Seen},
    types::dictionary::{Dictionary, Field},
};

/// Whether something stands there that counts as a value.
#[must_use]
pub fn has_value(reading: &Reading<'_>) -> bool {
    matches!(
        reading,
        Reading::Number(_)
            | Reading::Date { .. }
            | Reading::Time(_)
            | Reading::Code(_)
            | Reading::Codes(_)
            | Reading::Text(_)
    )
}

/// Whether a date leaves its day open.
#[must_use]
pub fn is_partial(reading: &Reading<'_>) -> bool {
    matches!(reading, Reading::Date { first, last } if first.date() != last.date())
}

/// A value with what it means; `field`: where it stands, when the dictionary has it.
#[must_use]
pub fn value(
    seen: &Seen<'_>,
    field: Option<&Field>,
    dictionary: &Dictionary,
) -> Map<String, Value> {
    let mut shown = Map::new();
    let text = seen.text.as_deref().map(bounded::text);
    shown.insert("value".to_owned(), json!(text));
    if let Some(meaning) = meaning(&seen.reading, field, dictionary) {
        shown.insert("meaning".to_owned(), json!(meaning));
    }
    if let Some(state) = state(&seen.reading, dictionary) {
        shown.insert("state".to_owned(), json!(state));
    }
    shown
}

/// The same on one line.
#[must_use]
pub fn line(seen: &Seen<'_>, field: Option<&Field>, dictionary: &Dictionary) -> String {
    let text = seen.text.as_deref().map(bounded::text);
    let meaning = meaning(&seen.reading, field, dictionary);
    match (text, meaning, state(&seen.reading, dictionary)) {
        (Some(text), Some(meaning), _) => format!("{text}（{meaning}）"),
        (Some(text), None, Some(state)) => format!("{text}（{state}）"),
        (Some(text), None, None) => text,
        (None, Some(meaning), _) => meaning,
        (None, None, state) => state.unwrap_or_default(),
    }
}

/// What people see of a code.
fn meaning(
    reading: &Reading<'_>,
    field: Option<&Field>,
    dictionary: &Dictionary,
) -> Option<String> {
    let choices = field
        .map(|field| field.choices.as_slice())
        .unwrap_or_default();
    let label = |code: &str, choices: &[crate::types::dictionary::Choice]| {
        choices
            .iter()
            .find(|choice| choice.code == code)
            .map(|choice| choice.label.clone())
    };
    match reading {
        Reading::Code(code) => label(code, choices),
        Reading::Codes(codes) if codes.is_empty() => Some("一项也没有勾选".to_owned()),
        Reading::Codes(codes) => {
            let labels: Vec<String> = codes
                .iter()
                .map(|code| label(code, choices).unwrap_or_else(|| (*code).to_owned()))
                .collect();
            Some(labels.join("、"))
        }
        Reading::Coded(code) => {
            label(code, &dictionary.missing_codes).map(|label| format!("缺失原因：{label}"))
        }
        _ => None,
    }
}

/// Why there is no value, or what is odd about it.
#[must_use]
pub fn state(reading: &Reading<'_>, dictionary: &Dictionary) -> Option<String> {
    let said = match reading {
        Reading::Blank => "空白（未填写）",
        Reading::Hidden => "空白（分支逻辑隐藏，不适用）",
        Reading::NotOpened => "空白（表单尚未填写）",
        Reading::NotExported => "未知（导出中没有这一列）",
        Reading::Ambiguous => "未知（在多处采集，请写成 访视.字段）",
        Reading::Invalid => "值不符合字段类型",
        Reading::Coded(code) => {
            let known = dictionary.missing_codes.iter().find(|c| c.code == *code);
            return Some(match known {
                Some(choice) => format!("缺失码：{}", choice.label),
                None => "缺失码".to_owned(),
            });
        }
        Reading::Date { .. } if is_partial(reading) => "日期不完整，不作推测",
        _ => return None,
    };
    Some(said.to_owned())
}

/// Where a value stands: event and instance, in people's words; empty in a classic project's base row.
#[must_use]
pub fn place(event: Option<&str>, instance: Option<u32>, dictionary: &Dictionary) -> String {
    let event = event.map(|name| {
        dictionary
            .events
            .iter()
            .find(|event| event.unique_name == name)
            .map_or(name, |event| &event.label)
    });
    match (event, instance) {
        (None, None) => String::new(),
        (Some(event), None) => event.to_owned(),
        (None, Some(instance)) => format!("第{instance}条"),
        (Some(event), Some(instance)) => format!("{event} 第{instance}条"),
    }
}
