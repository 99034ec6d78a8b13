//! The callback gate: signature, then freshness, then decryption, then parsing.

use std::sync::Arc;

use chrono::DateTime;
use secrecy::ExposeSecret;

use super::config::WecomConfig;
use super::crypto;
use super::inbound::Inbound;
use super::query::CallbackQuery;
use super::xml;
use crate::types::clock::Clock;

/// Why a callback was refused. For the log and the administrator; the sender is told only the status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallbackError {
    /// A query parameter is missing, doubled or unreadable.
    #[error("callback query: {0}; check that the proxy in front passes the query string unchanged")]
    Query(&'static str),
    /// The signature does not fit.
    #[error(
        "callback signature does not match; compare WECOM_TOKEN with the app's callback settings"
    )]
    Signature,
    /// The signature fits, the timestamp is too far from our clock.
    #[error(
        "callback timestamp is outside the replay window; check this machine's clock (WECOM_REPLAY_WINDOW_S)"
    )]
    Stale,
    /// The envelope or the decrypted message can't be read.
    #[error("callback XML: {0}; the message was not sent by WeCom as documented")]
    Malformed(&'static str),
    /// Encrypted for somebody else.
    #[error(
        "callback receiveid is not ours; set WECOM_RECEIVE_ID (a self-built app uses its CorpID)"
    )]
    ReceiveId,
    /// Cipher length or padding is wrong, mostly because of another key.
    #[error(
        "callback can't be decrypted; compare WECOM_ENCODING_AES_KEY with the app's callback settings"
    )]
    Decrypt,
    /// Decrypted, but shorter than it says.
    #[error("decrypted callback is too short for what it declares; compare WECOM_ENCODING_AES_KEY")]
    Buffer,
    /// The ciphertext is no base64.
    #[error(
        "callback ciphertext is not base64; check that the proxy in front passes the body unchanged"
    )]
    Base64,
}

impl CallbackError {
    /// WeCom's own number for it (WXBizMsgCrypt return codes).
    #[must_use]
    pub fn code(self) -> i32 {
        match self {
            Self::Query(_) | Self::Signature | Self::Stale => -40_001,
            Self::Malformed(_) => -40_002,
            Self::ReceiveId => -40_005,
            Self::Decrypt => -40_007,
            Self::Buffer => -40_008,
            Self::Base64 => -40_010,
        }
    }

    /// HTTP status to answer: 403 for what is not from WeCom to us now, 400 for what can't be read.
    #[must_use]
    pub fn http_status(self) -> u16 {
        match self {
            Self::Signature | Self::Stale | Self::ReceiveId => 403,
            Self::Query(_) | Self::Malformed(_) | Self::Decrypt | Self::Buffer | Self::Base64 => {
                400
            }
        }
    }
}

/// Checks and opens callbacks of one self-built app.
///
/// Does no I/O and keeps nothing: a repeated delivery passes again, because a genuine sender must not
/// be refused; the key of [`Inbound::dedupe_key`] keeps it from being worked on twice.
#[derive(Debug, Clone)]
pub struct Gate {
    config: Arc<WecomConfig>,
    clock: Clock,
}

impl Gate {
    /// A gate for `config`; `clock` decides what is too old.
    #[must_use]
    pub fn new(config: Arc<WecomConfig>, clock: Clock) -> Self {
        Self { config, clock }
    }

    /// The app this gate belongs to.
    #[must_use]
    pub fn agent_id(&self) -> i64 {
        self.config.agent_id
    }

    /// URL verification: the text to send back as it is, nothing added.
    ///
    /// # Errors
    /// [`CallbackError`]; a request without `echostr` is [`CallbackError::Query`].
    pub fn verify_url(&self, raw_query: &str) -> Result<String, CallbackError> {
        let query = CallbackQuery::parse(raw_query)?;
        let echo = query
            .echo
            .as_deref()
            .ok_or(CallbackError::Query("echostr is missing from the query"))?;
        self.open(&query, echo)
    }

    /// A message: the body as received.
    ///
    /// # Errors
    /// [`CallbackError`]. Nothing is decrypted before the signature fits.
    pub fn receive(&self, raw_query: &str, body: &[u8]) -> Result<Inbound, CallbackError> {
        let query = CallbackQuery::parse(raw_query)?;
        let body = std::str::from_utf8(body)
            .map_err(|_| CallbackError::Malformed("the body is not UTF-8"))?;
        let envelope = xml::parse(body)?;
        if envelope.name != "xml" {
            return Err(CallbackError::Malformed("the root element is not <xml>"));
        }
        let encrypted = envelope
            .only("Encrypt")?
            .ok_or(CallbackError::Malformed("Encrypt is missing"))?;
        let message = self.open(&query, encrypted.text.trim())?;
        Inbound::parse(&message, &self.config.corp_id, self.config.agent_id)
    }

    fn open(&self, query: &CallbackQuery, encrypted: &str) -> Result<String, CallbackError> {
        let token = self.config.token.expose_secret();
        if !crypto::signature_matches(
            &query.signature,
            token,
            &query.timestamp,
            &query.nonce,
            encrypted,
        ) {
            return Err(CallbackError::Signature);
        }
        if !self.is_fresh(&query.timestamp) {
            return Err(CallbackError::Stale);
        }
        crypto::decrypt(&self.config.aes_key, &self.config.receive_id, encrypted)
    }

    /// Early and late count alike: clocks differ both ways.
    fn is_fresh(&self, timestamp: &str) -> bool {
        let digits = timestamp.bytes().all(|b| b.is_ascii_digit());
        let sent = timestamp
            .parse()
            .ok()
            .filter(|_| digits)
            .and_then(|s| DateTime::from_timestamp(s, 0));
        sent.is_some_and(|sent| {
            (self.clock.now() - sent).num_seconds().unsigned_abs()
                <= self.config.replay_window.as_secs()
        })
    }
}
