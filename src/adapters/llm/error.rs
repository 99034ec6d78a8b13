//! Why there is no answer, told apart by what a caller does next. No message quotes what the server said:
//! servers repeat prompts in their errors.

use std::{fmt, time::Duration};

use async_openai::error::OpenAIError;

use super::said::Said;

/// Why a call brought no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LlmError {
    /// The request is none that can be sent: the fault is ours, and nothing left.
    #[error("提问本身有误，未发送 (the request can't be sent: {why})")]
    Invalid {
        /// What is wrong with it; nothing of its text.
        why: String,
    },
    /// The request never left.
    #[error(
        "连不上大模型服务，请检查 LLM_BASE_URL 与网络 (the model's server can't be reached: {why})"
    )]
    NotSent {
        /// What the connection failed with.
        why: String,
    },
    /// It left, and no whole answer came.
    #[error(
        "大模型未完整答复，可能已计费 (no whole answer; it may have been billed: {why}{})",
        of(request_id)
    )]
    NoAnswer {
        /// What ended the wait.
        why: &'static str,
        /// The server's name for the request, when it said one.
        request_id: Option<String>,
    },
    /// An answer that can't be read as one.
    #[error(
        "大模型的答复无法读取 (the answer can't be read: {why}{})",
        of(request_id)
    )]
    Unreadable {
        /// What is wrong with it; nothing of its text.
        why: &'static str,
        /// The server's name for the request, when it said one.
        request_id: Option<String>,
    },
    /// The server is in trouble.
    #[error("大模型服务故障 (the server is in trouble, {0})")]
    Trouble(Heard),
    /// Too many requests.
    #[error("大模型服务限流 (the server asks to slow down, {0})")]
    RateLimited(Heard),
    /// The account has no credit left.
    #[error("大模型账户余额不足，请缴费后运行 `iit llm close` (no credit left, {0})")]
    NoCredit(Heard),
    /// The key is wrong or may not use this model.
    #[error(
        "大模型服务拒绝密钥，请检查 LLM_API_KEY 后运行 `iit llm close` (the key is refused, {0})"
    )]
    BadKey(Heard),
    /// The request itself is refused: another try would be refused as well.
    #[error(
        "大模型服务拒绝请求，请检查 LLM_MODEL 与 LLM_BASE_URL (the request is refused, {heard}{}{})",
        code.as_deref().map(|code| format!(", {code}")).unwrap_or_default(),
        hint.map(|hint| format!(": {hint}")).unwrap_or_default()
    )]
    Refused {
        /// What the server answered with.
        heard: Heard,
        /// The server's own code for it, when it is a plain word and not the status again.
        code: Option<String>,
        /// What its message is about, in our words.
        hint: Option<&'static str>,
    },
}

/// What may be told of an answer that is no success.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Heard {
    /// The HTTP status; of an error in a "200 OK" the one it should have had.
    pub status: u16,
    /// How long the server asks to wait, at most [`super::retry_after::LONGEST`].
    pub retry_after: Option<Duration>,
    /// The server's name for the request, when it said one.
    pub request_id: Option<String>,
}

impl fmt::Display for Heard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HTTP {}{}", self.status, of(&self.request_id))
    }
}

fn of(request_id: &Option<String>) -> String {
    request_id
        .as_deref()
        .map(|id| format!(", request {id}"))
        .unwrap_or_default()
}

impl LlmError {
    /// The error an HTTP status (with what its body says) stands for.
    #[must_use]
    pub fn of_status(heard: Heard, said: &Said) -> Self {
        let status = heard.status.to_string();
        match heard.status {
            402 => Self::NoCredit(heard),
            400 if said.is_dry() => Self::NoCredit(heard),
            429 if said.speaks_of_money() => Self::NoCredit(heard),
            429 => Self::RateLimited(heard),
            401 | 403 => Self::BadKey(heard),
            408 => Self::NoAnswer {
                why: "the server gave up, HTTP 408",
                request_id: heard.request_id,
            },
            500.. => Self::Trouble(heard),
            _ => Self::Refused {
                heard,
                code: said.code.clone().filter(|code| *code != status),
                hint: said.hint,
            },
        }
    }

    /// The error that the body of a "200 OK" speaks of.
    #[must_use]
    pub fn of_body(said: &Said) -> Self {
        let heard = Heard {
            status: said.status(),
            ..Heard::default()
        };
        Self::of_status(heard, said)
    }

    /// An answer that can't be read.
    #[must_use]
    pub(super) fn unreadable(why: &'static str) -> Self {
        Self::Unreadable {
            why,
            request_id: None,
        }
    }

    /// The same, with the server's name for the request where none is known yet.
    #[must_use]
    pub(super) fn of_request(mut self, id: Option<String>) -> Self {
        let known = match &mut self {
            Self::Invalid { .. } | Self::NotSent { .. } => return self,
            Self::NoAnswer { request_id, .. } | Self::Unreadable { request_id, .. } => request_id,
            Self::Trouble(heard)
            | Self::RateLimited(heard)
            | Self::NoCredit(heard)
            | Self::BadKey(heard)
            | Self::Refused { heard, .. } => &mut heard.request_id,
        };
        *known = known.take().or(id);
        self
    }

    /// How long the server asks to wait before the next try.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Trouble(heard) | Self::RateLimited(heard) => heard.retry_after,
            _ => None,
        }
    }

    /// Whether the provider may have charged for it.
    #[must_use]
    pub fn maybe_billed(&self) -> bool {
        match self {
            Self::NoAnswer { .. } | Self::Unreadable { .. } => true,
            // A gateway gave up; the model behind it may have gone on.
            Self::Trouble(heard) => matches!(heard.status, 502 | 504 | 524),
            _ => false,
        }
    }
}

impl From<LlmError> for OpenAIError {
    fn from(error: LlmError) -> Self {
        Self::Boxed(Box::new(error))
    }
}
