//! Durable steps: runs that go from node to node, one job a step. Each settlement commits the run's new
//! state behind its fence, a step row, the next job and the end of this one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, anyhow, ensure};
use iit_manager::queue::claim::ClaimedJob;
use iit_manager::queue::{self, JobError, NewJob, Outcome, Settled, Wake};
use iit_manager::store::batches::{self, NewBatch};
use iit_manager::store::runs::{self, NewRun, RunState, Seen, Step};
use iit_manager::types::clock::Clock;
use iit_manager::types::ids::RunId;
use serde_json::json;
use sqlx::PgPool;
use tokio::sync::Notify;
use uuid::Uuid;

use crate::Bench;
use crate::place::{self, Base};
use crate::program::PATIENCE;
use crate::queue_side::{Each, SLOTS, Working, job};
use crate::report::{Figure, Target};
use crate::samples::median;

const STEPS: i32 = 10;
const RUNS: usize = 3;

pub async fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let runs = bench.amount(1_000, 100);
    let mut rates = Vec::new();
    for turn in 0..RUNS {
        let seconds = once(bench, turn, runs).await?;
        #[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
        rates.push((runs * 10) as f64 / seconds);
    }
    let all: Vec<String> = rates.iter().map(|rate| format!("{rate:.0}")).collect();
    Ok(vec![
        Figure::new("durable steps", Target::AtLeast(1000.0), median(rates), "steps/s")
            .detail(format!("runs: {}", all.join(", ")))
            .note(format!(
                "{runs} runs × {STEPS} steps, 1 process, {SLOTS} slots; a step reads its run and commits run state, \
                 step row, next job and settle together"
            )),
    ])
}

/// What all steps share.
struct Shop {
    pool: PgPool,
    wake: Wake,
    clock: Clock,
    left: AtomicUsize,
    all: Notify,
}

async fn once(bench: &Bench, turn: usize, count: usize) -> Result<f64> {
    let base = bench.place.database(&format!("steps_{turn}")).await?;
    place::demo(&base, &[]).await?;
    let shop = Arc::new(Shop {
        pool: base.database.pool.clone(),
        wake: Wake::new(Uuid::new_v4()),
        clock: Clock::system(),
        left: AtomicUsize::new(count),
        all: Notify::new(),
    });
    prepare(&base, count).await?;
    let handler = {
        let shop = shop.clone();
        Each(move |job| step(shop.clone(), job))
    };
    let begin = Instant::now();
    let working = Working::start(&base.database, &shop.wake, Arc::new(handler)).await?;
    tokio::time::timeout(PATIENCE, shop.all.notified()).await?;
    let seconds = begin.elapsed().as_secs_f64();
    working.end().await;
    let whole = base
        .count("SELECT count(*) FROM iit_task_run r WHERE status = 'done' AND step_no = 10 AND 10 = (SELECT count(*) FROM iit_task_step s WHERE s.run_id = r.id)")
        .await?;
    ensure!(
        usize::try_from(whole)? == count,
        "only {whole} runs have all their steps"
    );
    base.drop().await?;
    Ok(seconds)
}

/// The runs at their first node, with the job of their first step.
async fn prepare(base: &Base, count: usize) -> Result<()> {
    let new: Vec<NewRun> = (0..count)
        .map(|n| NewRun {
            id: RunId::generate(),
            skill_type: "eligibility".to_owned(),
            skill_version: 1,
            record: format!("S{n}"),
            state: RunState::Begin {
                node: "n0".to_owned(),
            },
            step_no: 0,
            findings: 0,
            data_version: None,
            site: None,
        })
        .collect();
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
    Ok(tx.commit().await?)
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
    let state = if last {
        RunState::Ended {
            final_state: "end_success".to_owned(),
            standing: "clean".to_owned(),
        }
    } else {
        RunState::At {
            node: format!("n{}", no + 1),
            walk: json!({ "node": format!("n{}", no + 1), "visits": { "n0": 1 }, "trace": ["pass"] }),
        }
    };
    let mut settlement = job
        .lease
        .settle(&shop.pool, &shop.wake, &Outcome::Done)
        .await?;
    if !runs::advance(settlement.conn(), id, no, &state, 0, &Seen::default()).await? {
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
    }
    let settled = settlement.commit().await?;
    if last && shop.left.fetch_sub(1, Ordering::Relaxed) == 1 {
        shop.all.notify_one();
    }
    Ok(settled)
}
