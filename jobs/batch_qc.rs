//! A QC request: its plan fans out into pages, and each page runs the leading hard nodes of its records
//! in one settlement. Records are counted down; whoever settles the last one answers. Nobody waits.

use std::{collections::HashSet, sync::Arc};

use anyhow::{Context, anyhow};
use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};

use super::{
    Handle,
    common::{
        reply,
        services::Services,
        steps::{self, RunSteps},
        study::{Study, edc_error},
    },
    sop_step::SopStep,
};
use crate::{
    adapters::edc::{EdcError, Extract},
    engines::sop::{CompiledSkill, NodeOutcome, Walk},
    queue::{self, Job, JobError, Lease, NewJob, Outcome, Settled, Settlement},
    store::{
        batches::{self, Batch, NewBatch},
        runs::{self, NewRun, RunState},
        skills::{self, StoredSkill},
    },
    types::{
        ids::{BatchId, RunId},
        record::Record,
    },
};

/// Records of one page: small enough that a page is a short job, large enough that its settlement pays.
const PAGE: usize = 50;
/// Pages of large batches yield to what a person waits for.
const PAGE_PRIORITY: i16 = 10;

/// Plan a batch (`page` absent), or do one page of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BatchQc {
    /// The request.
    pub batch: BatchId,
    /// The page to do; the plan when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<i32>,
}

impl Job for BatchQc {
    const KIND: &'static str = "batch_qc";
    const QUEUE: &'static str = steps::EDC_QUEUE;
    const MAX_ATTEMPTS: i32 = 5;

    fn key(&self) -> Option<String> {
        Some(match self.page {
            None => format!("{}/plan", self.batch),
            Some(page) => format!("{}/{page}", self.batch),
        })
    }
}

impl Handle for BatchQc {
    async fn run(self, services: &Services, lease: &Lease) -> Result<Settled, JobError> {
        let mut conn = services.pool.acquire().await?;
        let Some(batch) = batches::get(&mut conn, self.batch).await? else {
            return Err(JobError::Cancel("the batch is gone".to_owned()));
        };
        let study = Study::load(services, &mut conn, &batch.project).await?;
        match self.page {
            None if batch.state == "planning" => {
                let skills =
                    skills::active(&mut conn, &batch.project, batch.skill.as_deref()).await?;
                drop(conn);
                if skills.is_empty() {
                    return Err(JobError::dead(anyhow!(no_skill(&batch))));
                }
                plan(services, lease, &batch, &study, &skills).await
            }
            Some(no) if batch.state == "running" => {
                let records = batches::page(&mut conn, batch.id, no).await?;
                let skills = skills::at_versions(&mut conn, &batch.project, &batch.skills).await?;
                drop(conn);
                if skills.len() != batch.skills.len() || skills.is_empty() {
                    return Err(JobError::dead(anyhow!(
                        "the versions of this batch's skills are gone"
                    )));
                }
                match records {
                    Some(records) => {
                        do_page(services, lease, &batch, &study, no, records, skills).await
                    }
                    None => nothing_to_do(services, lease).await,
                }
            }
            _ => nothing_to_do(services, lease).await,
        }
    }

    async fn bury(
        self,
        services: &Services,
        _lease: &Lease,
        settlement: &mut Settlement,
        why: &str,
    ) -> Result<(), JobError> {
        let complete = match self.page {
            None => {
                let note = "没有做成质控：数据源或技能有问题，详情见批次记录";
                batches::fail(settlement.conn(), self.batch, note, why).await?
            }
            Some(no) => {
                let records = batches::page(settlement.conn(), self.batch, no)
                    .await?
                    .unwrap_or_default();
                let open = batches::end_page(settlement.conn(), self.batch, no, "failed").await?;
                let note = format!("{} 例未能检查：数据读取失败，详情见批次记录", records.len());
                batches::note(settlement.conn(), self.batch, &note, Some(why)).await?;
                let failed = i32::try_from(records.len()).unwrap_or(i32::MAX);
                open && batches::count(settlement.conn(), self.batch, 0, failed, 0).await?
            }
        };
        if complete {
            reply::finish_batch(services, settlement, self.batch).await?;
        }
        Ok(())
    }
}

