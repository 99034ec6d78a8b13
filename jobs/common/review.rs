//! Reviews: the question a run puts to a person, the answer, and the run that goes on by it.

use anyhow::anyhow;
use sqlx::PgConnection;

use super::services::Services;
use crate::{
    engines::sop::{CompiledSkill, Walk},
    jobs::sop_step::{Review, SopStep},
    queue::{self, JobError, NewJob},
    skills::Work,
    store::{
        ledger::{self, Decision},
        runs::{self, Run},
    },
    types::{
        finding::{FieldValue, Finding, FindingOutcome, Severity},
        ids::PendingActionId,
    },
};

/// What a run asks at a `human_review` node.
pub struct Question {
    /// The ledger row that asks. Its values are everything the run has found so far.
    pub finding: Finding,
    /// What a person answered when the run had found the very same.
    pub answered_before: Option<Review>,
}

/// The question of a run that stands at a `human_review` node.
///
/// # Errors
/// It stands elsewhere, or the database failed.
pub async fn question(
    services: &Services,
    run: &Run,
    skill: &CompiledSkill,
    walk: &Walk,
) -> Result<Question, JobError> {
    let (Some(Work::HumanReview { message }), Some(node)) = (skill.work(walk), walk.node()) else {
        return Err(JobError::dead(anyhow!(
            "the run does not stand at a review"
        )));
    };
    let mut conn = services.pool.acquire().await?;
    let found = runs::steps(&mut conn, run.id).await?;
    let values: Vec<FieldValue> = found
        .iter()
        .flat_map(|step| &step.findings)
        .flat_map(basis)
        .collect();
    let finding = Finding {
        record: run.record.clone(),
        event: None,
        instance: None,
        rule: skill.node_key(node),
        field: String::new(),
        outcome: FindingOutcome::NotEvaluable,
        severity: Severity::Query,
        message: format!("{message}（人工复核 {node}）"),
        values,
    };
    let fingerprint = finding.fingerprint(&run.project);
    // What rests on no value is the same for any data: nobody's word on it holds for another time.
    let rests_on_data = !finding.values.is_empty()
        && found
            .iter()
            .flat_map(|step| &step.findings)
            .all(|finding| !finding.values.is_empty());
    let verdict = match rests_on_data {
        true => ledger::verdict(&mut conn, &fingerprint, &finding.values).await?,
        false => None,
    };
    Ok(Question {
        finding,
        answered_before: verdict.map(review_of),
    })
}

/// What a finding rests on, so that another value, place or rule makes another question.
fn basis(finding: &Finding) -> Vec<FieldValue> {
    let mut place = finding.rule.clone();
    if let Some(event) = &finding.event {
        place.push_str(&format!(" {event}"));
    }
    if let Some(instance) = finding.instance {
        place.push_str(&format!(" #{instance}"));
    }
    let named = |field: &str, value: Option<String>| FieldValue {
        field: format!("{place} {field}"),
        value,
    };
    if finding.values.is_empty() {
        return vec![named(&finding.field, None)];
    }
    finding
        .values
        .iter()
        .map(|v| named(&v.field, v.value.clone()))
        .collect()
}

fn review_of(decision: Decision) -> Review {
    match decision {
        Decision::Dismiss => Review::Dismiss,
        Decision::Confirm | Decision::Answer | Decision::Close => Review::Confirm,
    }
}

/// A decision that was written; the caller commits, then wakes `queue`.
#[derive(Debug)]
pub struct Decided {
    /// New status of the row.
    pub status: String,
    /// Queue of the job that carries a waiting run on.
    pub queue: Option<String>,
}

/// A decision by its wire name.
#[must_use]
pub fn parse(name: &str) -> Option<Decision> {
    Some(match name {
        "confirm" => Decision::Confirm,
        "dismiss" => Decision::Dismiss,
        "answer" => Decision::Answer,
        "close" => Decision::Close,
        _ => return None,
    })
}

/// Writes the decision and, when a run waits for it, the job that carries it on: a confirmed
/// review takes `on_fail`, a dismissed one `on_pass`.
///
/// # Errors
/// [`ledger::DecideError`] (to be downcast) when there is no such row or it is past that; else the
/// database failed.
pub async fn decide(
    conn: &mut PgConnection,
    id: PendingActionId,
    decision: Decision,
    actor: &str,
    reason: &str,
) -> anyhow::Result<Decided> {
    let decided = ledger::decide(&mut *conn, id, decision, actor, reason).await?;
    let mut queue = None;
    if let Some(run) = decided.waits_for
        && let Some(run) = runs::get(&mut *conn, run).await?
    {
        let step = SopStep {
            run: run.id,
            step: run.step_no,
            review: Some(review_of(decision)),
        };
        let job = NewJob::of(&step)?;
        queue = Some(job.queue.clone());
        queue::enqueue(conn, job).await?;
    }
    Ok(Decided {
        status: decided.status,
        queue,
    })
}
