//! A QC request: its plan fans out into pages, and each page runs the leading hard nodes of its records
//! in one settlement. Records are counted down; whoever settles the last one answers. Nobody waits.

use std::collections::HashSet;

use anyhow::anyhow;
use serde::{Deserialize, Serialize};

use super::{
    Handle,
    common::{
        page, reply,
        services::Services,
        steps,
        study::{Study, edc_error},
    },
};
use crate::{
    queue::{self, Job, JobError, Lease, NewJob, Outcome, Settled, Settlement},
    store::{
        batches::{self, Batch, NewBatch},
        skills::{self, StoredSkill},
    },
    types::ids::BatchId,
};

/// Records of one page: small enough that a page is a short job, large enough that its settlement pays.
const PAGE: usize = 50;

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
                        page::run(services, lease, &batch, &study, no, records, skills).await
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
        .settle_only(&services.pool, &services.wake, &Outcome::Done)
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
    let versions = skills::pins(skills);
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
    let priority = if pages.len() > 1 { page::PRIORITY } else { 0 };
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
