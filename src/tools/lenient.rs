//! Arguments as models write them: a number where a text is meant, one text where a list is, an object in
//! quotes. What is meant is clear; what is not is refused.

use serde::{Deserialize, Deserializer, de::Error};
use serde_json::Value;

/// Longest text of an argument; a name or an id is never near it.
const MOST_CHARS: usize = 2_000;
/// Most items of a list.
const MOST_ITEMS: usize = 60;

/// A text; a number counts as one.
pub fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    optional_text(deserializer)?.ok_or_else(|| D::Error::custom("应为文字，不能为空"))
}

/// A text that may be absent, null or empty.
pub fn optional_text<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Null => Ok(None),
        Value::String(text) => checked(&text).map_err(D::Error::custom),
        Value::Number(number) => Ok(Some(number.to_string())),
        other => Err(D::Error::custom(format!(
            "应为文字，而不是 {}",
            kind(&other)
        ))),
    }
}

/// A list of texts; one text counts as a list of one, or of those between its commas.
pub fn texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let items = match Value::deserialize(deserializer)? {
        Value::Null => Vec::new(),
        Value::String(text) => match serde_json::from_str::<Vec<Value>>(&text) {
            Ok(items) => items,
            Err(_) => text
                .split([',', '，', '、'])
                .map(|part| Value::String(part.to_owned()))
                .collect(),
        },
        Value::Array(items) => items,
        other => {
            return Err(D::Error::custom(format!(
                "应为文字列表，而不是 {}",
                kind(&other)
            )));
        }
    };
    if items.len() > MOST_ITEMS {
        return Err(D::Error::custom(format!("一次最多 {MOST_ITEMS} 项")));
    }
    let mut texts: Vec<String> = Vec::with_capacity(items.len());
    for item in items {
        let text = match item {
            Value::String(text) => checked(&text).map_err(D::Error::custom)?,
            Value::Number(number) => Some(number.to_string()),
            other => {
                return Err(D::Error::custom(format!(
                    "列表里应为文字，而不是 {}",
                    kind(&other)
                )));
            }
        };
        if let Some(text) = text.filter(|text| !texts.contains(text)) {
            texts.push(text);
        }
    }
    Ok(texts)
}

/// A whole number that may be absent; one in quotes counts.
pub fn optional_number<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<usize>, D::Error> {
    let number = match Value::deserialize(deserializer)? {
        Value::Null => return Ok(None),
        Value::Number(number) => number.as_u64(),
        Value::String(text) if text.trim().is_empty() => return Ok(None),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    number
        .and_then(|number| usize::try_from(number).ok())
        .map(Some)
        .ok_or_else(|| D::Error::custom("应为非负整数"))
}

/// JSON Logic that may be absent; an object in quotes counts.
pub fn optional_logic<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Value>, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Null => Ok(None),
        Value::Object(map) if map.is_empty() => Ok(None),
        Value::String(text) if text.trim().is_empty() => Ok(None),
        Value::String(text) => serde_json::from_str::<Value>(&text)
            .ok()
            .filter(Value::is_object)
            .map(Some)
            .ok_or_else(|| D::Error::custom(NO_LOGIC)),
        logic @ Value::Object(_) => Ok(Some(logic)),
        _ => Err(D::Error::custom(NO_LOGIC)),
    }
}

const NO_LOGIC: &str = "filter 应为 JSON Logic 对象，如 {\"==\":[{\"var\":\"sex\"},\"2\"]}";

/// Without U+0000, which no name has and Postgres refuses; `None` when nothing is left.
fn checked(text: &str) -> Result<Option<String>, String> {
    if text.chars().count() > MOST_CHARS {
        return Err(format!("文字过长（超过 {MOST_CHARS} 字）"));
    }
    let text = text.replace('\0', "");
    let text = text.trim();
    Ok((!text.is_empty()).then(|| text.to_owned()))
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "空值",
        Value::Bool(_) => "真假值",
        Value::Number(_) => "数字",
        Value::String(_) => "文字",
        Value::Array(_) => "列表",
        Value::Object(_) => "对象",
    }
}
