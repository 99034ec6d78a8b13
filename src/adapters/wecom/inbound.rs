//! One decrypted message or event, typed, with the key that tells a repeat from a new one.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::callback::CallbackError;
use super::crypto::hex;
use super::xml::{self, Element, XmlError};
use crate::types::text::without_nul;

/// What a person (or WeCom itself) sent to the app. Text holds no U+0000.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inbound {
    /// CorpID of the configured app.
    pub corp: String,
    /// AgentID inside the message, else the configured one.
    pub agent: i64,
    /// UserID of the sender; may be empty or `sys` for events WeCom sends by itself. Personal data: not for logs.
    pub from_user: String,
    /// MsgId as decimal text; events have none.
    pub msg_id: Option<String>,
    /// WeCom's CreateTime.
    pub created_at: DateTime<Utc>,
    /// What was sent.
    pub kind: Kind,
    /// Whether U+0000 had to be replaced by U+FFFD somewhere in `kind`.
    pub sanitised: bool,
    dedupe_key: String,
}

/// Kinds of inbound messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Kind {
    /// Typed text.
    Text {
        /// As typed; not trimmed.
        content: String,
    },
    /// A picture; the media can be fetched for three days.
    Image {
        /// For `media/get`.
        media_id: String,
        /// WeCom's own link.
        pic_url: String,
    },
    /// A menu click, a card click, a visit, a change in the directory, …
    Event(Event),
    /// Any other MsgType (voice, video, location, link, file, …): acknowledged, answered politely.
    Other {
        /// MsgType as WeCom names it.
        msg_type: String,
    },
}

/// Fields of an event; absent ones are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Event name in lower case (WeCom's own case varies).
    pub event: String,
    /// EventKey: a menu's or a card button's key.
    pub event_key: String,
    /// TaskId of a template card.
    pub task_id: String,
    /// CardType of a template card.
    pub card_type: String,
    /// ResponseCode: one update of the card, within 72 hours.
    pub response_code: String,
    /// ChangeType of a directory change.
    pub change_type: String,
    /// Who or what a directory change is about: UserID, Id, TagId.
    pub subject: String,
    /// Choices made on a vote or multiple-choice card.
    pub selected: Vec<Selection>,
}

/// One answered question of a template card.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selection {
    /// QuestionKey.
    pub question: String,
    /// OptionIds in the order sent.
    pub options: Vec<String>,
}

impl Inbound {
    /// Reads a decrypted message.
    ///
    /// # Errors
    /// [`CallbackError::Malformed`] (-40002) when it is no XML of the protocol, or a field its kind
    /// can't do without is missing or doubled.
    pub fn parse(message: &str, corp: &str, configured_agent: i64) -> Result<Self, CallbackError> {
        let root = xml::parse(message)?;
        if root.name != "xml" {
            return Err(CallbackError::Malformed(
                "the decrypted root element is not <xml>",
            ));
        }
        let mut fields = Fields {
            root: &root,
            sanitised: false,
        };
        let msg_type = fields.token("MsgType")?;
        let from_user = fields.token("FromUserName")?;
        let created = fields.token("CreateTime")?;
        let created_at = created
            .parse()
            .ok()
            .and_then(|seconds| DateTime::from_timestamp(seconds, 0))
            .ok_or(CallbackError::Malformed("CreateTime is missing or no time"))?;
        let agent = match fields.token("AgentID")?.as_str() {
            "" => configured_agent,
            id => id
                .parse()
                .map_err(|_| CallbackError::Malformed("AgentID is no number"))?,
        };
        let msg_id = Some(fields.token("MsgId")?).filter(|id| is_msg_id(id));
        let kind = match msg_type.to_ascii_lowercase().as_str() {
            "" => return Err(CallbackError::Malformed("MsgType is missing")),
            "text" => Kind::Text {
                content: fields.required("Content")?,
            },
            "image" => Kind::Image {
                media_id: fields.required("MediaId")?.trim().to_owned(),
                pic_url: fields.token("PicUrl")?,
            },
            "event" => Kind::Event(fields.event()?),
            _ => Kind::Other { msg_type },
        };
        if from_user.is_empty() && !matches!(kind, Kind::Event(_)) {
            return Err(CallbackError::Malformed("FromUserName is missing"));
        }
        let dedupe_key = dedupe_key(
            corp,
            agent,
            &kind,
            &from_user,
            created_at,
            msg_id.as_deref(),
            message,
        );
        let sanitised = fields.sanitised;
        Ok(Self {
            corp: corp.to_owned(),
            agent,
            from_user,
            msg_id,
            created_at,
            kind,
            sanitised,
            dedupe_key,
        })
    }

    /// The same for every delivery of one message, different for different ones; at most 150 bytes of ASCII
    /// for any message WeCom sends.
    ///
    /// MsgId by corp and agent. Events carry none, and sender plus second (what the documentation
    /// proposes) would drop two clicks within one second: their key is a hash over sender, second, name,
    /// key, task, change and subject. Anything else without MsgId: a hash of the decrypted text.
    #[must_use]
    pub fn dedupe_key(&self) -> &str {
        &self.dedupe_key
    }
}

