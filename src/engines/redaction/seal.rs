//! A whole request without personal data, and a last look at the bytes of its body before they leave.

use serde_json::Value;

use super::{
    hidden::Hidden,
    kind::Kind,
    redactor::{Redactor, RedactorFault, Whose},
};
use crate::adapters::llm::{ChatRequest, Format, Role};

/// How deep a text may be escaped inside a text that is escaped.
const ESCAPED_WITHIN: usize = 5;

/// Why a request may not leave. Says nothing of what was found but its kind.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotSealed {
    /// A value that identifies somebody still stands in it.
    #[error("发送前检查发现未能隐去的身份信息（{}），未发送 (personal data was left in the request; nothing was sent)", .0.label())]
    Left(Kind),
    /// The redactor does not work.
    #[error(transparent)]
    Redactor(#[from] RedactorFault),
}

/// The request as it may be sent: every string of it redacted, its body looked through once more.
/// `hidden` gains the placeholders it needs, which are to be stored before it leaves.
///
/// # Errors
/// [`NotSealed`]: nothing may be sent.
pub fn seal(
    request: &ChatRequest,
    body: impl Fn(&ChatRequest) -> String,
    redactor: &Redactor,
    hidden: &mut Hidden,
) -> Result<ChatRequest, NotSealed> {
    let mut sealed = request.clone();
    let mut texts: Vec<(Whose, String)> = Vec::new();
    each_text(&mut sealed, &mut |whose, text| {
        texts.push((whose, text.clone()))
    });
    let said: Vec<(Whose, &str)> = texts
        .iter()
        .map(|(whose, text)| (*whose, text.as_str()))
        .collect();
    let mut redacted = redactor.redact_all(&said, hidden)?.into_iter();
    let mut missing = false;
    each_text(&mut sealed, &mut |_, text| match redacted.next() {
        Some(new) => *text = new,
        None => missing = true,
    });
    if missing {
        return Err(RedactorFault::Unusable.into());
    }
    match left_in_body(&body(&sealed), redactor, hidden) {
        Some(kind) => Err(NotSealed::Left(kind)),
        None => Ok(sealed),
    }
}

/// Visits every string of a request that is not ours by name: the same ones in the same order each time.
fn each_text(request: &mut ChatRequest, visit: &mut impl FnMut(Whose, &mut String)) {
    for message in &mut request.messages {
        let whose = match message.role {
            Role::Assistant => Whose::Model,
            Role::System | Role::User | Role::Tool => Whose::Anybody,
        };
        visit(whose, &mut message.content);
        for call in &mut message.tool_calls {
            arguments(&mut call.arguments, visit);
        }
        if let Some(thinking) = &mut message.thinking {
            visit(Whose::Model, thinking);
        }
    }
    for tool in &mut request.tools {
        visit(Whose::Anybody, &mut tool.description);
        strings(&mut tool.parameters, Whose::Anybody, visit);
    }
    if let Format::Schema { schema, .. } = &mut request.format {
        strings(schema, Whose::Anybody, visit);
    }
}

/// The strings in a call's arguments, so that they stay JSON; as one text where they are none.
fn arguments(written: &mut String, visit: &mut impl FnMut(Whose, &mut String)) {
    let Ok(mut value) = serde_json::from_str::<Value>(written) else {
        visit(Whose::Model, written);
        return;
    };
    let before = value.clone();
    strings(&mut value, Whose::Model, visit);
    // As the model wrote it, where nothing was to be hidden: servers compare.
    if value != before {
        *written = value.to_string();
    }
}

fn strings(value: &mut Value, whose: Whose, visit: &mut impl FnMut(Whose, &mut String)) {
    match value {
        Value::String(text) => visit(whose, text),
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| strings(item, whose, visit)),
        Value::Object(map) => map
            .values_mut()
            .for_each(|item| strings(item, whose, visit)),
        Value::Number(number) if whose == Whose::Model => {
            let as_written = number.to_string();
            let mut text = as_written.clone();
            visit(whose, &mut text);
            if text != as_written {
                *value = Value::String(text);
            }
        }
        Value::Number(_) | Value::Bool(_) | Value::Null => {}
    }
}

/// What still stands in a body: as it is, and with its escapes undone, however often they were made.
fn left_in_body(body: &str, redactor: &Redactor, hidden: &Hidden) -> Option<Kind> {
    let mut text = body.to_owned();
    for _ in 0..=ESCAPED_WITHIN {
        if let Some(kind) = redactor.left_in(&text, hidden) {
            return Some(kind);
        }
        let plain = unescaped(&text);
        if plain == text {
            break;
        }
        text = plain;
    }
    None
}

/// JSON's escapes undone once, without asking whether it is JSON.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut units: Vec<u16> = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        if !before.is_empty() {
            flush(&mut units, &mut out);
        }
        out.push_str(before);
        let code = escape.get(2..6).filter(|_| escape.starts_with("\\u"));
        let unit = code.and_then(|code| u16::from_str_radix(code, 16).ok());
        if let Some(unit) = unit {
            units.push(unit);
            rest = escape.get(6..).unwrap_or_default();
            continue;
        }
        flush(&mut units, &mut out);
        let Some(c) = escape.chars().nth(1) else {
            out.push('\\');
            return out;
        };
        out.push(match c {
            'n' | 'r' => '\n',
            't' => '\t',
            'b' | 'f' => ' ',
            other => other,
        });
        rest = escape.get(1 + c.len_utf8()..).unwrap_or_default();
    }
    flush(&mut units, &mut out);
    out.push_str(rest);
    out
}

fn flush(units: &mut Vec<u16>, out: &mut String) {
    out.push_str(&String::from_utf16_lossy(units));
    units.clear();
}
