//! Tool calls that a judgement answers: begun in the settlement of the step that made the call, ended with the
//! `result` row the waiting run goes on from. Nothing of it is in memory, so a kill anywhere loses nothing.

use serde::{Deserialize, Serialize};

use super::{steps::LLM_QUEUE, transcript::entry};
use crate::{
    adapters::llm::ToolCall,
    engines::react::{Given, Said},
    jobs::{judge_step::JudgeStep, react_step::ReactStep, sop_step::SopStep},
    queue::{JobError, NewJob, Settlement},
    store::{
        chat_runs::ChatRun,
        judgements,
        trace::{self, Entry},
    },
    tools::Judgement,
    types::{causality::Scale, ids::RunId},
};

/// The thread of a judgement.
pub const THREAD: &str = "judge";

/// Who waits.
pub struct Parent<'a> {
    /// The study.
    pub project: &'a str,
    /// The run.
    pub run: RunId,
    /// The step that made the calls.
    pub step: i32,
    /// The thread the answers belong to.
    pub thread: &'a str,
}

/// What a judgement is about, kept with its run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Brief {
    /// The call it answers.
    pub call: ToolCall,
    /// The thread of the waiting run that call stands in.
    pub thread: String,
    /// The event that is assessed, as people call it.
    pub event: String,
    /// In whose words.
    pub scale: Scale,
}

/// Begins a judgement for each of `waiting`. The caller has put the run to wait in the same settlement.
///
/// # Errors
/// The database failed.
pub async fn begin(
    settlement: &mut Settlement,
    parent: &Parent<'_>,
    waiting: Vec<(ToolCall, Judgement)>,
    priority: i16,
) -> Result<(), JobError> {
    for (call, judgement) in waiting {
        let run = ChatRun {
            id: RunId::generate(),
            project: parent.project.to_owned(),
            kind: "judge".to_owned(),
            status: "running".to_owned(),
            step_no: 0,
            record: Some(judgement.record),
            message: None,
            message_part: None,
            asked_by: None,
            parent: Some(parent.run),
            parent_step: Some(parent.step),
            tokens: 0,
        };
        let brief = Brief {
            call,
            thread: parent.thread.to_owned(),
            event: judgement.event,
            scale: judgement.scale,
        };
        let brief = serde_json::to_value(&brief).map_err(JobError::dead)?;
        let rows: Vec<Entry> = judgement.opening.iter().map(entry).collect();
        judgements::begin(settlement.conn(), &run, &brief).await?;
        trace::append(settlement.conn(), run.id, 0, THREAD, &rows).await?;
        let first = JudgeStep {
            run: run.id,
            step: 0,
        };
        settlement
            .enqueue(NewJob::of(&first)?.priority(priority))
            .await?;
    }
    Ok(())
}

/// Answers the call that waits for `run`, which has just ended, and lets the waiting run go on if it was the
/// last. A run that does not wait any more is left alone.
///
/// # Errors
/// The database failed.
pub async fn answer(
    settlement: &mut Settlement,
    run: &ChatRun,
    brief: &Brief,
    given: Given,
    priority: i16,
) -> Result<(), JobError> {
    let (Some(parent), Some(step)) = (run.parent, run.parent_step) else {
        return Ok(());
    };
    let Some(waiting) = judgements::waiting(settlement.conn(), parent, step).await? else {
        return Ok(());
    };
    let row = [entry(&Said::Result(given))];
    trace::append(settlement.conn(), parent, step, &brief.thread, &row).await?;
    if !judgements::resume(settlement.conn(), parent, step).await? {
        return Ok(());
    }
    let step = waiting.next_step;
    let next = match waiting.kind.as_str() {
        "sop" => NewJob::of(&SopStep {
            run: parent,
            step,
            review: None,
        })?
        .on_queue(LLM_QUEUE),
        _ => NewJob::of(&ReactStep { run: parent, step })?,
    };
    settlement.enqueue(next.priority(priority)).await?;
    Ok(())
}
