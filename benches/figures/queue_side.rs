//! The queue under a handler of the benchmark's own.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use futures::FutureExt;
use futures::future::BoxFuture;
use iit_manager::boot::database::Database;
use iit_manager::queue::claim::ClaimedJob;
use iit_manager::queue::worker::{Handler, Worker, WorkerSettings};
use iit_manager::queue::{JobError, NewJob, Settled, Settlement, Wake};
use serde_json::Value;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub const QUEUE: &str = "bench";
/// Slots of a worker unless set otherwise.
pub const SLOTS: usize = 8;

/// A job of no particular kind.
pub fn job(payload: Value) -> NewJob {
    NewJob {
        queue: QUEUE.to_owned(),
        kind: "bench",
        payload,
        delay: Duration::ZERO,
        priority: 0,
        key: None,
        group: None,
        max_attempts: 5,
    }
}

/// A handler out of a function.
pub struct Each<F>(pub F);

impl<F, R> Handler for Each<F>
where
    F: Fn(ClaimedJob) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Settled, JobError>> + Send + 'static,
{
    fn timeout(&self, _kind: &str) -> Duration {
        Duration::from_secs(60)
    }

    fn run(&self, job: ClaimedJob) -> BoxFuture<'static, Result<Settled, JobError>> {
        (self.0)(job).boxed()
    }

    fn bury<'a>(
        &'a self,
        _job: &'a ClaimedJob,
        _settlement: &'a mut Settlement,
        _why: &'a str,
    ) -> BoxFuture<'a, Result<(), JobError>> {
        async { Ok(()) }.boxed()
    }
}

/// A worker as the program runs it: same pools, same settings, its NOTIFY beside it.
pub struct Working {
    stop: CancellationToken,
    tasks: JoinSet<()>,
}

impl Working {
    pub async fn start(
        database: &Database,
        wake: &Wake,
        handler: Arc<dyn Handler>,
    ) -> Result<Self> {
        let settings = WorkerSettings {
            concurrency: SLOTS,
            ..WorkerSettings::default()
        };
        let claims = database.claims_pool("bench").await?;
        let worker = Worker::new(
            database.pool.clone(),
            claims,
            wake.clone(),
            handler,
            settings,
        );
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        tasks.spawn(
            wake.clone()
                .run_notifier(database.pool.clone(), stop.clone()),
        );
        let until = stop.clone();
        tasks.spawn(async move { worker.run(&[QUEUE], until).await });
        Ok(Self { stop, tasks })
    }

    pub async fn end(mut self) {
        self.stop.cancel();
        while self.tasks.join_next().await.is_some() {}
    }
}
