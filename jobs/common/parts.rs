//! From what a message wants to the parts of its reply: said at once, or worked for.

use super::{
    consent,
    mixed_ids::doubt,
    protocol_reply, questions,
    records::{self, Named},
    services::Services,
    starts,
    study::{Study, edc_error},
    which_skills::{asked_for, kind_asked_for},
};
use crate::{
    engines::{
        react::Question,
        router::{self, Clarification, IntentKind, texts},
    },
    jobs::{batch_qc::BatchQc, progress},
    queue::{JobError, NewJob, Settlement},
    store::{
        batches::{self, NewBatch},
        inbox::Message,
        replies::{self, Chip},
        skills::StoredSkill,
    },
};

/// One part of the reply.
pub enum Part {
    /// Said at once.
    Say {
        /// What.
        text: String,
        /// Suggestions.
        chips: Vec<Chip>,
    },
    /// A QC of these records with these skills; the reply waits for it.
    Records(Vec<String>, Vec<StoredSkill>),
    /// A QC of the whole project, with one skill or all; the reply waits for it.
    WholeProject(Option<String>),
    /// A question to reason about; the reply waits for it.
    Reason {
        /// The question.
        question: Question,
        /// What is said where no model may be asked.
        otherwise: String,
    },
}

impl Part {
    /// A part that is said at once.
    pub fn say(text: impl Into<String>) -> Self {
        Self::Say {
            text: text.into(),
            chips: Vec::new(),
        }
    }
}

/// What each intent is answered with; the patient now spoken of; the question now pending.
///
/// # Errors
/// The data source failed.
pub async fn answers(
    services: &Services,
    study: &Study,
    skills: &[StoredSkill],
    routing: &router::Routing,
    message: &str,
) -> Result<(Vec<Part>, Option<String>, Option<Clarification>), JobError> {
    let mut parts = Vec::new();
    let mut patient = None;
    let mut asked = Vec::new();
    let any = |wanted: fn(&router::Intent) -> bool| routing.intents.iter().any(wanted);
    let names_records = any(|intent| !intent.entities.record_ids.is_empty());
    let known = if names_records || any(|intent| intent.kind == IntentKind::QcTask) {
        match study.edc.record_ids().await {
            Ok(known) => known,
            Err(error) if names_records => return Err(edc_error(error)),
            // A whole-project QC says itself that the data can't be read.
            Err(_) => Vec::new(),
        }
    } else {
        Vec::new()
    };
    // With one QC in a message, what the rest of it says is about that QC.
    let checks = |intent: &&router::Intent| intent.kind == IntentKind::QcTask;
    let only_one = routing.intents.iter().filter(checks).count() == 1;
    for intent in &routing.intents {
        let named = records::resolve(&intent.text, &intent.entities.record_ids, &known);
        if intent.kind == IntentKind::QcTask && !intent.wishes_write {
            let doubt =
                doubt(&intent.text, &named, &known).or_else(|| doubt(message, &named, &known));
            if let Some(question) = doubt {
                parts.push(Part::say(question));
                continue;
            }
        }
        let about = if only_one {
            format!("{} {message}", intent.text)
        } else {
            intent.text.clone()
        };
        if let Some(one) = named.found.last() {
            patient = Some(one.clone());
        }
        if let Some(clarification) = &intent.clarification {
            let clarification = keep_kind(clarification, message);
            parts.push(ask(&clarification));
            asked.push(clarification);
            continue;
        }
        let part = match intent.kind {
            IntentKind::QcTask
            | IntentKind::QaQuery
            | IntentKind::ProtocolQa
            | IntentKind::Report
                if intent.wishes_write =>
            {
                let (part, question) = consent::change(intent, &named, skills);
                asked.extend(question);
                part
            }
            IntentKind::QcTask if skills.is_empty() => Part::say(
                "本项目还没有启用任何质控技能。请数据管理员用 `iit skills apply` 启用后再试。",
            ),
            IntentKind::QcTask if intent.entities.whole_project => {
                match asked_for(&about, skills).as_slice() {
                    [only] => Part::WholeProject(Some(only.skill_type.clone())),
                    _ => Part::WholeProject(None),
                }
            }
            IntentKind::QcTask => match not_found(&named) {
                None if named.found.is_empty() => Part::say(texts::which_patient(None)),
                None => Part::Records(named.found, chosen(&about, skills)),
                Some((text, question)) => {
                    if !named.found.is_empty() {
                        let found = Part::Records(named.found.clone(), chosen(&about, skills));
                        parts.push(with_consent(intent, found, skills, &mut asked));
                    }
                    let question = question.map(|question| keep_kind(&question, message));
                    let chips = question.as_ref().map(chips_of).unwrap_or_default();
                    asked.extend(question);
                    Part::Say { text, chips }
                }
            },
            IntentKind::Help => Part::say(texts::help()),
            IntentKind::OutOfScope => Part::say(texts::out_of_scope()),
            IntentKind::Feedback => Part::say(texts::feedback_noted()),
            IntentKind::QaQuery | IntentKind::ProtocolQa | IntentKind::Report => Part::Reason {
                question: Question {
                    text: intent.text.clone(),
                    records: named.found,
                    about_past: intent.about_past,
                    about_protocol: intent.kind == IntentKind::ProtocolQa,
                },
                otherwise: otherwise(services, study, intent).await,
            },
            IntentKind::Unclear => Part::say(texts::what_do_you_need()),
        };
        parts.push(with_consent(intent, part, skills, &mut asked));
    }
    Ok((parts, patient, one_question(asked)))
}

