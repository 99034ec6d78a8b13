//! What can go wrong with a message going out, sorted by what the sender may do next.

use std::time::Duration;

/// Why a message was not (or not surely) sent. Never holds a token, a secret, a URL or the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// WeCom said no; nothing was delivered. `permanent`: the same request can't ever succeed.
    #[error("企业微信拒绝了消息 {errcode}: {explanation}")]
    Refused {
        /// WeCom's number, or the HTTP status, or 0 when refused here.
        errcode: i64,
        /// Whether trying again is pointless until somebody changes something.
        permanent: bool,
        /// What it means and what to do.
        explanation: String,
    },
    /// Too many requests or WeCom is busy; nothing was delivered. Try again after `retry_after`.
    #[error("企业微信繁忙 {errcode}，{} 秒后再试 (busy, retry later)", .retry_after.as_secs())]
    Busy {
        /// WeCom's number, or 429.
        errcode: i64,
        /// How long to wait at least.
        retry_after: Duration,
    },
    /// CorpID, secret or token are not accepted; nothing was delivered. An administrator must act.
    #[error("企业微信凭证被拒绝 {errcode}: {explanation}")]
    TokenRejected {
        /// WeCom's number.
        errcode: i64,
        /// What it means and what to do.
        explanation: String,
    },
    /// The request went out and no clear answer came back: the person may have the message. Sending
    /// again may show it twice, so that is the caller's decision, not a retry loop's.
    #[error("消息可能已送达，未收到企业微信的答复 (sent, answer unknown): {why}")]
    Ambiguous {
        /// What happened on the wire.
        why: String,
    },
    /// Nothing was sent; trying again is safe.
    #[error("消息未发出 (not sent): {why}")]
    NotSent {
        /// What happened.
        why: String,
    },
    /// Delivered, but not to these people. Don't send again to everybody.
    #[error("消息已发出，但 {} 名收件人未收到：不在应用可见范围或无企业微信许可 (sent, but some recipients can't be reached)", .users.len())]
    PartialInvalid {
        /// The unreachable ones, spelled as the caller did. Personal data: not for logs.
        users: Vec<String>,
        /// WeCom's id of the message.
        msg_id: String,
    },
}

impl SendError {
    /// How long to wait at least before the same message may be tried again. `None`: trying again could
    /// show it twice, or can't help before somebody changes something.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Busy { retry_after, .. } => Some(*retry_after),
            Self::NotSent { .. } => Some(Duration::from_secs(5)),
            Self::Refused {
                permanent: false, ..
            } => Some(Duration::from_secs(60)),
            // Safe, and of use once an administrator has put the right secret in.
            Self::TokenRejected { .. } => Some(Duration::from_secs(300)),
            Self::Refused {
                permanent: true, ..
            }
            | Self::Ambiguous { .. }
            | Self::PartialInvalid { .. } => None,
        }
    }
}
