//! What came back, read leniently: servers differ in every field but the text itself.

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{error::LlmError, request::ToolCall, said::Said};

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// What the model said; empty when it said nothing. Form is the caller's to check: a fence, or a tool
    /// call that the model wrote as text, is text.
    pub text: String,
    /// The tools it asks to call; never acted on when `truncated`. Their ids are unique within a reply.
    pub tool_calls: Vec<ToolCall>,
    /// What it thought, where that can be told apart.
    pub thinking: Option<String>,
    /// It was cut off, or withheld in part: what it says must not be acted on.
    pub truncated: bool,
    /// Tokens the server counted; `None` when it did not say.
    pub usage: Option<Usage>,
}

/// What a call used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the prompt.
    pub prompt: i64,
    /// Tokens of the answer, thinking included.
    pub completion: i64,
}

impl Reply {
    /// Reads the body of a successful answer to a request of at most `max_tokens`. The same body is always
    /// read the same, ids included, so a stored one can stand for the call.
    ///
    /// # Errors
    /// The body speaks of an error, or holds no answer.
    pub fn read(body: &str, max_tokens: u32) -> Result<Self, LlmError> {
        let json: Value = serde_json::from_str(body.trim_start_matches('\u{feff}'))
            .map_err(|_| LlmError::unreadable("it is no JSON"))?;
        let says = |name| json.get(name).is_some_and(|value: &Value| !value.is_null());
        let choice = json.get("choices").and_then(|choices| choices.get(0));
        if says("error") || (choice.is_none() && says("code")) {
            return Err(LlmError::of_body(&Said::of(&json)));
        }
        let choice = choice.ok_or_else(|| LlmError::unreadable("it has no choices"))?;
        let message = choice
            .get("message")
            .filter(|message| message.is_object())
            .ok_or_else(|| LlmError::unreadable("its choice has no message"))?;
        let finish = choice.get("finish_reason").and_then(Value::as_str);
        let cut = match finish.unwrap_or_default() {
            "length" | "max_tokens" | "content_filter" => true,
            "insufficient_system_resource" | "error" | "abort" => {
                return Err(LlmError::unreadable("the server broke it off"));
            }
            _ => false,
        };
        let usage = usage(&json);
        let full = usage.is_some_and(|usage| usage.completion >= i64::from(max_tokens));
        let (text, thought, endless) = answer(message);
        let tool_calls = tool_calls(message, body);
        let torn = tool_calls.iter().any(|call| is_torn(&call.arguments));
        Ok(Self {
            text,
            tool_calls,
            thinking: thought,
            truncated: cut || full || endless || torn,
            usage,
        })
    }
}

/// What is said, what was thought before, and whether the thinking never came to an end.
fn answer(message: &Value) -> (String, Option<String>, bool) {
    let said = text(message.get("content"));
    let told_apart = ["reasoning_content", "reasoning"]
        .into_iter()
        .find_map(|name| message.get(name)?.as_str());
    // A server that can't tell them apart leaves the thinking in front of the answer.
    let (text, within, endless) = match said.trim_start().strip_prefix("<think>") {
        None => (said.as_str(), None, false),
        Some(rest) => match rest.split_once("</think>") {
            Some((thought, text)) => (text.trim_start(), Some(thought), false),
            None => ("", Some(rest), true),
        },
    };
    let thought = told_apart
        .or(within)
        .filter(|thought| !thought.trim().is_empty());
    (text.to_owned(), thought.map(str::to_owned), endless)
}

/// A string, or a list of text parts.
fn text(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts
            .iter()
            .filter_map(|part| part.get("text").and_then(Value::as_str))
            .collect(),
        _ => String::new(),
    }
}

/// The calls that name a tool. One without an id, or with one that was there before, gets one of its own: not
/// the place alone, since the next answer of the conversation has the same places.
fn tool_calls(message: &Value, body: &str) -> Vec<ToolCall> {
    let calls = message.get("tool_calls").and_then(Value::as_array);
    let functions: Vec<(Option<&str>, &Value)> = match calls {
        Some(calls) if !calls.is_empty() => calls
            .iter()
            .filter_map(|call| {
                Some((
                    call.get("id").and_then(Value::as_str),
                    call.get("function")?,
                ))
            })
            .collect(),
        // As servers wrote it before there were several calls.
        _ => message
            .get("function_call")
            .map(|function| (None, function))
            .into_iter()
            .collect(),
    };
    let mut read: Vec<ToolCall> = Vec::new();
    for (at, (id, function)) in functions.into_iter().enumerate() {
        let name = function.get("name").and_then(Value::as_str);
        let Some(name) = name.map(str::trim).filter(|name| !name.is_empty()) else {
            continue;
        };
        let id = id.filter(|id| !id.trim().is_empty() && read.iter().all(|call| call.id != *id));
        read.push(ToolCall {
            id: id.map_or_else(|| own_id(body, at), str::to_owned),
            name: name.to_owned(),
            arguments: arguments(function.get("arguments")),
        });
    }
    read
}

