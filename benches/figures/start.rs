//! From enqueueing a job to its handler's first line, at 50 a second.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Result, anyhow};
use iit_manager::queue::claim::ClaimedJob;
use iit_manager::queue::{self, Outcome, Wake};
use serde_json::json;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::Bench;
use crate::load;
use crate::place::Base;
use crate::program::PATIENCE;
use crate::queue_side::{Each, QUEUE, Working, job};
use crate::report::{Figure, Target};
use crate::samples::Samples;

const RATE: f64 = 50.0;

pub async fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let count = bench.amount(1_000, 100);
    let mut figures = Vec::new();
    for (name, far, note) in [
        (
            "enqueue → start at 50/s, from another process",
            true,
            "the enqueuer has a pool and a wake-up of its own, so only NOTIFY reaches the worker",
        ),
        (
            "enqueue → start at 50/s, within one process",
            false,
            "the enqueuer shares the worker's wake-up",
        ),
    ] {
        let base = bench.place.database(&format!("start_{far}")).await?;
        let (from_call, from_commit) = once(&base, far, count).await?;
        base.drop().await?;
        figures.push(
            Figure::new(name, Target::Below(10.0), from_call.ms(95), "ms p95")
                .detail(from_call.spread())
                .note(format!(
                    "{count} Poisson arrivals, from the due time to the handler, the enqueuer's own commit included; \
                     from the end of that commit p50 {:.1}, p95 {:.1} ms; {note}",
                    from_commit.ms(50),
                    from_commit.ms(95)
                )),
        );
    }
    Ok(figures)
}

type Started = Arc<Mutex<Vec<Option<oneshot::Sender<Instant>>>>>;

/// Times of `count` jobs from their due time, and from the end of the enqueuer's commit. `far`: the
/// enqueuer is like another process.
pub async fn once(base: &Base, far: bool, count: usize) -> Result<(Samples, Samples)> {
    let (senders, mut receivers): (Vec<_>, Vec<_>) = (0..count)
        .map(|_| oneshot::channel())
        .map(|(s, r)| (Some(s), Some(r)))
        .unzip();
    let started: Started = Arc::new(Mutex::new(senders));
    let wake = Wake::new(Uuid::new_v4());
    let handler = {
        let (pool, wake) = (base.database.pool.clone(), wake.clone());
        Each(move |job: ClaimedJob| {
            let now = Instant::now();
            let n = job.payload["n"]
                .as_u64()
                .and_then(|n| usize::try_from(n).ok());
            let told = n.and_then(|n| started.lock().ok()?.get_mut(n)?.take());
            if let Some(told) = told {
                let _ = told.send(now);
            }
            let (pool, wake) = (pool.clone(), wake.clone());
            async move {
                let settlement = job.lease.settle(&pool, &wake, &Outcome::Done).await?;
                Ok(settlement.commit().await?)
            }
        })
    };
    let working = Working::start(&base.database, &wake, Arc::new(handler)).await?;

    let stop = CancellationToken::new();
    let (pool, outside) = if far {
        let pool = base.another_pool().await?;
        let outside = Wake::new(Uuid::new_v4());
        tokio::spawn(outside.clone().run_notifier(pool.clone(), stop.clone()));
        (pool, outside)
    } else {
        (base.database.pool.clone(), wake.clone())
    };
    while !wake.is_listening() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let commits = Arc::new(Mutex::new(Vec::with_capacity(count)));
    let receivers = Arc::new(Mutex::new(std::mem::take(&mut receivers)));
    let from_call = load::open_loop(&load::poisson(RATE, count), |n, due| {
        let (pool, outside) = (pool.clone(), outside.clone());
        let (commits, receivers) = (commits.clone(), receivers.clone());
        async move {
            let mut tx = pool.begin().await?;
            queue::enqueue(&mut tx, job(json!({ "n": n }))).await?;
            tx.commit().await?;
            let committed = Instant::now();
            outside.queues([QUEUE.to_owned()]);
            let receiver = receivers
                .lock()
                .map_err(|_| anyhow!("a sender panicked"))?
                .get_mut(n)
                .and_then(Option::take)
                .ok_or_else(|| anyhow!("job {n} was sent twice"))?;
            let began = tokio::time::timeout(PATIENCE, receiver).await??;
            commits
                .lock()
                .map_err(|_| anyhow!("a sender panicked"))?
                .push(began.saturating_duration_since(committed));
            Ok(began - due)
        }
    })
    .await?;
    stop.cancel();
    working.end().await;
    let commits = std::mem::take(&mut *commits.lock().map_err(|_| anyhow!("a sender panicked"))?);
    Ok((from_call, Samples::new(commits)))
}
