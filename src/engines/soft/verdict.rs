//! What a model answered, and what of it is believed.
//!
//! A verdict without a quote is no verdict, and a quote that does not stand in the data makes the whole
//! answer worthless: it is then left to a person, never taken for a pass.

use serde::Deserialize;
use serde_json::Value;

use super::data::Data;
use crate::{
    engines::redaction::Hidden,
    types::{near_miss, text::ellipsis},
};

/// Longest reason kept.
const LONGEST_REASON: usize = 500;

/// A judgement that may be acted on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judgement {
    /// It holds, on this evidence.
    Pass {
        /// One sentence.
        reason: String,
        /// At least one.
        evidence: Vec<Evidence>,
    },
    /// It is broken, on this evidence.
    Fail {
        /// One sentence.
        reason: String,
        /// At least one.
        evidence: Vec<Evidence>,
    },
    /// A person has to decide.
    Unable {
        /// One sentence.
        reason: String,
    },
}

/// One quote, found word for word in the data shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// Unique event name.
    pub event: Option<String>,
    /// Instance of a repeating form or event.
    pub instance: Option<u32>,
    /// Column.
    pub field: String,
    /// The words.
    pub quote: String,
}

#[derive(Deserialize)]
struct Answer {
    verdict: Verdict,
    reason: String,
    #[serde(default)]
    evidence: Option<Vec<Cited>>,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Pass,
    Fail,
    Unable,
}

#[derive(Deserialize)]
struct Cited {
    #[serde(default)]
    record: Option<String>,
    #[serde(default)]
    event: Option<String>,
    #[serde(default)]
    instance: Option<Value>,
    field: String,
    quote: String,
}

/// Judges an answer by the data, of which the model was shown placeholders where it is `hidden`: quotes are
/// compared with the values put back. The reason is for everybody who reads the ledger, and stays without.
///
/// # Errors
/// What to tell the model, in one sentence, when the answer is not of the form asked for or cites a place
/// that does not exist. An invented quote is no such mistake: it is [`Judgement::Unable`].
pub fn judge(text: &str, data: &Data, hidden: &Hidden) -> Result<Judgement, String> {
    let text = bare(text);
    if text.is_empty() {
        return Err("回答是空的".to_owned());
    }
    let answer: Answer = serde_json::from_str(text).map_err(|error| {
        format!(
            "不是符合要求的 JSON（{}）",
            ellipsis(&error.to_string(), 120)
        )
    })?;
    let reason = ellipsis(hidden.mask(answer.reason.trim()).trim(), LONGEST_REASON);
    if reason.is_empty() {
        return Err("缺少 reason".to_owned());
    }
    if answer.verdict == Verdict::Unable {
        return Ok(Judgement::Unable { reason });
    }
    let cited = answer.evidence.unwrap_or_default();
    if cited.is_empty() {
        return Err("pass 和 fail 至少要有一条 evidence；没有依据就回答 unable".to_owned());
    }
    let mut evidence = Vec::new();
    for one in cited {
        match found(restored(one, hidden), data)? {
            Some(one) => evidence.push(one),
            None => {
                return Ok(Judgement::Unable {
                    reason: "大模型引用的原文在数据中不存在，其判断不可信".to_owned(),
                });
            }
        }
    }
    Ok(match answer.verdict {
        Verdict::Pass => Judgement::Pass { reason, evidence },
        _ => Judgement::Fail { reason, evidence },
    })
}

/// What was cited, as the data has it.
fn restored(cited: Cited, hidden: &Hidden) -> Cited {
    Cited {
        record: cited.record.map(|record| hidden.restore(&record)),
        event: cited.event.map(|event| hidden.restore(&event)),
        instance: cited.instance,
        field: hidden.restore(&cited.field),
        quote: hidden.restore(&cited.quote),
    }
}

/// The evidence if its quote is really there, `None` if it is invented.
fn found(cited: Cited, data: &Data) -> Result<Option<Evidence>, String> {
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
    let field = cited.field.trim();
    let values: Vec<&str> = data.values_at(event.as_deref(), instance, field).collect();
    if values.is_empty() {
        return Err(no_such_place(field, data));
    }
    let quote = cited.quote.trim();
    let is_there = !quote.is_empty() && values.iter().any(|value| data.quotes(field, value, quote));
    Ok(is_there.then(|| Evidence {
        event,
        instance,
        field: field.to_owned(),
        quote: quote.to_owned(),
    }))
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

/// The answer without a thinking part in front and without the fence around it, if it is one fence as a
/// whole.
fn bare(text: &str) -> &str {
    let mut text = text.trim();
    if text.starts_with("<think>")
        && let Some((_, rest)) = text.split_once("</think>")
    {
        text = rest.trim();
    }
    let fenced = text
        .strip_prefix("```")
        .and_then(|rest| rest.strip_suffix("```"))
        .filter(|inside| !inside.contains("```"));
    match fenced {
        Some(inside) => inside.strip_prefix("json").unwrap_or(inside).trim(),
        None => text,
    }
}
