//! Why there is no answer, told apart by what a caller does next. No message quotes what the server said:
//! servers repeat prompts in their errors.

use std::time::Duration;

use async_openai::error::OpenAIError;

/// Longest wait a server's `Retry-After` can ask for.
const LONGEST_WAIT: Duration = Duration::from_secs(15 * 60);

/// Why a call brought no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LlmError {
    /// The request never left.
    #[error(
        "连不上大模型服务，请检查 LLM_BASE_URL 与网络 (the model's server can't be reached: {why})"
    )]
    NotSent {
        /// What the connection failed with.
        why: String,
    },
    /// It left, and no whole answer came.
    #[error("大模型未在时限内答复，可能已计费 (no whole answer in time; it may have been billed)")]
    NoAnswer,
    /// An answer that can't be read as one.
    #[error("大模型的答复无法读取 (the answer can't be read: {why})")]
    Unreadable {
        /// What is wrong with it; nothing of its text.
        why: &'static str,
    },
    /// The server is in trouble.
    #[error("大模型服务故障 (the server is in trouble, HTTP {status})")]
    Trouble {
        /// The HTTP status.
        status: u16,
    },
    /// Too many requests.
    #[error("大模型服务限流 (the server asks to slow down, HTTP 429)")]
    RateLimited {
        /// How long it asks to wait.
        retry_after: Option<Duration>,
    },
    /// The account has no credit left.
    #[error("大模型账户余额不足，请缴费后运行 `iit llm close` (no credit left, HTTP {status})")]
    NoCredit {
        /// The HTTP status.
        status: u16,
    },
    /// The key is wrong or may not use this model.
    #[error(
        "大模型服务拒绝密钥，请检查 LLM_API_KEY 后运行 `iit llm close` (the key is refused, HTTP {status})"
    )]
    BadKey {
        /// The HTTP status.
        status: u16,
    },
    /// The request itself is refused: another try would be refused as well.
    #[error("大模型服务拒绝请求，请检查 LLM_MODEL 与 LLM_BASE_URL (the request is refused, HTTP {status}{})", code.as_deref().map(|c| format!(", {c}")).unwrap_or_default())]
    Refused {
        /// The HTTP status.
        status: u16,
        /// The server's own code for it, when it is a plain word.
        code: Option<String>,
    },
}

impl LlmError {
    /// The error an HTTP status (with what its body says) stands for.
    #[must_use]
    pub fn of_status(status: u16, said: &Said, retry_after: Option<Duration>) -> Self {
        match status {
            402 => Self::NoCredit { status },
            429 if said.is_about(&["quota", "balance", "credit", "billing", "arrear"]) => {
                Self::NoCredit { status }
            }
            429 => Self::RateLimited {
                retry_after: retry_after.map(|wait| wait.min(LONGEST_WAIT)),
            },
            401 | 403 => Self::BadKey { status },
            408 => Self::NoAnswer,
            500.. => Self::Trouble { status },
            _ => Self::Refused {
                status,
                code: said.code.clone(),
            },
        }
    }

    /// The error that the body of a "200 OK" speaks of.
    #[must_use]
    pub fn of_body(said: &Said) -> Self {
        let numeric = said.code.as_deref().and_then(|code| code.parse().ok());
        let status = match numeric {
            Some(status @ 400..=599) => status,
            _ if said.is_about(&["quota", "balance", "credit", "billing", "arrear"]) => 402,
            _ if said.is_about(&["rate", "throttl", "limit"]) => 429,
            _ if said.is_about(&["key", "auth", "permission"]) => 401,
            _ if said.is_about(&["server", "overload", "internal", "unavailable"]) => 500,
            _ => 400,
        };
        Self::of_status(status, said, None)
    }

    /// Whether the provider may have charged for it.
    #[must_use]
    pub fn maybe_billed(&self) -> bool {
        match self {
            Self::NoAnswer | Self::Unreadable { .. } => true,
            // A gateway gave up; the model behind it may have gone on.
            Self::Trouble { status } => matches!(status, 502 | 504 | 524),
            _ => false,
        }
    }
}

impl From<LlmError> for OpenAIError {
    fn from(error: LlmError) -> Self {
        Self::Boxed(Box::new(error))
    }
}

/// The words of an error body that can be told on: its code and type, never its message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Said {
    /// `error.code`, a word or a number.
    pub code: Option<String>,
    /// `error.type`
    pub kind: Option<String>,
}

impl Said {
    /// Reads an error body; whatever is not there stays unknown.
    #[must_use]
    pub fn read(body: &[u8]) -> Self {
        let body: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
        let error = body.get("error").unwrap_or(&body);
        Self {
            code: error.get("code").and_then(word),
            kind: error.get("type").and_then(word),
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

/// A code is a short plain word or a whole number; anything else might be prose.
fn word(value: &serde_json::Value) -> Option<String> {
    match value {
        serde_json::Value::Number(number) => Some(number.to_string()),
        serde_json::Value::String(text)
            if (1..=64).contains(&text.len())
                && text
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b)) =>
        {
            Some(text.clone())
        }
        _ => None,
    }
}
