//! One inbound message: whose study it is about, what it wants, and the jobs that follow.

use anyhow::Context;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    Handle,
    common::{
        click::{self, Click, Pick},
        parts, reply,
        services::Services,
        study::Study,
        whose::{Whose, whose_study},
    },
};
use crate::{
    engines::router::{self, Clarification, Conversation, Memory, Speaker, Turn},
    queue::{Job, JobError, Lease, NewJob, Outcome, Settled, Settlement},
    store::{
        audit, conversations,
        inbox::{self, Message},
        replies::Chip,
        skills,
    },
    types::ids::MessageId,
};

/// Understand one message.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Intent {
    /// The message.
    pub message: MessageId,
    /// Who wrote it, lower-cased: messages of one person are understood in the order they came.
    pub sender: String,
}

impl Job for Intent {
    const KIND: &'static str = "intent";
    const QUEUE: &'static str = "chat";
    const MAX_ATTEMPTS: i32 = 4;

    fn key(&self) -> Option<String> {
        Some(self.message.to_string())
    }

    fn group(&self) -> Option<String> {
        Some(format!("chat:{}", self.sender))
    }
}

impl Handle for Intent {
    async fn run(self, services: &Services, lease: &Lease) -> Result<Settled, JobError> {
        let mut conn = services.pool.acquire().await?;
        let Some(mut message) = inbox::get(&mut conn, self.message).await? else {
            return Err(JobError::Cancel("the message is gone".to_owned()));
        };
        if message.status != "queued" {
            // Understood by an attempt that committed and died before it could say so.
            return Ok(end(services, lease).await?.commit().await?);
        }
        let mut pick = None;
        if message.kind == "event" {
            match click::read(&mut conn, &message).await? {
                Click::Answers(picked) => {
                    message = picked.as_said(message);
                    pick = Some(picked);
                }
                Click::Late(picked) => {
                    drop(conn);
                    return past(services, lease, &message, &picked).await;
                }
                Click::Nothing => {
                    // A visit, a change in the directory: noted with the message, answered by nobody.
                    drop(conn);
                    let mut settlement = end(services, lease).await?;
                    inbox::finish(settlement.conn(), message.id, "answered").await?;
                    return Ok(settlement.commit().await?);
                }
            }
        }
        let (project, text, chosen) = match whose_study(services, &mut conn, &message).await? {
            Whose::Project { id, text, chosen } => (id, text, chosen),
            // Which study the card asked about can't be told from it any more.
            Whose::Switched(..) | Whose::Ask(_) if let Some(pick) = &pick => {
                drop(conn);
                return past(services, lease, &message, pick).await;
            }
            Whose::Switched(id, name) => {
                drop(conn);
                return switch(services, lease, &message, &id, &name).await;
            }
            Whose::Nobody => {
                drop(conn);
                return refuse(services, lease, &message).await;
            }
            Whose::Ask(projects) => {
                drop(conn);
                return ask_which_project(services, lease, &message, &projects).await;
            }
        };
        if let Some(pick) = pick.as_ref().filter(|pick| !pick.is_about(&project)) {
            drop(conn);
            return past(services, lease, &message, pick).await;
        }
        if !matches!(message.kind.as_str(), "text" | click::CLICK) {
            drop(conn);
            return no_text(services, lease, &message, &project).await;
        }
        let study = Study::load(services, &mut conn, &project).await?;
        let skills = skills::active(&mut conn, &project, None).await?;
        let routing = route(
            services,
            &mut conn,
            &message,
            &project,
            &text,
            pick.as_ref(),
        )
        .await?;
        drop(conn);

        let (parts, patient, pending) = parts::answers(&study, &skills, &routing, &text).await?;
        let mut settlement = end(services, lease).await?;
        if let Some(pick) = &pick {
            click::taken(&mut settlement, &message, pick).await?;
        }
        let conn = settlement.conn();
        let intents = serde_json::to_value(&routing.intents).context("writing the intents")?;
        inbox::understood(conn, message.id, Some(&project), &intents, routing.degraded).await?;
        conversations::log(
            conn,
            &project,
            &message.sender,
            "user",
            &message.text,
            Some(message.id),
        )
        .await?;
        let pending = pending.map(|p| json!(p));
        conversations::remember(
            conn,
            &project,
            &message.sender,
            patient.as_deref(),
            pending.as_ref(),
            message.id,
        )
        .await?;
        if chosen {
            conversations::choose_project(conn, &message.sender, Some(&project), None).await?;
        }
        for (no, part) in (0..).zip(parts) {
            parts::write(services, &mut settlement, &study, &message, no, part).await?;
        }
        reply::send_if_complete(services, &mut settlement, message.id).await?;
        Ok(settlement.commit().await?)
    }

    /// A message is never left without an answer.
    async fn bury(
        self,
        services: &Services,
        _lease: &Lease,
        settlement: &mut Settlement,
        _why: &str,
    ) -> Result<(), JobError> {
        let Some(message) = inbox::get(settlement.conn(), self.message).await? else {
            return Ok(());
        };
        if matches!(message.status.as_str(), "answered" | "failed") {
            return Ok(());
        }
        let text = "抱歉，遇到了一些技术问题，这条消息没有处理成功。请稍后重试或联系管理员。";
        reply::reply(services, settlement, &message, text, &[], "failed").await
    }
}

async fn end(services: &Services, lease: &Lease) -> Result<Settlement, JobError> {
    Ok(lease
        .settle(&services.pool, &services.wake, &Outcome::Done)
        .await?)
}

