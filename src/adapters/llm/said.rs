//! What the body of an error says, as far as it can be told on. Its message is never kept, since servers
//! repeat prompts in it: it is looked through for what it is about, and that is said in our words.

use serde_json::Value;

/// The account has run dry, whatever the status.
const DRY: [&str; 3] = ["arrear", "insufficient_balance", "insufficient_quota"];
/// It may have.
const MONEY: [&str; 5] = ["quota", "balance", "credit", "billing", "payment"];
/// Too much at once; these speak of quotas as well.
const PACE: [&str; 3] = ["throttl", "rate_limit", "ratequota"];

/// Words of a message, all of which have to occur, and what it is about then.
const HINTS: [(&[&str], &str); 15] = [
    (
        &["context", "length"],
        "the conversation is too long for the model",
    ),
    (
        &["context", "size"],
        "the conversation is too long for the model",
    ),
    (&["too long"], "the conversation is too long for the model"),
    (
        &["response_format"],
        "it does not know this response_format",
    ),
    (&["json_schema"], "it does not know json_schema"),
    (
        &["reasoning_content"],
        "it wants the model's thinking back, or refuses it (LLM_PROFILE)",
    ),
    (
        &["thinking"],
        "it does not take this setting of thinking (LLM_PROFILE)",
    ),
    (
        &["max_completion_tokens"],
        "it wants max_completion_tokens (LLM_PROFILE=openai)",
    ),
    (
        &["max_tokens"],
        "it does not take max_tokens, or not as many",
    ),
    (
        &["temperature"],
        "it does not take this temperature (LLM_PROFILE=openai-reasoning)",
    ),
    (&["image"], "it does not read pictures"),
    (&["tool"], "it does not take these tools"),
    (&["model", "not"], "it does not know the model (LLM_MODEL)"),
    (&["extra"], "it does not know a parameter (LLM_PROFILE)"),
    (&["parameter"], "it does not know a parameter (LLM_PROFILE)"),
];

/// The words of an error body that can be told on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Said {
    /// `error.code`, a word or a number.
    pub code: Option<String>,
    /// `error.type`
    pub kind: Option<String>,
    /// What its message is about, in our words.
    pub hint: Option<&'static str>,
}

impl Said {
    /// Reads an error body; whatever is not there stays unknown.
    #[must_use]
    pub fn read(body: &[u8]) -> Self {
        Self::of(&serde_json::from_slice(body).unwrap_or_default())
    }

    /// Reads an error body that is JSON.
    #[must_use]
    pub fn of(body: &Value) -> Self {
        let error = body.get("error").filter(|error| !error.is_null());
        let error = error.unwrap_or(body);
        let message = error.get("message").unwrap_or(error);
        Self {
            code: error.get("code").and_then(word),
            kind: error.get("type").and_then(word),
            hint: message.as_str().and_then(hint),
        }
    }

    /// Whether it is the account that has run dry, and not the server that is busy.
    pub(super) fn speaks_of_money(&self) -> bool {
        self.is_dry() || (self.is_about(&MONEY) && !self.is_about(&PACE))
    }

    /// Whether it says in so many words that the account has run dry.
    pub(super) fn is_dry(&self) -> bool {
        self.is_about(&DRY)
    }

    /// The HTTP status it should have come with.
    pub(super) fn status(&self) -> u16 {
        let numeric = self.code.as_deref().and_then(|code| code.parse().ok());
        match numeric {
            Some(status @ 400..=599) => status,
            _ if self.speaks_of_money() => 402,
            _ if self.is_about(&["rate", "throttl", "limit"]) => 429,
            _ if self.is_about(&["key", "auth", "permission"]) => 401,
            _ if self.is_about(&["server", "overload", "internal", "unavailable"]) => 500,
            _ => 400,
        }
    }

    fn is_about(&self, words: &[&str]) -> bool {
        let said = [&self.code, &self.kind];
        said.into_iter().flatten().any(|text| {
            let text = text.to_lowercase();
            words.iter().any(|word| text.contains(word))
        })
    }
}

fn hint(message: &str) -> Option<&'static str> {
    let message = message.to_lowercase();
    let about = |words: &[&str]| words.iter().all(|word| message.contains(word));
    HINTS
        .iter()
        .find(|(words, _)| about(words))
        .map(|(_, hint)| *hint)
}

/// A code is a short plain word or a whole number; anything else might be prose, and a long number a person's.
fn word(value: &Value) -> Option<String> {
    match value {
        Value::Number(number) => Some(number.to_string()).filter(|digits| digits.len() <= 6),
        Value::String(text) => Some(text)
            .filter(|text| {
                (1..=64).contains(&text.len())
                    && text
                        .bytes()
                        .all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b))
                    && text.bytes().filter(u8::is_ascii_digit).count() <= 6
            })
            .cloned(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_told_in_our_words_and_never_in_its_own() {
        for (body, code, hint) in [
            (
                r#"{"error":{"code":400,"message":"This model's maximum context length is 4096 tokens; 患者张三"}}"#,
                Some("400"),
                Some("the conversation is too long for the model"),
            ),
            (
                r#"{"error":{"code":"unsupported_value","message":"'temperature' does not support 0"}}"#,
                Some("unsupported_value"),
                Some("it does not take this temperature (LLM_PROFILE=openai-reasoning)"),
            ),
            (
                r#"{"error":"the model `x` was not found"}"#,
                None,
                Some("it does not know the model (LLM_MODEL)"),
            ),
            (r#"{"error":{"code":"患者张三"}}"#, None, None),
            (r#"{"error":{"code":"13800138000"}}"#, None, None),
            (r#"{"error":{"code":13800138000}}"#, None, None),
            (r#"{"error":{"code":{"a":1}}}"#, None, None),
            (
                r#"{"code":"Arrearage","message":"…"}"#,
                Some("Arrearage"),
                None,
            ),
            ("<html>患者张三</html>", None, None),
        ] {
            let said = Said::read(body.as_bytes());
            assert_eq!((said.code.as_deref(), said.hint), (code, hint), "{body}");
        }
    }
}
