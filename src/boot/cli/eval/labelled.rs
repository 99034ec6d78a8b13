//! Labelled messages: one JSON object a line.

use std::path::Path;

use serde::{Deserialize, Deserializer, de::Error as _};

use crate::{
    boot::cli::exit::Failure,
    engines::router::{IntentKind, Turn},
};

/// One message, what came before it, and what it should come to.
#[derive(Debug, Deserialize)]
pub(super) struct Line {
    /// Text or a number; given back as it came.
    pub id: serde_json::Value,
    pub text: String,
    #[serde(default, deserialize_with = "or_default")]
    pub history: Vec<Turn>,
    #[serde(default)]
    pub expect: Option<Expect>,
    /// Read from `memory`, where an absent key, `null` and an object without a patient differ.
    #[serde(skip)]
    pub remembered: Remembered,
}

/// What the line says about the patient talked about before.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum Remembered {
    /// Nothing is said: the history decides.
    #[default]
    FromHistory,
    /// Nobody.
    Nobody,
    /// Somebody; `fresh` unless the line says otherwise.
    Patient { id: String, fresh: bool },
}

/// The label. Only what is there is compared.
#[derive(Debug, Default)]
pub(super) struct Expect {
    pub types: Vec<IntentKind>,
    pub fields: serde_json::Map<String, serde_json::Value>,
}

impl<'de> Deserialize<'de> for Expect {
    /// `"QC_TASK"`, `["QA_QUERY","QC_TASK"]`, or an object with `types` (or `type`) and other fields of
    /// the answer.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut fields = match serde_json::Value::deserialize(deserializer)? {
            serde_json::Value::Object(fields) => fields,
            kinds => {
                let mut fields = serde_json::Map::new();
                fields.insert("types".to_owned(), kinds);
                fields
            }
        };
        let kinds = ["types", "type", "intents", "intent"]
            .iter()
            .find_map(|key| fields.remove(*key))
            .ok_or_else(|| D::Error::custom("expect names no types"))?;
        let kinds = match kinds {
            one @ serde_json::Value::String(_) => serde_json::Value::Array(vec![one]),
            many => many,
        };
        let types: Vec<IntentKind> =
            serde_json::from_value(kinds).map_err(|error| D::Error::custom(error.to_string()))?;
        if types.is_empty() {
            return Err(D::Error::custom("expect.types is empty"));
        }
        Ok(Self { types, fields })
    }
}

fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

/// The labelled messages that come with the program.
const BUNDLED: &str = include_str!("../../../../tests/data/intents.jsonl");

/// Reads a file of labelled messages, the bundled ones when none is named; blank lines are skipped.
///
/// # Errors
/// [`Failure::Usage`] naming the file, or the file and line that can't be read.
pub(super) fn read(path: Option<&Path>) -> Result<Vec<Line>, Failure> {
    let Some(path) = path else {
        return lines("intents.jsonl", BUNDLED.as_bytes());
    };
    let bytes = std::fs::read(path).map_err(|error| {
        Failure::Usage(format!(
            "{}: 无法读取，请检查路径和权限 · cannot read: {error}",
            path.display()
        ))
    })?;
    lines(&path.display().to_string(), &bytes)
}

fn lines(name: &str, bytes: &[u8]) -> Result<Vec<Line>, Failure> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut lines = Vec::new();
    for (at, raw) in bytes.split(|byte| *byte == b'\n').enumerate() {
        if raw.trim_ascii().is_empty() {
            continue;
        }
        let line = parse(raw).map_err(|what| {
            Failure::Usage(format!(
                "{name}:{}: 这一行不是有效的标注 · not a labelled message: {what}；应为 {{\"id\",\"text\",…}}",
                at + 1
            ))
        })?;
        lines.push(line);
    }
    if lines.is_empty() {
        return Err(Failure::Usage(format!(
            "{name}: 文件里没有任何消息 · no message in the file"
        )));
    }
    Ok(lines)
}

fn parse(raw: &[u8]) -> Result<Line, String> {
    let text = std::str::from_utf8(raw).map_err(|error| error.to_string())?;
    // A present `null` must stay apart from an absent key.
    let value: serde_json::Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let memory = value.get("memory").cloned();
    let mut line: Line = serde_json::from_value(value).map_err(|error| error.to_string())?;
    line.remembered = remembered(memory)?;
    Ok(line)
}

fn remembered(memory: Option<serde_json::Value>) -> Result<Remembered, String> {
    let Some(memory) = memory else {
        return Ok(Remembered::FromHistory);
    };
    let fields = match memory {
        serde_json::Value::Null => return Ok(Remembered::Nobody),
        serde_json::Value::Object(fields) => fields,
        _ => return Err("memory is no object".to_owned()),
    };
    let fresh = match fields.get("fresh") {
        None | Some(serde_json::Value::Null) => true,
        Some(serde_json::Value::Bool(fresh)) => *fresh,
        Some(_) => return Err("memory.fresh is neither true nor false".to_owned()),
    };
    match fields.get("last_patient") {
        None if fields.is_empty() => Ok(Remembered::FromHistory),
        None | Some(serde_json::Value::Null) => Ok(Remembered::Nobody),
        Some(serde_json::Value::String(id)) if id.trim().is_empty() => Ok(Remembered::Nobody),
        Some(serde_json::Value::String(id)) => Ok(Remembered::Patient {
            id: id.clone(),
            fresh,
        }),
        Some(serde_json::Value::Number(id)) => Ok(Remembered::Patient {
            id: id.to_string(),
            fresh,
        }),
        Some(_) => Err("memory.last_patient is neither text nor null".to_owned()),
    }
}