/// Writes a QC request with its planning job, in the caller's transaction; the caller commits, then
/// wakes [`queue_of_requests`].
///
/// # Errors
/// The database failed; nothing is written then.
pub async fn request(conn: &mut sqlx::PgConnection, new: &NewBatch<'_>) -> anyhow::Result<BatchId> {
    let batch = batches::create(&mut *conn, new).await?;
    let plan = BatchQc { batch, page: None };
    queue::enqueue(conn, NewJob::of(&plan)?).await?;
    Ok(batch)
}

/// The queue a request waits on.
#[must_use]
pub fn queue_of_requests() -> String {
    BatchQc::QUEUE.to_owned()
}

/// Opens again what a dead job of this kind left failed. Returns whether there was anything.
///
/// # Errors
/// The database failed.
pub async fn revive(conn: &mut sqlx::PgConnection, job: &BatchQc) -> Result<bool, sqlx::Error> {
    match job.page {
        None => batches::reopen(conn, job.batch).await,
        Some(no) => batches::reopen_page(conn, job.batch, no).await,
    }
}

async fn nothing_to_do(services: &Services, lease: &Lease) -> Result<Settled, JobError> {
    Ok(lease
        .settle(&services.pool, &services.wake, &Outcome::Done)
        .await?
        .commit()
        .await?)
}

fn no_skill(batch: &Batch) -> String {
    match &batch.skill {
        Some(skill) => format!(
            "项目 {} 没有启用技能 {skill}；用 `iit skills apply` 启用 (no such active skill)",
            batch.project
        ),
        None => format!(
            "项目 {} 没有启用任何质控技能；用 `iit skills apply` 启用 (no active skill)",
            batch.project
        ),
    }
}

/// Which records there are, in which pages.
async fn plan(
    services: &Services,
    lease: &Lease,
    batch: &Batch,
    study: &Study,
    skills: &[StoredSkill],
) -> Result<Settled, JobError> {
    let known = study.edc.record_ids().await.map_err(edc_error)?;
    let (records, missing) = match &batch.records {
        None => (known, Vec::new()),
        Some(asked) => {
            let known: HashSet<&String> = known.iter().collect();
            let mut seen = HashSet::new();
            asked
                .iter()
                .filter(|id| seen.insert(*id))
                .cloned()
                .partition(|id| known.contains(id))
        }
    };
    let total = records.len() + missing.len();
    let versions: Vec<(String, i32)> = skills
        .iter()
        .map(|skill| (skill.skill_type.clone(), skill.version))
        .collect();
    let pages: Vec<Vec<String>> = records.chunks(PAGE).map(<[String]>::to_vec).collect();
    let mut settlement = lease
        .settle(&services.pool, &services.wake, &Outcome::Done)
        .await?;
    batches::start(
        settlement.conn(),
        batch.id,
        i32::try_from(total).unwrap_or(i32::MAX),
        &pages,
        &versions,
    )
    .await?;
    let priority = if pages.len() > 1 { PAGE_PRIORITY } else { 0 };
    let jobs: Vec<NewJob> = (0..)
        .take(pages.len())
        .map(|page| {
            let job = BatchQc {
                batch: batch.id,
                page: Some(page),
            };
            NewJob::of(&job).map(|job| job.priority(priority))
        })
        .collect::<Result<_, _>>()?;
    settlement.enqueue_many(&jobs).await?;
    if !missing.is_empty() {
        let shown: Vec<String> = missing.iter().take(5).map(|id| format!("“{id}”")).collect();
        let note = format!(
            "研究中没有受试者 {}（共 {} 个编号不存在）",
            shown.join("、"),
            missing.len()
        );
        batches::note(settlement.conn(), batch.id, &note, None).await?;
    }
    let failed = i32::try_from(missing.len()).unwrap_or(i32::MAX);
    let complete = batches::count(settlement.conn(), batch.id, 0, failed, 0).await?;
    if complete || total == 0 {
        batches::complete_empty(settlement.conn(), batch.id).await?;
        reply::finish_batch(services, &mut settlement, batch.id).await?;
    }
    Ok(settlement.commit().await?)
}

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

async fn do_page(
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
            NewJob::of(&step).map(|job| job.on_queue(one.queue).priority(PAGE_PRIORITY))
        })
        .collect::<Result<_, _>>()?;
    settlement.enqueue_many(&next).await?;
    let (done, failed, findings) = tally(checked, page.records);
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
