//! The tool calls of one turn: made side by side, each with its deadline, each answered whatever became of it.

use std::time::Duration;

use futures::{FutureExt, StreamExt, future::BoxFuture, stream};
use tokio::time::{Instant, timeout};

use super::{
    services::Services,
    study::{Study, edc_error},
};
use crate::{
    adapters::llm::ToolCall,
    engines::{react::Given, redaction::Hidden},
    queue::{JobError, Lease},
    tools::{
        Judgement, Observation, Proposal, Scope, Snapshot, Tool, ToolError, registry::Caller,
        search_protocol::SearchProtocol,
    },
    types::text::{ellipsis, without_nul},
};

/// Longest time one call may take.
const DEADLINE: Duration = Duration::from_secs(10);
/// Calls under way at once.
const AT_ONCE: usize = 4;
/// Longest result, in bytes. Tools keep below it by themselves; a part of a result is never shown as if it
/// were all.
const LONGEST: usize = 8 * 1024;
/// Records and documents kept of one result.
const NAMED: usize = 50;
/// Attempts of a job that wait for a data source to come back; in the next the calls fail instead.
const PATIENT_ATTEMPTS: i32 = 2;

/// Who calls, and what it may.
#[derive(Debug, Clone, Copy)]
pub struct As<'a> {
    /// Which brain.
    pub caller: Caller,
    /// The tools its node lists; `None`: all that are for it.
    pub listed: Option<&'a [String]>,
    /// The only record it may read; `None`: all of the study's.
    pub record: Option<&'a str>,
}

/// What the calls of a turn came to.
#[derive(Default)]
pub struct Made {
    /// One answer a call, in order, without those that wait.
    pub given: Vec<Given>,
    /// Calls that a judgement answers later.
    pub waiting: Vec<(ToolCall, Judgement)>,
    /// What is to be written with the step.
    pub proposals: Vec<Proposal>,
    /// The state of the data they were read from.
    pub data_version: Option<String>,
    /// Names of fields they used that nobody could map.
    pub unmapped: Vec<String>,
}

/// What the model means by its calls: what it was shown under another name, by its own. A search of documents
/// may be made by somebody else's server, and no document speaks of a subject: it stays as it is.
#[must_use]
pub fn meant(calls: &[ToolCall], hidden: &Hidden) -> Vec<ToolCall> {
    calls
        .iter()
        .map(|call| match call.name.as_str() {
            SearchProtocol::NAME => call.clone(),
            _ => ToolCall {
                arguments: hidden.restore_json(&call.arguments),
                ..call.clone()
            },
        })
        .collect()
}

/// Makes the calls of a turn that are not refused. Nothing they do leaves a trace outside of what comes back.
///
/// # Errors
/// The data source may be back soon: worth another attempt.
pub async fn make(
    services: &Services,
    lease: &Lease,
    study: &Study,
    who: As<'_>,
    calls: &[ToolCall],
    refused: &[Option<String>],
) -> Result<Made, JobError> {
    let read = services
        .snapshots
        .current(study.id(), study.edc.as_ref(), &services.clock)
        .await;
    let data = match read {
        Ok(data) => data,
        Err(error) => {
            tracing::warn!(project = study.id(), %error, "tools.no_data");
            if error.is_retryable() && lease.attempt <= PATIENT_ATTEMPTS {
                return Err(edc_error(error));
            }
            let given = calls.iter().map(|call| failed(call, NO_DATA)).collect();
            return Ok(Made {
                given,
                ..Made::default()
            });
        }
    };
    let scope = Scope {
        project: &study.project,
        data: &data,
        record: who.record,
        today: study.today,
        reader: &services.reader,
    };
    let each: Vec<BoxFuture<'_, One>> = calls
        .iter()
        .zip(refused)
        .map(|(call, refused)| one(services, who, &scope, call, refused.as_deref()).boxed())
        .collect();
    let each: Vec<One> = stream::iter(each).buffered(AT_ONCE).collect().await;
    let mut made = Made {
        data_version: Some(data.fingerprint.clone()),
        ..Made::default()
    };
    for (call, one) in calls.iter().zip(each) {
        match one {
            One::Answered {
                given,
                proposals,
                unmapped,
            } => {
                made.given.push(*given);
                made.proposals.extend(proposals);
                made.unmapped.extend(unmapped);
            }
            One::Waits(judgement) => made.waiting.push((call.clone(), *judgement)),
        }
    }
    Ok(made)
}