/// The part, or the question whether to start it.
fn with_consent(
    intent: &router::Intent,
    part: Part,
    skills: &[StoredSkill],
    questions: &mut Vec<Clarification>,
) -> Part {
    let Some(question) = consent::wanted(intent, &part, skills) else {
        return part;
    };
    let asked = ask(&question);
    questions.push(question);
    asked
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

/// The same question, whose answers keep the kind of check that was asked for.
fn keep_kind(question: &Clarification, message: &str) -> Clarification {
    let mut question = question.clone();
    if let Some(kind) = kind_asked_for(message) {
        let keep = |text: &str| {
            if text.contains("质控") && !text.contains(kind) {
                text.replacen("质控", &format!("{kind}质控"), 1)
            } else {
                text.to_owned()
            }
        };
        for choice in &mut question.choices {
            choice.text = keep(&choice.text);
        }
        question.resume = question.resume.as_deref().map(keep);
    }
    question
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

/// The choices of a question as suggestions.
#[must_use]
pub fn chips_of(clarification: &Clarification) -> Vec<Chip> {
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

/// What a question is answered with when no model may be asked: of the protocol, its passages themselves.
async fn otherwise(services: &Services, study: &Study, intent: &router::Intent) -> String {
    if intent.kind == IntentKind::ProtocolQa && questions::may_ask(services, study).is_err() {
        return protocol_reply::verbatim(services, study, &intent.text).await;
    }
    texts::needs_language_model().to_owned()
}

/// Writes one part: its text, or the batch that will answer it and the jobs that do it.
///
/// # Errors
/// The database failed.
pub async fn write(
    services: &Services,
    settlement: &mut Settlement,
    study: &Study,
    message: &Message,
    no: i32,
    part: Part,
) -> Result<(), JobError> {
    let project = study.id();
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
            return Ok(());
        }
        Part::Reason {
            question,
            otherwise,
        } => {
            let conn = settlement.conn();
            if let Err(why) = questions::may_ask(services, study) {
                let text = format!("{why}{otherwise}");
                replies::add(conn, message.id, no, Some(&text), &[], None).await?;
                return Ok(());
            }
            replies::add(conn, message.id, no, None, &[], None).await?;
            questions::begin(settlement, study, message, no, question).await?;
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
    progress::watch(services, settlement, message).await
}
