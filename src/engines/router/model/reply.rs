//! What a model answered about a message, and whether it can be used: well-formed, within its bounds, and
//! naming nobody that people did not name.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::{
    MAX_INTENTS,
    schema::{MAX_ENTITY, MAX_RECORDS},
};
use crate::{
    engines::router::{Conversation, IntentKind, Speaker, ids, message::Message, resolve::normal},
    types::text::ellipsis,
};

/// One intent as the model reads the message.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// What is wanted.
    pub kind: IntentKind,
    /// 0 to 1.
    pub confidence: f64,
    /// Where in the folded message; the whole of it when a sole intent quotes nothing that stands there.
    pub(super) span: (usize, usize),
    /// Upper-case, half-width; each was written by a person.
    pub record_ids: Vec<String>,
    /// Visit, form, field: only what stands in the message.
    pub(super) visit: Option<String>,
    pub(super) form: Option<String>,
    pub(super) field: Option<String>,
    /// Every record.
    pub whole_project: bool,
    /// Data is to be changed.
    pub write: bool,
    /// About the past or a trend.
    pub past: bool,
    /// What is missing, in the model's words.
    pub missing: Option<String>,
    /// What to ask back, in the model's words.
    pub question: Option<String>,
}

#[derive(Deserialize)]
struct Answer {
    intents: Vec<Intent>,
}

#[derive(Deserialize)]
struct Intent {
    #[serde(rename = "type")]
    kind: IntentKind,
    #[serde(default)]
    text: Option<String>,
    confidence: f64,
    #[serde(default, alias = "record_id", deserialize_with = "some_or_many")]
    record_ids: Vec<String>,
    #[serde(default)]
    visit: Option<String>,
    #[serde(default)]
    form: Option<String>,
    #[serde(default)]
    field: Option<String>,
    #[serde(default)]
    whole_project: Option<bool>,
    #[serde(default)]
    write: Option<bool>,
    #[serde(default)]
    past: Option<bool>,
    #[serde(default)]
    missing_info: Option<String>,
    #[serde(default)]
    clarification_question: Option<String>,
}

/// Nothing, one id (text or number), or a list of them.
fn some_or_many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let one = |value: &Value| match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        _ => Err(serde::de::Error::custom("record_ids 应为字符串列表")),
    };
    match Value::deserialize(deserializer)? {
        Value::Null => Ok(Vec::new()),
        Value::Array(many) => many.iter().map(one).collect(),
        value => Ok(vec![one(&value)?]),
    }
}

/// Reads an answer about `message`.
///
/// # Errors
/// What to tell the model, in one sentence, when the answer can't be used.
pub fn read(
    answer: &str,
    message: &str,
    conversation: &Conversation<'_>,
) -> Result<Vec<Claim>, String> {
    let text = bare(answer);
    if text.is_empty() {
        return Err("回答是空的".to_owned());
    }
    let answer: Answer = serde_json::from_str(text).map_err(|error| {
        let why = ellipsis(&error.to_string(), 160);
        format!("不是符合要求的 JSON（{why}）")
    })?;
    match answer.intents.len() {
        0 => return Err("intents 是空的，至少要有一个意图".to_owned()),
        n if n > MAX_INTENTS => return Err(format!("intents 有 {n} 个，最多 {MAX_INTENTS} 个")),
        _ => {}
    }
    let message = Message::new(message);
    let only = answer.intents.len() == 1;
    let named = Named::new(&message, conversation);
    let mut from = 0;
    let mut claims = Vec::with_capacity(answer.intents.len());
    for intent in answer.intents {
        let quote = intent.text.as_deref().unwrap_or_default();
        let span = match place(&message, quote, from) {
            Some(span) => span,
            None if only => (0, message.plain().len()),
            None => return Err(format!("text 须逐字摘自用户消息：{}", ellipsis(quote, 40))),
        };
        from = span.1;
        claims.push(claim(intent, span, &message, &named)?);
    }
    claims.sort_by_key(|claim| claim.span.0);
    Ok(claims)
}

