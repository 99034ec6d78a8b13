//! Runs that go from node to node, one job a step: the work that all figures about durable steps do. Each
//! settlement commits the run's new state behind its fence, a step row, the next job and the end of this one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, anyhow, ensure};
use iit_manager::queue::claim::ClaimedJob;
use iit_manager::queue::{self, JobError, NewJob, Outcome, Settled, Wake};
use iit_manager::store::batches::{self, NewBatch};
use iit_manager::store::runs::{self, NewRun, RunState, Seen, Step};
use iit_manager::types::clock::Clock;
use iit_manager::types::ids::{BatchId, RunId};
use serde_json::json;
use sqlx::PgPool;
use tokio::sync::Notify;
use uuid::Uuid;

use crate::place::Base;
use crate::program::PATIENCE;
use crate::queue_side::{Each, Working, job};

/// Of a run.
pub const STEPS: i32 = 10;

/// What all steps share.
struct Shop {
    pool: PgPool,
    wake: Wake,
    clock: Clock,
    batch: BatchId,
    /// Every ended run is followed by a new one.
    endless: bool,
    committed: AtomicUsize,
    left: AtomicUsize,
    all: Notify,
}

/// Runs under way, and the worker on them.
pub struct Chains {
    shop: Arc<Shop>,
    working: Working,
}

impl Chains {
    /// Starts `count` runs. The sample study must be in `base`.
    async fn start(base: &Base, count: usize, endless: bool) -> Result<(Self, Instant)> {
        let batch = prepare(base, count).await?;
        let shop = Arc::new(Shop {
            pool: base.database.pool.clone(),
            wake: Wake::new(Uuid::new_v4()),
            clock: Clock::system(),
            batch,
            endless,
            committed: AtomicUsize::new(0),
            left: AtomicUsize::new(count),
            all: Notify::new(),
        });
        let handler = {
            let shop = shop.clone();
            Each(move |job| step(shop.clone(), job))
        };
        let begin = Instant::now();
        let working = Working::start(&base.database, &shop.wake, Arc::new(handler)).await?;
        Ok((Self { shop, working }, begin))
    }

    /// Runs without end, `together` of them at a time.
    pub async fn endless(base: &Base, together: usize) -> Result<Self> {
        Ok(Self::start(base, together, true).await?.0)
    }

    /// Steps committed so far.
    pub fn committed(&self) -> usize {
        self.shop.committed.load(Ordering::Relaxed)
    }

    /// Stops the worker.
    pub async fn end(self) {
        self.working.end().await;
    }
}

/// Seconds that `count` runs took from first to last step, each with all its steps.
pub async fn finish(base: &Base, count: usize) -> Result<f64> {
    let (chains, begin) = Chains::start(base, count, false).await?;
    tokio::time::timeout(PATIENCE, chains.shop.all.notified()).await?;
    let seconds = begin.elapsed().as_secs_f64();
    let batch = chains.shop.batch;
    chains.end().await;
    let whole: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM iit_task_run r WHERE batch_id = $1 AND status = 'done' AND step_no = $2
         AND $2 = (SELECT count(*) FROM iit_task_step s WHERE s.run_id = r.id)",
    )
    .bind(batch)
    .bind(STEPS)
    .fetch_one(&base.database.pool)
    .await?;
    ensure!(
        usize::try_from(whole)? == count,
        "only {whole} runs have all their steps"
    );
    Ok(seconds)
}

/// `count` runs at their first node, each with the job of its first step.
async fn prepare(base: &Base, count: usize) -> Result<BatchId> {
    let new: Vec<NewRun> = (0..count).map(|_| new_run()).collect();
    let mut tx = base.database.pool.begin().await?;
    let batch = NewBatch {
        project: "demo",
        skill: None,
        records: None,
        reply_to: None,
        requested_by: "bench",
    };
    let batch = batches::create(&mut tx, &batch).await?;
    runs::insert(&mut tx, "demo", batch, &new).await?;
    let jobs: Vec<NewJob> = new.iter().map(|run| next(run.id, 0)).collect();
    queue::enqueue_many(&mut tx, &jobs).await?;
    tx.commit().await?;
    Ok(batch)
}

fn new_run() -> NewRun {
    let id = RunId::generate();
    NewRun {
        id,
        skill_type: "eligibility".to_owned(),
        skill_version: 1,
        record: format!("S{id}"),
        state: RunState::Begin {
            node: "n0".to_owned(),
        },
        step_no: 0,
        findings: 0,
        data_version: None,
        site: None,
    }
}

fn next(run: RunId, step: i32) -> NewJob {
    NewJob {
        key: Some(format!("{run}/{step}")),
        ..job(json!({ "run": run, "step": step }))
    }
}

async fn step(shop: Arc<Shop>, job: ClaimedJob) -> Result<Settled, JobError> {
    let started_at = shop.clock.now();
    let field = |name: &str| job.payload.get(name).cloned().unwrap_or_default();
    let id: RunId = serde_json::from_value(field("run")).map_err(JobError::dead)?;
    let no: i32 = serde_json::from_value(field("step")).map_err(JobError::dead)?;
    let mut conn = shop.pool.acquire().await?;
    let run = runs::get(&mut conn, id).await?.context("the run is gone")?;
    drop(conn);
    if run.step_no != no {
        return Err(JobError::dead(anyhow!("step {no} of {id} was done before")));
    }
    let last = no + 1 == STEPS;
    let mut settlement = job
        .lease
        .settle(&shop.pool, &shop.wake, &Outcome::Done)
        .await?;
    if !runs::advance(settlement.conn(), id, no, &state(no), 0, &Seen::default()).await? {
        return Err(JobError::dead(anyhow!("step {no} of {id} was done twice")));
    }
    let row = Step {
        run: id,
        no,
        node: format!("n{no}"),
        outcome: "pass".to_owned(),
        note: None,
        findings: Vec::new(),
        attempt: job.lease.attempt,
        job: Some(job.lease.job),
        started_at,
        committed_at: None,
        llm_calls: 0,
    };
    runs::append_steps(settlement.conn(), &[row]).await?;
    if !last {
        settlement.enqueue(next(id, no + 1)).await?;
    } else if shop.endless {
        let new = new_run();
        let first = next(new.id, 0);
        runs::insert(settlement.conn(), "demo", shop.batch, &[new]).await?;
        settlement.enqueue(first).await?;
    }
    let settled = settlement.commit().await?;
    shop.committed.fetch_add(1, Ordering::Relaxed);
    if last && !shop.endless && shop.left.fetch_sub(1, Ordering::Relaxed) == 1 {
        shop.all.notify_one();
    }
    Ok(settled)
}

/// Where a run stands after its step `no`.
fn state(no: i32) -> RunState {
    if no + 1 == STEPS {
        return RunState::Ended {
            final_state: "end_success".to_owned(),
            standing: "clean".to_owned(),
        };
    }
    let node = format!("n{}", no + 1);
    RunState::At {
        walk: json!({ "node": node, "visits": { "n0": 1 }, "trace": ["pass"] }),
        node,
    }
}