/// What one call came to.
enum One {
    Answered {
        given: Box<Given>,
        proposals: Vec<Proposal>,
        /// The names it could not map.
        unmapped: Vec<String>,
    },
    /// A judgement answers it.
    Waits(Box<Judgement>),
}

impl One {
    fn failed(call: &ToolCall, why: &str, unmapped: &[String]) -> Self {
        Self::Answered {
            given: Box::new(failed(call, why)),
            proposals: Vec::new(),
            unmapped: unmapped.to_vec(),
        }
    }
}

async fn one(
    services: &Services,
    who: As<'_>,
    scope: &Scope<'_>,
    call: &ToolCall,
    refused: Option<&str>,
) -> One {
    if let Some(why) = refused {
        return One::failed(call, why, &[]);
    }
    let started = Instant::now();
    let called = services
        .tools
        .call(who.caller, who.listed, scope, &call.name, &call.arguments);
    let outcome = timeout(DEADLINE, called)
        .await
        .unwrap_or_else(|_| Err(ToolError::Unavailable("查询超时".to_owned())));
    let name = match &outcome {
        Ok(_) => "ok",
        Err(ToolError::Arguments(_) | ToolError::Unmapped { .. }) => "arguments",
        Err(ToolError::Unavailable(_)) => "unavailable",
    };
    metrics::histogram!("iit_tool_call_seconds", "outcome" => name)
        .record(started.elapsed().as_secs_f64());
    match outcome {
        Ok(mut observation) => match observation.judgement.take() {
            Some(judgement) => One::Waits(Box::new(judgement)),
            None => One::Answered {
                proposals: std::mem::take(&mut observation.proposals),
                unmapped: std::mem::take(&mut observation.unmapped),
                given: Box::new(shown(call, observation, scope.data)),
            },
        },
        Err(error) => One::failed(call, &error.to_string(), error.unmapped()),
    }
}

/// What became of each call, for a step's row: `aggregate ✓，search_records ✗，assess_ae_causality …`.
#[must_use]
pub fn outcomes(given: &[Given], waiting: &[(ToolCall, Judgement)]) -> String {
    let name = |name: &str, mark: &str| format!("{} {mark}", ellipsis(name, 40));
    let each: Vec<String> = given
        .iter()
        .map(|one| name(&one.name, if one.ok { "✓" } else { "✗" }))
        .chain(waiting.iter().map(|(call, _)| name(&call.name, "…")))
        .collect();
    each.join("，")
}

const NO_DATA: &str = "研究数据暂时无法读取";

/// The answer to a call that failed or was refused.
#[must_use]
pub fn failed(call: &ToolCall, why: &str) -> Given {
    Given {
        id: call.id.clone(),
        name: call.name.clone(),
        ok: false,
        content: without_nul(why).0,
        ..Given::default()
    }
}

fn shown(call: &ToolCall, observation: Observation, data: &Snapshot) -> Given {
    let mut content = observation.value.to_string();
    for note in &observation.notes {
        content.push_str("\n说明：");
        content.push_str(note);
    }
    if content.len() > LONGEST {
        content = "结果太长，没有显示；请缩小范围，或只取需要的字段".to_owned();
    }
    Given {
        id: call.id.clone(),
        name: call.name.clone(),
        ok: true,
        content: without_nul(&content).0,
        record_count: observation.records.len(),
        records: observation.records.into_iter().take(NAMED).collect(),
        sources: observation.sources.into_iter().take(NAMED).collect(),
        data: Some(data.fingerprint.clone()),
        taken_at: Some(data.taken_at),
        supposed: observation.supposed,
        ruling: observation.ruling,
    }
}
