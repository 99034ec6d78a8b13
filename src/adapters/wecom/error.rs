//! What can go wrong with a message going out, sorted by what the sender may do next.

use std::borrow::Cow;

use super::errcode::{HANGING, Pause, UNREACHABLE};

/// Why a message was not (or not surely) sent. Never holds a token, a secret, a URL or the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// WeCom does not take this message; nothing was delivered, others are not concerned. `permanent`:
    /// the same request can't ever succeed.
    #[error("企业微信拒绝了消息 {errcode}: {explanation}")]
    Refused {
        /// WeCom's number, or 0 when refused here.
        errcode: i64,
        /// Whether trying again is pointless until somebody changes something.
        permanent: bool,
        /// What it means and what to do.
        explanation: String,
    },
    /// WeCom takes no message of this app for now; nothing was delivered.
    #[error("企业微信暂不接收本应用的消息 {errcode}: {explanation}")]
    Blocked {
        /// WeCom's number, or the HTTP status.
        errcode: i64,
        /// How long to keep still, and whether that helps by itself.
        pause: Pause,
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
    /// How long every message of the app should keep still after this. `None`: only this message is
    /// concerned.
    ///
    /// An answer that stays away counts too: while WeCom hangs, one message at a time may find out,
    /// instead of all of them becoming unknown.
    #[must_use]
    pub fn pause(&self) -> Option<Pause> {
        match self {
            Self::Blocked { pause, .. } => Some(*pause),
            Self::NotSent { .. } => Some(UNREACHABLE),
            Self::Ambiguous { .. } => Some(HANGING),
            Self::Refused { .. } | Self::PartialInvalid { .. } => None,
        }
    }

    /// A short name of what happened, for figures: WeCom's number, or one of `not_sent`, `unclear`,
    /// `partial`.
    #[must_use]
    pub fn cause(&self) -> Cow<'static, str> {
        match self {
            Self::Refused { errcode, .. } | Self::Blocked { errcode, .. } => {
                errcode.to_string().into()
            }
            Self::NotSent { .. } => "not_sent".into(),
            Self::Ambiguous { .. } => "unclear".into(),
            Self::PartialInvalid { .. } => "partial".into(),
        }
    }
}