/// MsgId is a 64-bit number, kept as text; some senders write 0 for "none".
fn is_msg_id(id: &str) -> bool {
    id.len() <= 20 && id.bytes().all(|b| b.is_ascii_digit()) && id.bytes().any(|b| b != b'0')
}

fn dedupe_key(
    corp: &str,
    agent: i64,
    kind: &Kind,
    from_user: &str,
    created_at: DateTime<Utc>,
    msg_id: Option<&str>,
    message: &str,
) -> String {
    match (kind, msg_id) {
        (Kind::Event(event), _) => {
            let second = created_at.timestamp().to_string();
            let hash = hash_fields(&[
                from_user,
                &second,
                &event.event,
                &event.event_key,
                &event.task_id,
                &event.change_type,
                &event.subject,
            ]);
            format!("{corp}:{agent}:event:{hash}")
        }
        (_, Some(id)) => format!("{corp}:{agent}:msg:{id}"),
        (_, None) => format!("{corp}:{agent}:body:{}", hash_fields(&[message])),
    }
}

/// Length-prefixed, so that no value can run into the next.
fn hash_fields(fields: &[&str]) -> String {
    let mut sha = Sha256::new();
    for field in fields {
        sha.update((field.len() as u64).to_be_bytes());
        sha.update(field.as_bytes());
    }
    hex(&sha.finalize())
}

struct Fields<'a> {
    root: &'a Element,
    sanitised: bool,
}

impl Fields<'_> {
    fn clean(&mut self, text: &str) -> String {
        let (text, changed) = without_nul(text);
        self.sanitised |= changed;
        text
    }

    /// A value without the white space around it; empty when absent.
    fn token(&mut self, name: &str) -> Result<String, CallbackError> {
        let text = self
            .root
            .only(name)?
            .map_or("", |element| element.text.trim());
        Ok(self.clean(text))
    }

    /// A value as it is.
    fn required(&mut self, name: &'static str) -> Result<String, CallbackError> {
        let element = self.root.only(name)?.ok_or(CallbackError::Malformed(
            "a field this kind of message must have is missing",
        ))?;
        Ok(self.clean(&element.text))
    }

    fn event(&mut self) -> Result<Event, CallbackError> {
        let event = self.token("Event")?.to_lowercase();
        if event.is_empty() {
            return Err(CallbackError::Malformed("Event is missing"));
        }
        let subject = [
            self.token("UserID")?,
            self.token("Id")?,
            self.token("TagId")?,
        ];
        Ok(Event {
            event,
            event_key: self.token("EventKey")?,
            task_id: self.token("TaskId")?,
            card_type: self.token("CardType")?,
            response_code: self.token("ResponseCode")?,
            change_type: self.token("ChangeType")?,
            subject: subject
                .into_iter()
                .filter(|part| !part.is_empty())
                .collect::<Vec<_>>()
                .join(" "),
            selected: self.selections()?,
        })
    }

    fn selections(&mut self) -> Result<Vec<Selection>, CallbackError> {
        let Some(items) = self.root.only("SelectedItems")? else {
            return Ok(Vec::new());
        };
        let mut selections = Vec::new();
        for item in items.all("SelectedItem") {
            let question = item.only("QuestionKey")?.map_or("", |key| key.text.trim());
            let options = item
                .only("OptionIds")?
                .into_iter()
                .flat_map(|ids| ids.all("OptionId"));
            let options = options
                .map(|option| self.clean(option.text.trim()))
                .collect();
            selections.push(Selection {
                question: self.clean(question),
                options,
            });
        }
        Ok(selections)
    }
}

