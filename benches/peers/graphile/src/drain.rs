//! How fast jobs that do nothing go through.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use graphile_worker::{IntoTaskHandlerResult, JobSpec, RawJobSpec, TaskHandler, WorkerContext};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::worker::{self, PATIENCE, Running, Settings};

#[derive(Clone, Debug)]
struct Tally(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    of: usize,
    ran: AtomicUsize,
    all: Notify,
}

#[derive(Deserialize, Serialize)]
struct Nothing {
    n: usize,
}

impl TaskHandler for Nothing {
    const IDENTIFIER: &'static str = "nothing";

    async fn run(self, ctx: WorkerContext) -> impl IntoTaskHandlerResult {
        let Some(Tally(tally)) = ctx.get_ext::<Tally>() else {
            return Err("the tally is missing".to_owned());
        };
        if tally.ran.fetch_add(1, Ordering::Relaxed) + 1 == tally.of {
            tally.all.notify_one();
        }
        Ok(())
    }
}

pub async fn measure(settings: &Settings, jobs: usize) -> Result<Value> {
    let pool = settings.pool().await?;
    let tally = Tally(Arc::new(Inner {
        of: jobs,
        ran: AtomicUsize::new(0),
        all: Notify::new(),
    }));
    let worker = settings
        .options(&pool)
        .add_extension(tally.clone())
        .define_job::<Nothing>()
        .init()
        .await?;
    worker::begin().await?;
    let all: Vec<RawJobSpec> = (0..jobs)
        .map(|n| RawJobSpec {
            identifier: Nothing::IDENTIFIER.to_owned(),
            payload: json!({ "n": n }),
            spec: JobSpec::default(),
        })
        .collect();
    for some in all.chunks(1000) {
        worker.create_utils().add_raw_jobs(some).await?;
    }
    let begin = Instant::now();
    let seconds = if settings.once {
        tokio::time::timeout(PATIENCE, worker.run_once()).await??;
        worker::settled(&pool).await?;
        begin.elapsed().as_secs_f64()
    } else {
        let running = Running::start(worker);
        tokio::time::timeout(PATIENCE, tally.0.all.notified())
            .await
            .context("the jobs stood still")?;
        worker::settled(&pool).await?;
        let seconds = begin.elapsed().as_secs_f64();
        running.end().await?;
        seconds
    };
    let ran = tally.0.ran.load(Ordering::Relaxed);
    ensure!(ran == jobs, "{jobs} jobs ran {ran} times");
    Ok(json!({ "seconds": seconds }))
}
