//! A worker with the settings that graphile_worker's own guide names.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use graphile_worker::{LocalQueueConfig, Worker, WorkerOptions};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::task::JoinHandle;

/// Longer than any measurement that gets on; one that stands still fails after it instead of hanging.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// graphile_worker's default.
const CONNECTIONS: u32 = 20;

/// What can be varied.
#[derive(Args)]
pub struct Settings {
    #[arg(long)]
    url: String,
    /// Jobs at a time.
    #[arg(long, default_value_t = 8)]
    slots: usize,
    /// Jobs fetched at once into the process; none: one by one from the database.
    #[arg(long)]
    local_queue: Option<usize>,
    /// Completions collected for so long before they are written; none: each on its own.
    #[arg(long)]
    complete_ms: Option<u64>,
    /// Time between looks for jobs that nobody announced; its default is a second.
    #[arg(long)]
    poll_ms: Option<u64>,
    /// Work off what is there and end, instead of waiting for announcements. Drain only.
    #[arg(long)]
    pub once: bool,
}

impl Settings {
    /// As many connections as the worker would open for itself, half of them kept open as ours are.
    pub async fn pool(&self) -> Result<PgPool> {
        PgPoolOptions::new()
            .max_connections(CONNECTIONS)
            .min_connections(CONNECTIONS / 2)
            .connect(&self.url)
            .await
            .context("connecting to the database")
    }

    pub fn options(&self, pool: &PgPool) -> WorkerOptions {
        let mut options = WorkerOptions::default()
            .schema("graphile_worker")
            .concurrency(self.slots)
            .pg_pool(pool.clone());
        if let Some(size) = self.local_queue {
            options = options.local_queue(LocalQueueConfig::default().with_size(size));
        }
        if let Some(ms) = self.complete_ms {
            options = options.complete_job_batch_delay(Duration::from_millis(ms));
        }
        if let Some(ms) = self.poll_ms {
            options = options.poll_interval(Duration::from_millis(ms));
        }
        options
    }
}

/// Says that the tables stand, and waits for the word to begin: until then the benchmark reads counters.
pub async fn begin() -> Result<()> {
    println!("ready");
    let mut line = String::new();
    BufReader::new(tokio::io::stdin())
        .read_line(&mut line)
        .await?;
    ensure!(line.trim() == "go", "the benchmark went away");
    Ok(())
}

/// A worker under way.
pub struct Running {
    worker: Arc<Worker>,
    task: JoinHandle<Result<()>>,
}

impl Running {
    pub fn start(worker: Worker) -> Self {
        let worker = Arc::new(worker);
        let running = worker.clone();
        let task = tokio::spawn(async move { Ok(running.run().await?) });
        Self { worker, task }
    }

    pub async fn end(self) -> Result<()> {
        self.worker.request_shutdown();
        tokio::time::timeout(PATIENCE, self.task).await??
    }
}

/// Waits until no job is left: completed jobs are deleted, so only then all are settled.
pub async fn settled(pool: &PgPool) -> Result<()> {
    let begin = Instant::now();
    loop {
        let left: bool =
            sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM graphile_worker._private_jobs)")
                .fetch_one(pool)
                .await?;
        if !left {
            return Ok(());
        }
        ensure!(begin.elapsed() < PATIENCE, "jobs were never completed");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
