//! What came back, read leniently: servers differ in every field but the text itself.

use serde_json::Value;

use super::{
    error::{LlmError, Said},
    request::ToolCall,
};

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// What the model said; empty when it said nothing.
    pub text: String,
    /// The tools it asks to call; never acted on when `truncated`.
    pub tool_calls: Vec<ToolCall>,
    /// What it thought, where the server tells it apart.
    pub thinking: Option<String>,
    /// It was cut off: what it says must not be acted on.
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
    /// Reads the body of a successful answer to a request of at most `max_tokens`.
    ///
    /// # Errors
    /// The body speaks of an error, or holds no answer.
    pub fn read(body: &str, max_tokens: u32) -> Result<Self, LlmError> {
        let unreadable = |why| LlmError::Unreadable { why };
        let body: Value = serde_json::from_str(body).map_err(|_| unreadable("it is no JSON"))?;
        let choice = body.get("choices").and_then(|choices| choices.get(0));
        let Some(choice) = choice else {
            return Err(match body.get("error") {
                Some(error) if !error.is_null() => {
                    LlmError::of_body(&Said::read(body.to_string().as_bytes()))
                }
                _ => unreadable("it has no choices"),
            });
        };
        let message = choice
            .get("message")
            .ok_or_else(|| unreadable("its choice has no message"))?;
        let usage = usage(&body);
        let finish = choice
            .get("finish_reason")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let full = usage.is_some_and(|usage| usage.completion >= i64::from(max_tokens));
        Ok(Self {
            text: text(message.get("content")),
            tool_calls: tool_calls(message.get("tool_calls")),
            thinking: message
                .get("reasoning_content")
                .and_then(Value::as_str)
                .filter(|thought| !thought.trim().is_empty())
                .map(str::to_owned),
            truncated: matches!(finish, "length" | "max_tokens") || full,
            usage,
        })
    }
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

/// The calls that name a tool; a call without an id gets one by its place.
fn tool_calls(calls: Option<&Value>) -> Vec<ToolCall> {
    let calls = calls.and_then(Value::as_array).map(Vec::as_slice);
    let read = |(at, call): (usize, &Value)| {
        let function = call.get("function")?;
        let name = function.get("name")?.as_str()?.trim();
        let id = call
            .get("id")
            .and_then(Value::as_str)
            .filter(|id| !id.is_empty());
        let arguments = match function.get("arguments") {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Null) | None => String::new(),
            Some(other) => other.to_string(),
        };
        Some(ToolCall {
            id: id.map_or_else(|| format!("call_{at}"), str::to_owned),
            name: name.to_owned(),
            arguments,
        })
    };
    calls
        .unwrap_or_default()
        .iter()
        .enumerate()
        .filter_map(read)
        .collect()
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
                LlmError::NoCredit { status: 402 },
            ),
            (
                r#"{"code":"insufficient_quota"}"#,
                LlmError::NoCredit { status: 402 },
            ),
            (
                r#"{"type":"rate_limit_error"}"#,
                LlmError::RateLimited { retry_after: None },
            ),
            (
                r#"{"code":"invalid_api_key"}"#,
                LlmError::BadKey { status: 401 },
            ),
            (
                r#"{"type":"server_error"}"#,
                LlmError::Trouble { status: 500 },
            ),
            (
                r#"{"message":"患者张三"}"#,
                LlmError::Refused {
                    status: 400,
                    code: None,
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
