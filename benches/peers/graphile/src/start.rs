//! From the due time of an enqueue to the handler's first line, 50 a second.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result};
use graphile_worker::{IntoTaskHandlerResult, JobSpec, TaskHandler, WorkerContext, WorkerUtils};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::load;
use crate::worker::{self, PATIENCE, Running, Settings};

const RATE: f64 = 50.0;

#[derive(Clone, Debug)]
struct Waiting(Arc<Vec<Mutex<Option<oneshot::Sender<Instant>>>>>);

#[derive(Deserialize, Serialize)]
struct Begin {
    n: usize,
}

impl TaskHandler for Begin {
    const IDENTIFIER: &'static str = "begin";

    async fn run(self, ctx: WorkerContext) -> impl IntoTaskHandlerResult {
        let now = Instant::now();
        let told = ctx
            .get_ext::<Waiting>()
            .and_then(|waiting| waiting.0.get(self.n))
            .and_then(|one| one.lock().ok()?.take());
        match told {
            Some(told) => told.send(now).map_err(|_| "nobody waits".to_owned()),
            None => Err(format!("job {} ran twice", self.n)),
        }
    }
}

pub async fn measure(settings: &Settings, jobs: usize) -> Result<Value> {
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..jobs)
        .map(|_| oneshot::channel())
        .map(|(sender, receiver)| (Mutex::new(Some(sender)), Mutex::new(Some(receiver))))
        .unzip();
    let pool = settings.pool().await?;
    let worker = settings
        .options(&pool)
        .add_extension(Waiting(Arc::new(senders)))
        .define_job::<Begin>()
        .init()
        .await?;
    worker::begin().await?;
    let running = Running::start(worker);
    // Its LISTEN connection is not announced.
    tokio::time::sleep(Duration::from_secs(1)).await;
    // The enqueuer has a pool of its own: only NOTIFY reaches the worker.
    let utils = WorkerUtils::new(settings.pool().await?, "graphile_worker");
    let receivers = Arc::new(receivers);
    let times = load::open_loop(&load::poisson(RATE, jobs), |n, due| {
        let (utils, receivers) = (utils.clone(), receivers.clone());
        async move {
            utils.add_job(Begin { n }, JobSpec::default()).await?;
            let receiver = receivers
                .get(n)
                .and_then(|one| one.lock().ok()?.take())
                .context("a job was sent twice")?;
            let started = tokio::time::timeout(PATIENCE, receiver).await;
            Ok(started.context("a job was never started")?? - due)
        }
    })
    .await?;
    running.end().await?;
    Ok(
        json!({ "p50": times.ms(50), "p95": times.ms(95), "p99": times.ms(99), "max": times.ms(100) }),
    )
}
