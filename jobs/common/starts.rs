//! Runs that start at their first node: one per record and skill, each carried on by `sop_step`.

use super::steps;
use crate::{
    jobs::sop_step::SopStep,
    queue::{JobError, NewJob, Settlement},
    store::{
        batches,
        runs::{self, NewRun, RunState},
        skills::{StoredSkill, pins},
    },
    types::ids::{BatchId, RunId},
};

/// Starts `skills` on `records` (which exist) for a batch that was just created.
///
/// # Errors
/// The database failed.
pub async fn start_runs(
    settlement: &mut Settlement,
    project: &str,
    batch: BatchId,
    records: &[String],
    skills: &[StoredSkill],
) -> Result<(), JobError> {
    let new: Vec<NewRun> = records
        .iter()
        .flat_map(|record| skills.iter().map(move |skill| (record, skill)))
        .map(|(record, skill)| NewRun {
            id: RunId::generate(),
            skill_type: skill.skill_type.clone(),
            skill_version: skill.version,
            record: record.clone(),
            state: RunState::Begin {
                node: start_node(skill),
            },
            step_no: 0,
            findings: 0,
            data_version: None,
            site: None,
        })
        .collect();
    let total = i32::try_from(records.len()).unwrap_or(i32::MAX);
    batches::start(settlement.conn(), batch, total, &[], &pins(skills)).await?;
    runs::insert(settlement.conn(), project, batch, &new).await?;
    let jobs: Vec<NewJob> = new
        .iter()
        .map(|run| {
            let step = SopStep {
                run: run.id,
                step: 0,
                review: None,
            };
            NewJob::of(&step).map(|job| job.on_queue(steps::EDC_QUEUE))
        })
        .collect::<Result<_, _>>()?;
    settlement.enqueue_many(&jobs).await?;
    Ok(())
}

/// For people who look at the run before its first step; the engine finds its start by itself.
fn start_node(skill: &StoredSkill) -> String {
    skill
        .config
        .get("start_node")
        .and_then(|node| node.as_str())
        .unwrap_or("start")
        .to_owned()
}