fn own_id(body: &str, at: usize) -> String {
    let hash: String = Sha256::digest(body)
        .iter()
        .take(6)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("call_{hash}_{at}")
}

/// JSON as the model wrote it; nothing at all is an object without members.
fn arguments(written: Option<&Value>) -> String {
    match written {
        Some(Value::String(text)) if !text.trim().is_empty() && text.trim() != "null" => {
            text.clone()
        }
        Some(Value::String(_) | Value::Null) | None => "{}".to_owned(),
        Some(other) => other.to_string(),
    }
}

/// Whether JSON ends before it is whole.
fn is_torn(arguments: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(arguments).is_err_and(|error| error.is_eof())
}

fn usage(body: &Value) -> Option<Usage> {
    let usage = body.get("usage")?;
    let count = |name: &str| {
        let value = usage.get(name)?;
        value
            .as_i64()
            .or_else(|| {
                value.as_f64().filter(|n| (0.0..1e12).contains(n)).map(|n| {
                    #[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
                    let whole = n as i64;
                    whole
                })
            })
            .filter(|n| *n >= 0)
    };
    Some(Usage {
        prompt: count("prompt_tokens")?,
        completion: count("completion_tokens")?,
    })
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        reason = "a failed expectation is the test's verdict"
    )]
    use super::*;
    use crate::adapters::llm::error::Heard;

    fn heard(status: u16) -> Heard {
        Heard {
            status,
            ..Heard::default()
        }
    }

    fn read(body: &str) -> Result<Reply, LlmError> {
        Reply::read(body, 100)
    }

    #[test]
    fn an_answer_is_read_however_little_else_the_server_says() {
        for body in [
            r#"{"choices":[{"message":{"content":"好"}}]}"#,
            "\n\n\n{\"choices\":[{\"finish_reason\":\"\",\"message\":{\"role\":\"assistant\",\"content\":\"好\"}}],\"created\":1.5,\"service_tier\":\"on_demand\"}",
            r#"{"choices":[{"message":{"content":[{"type":"text","text":"好"}],"reasoning_content":"想"}}]}"#,
        ] {
            let reply = read(body).unwrap();
            assert_eq!((reply.text.as_str(), reply.truncated), ("好", false));
        }
    }

    #[test]
    fn saying_nothing_is_an_answer_without_text() {
        for content in ["null", "\"\"", "{}"] {
            let body = format!(r#"{{"choices":[{{"message":{{"content":{content}}}}}]}}"#);
            assert_eq!(read(&body).unwrap().text, "");
        }
    }

    #[test]
    fn an_answer_that_was_cut_off_is_known_by_its_reason_or_its_length() {
        for (finish, completion) in [("length", 3), ("max_tokens", 3), ("stop", 100)] {
            let body = format!(
                r#"{{"choices":[{{"finish_reason":"{finish}","message":{{"content":"好"}}}}],"usage":{{"prompt_tokens":7,"completion_tokens":{completion}}}}}"#
            );
            assert!(read(&body).unwrap().truncated, "{finish}");
        }
    }

    #[test]
    fn usage_counts_as_unknown_when_any_of_it_is_missing_or_odd() {
        let with = |usage: &str| {
            read(&format!(
                r#"{{"choices":[{{"message":{{"content":"好"}}}}],"usage":{usage}}}"#
            ))
            .unwrap()
            .usage
        };
        assert_eq!(
            with(r#"{"prompt_tokens":7.0,"completion_tokens":2}"#),
            Some(Usage {
                prompt: 7,
                completion: 2
            })
        );
        for odd in [
            "null",
            "{}",
            r#"{"prompt_tokens":7}"#,
            r#"{"prompt_tokens":-1,"completion_tokens":2}"#,
        ] {
            assert_eq!(with(odd), None, "{odd}");
        }
    }

    #[test]
    fn a_success_that_speaks_of_an_error_is_that_error() {
        for (error, wanted) in [
            (
                r#"{"code":402,"message":"…"}"#,
                LlmError::NoCredit(heard(402)),
            ),
            (
                r#"{"code":"insufficient_quota"}"#,
                LlmError::NoCredit(heard(402)),
            ),
            (
                r#"{"type":"rate_limit_error"}"#,
                LlmError::RateLimited(heard(429)),
            ),
            (
                r#"{"code":"invalid_api_key"}"#,
                LlmError::BadKey(heard(401)),
            ),
            (r#"{"type":"server_error"}"#, LlmError::Trouble(heard(500))),
            (
                r#"{"message":"患者张三"}"#,
                LlmError::Refused {
                    heard: heard(400),
                    code: None,
                    hint: None,
                },
            ),
        ] {
            assert_eq!(read(&format!(r#"{{"error":{error}}}"#)), Err(wanted));
        }
        for nothing in [
            "{}",
            r#"{"choices":[]}"#,
            r#"{"choices":null,"error":null}"#,
            "[1]",
            "<html>",
        ] {
            assert!(
                matches!(read(nothing), Err(LlmError::Unreadable { .. })),
                "{nothing}"
            );
        }
    }
}