impl From<XmlError> for CallbackError {
    fn from(error: XmlError) -> Self {
        Self::Malformed(error.0)
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::expect_used,
        reason = "a failed expectation is the test's verdict"
    )]

    use proptest::prelude::*;

    use super::*;

    fn parse(inner: &str) -> Result<Inbound, CallbackError> {
        Inbound::parse(&format!("<xml>{inner}</xml>"), "ww1", 1_000_002)
    }

    fn event(rest: &str) -> Inbound {
        parse(&format!("<FromUserName>Zhang</FromUserName><CreateTime>1700000000</CreateTime><MsgType>event</MsgType>{rest}")).unwrap()
    }

    fn text(rest: &str) -> Inbound {
        parse(&format!("<FromUserName>Zhang</FromUserName><CreateTime>1700000000</CreateTime><MsgType>text</MsgType>{rest}")).unwrap()
    }

    #[test]
    fn two_events_of_one_second_have_different_keys_and_a_repeat_the_same() {
        let events = [
            "<Event>click</Event><EventKey>a</EventKey>",
            "<Event>click</Event><EventKey>b</EventKey>",
            "<Event>view</Event><EventKey>a</EventKey>",
            "<Event>template_card_event</Event><EventKey>a</EventKey><TaskId>1</TaskId>",
            "<Event>template_card_event</Event><EventKey>a</EventKey><TaskId>2</TaskId>",
            "<Event>change_contact</Event><ChangeType>update_user</ChangeType><UserID>u1</UserID>",
            "<Event>change_contact</Event><ChangeType>update_user</ChangeType><UserID>u2</UserID>",
            "<Event>change_contact</Event><ChangeType>delete_user</ChangeType><UserID>u2</UserID>",
            "<Event>click</Event><EventKey>a</EventKey><AgentID>7</AgentID>",
            "<Event>clicka</Event><EventKey></EventKey>",
        ];
        let keys: std::collections::BTreeSet<_> = events
            .iter()
            .map(|e| event(e).dedupe_key().to_owned())
            .collect();
        assert_eq!(keys.len(), events.len());
        assert_eq!(
            event("<Event>CLICK</Event><EventKey>a</EventKey><ResponseCode>one</ResponseCode>")
                .dedupe_key(),
            event("<Event>click</Event><EventKey>a</EventKey><ResponseCode>two</ResponseCode>")
                .dedupe_key(),
        );
    }

    #[test]
    fn a_message_is_known_by_msg_id_within_corp_and_agent() {
        let one = text("<Content>a</Content><MsgId>7459035031717794886</MsgId>");
        assert_eq!(one.dedupe_key(), "ww1:1000002:msg:7459035031717794886");
        assert_eq!(one.msg_id.as_deref(), Some("7459035031717794886"));
        assert_ne!(
            one.dedupe_key(),
            text("<Content>a</Content><MsgId>7459035031717794886</MsgId><AgentID>9</AgentID>")
                .dedupe_key()
        );
    }

    #[test]
    fn without_a_usable_msg_id_the_text_itself_is_the_key() {
        for id in [
            "",
            "<MsgId></MsgId>",
            "<MsgId>0</MsgId>",
            "<MsgId>abc</MsgId>",
            "<MsgId>123456789012345678901</MsgId>",
        ] {
            let message = text(&format!("<Content>a</Content>{id}"));
            assert_eq!(message.msg_id, None, "{id}");
            assert!(
                message.dedupe_key().starts_with("ww1:1000002:body:"),
                "{id}"
            );
        }
        assert_ne!(
            text("<Content>a</Content>").dedupe_key(),
            text("<Content>b</Content>").dedupe_key()
        );
    }

    #[test]
    fn nul_is_replaced_and_said_so() {
        let message = text("<Content>a\0b&#0;c</Content><MsgId>1</MsgId>");
        assert_eq!(
            message.kind,
            Kind::Text {
                content: "a\u{fffd}b\u{fffd}c".into()
            }
        );
        assert!(message.sanitised);
        assert!(!text("<Content>ab</Content>").sanitised);
    }

    #[test]
    fn white_space_around_names_and_numbers_is_dropped_but_kept_in_what_was_typed() {
        let message = text("<Content> 质控 \n</Content><MsgId> 12 </MsgId><AgentID>\n7 </AgentID>");
        assert_eq!(
            message.kind,
            Kind::Text {
                content: " 质控 \n".into()
            }
        );
        assert_eq!((message.msg_id.as_deref(), message.agent), (Some("12"), 7));
    }

    #[test]
    fn a_message_missing_what_it_needs_is_refused() {
        let head = "<FromUserName>Z</FromUserName><CreateTime>1</CreateTime>";
        for inner in [
            String::new(),
            head.to_owned(),
            format!("{head}<MsgType>text</MsgType>"),
            format!("{head}<MsgType>image</MsgType>"),
            format!("{head}<MsgType>event</MsgType>"),
            format!("{head}<MsgType>text</MsgType><Content>a</Content><Content>b</Content>"),
            format!("{head}<MsgType>text</MsgType><Content>a</Content><AgentID>x</AgentID>"),
            "<CreateTime>1</CreateTime><MsgType>text</MsgType><Content>a</Content>".to_owned(),
            "<FromUserName>Z</FromUserName><MsgType>text</MsgType><Content>a</Content>".to_owned(),
            "<FromUserName>Z</FromUserName><CreateTime>soon</CreateTime><MsgType>text</MsgType><Content>a</Content>".to_owned(),
            format!("<CreateTime>{}</CreateTime><FromUserName>Z</FromUserName><MsgType>text</MsgType><Content>a</Content>", i64::MAX),
        ] {
            assert!(matches!(parse(&inner), Err(CallbackError::Malformed(_))), "{inner}");
        }
        assert!(Inbound::parse("<json/>", "ww1", 1).is_err());
    }

    proptest! {
        #[test]
        fn whatever_is_typed_arrives_unchanged(content in "[^\r\0]*") {
            let data = content.replace("]]>", "]]]]><![CDATA[>");
            let message = text(&format!("<Content><![CDATA[{data}]]></Content><MsgId>1</MsgId>"));
            prop_assert_eq!(message.kind, Kind::Text { content });
        }
    }
}
