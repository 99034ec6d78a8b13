//! One page of a batch: its records are read together, run through their leading hard nodes, and settled
//! in one transaction.

use std::{collections::HashSet, sync::Arc};

use anyhow::{Context, anyhow};
use chrono::{DateTime, NaiveDate, Utc};

use super::{
    reply,
    services::Services,
    steps::{self, RunSteps},
    study::{Study, edc_error},
};
use crate::{
    adapters::edc::{EdcError, Extract},
    engines::sop::{CompiledSkill, NodeOutcome, Walk},
    jobs::sop_step::SopStep,
    queue::{JobError, Lease, NewJob, Outcome, Settled},
    store::{
        batches::{self, Batch},
        runs::{self, NewRun, RunState},
        skills::StoredSkill,
    },
    types::{ids::RunId, record::Record},
};

/// Pages of large batches, and what follows them, yield to what a person waits for.
pub const PRIORITY: i16 = 10;

/// One run over one record, as far as its leading hard nodes lead.
struct Checked {
    run: RunId,
    skill: usize,
    record: String,
    site: Option<String>,
    outcomes: Vec<NodeOutcome>,
    state: RunState,
    queue: &'static str,
}

/// Does page `no` of `batch`: these records, with these skills.
///
/// # Errors
/// The data source or the database failed.
pub async fn run(
    services: &Services,
    lease: &Lease,
    batch: &Batch,
    study: &Study,
    no: i32,
    records: Vec<String>,
    stored: Vec<StoredSkill>,
) -> Result<Settled, JobError> {
    let started_at = services.clock.now();
    let (extract, gone) = read(study, records).await?;
    let compiled: Vec<Result<Arc<CompiledSkill>, String>> = stored
        .iter()
        .map(|skill| {
            services
                .skills
                .compiled(study, skill, Some(&extract.dictionary))
        })
        .collect();
    let sites: Vec<Option<String>> = extract.records.iter().map(|r| study.site_of(r)).collect();
    let today = study.today;
    let input = (compiled, extract.records.clone());
    let checked = tokio::task::spawn_blocking(move || {
        let (compiled, records) = input;
        check_all(&compiled, &records, &sites, today)
    })
    .await
    .context("checking a page")??;
    settle_page(
        services,
        lease,
        batch,
        Page {
            no,
            records: extract.records.len(),
            gone: &gone,
            stored: &stored,
            data_version: &extract.fingerprint,
            started_at,
        },
        &checked,
    )
    .await
}

/// The records of a page as they are now, and those that were deleted since the plan was made.
async fn read(study: &Study, records: Vec<String>) -> Result<(Extract, Vec<String>), JobError> {
    match study.edc.records(&records).await {
        Ok(extract) => Ok((extract, Vec::new())),
        Err(EdcError::NotFound { records: gone }) => {
            let left: Vec<String> = records
                .into_iter()
                .filter(|id| !gone.contains(id))
                .collect();
            let extract = study.edc.records(&left).await.map_err(edc_error)?;
            Ok((extract, gone))
        }
        Err(error) => Err(edc_error(error)),
    }
}

/// Computes only. Kept off the runtime's threads: a page of many rules must not hold up heartbeats.
fn check_all(
    compiled: &[Result<Arc<CompiledSkill>, String>],
    records: &[Arc<Record>],
    sites: &[Option<String>],
    today: NaiveDate,
) -> Result<Vec<Checked>, JobError> {
    let mut checked = Vec::with_capacity(records.len() * compiled.len());
    for (record, site) in records.iter().zip(sites) {
        for (at, skill) in compiled.iter().enumerate() {
            let mut one = Checked {
                run: RunId::generate(),
                skill: at,
                record: record.id.clone(),
                site: site.clone(),
                outcomes: Vec::new(),
                state: RunState::Failed {
                    final_state: "skill_faulty".to_owned(),
                    error: String::new(),
                },
                queue: steps::EDC_QUEUE,
            };
            match skill {
                Ok(skill) => {
                    let mut walk: Walk = skill.begin();
                    one.outcomes = skill
                        .run_leading(&mut walk, record, today)
                        .map_err(JobError::dead)?;
                    one.queue = steps::queue_for(skill, &walk);
                    one.state = steps::state_of(&walk);
                }
                Err(fault) => {
                    one.state = RunState::Failed {
                        final_state: "skill_faulty".to_owned(),
                        error: fault.clone(),
                    };
                }
            }
            checked.push(one);
        }
    }
    Ok(checked)
}

struct Page<'a> {
    no: i32,
    records: usize,
    gone: &'a [String],
    stored: &'a [StoredSkill],
    data_version: &'a str,
    started_at: DateTime<Utc>,
}

