//! The rows of a conversation, typed. What a kind of row holds is decided here alone.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::adapters::llm::ToolCall;

/// A person's question, as it begins a thread.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// As it was written.
    pub text: String,
    /// The subjects it was understood to be about, by our own reading.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub records: Vec<String>,
    /// It is about the past or a trend.
    #[serde(default)]
    pub about_past: bool,
    /// It is about the protocol: that is searched first.
    #[serde(default)]
    pub about_protocol: bool,
}

/// One earlier turn of the conversation the question stands in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// `user` or `assistant`.
    pub role: String,
    /// What was said.
    pub text: String,
}

/// A model's message that asks for tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// What it said beside.
    pub text: String,
    /// What it thought, where the server tells it apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking: Option<String>,
    /// The calls; no two of a thread have one id.
    pub calls: Vec<ToolCall>,
}

/// What one call gave back.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Given {
    /// The call it answers.
    pub id: String,
    /// The tool.
    pub name: String,
    /// It gave something; else it failed or was refused.
    pub ok: bool,
    /// What the model is shown.
    pub content: String,
    /// The first of the records it rests on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub records: Vec<String>,
    /// How many it rests on.
    #[serde(default)]
    pub record_count: usize,
    /// Documents it rests on, as an answer cites them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
    /// Names the state of the data it was read from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// When those were read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_at: Option<DateTime<Utc>>,
    /// It rests on something the model supposed, so nothing of it is evidence.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub supposed: bool,
    /// What the tool itself decided, where it decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ruling: Option<Ruling>,
}

/// What a tool that checks something came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ruling {
    /// Pass, fail or neither.
    pub outcome: Ruled,
    /// One sentence for people.
    pub text: String,
}

/// How it came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ruled {
    /// It holds.
    Pass,
    /// It is broken.
    Fail,
    /// It can't be decided; never a pass.
    Unable,
}

/// One row.
#[derive(Debug, Clone, PartialEq)]
pub enum Said {
    /// What the model is.
    System(String),
    /// What was said before the question.
    History(Vec<Turn>),
    /// The question.
    Question(Question),
    /// What is to be judged, where no person asks.
    Instruction(String),
    /// The data that is judged, as JSON.
    Data(String),
    /// It asks for tools.
    Calls(Asked),
    /// What one of them gave.
    Result(Given),
    /// It answered; the last such row of an ended run is the answer.
    Reply(String),
    /// What was wrong with that.
    Correction(String),
}

/// A row that this version can't read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a transcript row of kind `{0}` can't be read by this version; start the run anew")]
pub struct Unreadable(String);

impl Said {
    /// The row as it is stored: kind and content.
    #[must_use]
    pub fn row(&self) -> (&'static str, String) {
        fn json(value: &impl Serialize) -> String {
            serde_json::to_string(value).unwrap_or_default()
        }
        match self {
            Self::System(text) => ("system", text.clone()),
            Self::History(turns) => ("history", json(turns)),
            Self::Question(question) => ("question", json(question)),
            Self::Instruction(text) => ("instruction", text.clone()),
            Self::Data(text) => ("data", text.clone()),
            Self::Calls(asked) => ("calls", json(asked)),
            Self::Result(given) => ("result", json(given)),
            Self::Reply(text) => ("reply", text.clone()),
            Self::Correction(text) => ("correction", text.clone()),
        }
    }

    /// Reads a row; `None` for one that is for people only.
    ///
    /// # Errors
    /// [`Unreadable`]: another version wrote it.
    pub fn read(kind: &str, content: &str) -> Result<Option<Self>, Unreadable> {
        fn json<T: serde::de::DeserializeOwned>(
            kind: &str,
            content: &str,
        ) -> Result<T, Unreadable> {
            serde_json::from_str(content).map_err(|_| Unreadable(kind.to_owned()))
        }
        Ok(Some(match kind {
            "system" => Self::System(content.to_owned()),
            "history" => Self::History(json(kind, content)?),
            "question" => Self::Question(json(kind, content)?),
            "instruction" => Self::Instruction(content.to_owned()),
            "data" => Self::Data(content.to_owned()),
            "calls" => Self::Calls(json(kind, content)?),
            "result" => Self::Result(json(kind, content)?),
            "reply" => Self::Reply(content.to_owned()),
            "correction" => Self::Correction(content.to_owned()),
            "note" => return Ok(None),
            other => return Err(Unreadable(other.to_owned())),
        }))
    }
}

/// The question of a thread.
#[must_use]
pub fn question(said: &[Said]) -> Option<&Question> {
    said.iter().find_map(|one| match one {
        Said::Question(question) => Some(question),
        _ => None,
    })
}

/// What the calls of a thread gave, in order.
pub fn results(said: &[Said]) -> impl Iterator<Item = &Given> {
    said.iter().filter_map(|one| match one {
        Said::Result(given) => Some(given),
        _ => None,
    })
}

/// The calls of a thread, in order.
pub fn calls(said: &[Said]) -> impl Iterator<Item = &ToolCall> {
    said.iter()
        .filter_map(|one| match one {
            Said::Calls(asked) => Some(&asked.calls),
            _ => None,
        })
        .flatten()
}

/// Turns taken: what the model said, calls or text.
#[must_use]
pub fn turns(said: &[Said]) -> usize {
    said.iter()
        .filter(|one| matches!(one, Said::Calls(_) | Said::Reply(_)))
        .count()
}
