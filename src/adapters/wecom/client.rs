//! Sending messages: `gettoken`, `message/send` and `message/update_template_card`.

use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use uuid::Uuid;

use super::config::WecomConfig;
use super::errcode;
use super::error::SendError;
pub use super::http::Deadlines;
use super::http::{Answer, Api};
use super::split::MAX_TEXT_BYTES;
use super::token::{Token, TokenFetcher, TokenSource, TokenStore};

/// For so long at least WeCom shows the request of [`WecomClient::send_text_once`] only once.
pub const SHOWN_ONCE_FOR: Duration = Duration::from_secs(LONGEST_COMPARED_S - SPREAD_S);
/// The longest interval WeCom takes.
const LONGEST_COMPARED_S: u64 = 4 * 60 * 60;
/// By how much the intervals of two messages may differ.
const SPREAD_S: u64 = 30 * 60;

/// A message WeCom accepted for every recipient.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// WeCom's id, for a recall within 24 hours.
    pub msg_id: String,
}

/// Sends as one self-built app. One per process; cheap calls, shared connections.
#[derive(Debug)]
pub struct WecomClient<S> {
    api: Api,
    app: String,
    agent_id: i64,
    cards: bool,
    tokens: TokenSource<S, GetToken>,
}

impl<S: TokenStore> WecomClient<S> {
    /// A client for `config` that shares its token through `store`.
    ///
    /// # Errors
    /// No TLS provider is installed in this process, or the system's TLS or proxy settings are unusable.
    pub fn new(config: &WecomConfig, store: S, deadlines: Deadlines) -> anyhow::Result<Self> {
        let api = Api::new(&config.api_base, deadlines)?;
        let fetcher = GetToken {
            api: api.clone(),
            corp_id: config.corp_id.clone(),
            secret: config.secret.clone(),
        };
        Ok(Self {
            api,
            app: config.app(),
            agent_id: config.agent_id,
            cards: config.cards,
            tokens: TokenSource::new(store, fetcher),
        })
    }

    /// Names the app among all that share a database.
    #[must_use]
    pub fn app(&self) -> &str {
        &self.app
    }

    /// Whether choices go out as cards, too (`WECOM_CARDS`).
    #[must_use]
    pub fn sends_cards(&self) -> bool {
        self.cards
    }

    /// Sends one text of at most [`MAX_TEXT_BYTES`] to people by UserID.
    ///
    /// A refused token is replaced and the message tried once more; nothing else is retried here.
    /// WeCom drops what exceeds [its limits](super::limits) for one person **without an error**: who
    /// calls this counts.
    ///
    /// # Errors
    /// [`SendError`]; UserIDs that are none (such as `@all`) and texts that are empty or too long are
    /// refused before anything is sent.
    pub async fn send_text(&self, to: &[&str], content: &str) -> Result<Sent, SendError> {
        self.text(to, content, None).await
    }

    /// The same for a message that may be sent again when it is unclear whether it arrived: WeCom shows
    /// the very same request only once within [`SHOWN_ONCE_FOR`].
    ///
    /// WeCom compares whole requests, so each `message` names an interval of its own: two messages with
    /// the same words in one part are two.
    ///
    /// # Errors
    /// As [`WecomClient::send_text`].
    pub async fn send_text_once(
        &self,
        to: &[&str],
        content: &str,
        message: Uuid,
    ) -> Result<Sent, SendError> {
        #[allow(
            clippy::cast_possible_truncation,
            reason = "the remainder is below SPREAD_S"
        )]
        let own = (message.as_u128() % u128::from(SPREAD_S)) as u64;
        let interval = Duration::from_secs(LONGEST_COMPARED_S - own);
        self.text(to, content, Some(interval)).await
    }

    /// Sends one card ([`super::card`]) to people by UserID. Who reads in the WeChat plug-in sees nothing
    /// of it, and WeCom says ok all the same: a card repeats what a text said.
    ///
    /// # Errors
    /// [`SendError`], as [`WecomClient::send_text`].
    pub async fn send_card(&self, to: &[&str], card: &Value) -> Result<Sent, SendError> {
        check_recipients(to)?;
        let body = json!({
            "touser": to.join("|"),
            "msgtype": "template_card",
            "agentid": self.agent_id,
            "template_card": card,
            "enable_duplicate_check": 0,
        });
        delivered(to, &self.call("message/send", &body).await?)
    }

    /// Puts one dead button with `name` in place of a card's buttons, for the person whose click brought
    /// `response_code`. Each code is good for one call, within 72 hours of the click.
    ///
    /// # Errors
    /// [`SendError`]. After [`SendError::Ambiguous`] the code may be used up.
    pub async fn replace_buttons(
        &self,
        user: &str,
        response_code: &str,
        name: &str,
    ) -> Result<(), SendError> {
        check_recipients(&[user])?;
        let body = json!({
            "userids": [user],
            "agentid": self.agent_id,
            "response_code": response_code,
            "button": { "replace_name": name },
        });
        self.call("message/update_template_card", &body)
            .await
            .map(|_| ())
    }

    async fn text(
        &self,
        to: &[&str],
        content: &str,
        once_within: Option<Duration>,
    ) -> Result<Sent, SendError> {
        check_recipients(to)?;
        check_text(content)?;
        let mut body = json!({
            "touser": to.join("|"),
            "msgtype": "text",
            "agentid": self.agent_id,
            "text": { "content": content },
            "safe": 0,
            "enable_duplicate_check": u8::from(once_within.is_some()),
        });
        if let Some(span) = once_within {
            body["duplicate_check_interval"] = span.as_secs().into();
        }
        delivered(to, &self.call("message/send", &body).await?)
    }

    /// One call with a token; with another one, if WeCom does not take the first. Returns the answer that
    /// says ok.
    async fn call(&self, path: &str, body: &Value) -> Result<Value, SendError> {
        let token = self.tokens.get().await?;
        let mut answer = self.post(path, &token, body).await?;
        if errcode::wants_new_token(answer.errcode) {
            let token = self.tokens.replace(&token).await?;
            answer = self.post(path, &token, body).await?;
        }
        if answer.errcode != 0 {
            return Err(errcode::explain(answer.errcode, &answer.errmsg));
        }
        Ok(answer.body)
    }

    async fn post(&self, path: &str, token: &Token, body: &Value) -> Result<Answer, SendError> {
        let query = [("access_token", token.value.expose_secret())];
        self.api.post(path, &query, body).await
    }
}

