//! What steps came to: rows of the run and the ledger, written in the settlement of the job that did
//! them.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use super::services::Services;
use crate::{
    engines::sop::{CompiledSkill, NodeOutcome, Standing, Walk},
    queue::{JobError, Lease, Outcome, Settled},
    skills::Work,
    store::{
        ledger::{self, Decided, Found, Scope},
        runs::{self, RunState, Step},
    },
    types::ids::RunId,
};

/// The queue for jobs that ask an EDC or only compute.
pub const EDC_QUEUE: &str = "edc";
/// The queue for jobs that ask a language model.
pub const LLM_QUEUE: &str = "llm";

/// Steps of one run that commit together.
#[derive(Debug)]
pub struct RunSteps<'a> {
    /// The run.
    pub run: RunId,
    /// Its skill.
    pub skill_type: &'a str,
    /// Its record.
    pub record: &'a str,
    /// Number of the first of these steps.
    pub first: i32,
    /// What they came to, in order.
    pub outcomes: &'a [NodeOutcome],
    /// The run ended, and clean.
    pub clean: bool,
    /// Questions to a model that the steps took.
    pub llm_calls: i32,
}

/// Where a run stands after `walk`, for its row.
#[must_use]
pub fn state_of(walk: &Walk) -> RunState {
    match (walk.node(), walk.final_state()) {
        (Some(node), _) => RunState::At {
            node: node.to_owned(),
            walk: serde_json::to_value(walk).unwrap_or_default(),
        },
        (None, end) => RunState::Ended {
            final_state: end.map(ToString::to_string).unwrap_or_default(),
            standing: standing_str(walk.standing().unwrap_or(Standing::Review)).to_owned(),
        },
    }
}

/// The stored form of a standing.
#[must_use]
pub fn standing_str(standing: Standing) -> &'static str {
    match standing {
        Standing::Clean => "clean",
        Standing::Incomplete => "incomplete",
        Standing::Review => "review",
        Standing::Violation => "violation",
    }
}

/// The word people read for a stored standing; what is unknown needs a look.
#[must_use]
pub fn standing_label(stored: &str) -> &'static str {
    match stored {
        "clean" => Standing::Clean.label(),
        "incomplete" => Standing::Incomplete.label(),
        "violation" => Standing::Violation.label(),
        _ => Standing::Review.label(),
    }
}

/// The queue of the next step: by the resource it needs.
#[must_use]
pub fn queue_for(skill: &CompiledSkill, walk: &Walk) -> &'static str {
    match skill.work(walk) {
        Some(Work::SoftInstruction { .. }) => LLM_QUEUE,
        _ => EDC_QUEUE,
    }
}

/// Appends the step rows and brings the ledger up to date for all `runs`, in a few statements however
/// many there are. Returns the number of findings.
///
/// # Errors
/// The database failed.
pub async fn write(
    conn: &mut PgConnection,
    project: &str,
    runs: &[RunSteps<'_>],
    lease: &Lease,
    started_at: DateTime<Utc>,
) -> Result<usize, sqlx::Error> {
    let mut rows = Vec::new();
    let mut found = Vec::new();
    let mut decided = Vec::new();
    for run in runs {
        for (no, outcome) in (run.first..).zip(run.outcomes) {
            rows.push(Step {
                run: run.run,
                no,
                node: outcome.node.clone(),
                outcome: outcome.result.as_str().to_owned(),
                note: outcome.note.clone(),
                findings: outcome.findings.clone(),
                attempt: lease.attempt,
                job: Some(lease.job),
                started_at,
                committed_at: None,
                llm_calls: run.llm_calls,
            });
            found.extend(outcome.findings.iter().map(|finding| Found {
                run: run.run,
                skill_type: run.skill_type,
                finding,
                waits: false,
            }));
            decided.extend(outcome.rules_checked.iter().map(|rule| Decided {
                run: run.run,
                record: run.record.to_owned(),
                scope: Scope::Rule {
                    skill: run.skill_type.to_owned(),
                    rule: rule.clone(),
                },
            }));
        }
        if run.clean {
            decided.push(Decided {
                run: run.run,
                record: run.record.to_owned(),
                scope: Scope::Skill(run.skill_type.to_owned()),
            });
        }
    }
    let current: Vec<String> = found
        .iter()
        .map(|f| f.finding.fingerprint(project))
        .collect();
    let records: Vec<String> = runs.iter().map(|run| run.record.to_owned()).collect();
    runs::append_steps(&mut *conn, &rows).await?;
    ledger::lock_records(&mut *conn, project, &records).await?;
    ledger::record(&mut *conn, project, &found).await?;
    ledger::propose_close(conn, project, &decided, &current).await?;
    Ok(found.len())
}

/// Somebody committed this step before: nothing to do, nothing to write.
///
/// # Errors
/// The lease is lost, or the database failed.
pub async fn already_done(services: &Services, lease: &Lease) -> Result<Settled, JobError> {
    Ok(lease
        .settle_only(&services.pool, &services.wake, &Outcome::Done)
        .await?)
}
