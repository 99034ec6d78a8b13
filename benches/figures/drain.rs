//! How fast jobs that do nothing go through: claim, lease, fenced settle with its own commit.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Result, ensure};
use iit_manager::queue::{self, NewJob, Outcome, Wake};
use serde_json::json;
use tokio::sync::Notify;
use uuid::Uuid;

use crate::Bench;
use crate::program::PATIENCE;
use crate::queue_side::{Each, SLOTS, Working, job};
use crate::report::{Figure, Target};
use crate::samples::{median, rate};

const RUNS: usize = 3;

/// How a job ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// By a transaction that could take results and next jobs with it, as nearly every handler's does.
    Transaction,
    /// With its outcome and nothing else.
    Alone,
}

pub async fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let count = bench.amount(20_000, 2_000);
    let mut figures = Vec::new();
    for (ending, name, note) in [
        (
            Ending::Transaction,
            "settled by a transaction",
            "begin, fenced update and synchronous commit for each job, as when there are results to write",
        ),
        (
            Ending::Alone,
            "with nothing to write",
            "one fenced update with its own synchronous commit for each job",
        ),
    ] {
        let mut rates = Vec::new();
        for run in 0..RUNS {
            rates.push(once(bench, &format!("drain_{run}"), count, ending).await?);
        }
        let all: Vec<String> = rates.iter().map(|rate| format!("{rate:.0}")).collect();
        figures.push(
            Figure::new(
                format!("drain of {count} no-op jobs, {name}"),
                Target::None,
                median(rates),
                "jobs/s",
            )
            .detail(format!("runs: {}", all.join(", ")))
            .note(format!(
                "1 process, {SLOTS} slots, a fresh database a run; {note}"
            )),
        );
    }
    Ok(figures)
}

/// Jobs a second over `count` jobs that were all there before the worker began.
pub async fn once(bench: &Bench, name: &str, count: usize, ending: Ending) -> Result<f64> {
    let base = bench.place.database(name).await?;
    let pool = base.database.pool.clone();
    let jobs: Vec<NewJob> = (0..count).map(|n| job(json!({ "n": n }))).collect();
    for some in jobs.chunks(1000) {
        queue::enqueue_many(&mut *pool.acquire().await?, some).await?;
    }
    let wake = Wake::new(Uuid::new_v4());
    let (settled, all) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let handler = {
        let (pool, wake, settled, all) = (pool.clone(), wake.clone(), settled.clone(), all.clone());
        Each(move |job: iit_manager::queue::claim::ClaimedJob| {
            let (pool, wake, settled, all) =
                (pool.clone(), wake.clone(), settled.clone(), all.clone());
            async move {
                let done = match ending {
                    Ending::Transaction => {
                        let settlement = job.lease.settle(&pool, &wake, &Outcome::Done).await?;
                        settlement.commit().await?
                    }
                    Ending::Alone => job.lease.settle_only(&pool, &wake, &Outcome::Done).await?,
                };
                if settled.fetch_add(1, Ordering::Relaxed) + 1 == count {
                    all.notify_one();
                }
                Ok(done)
            }
        })
    };
    let begin = Instant::now();
    let working = Working::start(&base.database, &wake, Arc::new(handler)).await?;
    tokio::time::timeout(PATIENCE, all.notified()).await?;
    let seconds = begin.elapsed().as_secs_f64();
    working.end().await;
    let once = base
        .count("SELECT count(*) FROM iit_jobs WHERE state = 'done' AND attempt = 1")
        .await?;
    ensure!(
        usize::try_from(once)? == count,
        "only {once} jobs were done in one attempt"
    );
    base.drop().await?;
    Ok(rate(count, seconds))
}