/// UserIDs are 1 to 64 of `[0-9A-Za-z._@-]`. `@all` would show one subject's data to the whole company.
fn is_user_id(id: &str) -> bool {
    (1..=64).contains(&id.len())
        && id
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"._@-".contains(&b))
        && !id.eq_ignore_ascii_case("@all")
}

fn check_recipients(to: &[&str]) -> Result<(), SendError> {
    let fine = (1..=1000).contains(&to.len()) && to.iter().all(|id| is_user_id(id));
    refuse_unless(
        fine,
        "收件人不是合法的 UserID 列表 (recipients must be 1 to 1000 valid UserIDs, never @all)",
    )
}

fn check_text(content: &str) -> Result<(), SendError> {
    refuse_unless(
        !content.trim().is_empty(),
        "消息内容为空 (the message is empty)",
    )?;
    refuse_unless(
        content.len() <= MAX_TEXT_BYTES,
        "文本超过 2048 字节，须先分段 (longer than 2048 bytes: split it first)",
    )
}

fn refuse_unless(fine: bool, explanation: &str) -> Result<(), SendError> {
    if fine {
        return Ok(());
    }
    Err(SendError::Refused {
        errcode: 0,
        permanent: true,
        explanation: explanation.to_owned(),
    })
}

/// WeCom answers `errcode` 0 even when some recipients got nothing, and lower-cases their ids.
fn delivered(to: &[&str], answer: &Value) -> Result<Sent, SendError> {
    let list = |name| {
        answer
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .split('|')
            .filter(|id| !id.is_empty())
    };
    let unreachable: Vec<&str> = list("invaliduser").chain(list("unlicenseduser")).collect();
    let msg_id = answer
        .get("msgid")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    let users: Vec<String> = to
        .iter()
        .filter(|id| {
            unreachable
                .iter()
                .any(|other| other.eq_ignore_ascii_case(id))
        })
        .map(|id| (*id).to_owned())
        .collect();
    if users.is_empty() {
        Ok(Sent { msg_id })
    } else if users.len() == to.len() {
        Err(errcode::explain(81_013, ""))
    } else {
        Err(SendError::PartialInvalid { users, msg_id })
    }
}

/// `gettoken` with the app's own secret.
#[derive(Debug)]
struct GetToken {
    api: Api,
    corp_id: String,
    secret: SecretString,
}

impl TokenFetcher for GetToken {
    async fn fetch(&self) -> Result<Token, SendError> {
        let query = [
            ("corpid", self.corp_id.as_str()),
            ("corpsecret", self.secret.expose_secret()),
        ];
        let answer = self
            .api
            .get("gettoken", &query)
            .await
            .map_err(|error| match error {
                // The message itself was not sent, whatever became of this call.
                SendError::Ambiguous { why } => SendError::NotSent {
                    why: format!("gettoken: {why}"),
                },
                other => other,
            })?;
        if answer.errcode != 0 {
            return Err(errcode::explain(answer.errcode, &answer.errmsg));
        }
        let value = answer
            .body
            .get("access_token")
            .and_then(Value::as_str)
            .filter(|value| !value.is_empty());
        let lifetime = answer
            .body
            .get("expires_in")
            .and_then(Value::as_u64)
            .filter(|seconds| *seconds > 0);
        match (value, lifetime) {
            (Some(value), Some(seconds)) => Ok(Token::fresh(
                value.into(),
                Duration::from_secs(seconds.min(7_200)),
            )),
            _ => Err(SendError::NotSent {
                why: "gettoken answered without access_token or expires_in".to_owned(),
            }),
        }
    }
}
