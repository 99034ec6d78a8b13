//! From a click on a card to the choice it made. A click says what typing that choice's label says, with
//! one difference: it can't be taken for another choice.
//!
//! It counts once, from the person the card was sent to, and only while its question is the one that
//! waits; what was asked before may mean somebody else by now. A late one is told so. Any other is noted
//! and does nothing: nobody else sees the card, so such a click was made up.

use sqlx::PgConnection;

use super::{reply, services::Services};
use crate::{
    adapters::wecom::{
        card,
        inbound::{Event, Kind},
    },
    engines::router::{Choice, Clarification},
    jobs::card_update::CardUpdate,
    queue::{JobError, NewJob, Settlement},
    store::{
        cards::{self, SentCard, Verdict},
        conversations,
        inbox::{self, Message},
        replies::Chip,
    },
    types::ids::OutboxId,
};

/// [`Message::kind`] of an event that turned out to be a choice.
pub const CLICK: &str = "click";

/// How a late click is answered.
const LATE: &str =
    "这张卡片上的问题已经过去了，刚才的点击没有执行任何操作。请直接告诉我您需要什么。";

/// What an event means.
#[derive(Debug)]
pub enum Click {
    /// Nothing that anybody waits for.
    Nothing,
    /// A choice whose question does not wait any more.
    Late(Pick),
    /// A choice.
    Answers(Pick),
}

/// The choice somebody made.
#[derive(Debug, Clone)]
pub struct Pick {
    card: OutboxId,
    no: usize,
    chip: Chip,
    /// The study it is about; `None` when the card asked which.
    project: Option<String>,
}

impl Pick {
    /// The event as the message it stands for. A study is named by its id: two may have one name.
    #[must_use]
    pub fn as_said(&self, message: Message) -> Message {
        let text = match self.project {
            None => &self.chip.text,
            Some(_) => &self.chip.label,
        };
        Message {
            kind: CLICK.to_owned(),
            text: text.clone(),
            ..message
        }
    }

    /// Whether it can be meant while `project` is talked about.
    #[must_use]
    pub fn is_about(&self, project: &str) -> bool {
        self.project.as_deref().is_none_or(|own| own == project)
    }
}

/// Reads an event of the inbox.
///
/// # Errors
/// The database failed.
pub async fn read(conn: &mut PgConnection, message: &Message) -> Result<Click, JobError> {
    let Some(event) = event_of(&message.detail).filter(|e| e.event == "template_card_event") else {
        return Ok(Click::Nothing);
    };
    let Some(card) = card::message_of(&event.task_id) else {
        return Ok(Click::Nothing);
    };
    let Some(sent) = cards::sent_card(conn, card).await? else {
        return Ok(Click::Nothing);
    };
    if !sent.recipient.eq_ignore_ascii_case(&message.sender) {
        tracing::warn!(message.id = %message.id, outbox.id = %card, "card.click.foreign");
        return Ok(Click::Nothing);
    }
    let choice = card::choice_of(&event.event_key);
    let Some((no, chip)) = choice.and_then(|no| Some((no, sent.chips.get(no)?.clone()))) else {
        tracing::warn!(message.id = %message.id, outbox.id = %card, "card.click.unknown_key");
        return Ok(Click::Nothing);
    };
    if sent.clicked {
        return Ok(Click::Nothing);
    }
    let pick = Pick {
        card,
        no,
        chip,
        project: sent.project.clone(),
    };
    Ok(match waits(conn, message, &sent, &pick).await? {
        true => Click::Answers(pick),
        false => Click::Late(pick),
    })
}

/// What WeCom said of an event, as the entry stored it.
#[must_use]
pub fn event_of(detail: &serde_json::Value) -> Option<Event> {
    match serde_json::from_value(detail.get("kind")?.clone()) {
        Ok(Kind::Event(event)) => Some(event),
        _ => None,
    }
}

/// Whether the card's question is the one that waits for an answer.
async fn waits(
    conn: &mut PgConnection,
    message: &Message,
    sent: &SentCard,
    pick: &Pick,
) -> Result<bool, sqlx::Error> {
    let Some(asked_by) = sent.message else {
        return Ok(false);
    };
    let Some(project) = &sent.project else {
        let (_, waiting) = conversations::chosen_project(conn, &message.sender).await?;
        return Ok(waiting == Some(asked_by));
    };
    let conversation = conversations::get(conn, project, &message.sender, 0.0).await?;
    let pending: Option<Clarification> = conversation
        .pending
        .filter(|_| conversation.pending_of == Some(asked_by))
        .and_then(|value| serde_json::from_value(value).ok());
    Ok(pending.is_some_and(|pending| {
        pending
            .choices
            .get(pick.no)
            .is_some_and(|choice| is_that(choice, &pick.chip))
    }))
}

