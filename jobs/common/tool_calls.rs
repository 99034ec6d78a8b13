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
    engines::react::Given,
    queue::{JobError, Lease},
    tools::{Observation, Scope, Snapshot, ToolError, registry::Caller},
    types::text::without_nul,
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

/// What the calls of a turn came to.
pub struct Made {
    /// One answer a call, in order.
    pub given: Vec<Given>,
    /// The state of the data they were read from.
    pub data_version: Option<String>,
    /// Names of fields they used that nobody could map.
    pub unmapped: Vec<String>,
}

/// Makes the calls of a turn that are not refused. Nothing they do leaves a trace outside the answers.
///
/// # Errors
/// The data source may be back soon: worth another attempt.
pub async fn make(
    services: &Services,
    lease: &Lease,
    study: &Study,
    caller: Caller,
    record: Option<&str>,
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
                data_version: None,
                unmapped: Vec::new(),
            });
        }
    };
    let scope = Scope {
        project: &study.project,
        data: &data,
        record,
        today: study.today,
        reader: &services.reader,
    };
    let made: Vec<BoxFuture<'_, One>> = calls
        .iter()
        .zip(refused)
        .map(|(call, refused)| one(services, caller, &scope, call, refused.as_deref()).boxed())
        .collect();
    let made: Vec<One> = stream::iter(made).buffered(AT_ONCE).collect().await;
    let (given, unmapped): (Vec<Given>, Vec<Vec<String>>) = made.into_iter().unzip();
    Ok(Made {
        given,
        data_version: Some(data.fingerprint.clone()),
        unmapped: unmapped.concat(),
    })
}

/// What one call gave, and the names it could not map.
type One = (Given, Vec<String>);

async fn one(
    services: &Services,
    caller: Caller,
    scope: &Scope<'_>,
    call: &ToolCall,
    refused: Option<&str>,
) -> One {
    if let Some(why) = refused {
        return (failed(call, why), Vec::new());
    }
    let started = Instant::now();
    let called = services
        .tools
        .call(caller, None, scope, &call.name, &call.arguments);
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
        Ok(mut observation) => {
            let unmapped = std::mem::take(&mut observation.unmapped);
            (shown(call, observation, scope.data), unmapped)
        }
        Err(error) => (failed(call, &error.to_string()), error.unmapped().to_vec()),
    }
}

const NO_DATA: &str = "研究数据暂时无法读取";

fn failed(call: &ToolCall, why: &str) -> Given {
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
    }
}
