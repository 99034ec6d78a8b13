//! What is asked of a model. Only parameters every server knows are sent.

use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Who says a message. `system` and not `developer`: many servers refuse the latter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// What we tell the model to be.
    System,
    /// What we ask.
    User,
    /// What it said before.
    Assistant,
}

/// One message of a conversation, as plain text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Message {
    /// Who says it.
    pub role: Role,
    /// What is said.
    pub content: String,
}

/// One question.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatRequest {
    /// The conversation so far, oldest first.
    pub messages: Vec<Message>,
    /// Most tokens of the answer.
    pub max_tokens: u32,
    /// Asks the server to hold the model to JSON. Some servers ignore it, a few then answer with nothing:
    /// the answer is checked in any case.
    pub json: bool,
}

impl ChatRequest {
    /// The request as it is sent to `model`.
    #[must_use]
    pub fn body(&self, model: &str) -> Value {
        let mut body = json!({
            "model": model,
            "messages": self.messages,
            "max_tokens": self.max_tokens,
            "temperature": 0,
            "stream": false,
        });
        if self.json {
            body["response_format"] = json!({ "type": "json_object" });
        }
        body
    }

    /// SHA-256 of the request as it is sent, in hex: what was asked, without keeping it twice.
    #[must_use]
    pub fn hash(&self, model: &str) -> String {
        Sha256::digest(self.body(model).to_string())
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }

    /// How many tokens the prompt has at most, without the model's own tokeniser: three letters or blanks
    /// count as one, every digit and every sign as one (some models take digits one by one), any other
    /// character as two, and each message has a few of its own.
    #[must_use]
    pub fn prompt_tokens_at_most(&self) -> i64 {
        self.messages
            .iter()
            .map(|message| {
                let (mut letters, mut signs, mut others) = (0_usize, 0, 0);
                for c in message.content.chars() {
                    match c {
                        'a'..='z' | 'A'..='Z' | ' ' => letters += 1,
                        c if c.is_ascii() => signs += 1,
                        _ => others += 1,
                    }
                }
                i64::try_from(letters.div_ceil(3) + signs + 2 * others + 8).unwrap_or(i64::MAX / 4)
            })
            .sum()
    }
}