/// Writes a page in one transaction: runs, steps, ledger, following jobs, the count.
async fn settle_page(
    services: &Services,
    lease: &Lease,
    batch: &Batch,
    page: Page<'_>,
    checked: &[Checked],
) -> Result<Settled, JobError> {
    let mut settlement = lease
        .settle(&services.pool, &services.wake, &Outcome::Done)
        .await?;
    if !batches::end_page(settlement.conn(), batch.id, page.no, "done").await? {
        return Err(JobError::Cancel("the page was done before".to_owned()));
    }
    let new_runs = checked
        .iter()
        .map(|one| new_run(one, &page))
        .collect::<Result<Vec<_>, _>>()?;
    runs::insert(settlement.conn(), &batch.project, batch.id, &new_runs).await?;
    let run_steps = checked
        .iter()
        .map(|one| run_steps(one, &page))
        .collect::<Result<Vec<_>, _>>()?;
    steps::write(
        settlement.conn(),
        &batch.project,
        &run_steps,
        lease,
        page.started_at,
    )
    .await?;
    let next: Vec<NewJob> = checked
        .iter()
        .filter(|one| one.state.is_running())
        .map(|one| {
            let step = SopStep {
                run: one.run,
                step: i32::try_from(one.outcomes.len()).unwrap_or(i32::MAX),
                review: None,
            };
            NewJob::of(&step).map(|job| job.on_queue(one.queue).priority(lease.priority))
        })
        .collect::<Result<_, _>>()?;
    settlement.enqueue_many(&next).await?;
    let (done, failed, findings) = tally(checked, page.records);
    let faulty = checked.iter().find_map(|one| match &one.state {
        RunState::Failed { error, .. } => Some(error),
        _ => None,
    });
    if let Some(fault) = faulty {
        batches::note(settlement.conn(), batch.id, fault, Some(fault)).await?;
    }
    let gone = i32::try_from(page.gone.len()).unwrap_or(i32::MAX);
    if gone > 0 {
        let note = format!("{gone} 例在质控开始后被删除或改名，未检查");
        batches::note(settlement.conn(), batch.id, &note, None).await?;
    }
    if batches::count(settlement.conn(), batch.id, done, failed + gone, findings).await? {
        reply::finish_batch(services, &mut settlement, batch.id).await?;
    }
    Ok(settlement.commit().await?)
}

fn new_run(one: &Checked, page: &Page<'_>) -> Result<NewRun, JobError> {
    let skill = page
        .stored
        .get(one.skill)
        .ok_or_else(|| JobError::dead(anyhow!("a run without its skill")))?;
    Ok(NewRun {
        id: one.run,
        skill_type: skill.skill_type.clone(),
        skill_version: skill.version,
        record: one.record.clone(),
        state: one.state.clone(),
        step_no: i32::try_from(one.outcomes.len()).unwrap_or(i32::MAX),
        findings: findings_of(one),
        data_version: Some(page.data_version.to_owned()),
        site: one.site.clone(),
    })
}

fn run_steps<'a>(one: &'a Checked, page: &Page<'a>) -> Result<RunSteps<'a>, JobError> {
    let skill = page
        .stored
        .get(one.skill)
        .ok_or_else(|| JobError::dead(anyhow!("a run without its skill")))?;
    Ok(RunSteps {
        run: one.run,
        skill_type: &skill.skill_type,
        record: &one.record,
        first: 0,
        outcomes: &one.outcomes,
        clean: matches!(&one.state, RunState::Ended { standing, .. } if standing == "clean"),
        llm_calls: 0,
    })
}

fn findings_of(one: &Checked) -> i32 {
    let count: usize = one.outcomes.iter().map(|o| o.findings.len()).sum();
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// Records done and failed by this page alone, and the findings of runs that need no further job. A
/// record with a run that goes on is counted when that run stops.
fn tally(checked: &[Checked], records: usize) -> (i32, i32, i32) {
    let going_on: HashSet<&str> = checked
        .iter()
        .filter(|one| one.state.is_running())
        .map(|one| one.record.as_str())
        .collect();
    let failed: HashSet<&str> = checked
        .iter()
        .filter(|one| matches!(one.state, RunState::Failed { .. }))
        .map(|one| one.record.as_str())
        .filter(|record| !going_on.contains(record))
        .collect();
    let findings = checked
        .iter()
        .filter(|one| !one.state.is_running())
        .map(findings_of)
        .sum();
    let count = |n: usize| i32::try_from(n).unwrap_or(i32::MAX);
    (
        count(records.saturating_sub(going_on.len() + failed.len())),
        count(failed.len()),
        findings,
    )
}