fn is_that(choice: &Choice, chip: &Chip) -> bool {
    choice.label == chip.label && choice.text == chip.text
}

/// The question with the one choice left that was made, so that its label can't be read as another's, or
/// as a number.
#[must_use]
pub fn only_the_picked(mut pending: Clarification, pick: Option<&Pick>) -> Clarification {
    if let Some(pick) = pick.filter(|pick| pick.project.is_some()) {
        pending.choices.retain(|choice| is_that(choice, &pick.chip));
        pending.choices.truncate(1);
    }
    pending
}

/// Notes that a click was understood, and has its card show the choice.
///
/// # Errors
/// The database failed; somebody else's click on the same card came first.
pub async fn taken(
    settlement: &mut Settlement,
    message: &Message,
    pick: &Pick,
) -> Result<(), JobError> {
    note(settlement, message, pick, Verdict::Taken).await?;
    inbox::said(settlement.conn(), message.id, &message.text).await?;
    Ok(())
}

/// Tells somebody that the question he clicked on is past, and has its card say so.
///
/// # Errors
/// The database failed.
pub async fn late(
    services: &Services,
    settlement: &mut Settlement,
    message: &Message,
    pick: &Pick,
) -> Result<(), JobError> {
    note(settlement, message, pick, Verdict::Late).await?;
    inbox::said(settlement.conn(), message.id, &pick.chip.label).await?;
    reply::reply(services, settlement, message, LATE, &[], "answered").await
}

async fn note(
    settlement: &mut Settlement,
    message: &Message,
    pick: &Pick,
    verdict: Verdict,
) -> Result<(), JobError> {
    let no = i32::try_from(pick.no).unwrap_or(i32::MAX);
    let first = cards::clicked(settlement.conn(), pick.card, message.id, no, verdict).await?;
    if !first {
        // One person's messages are understood one after the other, so this one is read again.
        return Err(JobError::retry(anyhow::anyhow!(
            "another click on this card came first; this one is read again"
        )));
    }
    let update = CardUpdate { card: pick.card };
    settlement.enqueue(NewJob::of(&update)?).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        reason = "a failed expectation is the test's verdict"
    )]

    use super::*;
    use crate::engines::router::{Conversation, keyword};

    fn pick(no: usize, chip: &Choice) -> Pick {
        Pick {
            card: OutboxId::generate(),
            no,
            chip: Chip {
                label: chip.label.clone(),
                text: chip.text.clone(),
            },
            project: Some("lung".to_owned()),
        }
    }

    #[test]
    fn a_label_that_is_the_number_of_another_choice_means_itself() {
        let choices: Vec<Choice> = ["2", "1"]
            .map(|id| Choice {
                label: id.to_owned(),
                text: format!("质控 编号「{id}」"),
            })
            .into();
        let pending = Clarification {
            question: "请问您指的是下面哪一位？".to_owned(),
            choices: choices.clone(),
            resume: None,
        };
        for (no, choice) in choices.iter().enumerate() {
            let left = only_the_picked(pending.clone(), Some(&pick(no, choice)));
            let conversation = Conversation {
                pending: Some(&left),
                ..Conversation::default()
            };
            let routing = keyword::route(&choice.label, &conversation);
            let [intent] = routing.intents.as_slice() else {
                panic!("{routing:?}")
            };
            assert_eq!(intent.entities.record_ids.concat(), choice.label);
        }
    }

    #[test]
    fn what_was_typed_leaves_the_question_as_it_is() {
        let pending = Clarification {
            question: "？".to_owned(),
            choices: vec![Choice {
                label: "甲".to_owned(),
                text: "乙".to_owned(),
            }],
            resume: Some("丙".to_owned()),
        };
        assert_eq!(only_the_picked(pending.clone(), None), pending);
        let of_study = Pick {
            project: None,
            ..pick(
                0,
                &Choice {
                    label: "丁".to_owned(),
                    text: "丁".to_owned(),
                },
            )
        };
        assert_eq!(only_the_picked(pending.clone(), Some(&of_study)), pending);
    }

    #[test]
    fn an_event_is_read_back_as_the_entry_stored_it() {
        let event = Event {
            event: "template_card_event".to_owned(),
            event_key: "chip-1".to_owned(),
            response_code: "code".to_owned(),
            ..Event::default()
        };
        let detail = serde_json::json!({ "kind": Kind::Event(event.clone()) });
        assert_eq!(event_of(&detail), Some(event));
        for odd in [
            serde_json::json!({}),
            serde_json::json!({ "kind": null }),
            serde_json::json!({ "kind": Kind::Text { content: "x".to_owned() } }),
            serde_json::json!([1]),
        ] {
            assert_eq!(event_of(&odd), None, "{odd}");
        }
    }
}
