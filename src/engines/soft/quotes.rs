//! Whether what an answer cites stands, word for word, in what the model was shown: in the data at the
//! opening, or in what a tool gave.

use serde::Deserialize;
use serde_json::Value;

use super::data::Data;
use crate::{
    engines::{react::Given, redaction::Hidden},
    types::near_miss,
};

/// Reads fields of the record; what it gave can be cited by field.
const READS_FIELDS: &str = "read_clinical_data";

/// One quote, found word for word in what was shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// Unique event name.
    pub event: Option<String>,
    /// Instance of a repeating form or event.
    pub instance: Option<u32>,
    /// Column; of a tool's result the tool.
    pub field: String,
    /// The words.
    pub quote: String,
}

/// What an answer cites.
#[derive(Debug, Deserialize)]
pub(crate) struct Cited {
    #[serde(default)]
    record: Option<String>,
    #[serde(default)]
    event: Option<String>,
    #[serde(default)]
    instance: Option<Value>,
    #[serde(default)]
    field: Option<String>,
    #[serde(default)]
    tool: Option<String>,
    quote: String,
}

impl Cited {
    /// What was cited, as the data has it.
    fn restored(self, hidden: &Hidden) -> Self {
        let restored = |text: Option<String>| text.map(|text| hidden.restore(&text));
        Self {
            record: restored(self.record),
            event: restored(self.event),
            instance: self.instance,
            field: restored(self.field),
            tool: self.tool,
            quote: hidden.restore(&self.quote),
        }
    }
}

/// The evidence; `None` when any quote of it is invented.
///
/// # Errors
/// What to tell the model, when a place that is cited does not exist.
pub(crate) fn find(
    cited: Vec<Cited>,
    data: &Data,
    hidden: &Hidden,
    results: &[&Given],
) -> Result<Option<Vec<Evidence>>, String> {
    let mut evidence = Vec::new();
    for one in cited {
        match found(one.restored(hidden), data, results)? {
            Some(one) => evidence.push(one),
            None => return Ok(None),
        }
    }
    Ok(Some(evidence))
}

/// The evidence if its quote is really there, `None` if it is invented.
fn found(cited: Cited, data: &Data, results: &[&Given]) -> Result<Option<Evidence>, String> {
    if let Some(record) = &cited.record
        && !record.trim().eq_ignore_ascii_case(&data.record)
    {
        return Err(format!(
            "evidence 引用了别的受试者，只能引用 {}",
            data.record
        ));
    }
    let event = cited.event.filter(|event| !event.trim().is_empty());
    let instance = match &cited.instance {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) if text.trim().is_empty() => None,
        Some(value) => match instance_of(value) {
            Some(number) => Some(number),
            None => return Err("evidence 的 instance 应为整数或 null".to_owned()),
        },
    };
    let quote = cited.quote.trim();
    let evidence = |field: &str| Evidence {
        event: event.clone(),
        instance,
        field: field.to_owned(),
        quote: quote.to_owned(),
    };
    let field = cited.field.as_deref().map(str::trim).unwrap_or_default();
    if field.is_empty() {
        let tool = cited.tool.as_deref().map(str::trim).unwrap_or_default();
        return match tool {
            "" => Err("evidence 要写明 field，或 tool".to_owned()),
            tool => Ok(gave(tool, quote, results)?.then(|| evidence(tool))),
        };
    }
    let values: Vec<&str> = data.values_at(event.as_deref(), instance, field).collect();
    let is_there = !quote.is_empty() && values.iter().any(|value| data.quotes(field, value, quote));
    if is_there {
        return Ok(Some(evidence(field)));
    }
    let read = read_by_tools(field, event.as_deref(), instance, results);
    if values.is_empty() && read.is_empty() {
        return Err(no_such_place(field, data));
    }
    let is_there = !quote.is_empty() && read.iter().any(|text| text.contains(quote));
    Ok(is_there.then(|| evidence(field)))
}

/// Whether `quote` stands in a value that `tool` gave.
fn gave(tool: &str, quote: &str, results: &[&Given]) -> Result<bool, String> {
    let mut of_tool = results
        .iter()
        .filter(|given| given.ok && !given.supposed && given.name == tool)
        .peekable();
    if of_tool.peek().is_none() {
        return Err(format!("没有工具 {tool} 的结果可以引用"));
    }
    Ok(!quote.is_empty() && of_tool.any(|given| holds(&json(given), quote)))
}

/// What a result holds as JSON; notes stand on lines of their own below it and are no data.
fn json(given: &Given) -> Value {
    let first = given.content.lines().next().unwrap_or_default();
    serde_json::from_str(first).unwrap_or(Value::Null)
}

/// Whether a value, not a name, holds `quote`: a text in part, a number as a whole. The record's id says
/// nothing of it.
fn holds(value: &Value, quote: &str) -> bool {
    match value {
        Value::Object(members) => members
            .iter()
            .filter(|(name, _)| *name != "record_id")
            .any(|(_, value)| holds(value, quote)),
        Value::Array(items) => items.iter().any(|value| holds(value, quote)),
        Value::String(text) => text.contains(quote),
        Value::Number(number) => number.to_string() == quote,
        Value::Bool(truth) => truth.to_string() == quote,
        Value::Null => false,
    }
}

/// Values and meanings that were read of `field` at that place.
fn read_by_tools(
    field: &str,
    event: Option<&str>,
    instance: Option<u32>,
    results: &[&Given],
) -> Vec<String> {
    let mut found = Vec::new();
    for given in results
        .iter()
        .filter(|given| given.ok && given.name == READS_FIELDS)
    {
        let result = json(given);
        let rows = result.get("fields").and_then(Value::as_array);
        for row in rows.into_iter().flatten() {
            if row.get("field").and_then(Value::as_str) != Some(field) {
                continue;
            }
            let values = row.get("values").and_then(Value::as_array);
            for value in values.into_iter().flatten() {
                let text = |name: &str| value.get(name).and_then(Value::as_str);
                let number = value.get("instance").and_then(instance_of);
                if text("event") == event && number == instance {
                    let said = [text("value"), text("meaning")];
                    found.extend(said.into_iter().flatten().map(str::to_owned));
                }
            }
        }
    }
    found
}

/// An instance as a number or as its digits.
fn instance_of(value: &Value) -> Option<u32> {
    match value {
        Value::Number(number) => number.as_u64()?.try_into().ok(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

fn no_such_place(field: &str, data: &Data) -> String {
    if data.columns().any(|column| column == field) {
        return format!("字段 {field} 在所引的 event / instance 处没有值");
    }
    let near = near_miss::nearest(field, data.columns());
    match near {
        Some(near) => format!("数据中没有字段 {field}，是否指 {near}"),
        None => format!("数据中没有字段 {field}"),
    }
}
