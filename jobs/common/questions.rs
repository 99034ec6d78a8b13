//! Questions a run answers: begun with the message that asks, ended with the part of the reply it fills in.

use super::{notice, reply, services::Services, study::Study, transcript};
use crate::{
    engines::{
        react::{Question, prompt, thread::Turn},
        router::{self, Choice, Clarification},
    },
    jobs::react_step::ReactStep,
    queue::{JobError, NewJob, Settlement},
    store::{
        chat_runs::{self, ChatRun},
        conversations,
        inbox::{self, Message},
        ledger::{self, Found},
        replies::{self, Chip},
        trace::{self, Entry},
    },
    types::{
        finding::{FieldValue, Finding, FindingOutcome, Severity},
        ids::RunId,
        text::ellipsis,
    },
};

/// The thread of the transcript a question is reasoned about in.
pub const THREAD: &str = "react";

/// Whether a model may be asked about this study's data; else one sentence for people, empty when there simply is
/// none.
///
/// # Errors
/// The sentence.
pub fn may_ask(services: &Services, study: &Study) -> Result<(), String> {
    match &services.model {
        None => Err(String::new()),
        Some(model) => model
            .may_see(&study.project.file.llm)
            .map_err(|why| format!("{why}。\n")),
    }
}

/// Begins the run that answers a question, as part `no` of the reply to `message`. The message itself must
/// be in the conversation's log.
///
/// # Errors
/// The database failed.
pub async fn begin(
    settlement: &mut Settlement,
    study: &Study,
    message: &Message,
    no: i32,
    question: Question,
) -> Result<(), JobError> {
    let run = ChatRun {
        id: RunId::generate(),
        project: study.id().to_owned(),
        kind: "react".to_owned(),
        status: "running".to_owned(),
        step_no: 0,
        // A member may ask about the whole study.
        record: None,
        message: Some(message.id),
        message_part: Some(no),
        asked_by: Some(message.sender.clone()),
        parent: None,
        parent_step: None,
        tokens: 0,
    };
    let system = prompt::system(&study.project.file.name, study.today);
    let history = before(settlement, study.id(), message).await?;
    let said: Vec<Entry> = prompt::opening(system, history, question)
        .iter()
        .map(transcript::entry)
        .collect();
    chat_runs::begin(settlement.conn(), &run).await?;
    trace::append(settlement.conn(), run.id, 0, THREAD, &said).await?;
    let first = ReactStep {
        run: run.id,
        step: 0,
    };
    settlement.enqueue(NewJob::of(&first)?).await?;
    Ok(())
}

/// What was said before this message.
async fn before(
    settlement: &mut Settlement,
    project: &str,
    message: &Message,
) -> Result<Vec<Turn>, JobError> {
    let turns = i64::try_from(router::HISTORY_TURNS * 2).unwrap_or(6) + 1;
    let mut said =
        conversations::history(settlement.conn(), project, &message.sender, turns).await?;
    // The last one is the message itself.
    said.pop();
    Ok(said
        .into_iter()
        .map(|(role, text)| Turn { role, text })
        .collect())
}

/// Ends a question: the part of the reply that waited for it is written, with choices if there are any.
///
/// # Errors
/// The database failed.
pub async fn answer(
    services: &Services,
    settlement: &mut Settlement,
    run: &ChatRun,
    text: &str,
    chips: &[Chip],
) -> Result<(), JobError> {
    let (Some(message), Some(no)) = (run.message, run.message_part) else {
        return Ok(());
    };
    replies::fill(settlement.conn(), message, no, text, chips).await?;
    if !chips.is_empty() {
        offer(settlement, run, text).await?;
    }
    reply::send_if_complete(services, settlement, message).await
}

/// Makes the choices of the whole reply the question that waits: they are numbered through, and a typed number
/// must mean the choice it stands before.
async fn offer(settlement: &mut Settlement, run: &ChatRun, question: &str) -> Result<(), JobError> {
    let Some(message) = run.message else {
        return Ok(());
    };
    let parts = replies::locked(settlement.conn(), message).await?;
    let pending = Clarification {
        question: question.to_owned(),
        choices: parts
            .iter()
            .flat_map(|part| &part.chips)
            .map(|chip| Choice {
                label: chip.label.clone(),
                text: chip.text.clone(),
            })
            .collect(),
        resume: None,
    };
    let Some(asked) = inbox::get(settlement.conn(), message).await? else {
        return Ok(());
    };
    let pending = serde_json::to_value(&pending).unwrap_or_default();
    conversations::remember(
        settlement.conn(),
        &run.project,
        &asked.sender,
        None,
        Some(&pending),
        message,
    )
    .await?;
    Ok(())
}

/// Tools that keep failing are a person's business: a line in the ledger, and the coordinators told.
///
/// # Errors
/// The database failed.
pub async fn hand_over(
    services: &Services,
    settlement: &mut Settlement,
    run: &ChatRun,
    study: &Study,
    question: Option<&Question>,
) -> Result<(), JobError> {
    let record = question
        .and_then(|question| question.records.first())
        .cloned()
        .unwrap_or_default();
    let asked = question.map_or("", |question| &question.text);
    let finding = Finding {
        record: record.clone(),
        event: None,
        instance: None,
        rule: "react/tools_failed".to_owned(),
        // One line a question: another one is another person's.
        field: run.id.to_string(),
        outcome: FindingOutcome::NotEvaluable,
        severity: Severity::Query,
        message: format!(
            "查询工具连续失败，问题未能回答，请人工答复：{}",
            ellipsis(asked, 200)
        ),
        values: vec![FieldValue {
            field: "提问人".to_owned(),
            value: run.asked_by.clone(),
        }],
    };
    let found = Found {
        run: run.id,
        skill_type: "react",
        finding: &finding,
        waits: false,
    };
    ledger::lock_records(settlement.conn(), study.id(), &[record]).await?;
    ledger::record(settlement.conn(), study.id(), &[found]).await?;
    let text = format!(
        "【转人工】{} 的一个提问因查询工具连续失败未能回答，已记入待处理清单，请答复（运行 {}）。",
        run.asked_by.as_deref().unwrap_or("一位成员"),
        run.id
    );
    notice::tell(services, settlement, &study.project.file, &[], &text).await
}
