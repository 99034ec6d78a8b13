//! One inbound message: whose study it is about, what it wants, and the jobs that follow.

use anyhow::Context;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    Handle,
    batch_qc::BatchQc,
    common::{
        records::{self, Named},
        reply,
        services::Services,
        starts,
        study::{Study, edc_error},
        which_skills::asked_for,
        whose::{Whose, whose_study},
    },
};
use crate::{
    engines::router::{
        self, Clarification, Conversation, IntentKind, Memory, Speaker, Turn, texts,
    },
    queue::{Job, JobError, Lease, NewJob, Outcome, Settled, Settlement},
    store::{
        audit,
        batches::{self, NewBatch},
        conversations,
        inbox::{self, Message},
        replies::{self, Chip},
        skills::{self, StoredSkill},
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

/// One part of the reply.
enum Part {
    /// Said at once.
    Say { text: String, chips: Vec<Chip> },
    /// A QC of these records with these skills; the reply waits for it.
    Records(Vec<String>, Vec<StoredSkill>),
    /// A QC of the whole project, with one skill or all; the reply waits for it.
    WholeProject(Option<String>),
}

impl Part {
    fn say(text: impl Into<String>) -> Self {
        Self::Say {
            text: text.into(),
            chips: Vec::new(),
        }
    }
}

impl Handle for Intent {
    async fn run(self, services: &Services, lease: &Lease) -> Result<Settled, JobError> {
        let mut conn = services.pool.acquire().await?;
        let Some(message) = inbox::get(&mut conn, self.message).await? else {
            return Err(JobError::Cancel("the message is gone".to_owned()));
        };
        if message.status != "queued" {
            // Understood by an attempt that committed and died before it could say so.
            return Ok(end(services, lease).await?.commit().await?);
        }
        if message.kind == "event" {
            // A visit, a click, a change in the directory: noted with the message, answered by nobody.
            drop(conn);
            let mut settlement = end(services, lease).await?;
            inbox::finish(settlement.conn(), message.id, "answered").await?;
            return Ok(settlement.commit().await?);
        }
        let (project, text, chosen) = match whose_study(services, &mut conn, &message).await? {
            Whose::Project { id, text, chosen } => (id, text, chosen),
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
        if message.kind != "text" {
            drop(conn);
            return no_text(services, lease, &message, &project).await;
        }
        let study = Study::load(services, &mut conn, &project).await?;
        let skills = skills::active(&mut conn, &project, None).await?;
        let routing = route(services, &mut conn, &message, &project, &text).await?;
        drop(conn);

        let (parts, patient, pending) = answers(&study, &skills, &routing).await?;
        let mut settlement = end(services, lease).await?;
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
        )
        .await?;
        if chosen {
            conversations::choose_project(conn, &message.sender, Some(&project), None).await?;
        }
        for (no, part) in (0..).zip(parts) {
            write_part(&mut settlement, &project, &message, no, part).await?;
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
        .and_then(|value| serde_json::from_value(value).ok());
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

/// What each intent is answered with; the patient now spoken of; the question now pending.
async fn answers(
    study: &Study,
    skills: &[StoredSkill],
    routing: &router::Routing,
) -> Result<(Vec<Part>, Option<String>, Option<Clarification>), JobError> {
    let mut parts = Vec::new();
    let mut patient = None;
    let mut questions = Vec::new();
    let asks_for_records = routing
        .intents
        .iter()
        .any(|intent| !intent.entities.record_ids.is_empty());
    let known = if asks_for_records {
        study.edc.record_ids().await.map_err(edc_error)?
    } else {
        Vec::new()
    };
    for intent in &routing.intents {
        let named = records::resolve(&intent.text, &intent.entities.record_ids, &known);
        if let Some(one) = named.found.last() {
            patient = Some(one.clone());
        }
        if let Some(clarification) = &intent.clarification {
            parts.push(ask(clarification));
            questions.push(clarification.clone());
            continue;
        }
        let part = match intent.kind {
            IntentKind::QcTask if intent.wishes_write => Part::say(
                "修改数据须先生成修改建议、经有权限的人批准后才能写入；当前版本尚不能生成修改建议，未做任何改动。",
            ),
            IntentKind::QcTask if skills.is_empty() => Part::say(
                "本项目还没有启用任何质控技能。请数据管理员用 `iit skills apply` 启用后再试。",
            ),
            IntentKind::QcTask if intent.entities.whole_project => {
                match asked_for(&intent.text, skills).as_slice() {
                    [only] => Part::WholeProject(Some(only.skill_type.clone())),
                    _ => Part::WholeProject(None),
                }
            }
            IntentKind::QcTask => match not_found(&named) {
                None if named.found.is_empty() => Part::say(texts::which_patient(None)),
                None => Part::Records(named.found, chosen(&intent.text, skills)),
                Some((text, question)) => {
                    if !named.found.is_empty() {
                        parts.push(Part::Records(
                            named.found.clone(),
                            chosen(&intent.text, skills),
                        ));
                    }
                    let chips = question.as_ref().map(chips_of).unwrap_or_default();
                    questions.extend(question);
                    Part::Say { text, chips }
                }
            },
            IntentKind::Help => Part::say(texts::help()),
            IntentKind::OutOfScope => Part::say(texts::out_of_scope()),
            IntentKind::Feedback => Part::say(texts::feedback_noted()),
            IntentKind::QaQuery | IntentKind::ProtocolQa | IntentKind::Report => {
                Part::say(texts::needs_language_model())
            }
            IntentKind::Unclear => Part::say(texts::what_do_you_need()),
        };
        parts.push(part);
    }
    Ok((parts, patient, one_question(questions)))
}

/// The question that now waits. Several in one reply are numbered through, so they wait as one: a typed
/// number must mean the choice it stands before. An id alone then answers none of them.
fn one_question(mut questions: Vec<Clarification>) -> Option<Clarification> {
    if questions.len() <= 1 {
        return questions.pop();
    }
    let texts: Vec<&str> = questions.iter().map(|q| q.question.as_str()).collect();
    Some(Clarification {
        question: texts.join("\n"),
        choices: questions.iter().flat_map(|q| q.choices.clone()).collect(),
        resume: None,
    })
}

fn chosen(text: &str, skills: &[StoredSkill]) -> Vec<StoredSkill> {
    asked_for(text, skills).into_iter().cloned().collect()
}

fn ask(clarification: &Clarification) -> Part {
    Part::Say {
        text: clarification.question.clone(),
        chips: chips_of(clarification),
    }
}

fn chips_of(clarification: &Clarification) -> Vec<Chip> {
    clarification
        .choices
        .iter()
        .map(|choice| Chip {
            label: choice.label.clone(),
            text: choice.text.clone(),
        })
        .collect()
}

/// What to say of ids the study does not have, and the question when there are near ones.
fn not_found(named: &Named) -> Option<(String, Option<Clarification>)> {
    if named.unknown.is_empty() {
        return None;
    }
    let ids = named.unknown.join("、");
    if named.near.is_empty() {
        return Some((
            format!("研究中没有受试者 {ids}。请核对编号（编号须与 EDC 中一致）。"),
            None,
        ));
    }
    let question = Clarification {
        question: format!("研究中没有受试者 {ids}。请问您指的是下面哪一位？"),
        choices: named
            .near
            .iter()
            .map(|id| router::Choice {
                label: id.clone(),
                text: format!("质控 {}", router::named(id)),
            })
            .collect(),
        resume: Some(format!("质控 {}", router::PATIENT_SLOT)),
    };
    Some((question.question.clone(), Some(question)))
}

async fn write_part(
    settlement: &mut Settlement,
    project: &str,
    message: &Message,
    no: i32,
    part: Part,
) -> Result<(), JobError> {
    let new_batch = NewBatch {
        project,
        skill: None,
        records: None,
        reply_to: Some((message.id, no)),
        requested_by: &message.sender,
    };
    match part {
        Part::Say { text, chips } => {
            replies::add(settlement.conn(), message.id, no, Some(&text), &chips, None).await?;
        }
        Part::Records(records, skills) => {
            let batch = NewBatch {
                records: Some(&records),
                ..new_batch
            };
            let id = batches::create(settlement.conn(), &batch).await?;
            replies::add(settlement.conn(), message.id, no, None, &[], Some(id)).await?;
            starts::start_runs(settlement, project, id, &records, &skills).await?;
        }
        Part::WholeProject(skill) => {
            let batch = NewBatch {
                skill: skill.as_deref(),
                ..new_batch
            };
            let id = batches::create(settlement.conn(), &batch).await?;
            replies::add(settlement.conn(), message.id, no, None, &[], Some(id)).await?;
            let plan = BatchQc {
                batch: id,
                page: None,
            };
            settlement.enqueue(NewJob::of(&plan)?).await?;
        }
    }
    Ok(())
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