async fn past(
    services: &Services,
    lease: &Lease,
    message: &Message,
    pick: &Pick,
) -> Result<Settled, JobError> {
    let mut settlement = end(services, lease).await?;
    click::late(services, &mut settlement, message, pick).await?;
    Ok(settlement.commit().await?)
}

async fn refuse(
    services: &Services,
    lease: &Lease,
    message: &Message,
) -> Result<Settled, JobError> {
    let mut settlement = end(services, lease).await?;
    audit::record(
        settlement.conn(),
        audit::Entry {
            project: None,
            actor: &message.sender,
            action: "message.refused",
            entity: "message",
            entity_id: &message.id.to_string(),
            old: None,
            new: None,
            reason: Some("the sender is a member of no project"),
        },
    )
    .await?;
    let text =
        "抱歉，您还不是任何研究项目的成员，我不能提供研究信息。请联系项目管理员把您加入项目。";
    reply::reply(services, &mut settlement, message, text, &[], "answered").await?;
    Ok(settlement.commit().await?)
}

async fn switch(
    services: &Services,
    lease: &Lease,
    message: &Message,
    project: &str,
    name: &str,
) -> Result<Settled, JobError> {
    let mut settlement = end(services, lease).await?;
    conversations::choose_project(settlement.conn(), &message.sender, Some(project), None).await?;
    let text = format!("好的，接下来谈项目“{name}”。");
    reply::reply(services, &mut settlement, message, &text, &[], "answered").await?;
    Ok(settlement.commit().await?)
}

async fn ask_which_project(
    services: &Services,
    lease: &Lease,
    message: &Message,
    projects: &[(String, String)],
) -> Result<Settled, JobError> {
    let mut settlement = end(services, lease).await?;
    conversations::choose_project(settlement.conn(), &message.sender, None, Some(message.id))
        .await?;
    let chips: Vec<Chip> = projects
        .iter()
        .map(|(id, name)| Chip {
            label: name.clone(),
            text: id.clone(),
        })
        .collect();
    let text = "您参与了多个研究项目，请问这条消息是关于哪个项目的？";
    reply::reply(services, &mut settlement, message, text, &chips, "answered").await?;
    Ok(settlement.commit().await?)
}

/// Pictures, voice and the like get an honest answer.
async fn no_text(
    services: &Services,
    lease: &Lease,
    message: &Message,
    project: &str,
) -> Result<Settled, JobError> {
    let mut settlement = end(services, lease).await?;
    inbox::understood(
        settlement.conn(),
        message.id,
        Some(project),
        &json!([]),
        false,
    )
    .await?;
    let message = Message {
        project: Some(project.to_owned()),
        ..message.clone()
    };
    let text = "目前只能处理文字消息。请用文字告诉我，例如“质控 ID=001”，或回复“帮助”。";
    reply::reply(services, &mut settlement, &message, text, &[], "answered").await?;
    Ok(settlement.commit().await?)
}

/// The seam of the routers: a model-driven one will answer here first.
async fn route(
    services: &Services,
    conn: &mut sqlx::PgConnection,
    message: &Message,
    project: &str,
    text: &str,
    pick: Option<&Pick>,
) -> Result<router::Routing, JobError> {
    let idle = services.conversation.memory_idle.as_secs_f64() / 60.0;
    let conversation = conversations::get(conn, project, &message.sender, idle).await?;
    let turns = i64::try_from(router::HISTORY_TURNS * 2).unwrap_or(6);
    let history: Vec<Turn> = conversations::history(conn, project, &message.sender, turns)
        .await?
        .into_iter()
        .map(|(role, text)| Turn {
            role: if role == "user" {
                Speaker::User
            } else {
                Speaker::Assistant
            },
            text,
        })
        .collect();
    // A question this version can't read any more is simply not pending.
    let pending: Option<Clarification> = conversation
        .pending
        .and_then(|value| serde_json::from_value(value).ok())
        .map(|pending| click::only_the_picked(pending, pick));
    let known = Conversation {
        history: &history,
        memory: Memory {
            last_patient: conversation.last_patient.as_deref(),
            last_patient_at: conversation.last_patient_at,
            fresh: conversation.fresh,
        },
        pending: pending.as_ref(),
    };
    Ok(router::keyword::route(text, &known))
}

/// Takes a message up again whose job died. Returns whether it had failed.
///
/// # Errors
/// The database failed.
pub async fn revive(conn: &mut sqlx::PgConnection, job: &Intent) -> Result<bool, sqlx::Error> {
    inbox::reopen(conn, job.message).await
}

/// A message as its entry stores it, with the job that will understand it: one transaction.
///
/// # Errors
/// The database failed, or the job could not be written; nothing is stored then.
pub async fn receive(
    conn: &mut sqlx::PgConnection,
    message: &inbox::NewMessage<'_>,
) -> anyhow::Result<Option<MessageId>> {
    let Some(id) = inbox::receive(conn, message).await? else {
        return Ok(None);
    };
    let job = Intent {
        message: id,
        sender: format!(
            "{}:{}",
            message.channel.as_str(),
            message.sender.to_lowercase()
        ),
    };
    crate::queue::enqueue(conn, NewJob::of(&job)?).await?;
    Ok(Some(id))
}

/// The queue a received message waits on, to be woken after the commit.
#[must_use]
pub fn queue_of_messages() -> String {
    Intent::QUEUE.to_owned()
}
