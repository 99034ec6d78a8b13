//! Durable steps, one job each, as its guide ("Using An Existing Transaction") has it: the run's new
//! state, the step row and the next job in one transaction; the job itself is completed by the worker
//! afterwards, in a transaction of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use graphile_worker::{
    IntoTaskHandlerResult, JobSpec, RawJobSpec, TaskHandler, WorkerContext, WorkerContextExt,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sqlx::PgPool;
use tokio::sync::Notify;
use uuid::Uuid;

use crate::worker::{self, PATIENCE, Running, Settings};

/// The columns of our own run and step rows that a step writes.
const TABLES: [&str; 2] = [
    "CREATE TABLE run (
         id UUID PRIMARY KEY, status TEXT NOT NULL, node TEXT, step_no INT NOT NULL DEFAULT 0, walk JSONB,
         created_at TIMESTAMPTZ NOT NULL DEFAULT now(), updated_at TIMESTAMPTZ NOT NULL DEFAULT now()
     ) WITH (fillfactor = 85)",
    "CREATE TABLE step (
         run_id UUID NOT NULL REFERENCES run (id), no INT NOT NULL, node TEXT NOT NULL, outcome TEXT NOT NULL,
         findings JSONB NOT NULL DEFAULT '[]', attempt INT NOT NULL, job_id BIGINT,
         committed_at TIMESTAMPTZ NOT NULL DEFAULT now(), PRIMARY KEY (run_id, no))",
];

#[derive(Clone, Debug)]
struct Runs(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    steps: i32,
    left: AtomicUsize,
    all: Notify,
}

#[derive(Clone, Deserialize, Serialize)]
struct Step {
    run: Uuid,
    step: i32,
}

impl TaskHandler for Step {
    const IDENTIFIER: &'static str = "step";

    async fn run(self, ctx: WorkerContext) -> impl IntoTaskHandlerResult {
        self.commit(&ctx)
            .await
            .map_err(|error| format!("{error:#}"))
    }
}

impl Step {
    async fn commit(&self, ctx: &WorkerContext) -> Result<()> {
        let runs = ctx.get_ext::<Runs>().context("the runs are missing")?;
        let (no, _walk): (i32, Option<Value>) =
            sqlx::query_as("SELECT step_no, walk FROM run WHERE id = $1")
                .bind(self.run)
                .fetch_one(ctx.pg_pool())
                .await?;
        ensure!(no == self.step, "this step was done before");
        let last = no + 1 == runs.0.steps;
        let node = format!("n{}", no + 1);
        let mut tx = ctx.pg_pool().begin().await?;
        let advanced = sqlx::query(
            "UPDATE run SET status = $3, node = $4, walk = $5, step_no = step_no + 1, updated_at = now()
             WHERE id = $1 AND step_no = $2",
        )
        .bind(self.run)
        .bind(no)
        .bind(if last { "done" } else { "running" })
        .bind(&node)
        .bind(json!({ "node": node, "visits": { "n0": 1 }, "trace": ["pass"] }))
        .execute(&mut *tx)
        .await?;
        ensure!(advanced.rows_affected() == 1, "this step was done twice");
        sqlx::query(
            "INSERT INTO step (run_id, no, node, outcome, attempt, job_id) VALUES ($1, $2, $3, 'pass', $4, $5)",
        )
        .bind(self.run)
        .bind(no)
        .bind(format!("n{no}"))
        .bind(i32::from(*ctx.job().attempts()))
        .bind(*ctx.job().id())
        .execute(&mut *tx)
        .await?;
        if !last {
            let next = Self {
                run: self.run,
                step: no + 1,
            };
            let mut utils = ctx.utils().with_executor(&mut tx);
            utils.add_job(next, JobSpec::default()).await?;
        }
        tx.commit().await?;
        if last && runs.0.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            runs.0.all.notify_one();
        }
        Ok(())
    }
}

pub async fn measure(settings: &Settings, count: usize, steps: i32) -> Result<Value> {
    let pool = settings.pool().await?;
    let runs = Runs(Arc::new(Inner {
        steps,
        left: AtomicUsize::new(count),
        all: Notify::new(),
    }));
    let worker = settings
        .options(&pool)
        .add_extension(runs.clone())
        .define_job::<Step>()
        .init()
        .await?;
    for table in TABLES {
        sqlx::query(table).execute(&pool).await?;
    }
    worker::begin().await?;
    let first = prepare(&pool, count).await?;
    for some in first.chunks(1000) {
        worker.create_utils().add_raw_jobs(some).await?;
    }
    let begin = Instant::now();
    let running = Running::start(worker);
    tokio::time::timeout(PATIENCE, runs.0.all.notified())
        .await
        .context("the runs stood still")?;
    worker::settled(&pool).await?;
    let seconds = begin.elapsed().as_secs_f64();
    running.end().await?;
    let whole: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM run r WHERE status = 'done' AND step_no = $1
         AND $1 = (SELECT count(*) FROM step s WHERE s.run_id = r.id)",
    )
    .bind(steps)
    .fetch_one(&pool)
    .await?;
    ensure!(
        usize::try_from(whole)? == count,
        "only {whole} runs have all their steps"
    );
    Ok(json!({ "seconds": seconds }))
}

/// The runs at their first node; returns the jobs of their first step.
async fn prepare(pool: &PgPool, count: usize) -> Result<Vec<RawJobSpec>> {
    let ids: Vec<Uuid> = (0..count).map(|_| Uuid::now_v7()).collect();
    sqlx::query(
        "INSERT INTO run (id, status, node) SELECT id, 'running', 'n0' FROM UNNEST($1) AS t(id)",
    )
    .bind(&ids)
    .execute(pool)
    .await?;
    let job = |run| RawJobSpec {
        identifier: Step::IDENTIFIER.to_owned(),
        payload: json!(Step { run, step: 0 }),
        spec: JobSpec::default(),
    };
    Ok(ids.into_iter().map(job).collect())
}