fn claim(
    intent: Intent,
    span: (usize, usize),
    message: &Message,
    named: &Named,
) -> Result<Claim, String> {
    if !(0.0..=1.0).contains(&intent.confidence) {
        return Err("confidence 应在 0 到 1 之间".to_owned());
    }
    if intent.record_ids.len() > MAX_RECORDS {
        return Err(format!("record_ids 超过 {MAX_RECORDS} 个"));
    }
    let mut record_ids: Vec<String> = Vec::new();
    for id in intent.record_ids.iter().map(|id| normal(id)) {
        if id.is_empty() || record_ids.contains(&id) {
            continue;
        }
        if !named.holds(&id) {
            let id = ellipsis(&id, MAX_ENTITY);
            return Err(format!(
                "record_ids 中的 {id} 在用户消息、历史、记忆中都没有出现，不得编造"
            ));
        }
        record_ids.push(id);
    }
    let stands = |value: Option<String>| value.filter(|value| is_in(message, value));
    let written = |value: Option<String>| value.map(|text| text.trim().to_owned());
    let is_said = |value: &String| !value.is_empty();
    Ok(Claim {
        kind: intent.kind,
        confidence: intent.confidence,
        span,
        record_ids,
        visit: stands(intent.visit),
        form: stands(intent.form),
        field: stands(intent.field),
        whole_project: intent.whole_project.unwrap_or(false),
        write: intent.write.unwrap_or(false),
        past: intent.past.unwrap_or(false),
        missing: written(intent.missing_info).filter(is_said),
        question: written(intent.clarification_question).filter(is_said),
    })
}

/// Whether a value of the model's stands in the message, word for word but for case and width.
fn is_in(message: &Message, value: &str) -> bool {
    let value = Message::new(value.trim());
    let plain = value.plain();
    !plain.is_empty() && plain.chars().count() <= MAX_ENTITY && message.plain().contains(plain)
}

/// Where a quoted part stands: after what was quoted before it, if it can.
fn place(message: &Message, quote: &str, from: usize) -> Option<(usize, usize)> {
    let quote = Message::new(quote.trim());
    let quote = quote.plain();
    if quote.is_empty() {
        return None;
    }
    let plain = message.plain();
    let later = plain.get(from..).and_then(|rest| rest.find(quote));
    let at = later.map(|at| from + at).or_else(|| plain.find(quote))?;
    Some((at, at + quote.len()))
}

/// Whom people named: in the message, in their earlier ones, in the memory, in the question that waits.
struct Named {
    ids: Vec<String>,
    /// What was written, for ids in a shape our reader does not know.
    texts: Vec<String>,
}

impl Named {
    fn new(message: &Message, conversation: &Conversation<'_>) -> Self {
        let mut texts = vec![message.plain().to_owned()];
        let earlier = conversation.history.iter();
        texts.extend(
            earlier
                .filter(|turn| turn.role == Speaker::User)
                .map(|turn| turn.text.clone())
                .chain(conversation.memory.known().map(str::to_owned))
                .chain(conversation.pending.into_iter().flat_map(|pending| {
                    let choices = pending.choices.iter();
                    choices
                        .flat_map(|choice| [choice.label.clone(), choice.text.clone()])
                        .chain([pending.question.clone()])
                }))
                .map(|text| Message::new(&text).plain().to_owned()),
        );
        let ids = texts
            .iter()
            .flat_map(|text| ids::mentions(text))
            .flat_map(|mention| mention.ids)
            .collect();
        Self { ids, texts }
    }

    /// Whether a person wrote this id, by itself and not as a piece of another.
    fn holds(&self, id: &str) -> bool {
        if self.ids.iter().any(|known| known == id) {
            return true;
        }
        let id = id.to_ascii_lowercase();
        let joins = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        id.chars().count() <= MAX_ENTITY
            && self.texts.iter().any(|text| {
                text.match_indices(&id).any(|(at, _)| {
                    let before = text.get(..at).and_then(|t| t.chars().next_back());
                    let after = text.get(at + id.len()..).and_then(|t| t.chars().next());
                    !before.is_some_and(joins) && !after.is_some_and(joins)
                })
            })
    }
}

/// The answer without the thinking some models put before it, and without the fence when it is all one.
fn bare(answer: &str) -> &str {
    let mut text = answer.trim();
    if let Some(thought) = text.strip_prefix("<think>") {
        text = match thought.split_once("</think>") {
            Some((_, rest)) => rest.trim(),
            None => "",
        };
    }
    let fenced = text
        .strip_prefix("```")
        .and_then(|inner| inner.strip_suffix("```"));
    match fenced {
        Some(inner) => inner
            .split_once('\n')
            .map_or(inner, |(tag, rest)| {
                let is_tag = tag.trim().chars().all(|c| c.is_ascii_alphanumeric());
                if is_tag { rest } else { inner }
            })
            .trim(),
        None => text,
    }
}
