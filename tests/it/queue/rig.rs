//! What the queue's tests stand on: a database, handlers made of closures, and workers that behave as
//! processes of their own.

use std::{collections::HashMap, sync::Arc, time::Duration};

use futures::future::BoxFuture;
use iit_manager::queue::{
    Enqueued, JobError, Lease, NewJob, Outcome, Settled, Settlement, Wake,
    claim::{self, Bound, ClaimedJob},
    enqueue,
    sweep::sweep,
    worker::{Handler, Progress, Worker, WorkerSettings},
};
use serde_json::{Value, json};
use sqlx::PgPool;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

pub use crate::support::postgres::{TestCluster, TestDb};

/// Longer than anything here takes; reached only when a promise is broken.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// A lease that no test outlives.
pub const LONG: Duration = Duration::from_secs(600);
/// An hour between polls: whatever is found was not found by the poll.
pub const NO_POLL: Duration = Duration::from_secs(3600);
/// The queue of most tests.
pub const QUEUE: &str = "edc";

/// What came of one attempt, as a handler says it.
pub type Attempt = Result<Settled, JobError>;
type Run = dyn Fn(ClaimedJob, Desk) -> BoxFuture<'static, Attempt> + Send + Sync;
type Bury = dyn for<'a> Fn(&'a ClaimedJob, &'a mut Settlement, &'a str) -> BoxFuture<'a, Result<(), JobError>>
    + Send
    + Sync;

/// What a handler settles with.
#[derive(Clone)]
pub struct Desk {
    pub pool: PgPool,
    pub wake: Wake,
}

impl Desk {
    /// For a test that claims and settles by hand.
    pub fn of(db: &TestDb) -> Self {
        Self {
            pool: db.pool.clone(),
            wake: Wake::new(Uuid::new_v4()),
        }
    }

    /// Settles without anything to write.
    pub async fn settle(&self, lease: &Lease, outcome: Outcome) -> Attempt {
        let settlement = lease.settle(&self.pool, &self.wake, &outcome).await?;
        Ok(settlement.commit().await?)
    }

    pub async fn done(&self, job: &ClaimedJob) -> Attempt {
        self.settle(&job.lease, Outcome::Done).await
    }
}

/// Handlers by kind. What no closure is given for is settled as done.
#[derive(Default)]
pub struct Handlers {
    runs: HashMap<&'static str, Box<Run>>,
    bury: Option<Box<Bury>>,
    timeout: Option<Duration>,
}

impl Handlers {
    pub fn on<F, W>(mut self, kind: &'static str, run: F) -> Self
    where
        F: Fn(ClaimedJob, Desk) -> W + Send + Sync + 'static,
        W: Future<Output = Attempt> + Send + 'static,
    {
        let run = move |job, desk| -> BoxFuture<'static, Attempt> { Box::pin(run(job, desk)) };
        self.runs.insert(kind, Box::new(run));
        self
    }

    pub fn bury<F>(mut self, bury: F) -> Self
    where
        F: for<'a> Fn(
                &'a ClaimedJob,
                &'a mut Settlement,
                &'a str,
            ) -> BoxFuture<'a, Result<(), JobError>>
            + Send
            + Sync
            + 'static,
    {
        self.bury = Some(Box::new(bury));
        self
    }

    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }
}

struct Desked {
    handlers: Handlers,
    desk: Desk,
}

impl Handler for Desked {
    fn timeout(&self, _kind: &str) -> Duration {
        self.handlers.timeout.unwrap_or(PATIENCE)
    }

    fn run(&self, job: ClaimedJob) -> BoxFuture<'static, Attempt> {
        let desk = self.desk.clone();
        match self.handlers.runs.get(job.kind.as_str()) {
            Some(run) => run(job, desk),
            None => Box::pin(async move { desk.done(&job).await }),
        }
    }

    fn bury<'a>(
        &'a self,
        job: &'a ClaimedJob,
        settlement: &'a mut Settlement,
        why: &'a str,
    ) -> BoxFuture<'a, Result<(), JobError>> {
        match &self.handlers.bury {
            Some(bury) => bury(job, settlement, why),
            None => Box::pin(async { Ok(()) }),
        }
    }
}

/// Closures as the queue wants them.
pub fn handler(handlers: Handlers, desk: Desk) -> Arc<dyn Handler> {
    Arc::new(Desked { handlers, desk })
}

/// Settings with nothing but the lease to go by: no poll, one job at a time.
pub fn settings(lease: Duration) -> WorkerSettings {
    WorkerSettings {
        lease,
        poll: NO_POLL,
        concurrency: 1,
        drain: PATIENCE,
    }
}

/// One worker process: its own connections, its own wake-ups, its own identity.
pub struct Process {
    pub wake: Wake,
    pub progress: Progress,
    stop: CancellationToken,
    worker: Option<JoinHandle<()>>,
}

impl Process {
    /// Starts one on [`QUEUE`] and waits until it listens.
    pub async fn start(db: &TestDb, settings: WorkerSettings, handlers: Handlers) -> Self {
        let wake = Wake::new(Uuid::new_v4());
        let desk = Desk {
            pool: db.pool.clone(),
            wake: wake.clone(),
        };
        Self::start_with(db, settings, handler(handlers, desk), wake).await
    }

    /// The same with any handler.
    pub async fn start_with(
        db: &TestDb,
        settings: WorkerSettings,
        handler: Arc<dyn Handler>,
        wake: Wake,
    ) -> Self {
        let claims = db.another_pool(5).await;
        let worker = Worker::new(db.pool.clone(), claims, wake.clone(), handler, settings);
        let progress = worker.progress();
        let stop = CancellationToken::new();
        let running = tokio::spawn({
            let stop = stop.clone();
            async move { worker.run(&[QUEUE], stop).await }
        });
        let process = Self {
            wake,
            progress,
            stop,
            worker: Some(running),
        };
        eventually("the worker listens", async || process.wake.is_listening()).await;
        process
    }

    /// Asks it to stop, without waiting.
    pub fn ask_to_stop(&self) {
        self.stop.cancel();
    }

    /// Waits until it has ended.
    pub async fn ended(mut self) {
        let worker = self.worker.take().unwrap();
        within("the worker ends", worker).await.unwrap();
    }

    /// Stops it in order.
    pub async fn stop(self) {
        self.ask_to_stop();
        self.ended().await;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(worker) = &self.worker {
            worker.abort();
        }
    }
}

/// A job with nothing special about it.
pub fn job(kind: &'static str) -> NewJob {
    NewJob {
        queue: QUEUE.to_owned(),
        kind,
        payload: json!({}),
        delay: Duration::ZERO,
        priority: 0,
        key: None,
        group: None,
        max_attempts: 5,
    }
}

/// A job of a group.
pub fn grouped(kind: &'static str, group: &str) -> NewJob {
    NewJob {
        group: Some(group.to_owned()),
        ..job(kind)
    }
}

/// Enqueues in a transaction of its own, waking nobody.
pub async fn put(db: &TestDb, new: NewJob) -> i64 {
    put_on(&db.pool, new).await
}

/// The same over any pool.
pub async fn put_on(pool: &PgPool, new: NewJob) -> i64 {
    match enqueue(&mut pool.acquire().await.unwrap(), new).await {
        Ok(Enqueued::New(id)) => id,
        other => panic!("{other:?}"),
    }
}

/// Claims by hand, from the start.
pub async fn claim_by(db: &TestDb, worker: Uuid, slots: usize, lease: Duration) -> Vec<ClaimedJob> {
    let mut conn = db.pool.acquire().await.unwrap();
    claim::claim(&mut conn, QUEUE, worker, slots, lease, Bound::START)
        .await
        .unwrap()
        .0
}

/// Claims one job by hand, for as long as any test lasts.
pub async fn claim_one(db: &TestDb) -> ClaimedJob {
    let mut claimed = claim_by(db, Uuid::new_v4(), 1, LONG).await;
    assert_eq!(claimed.len(), 1);
    claimed.remove(0)
}

/// Claims the first suspect by hand.
pub async fn claim_suspect(db: &TestDb) -> Option<ClaimedJob> {
    claim_suspect_by(db, Uuid::new_v4()).await
}

/// The same for a known worker.
pub async fn claim_suspect_by(db: &TestDb, worker: Uuid) -> Option<ClaimedJob> {
    let mut conn = db.pool.acquire().await.unwrap();
    claim::claim_suspect(&mut conn, QUEUE, worker, LONG)
        .await
        .unwrap()
}

/// A job's row.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow)]
pub struct Row {
    pub state: String,
    pub attempt: i32,
    pub crashes: i32,
    pub suspect: bool,
    pub last_error: Option<String>,
    pub lease_token: Option<Uuid>,
    pub worker: Option<Uuid>,
    /// Seconds until it is due.
    pub due_in: f64,
}

pub async fn row(db: &TestDb, id: i64) -> Row {
    let asked = || {
        sqlx::query_as(
            "SELECT state, attempt, crashes, suspect, last_error, lease_token, worker,
                    EXTRACT(EPOCH FROM run_at - clock_timestamp())::float8 AS due_in
             FROM iit_jobs WHERE id = $1",
        )
        .bind(id)
        .fetch_one(&db.pool)
    };
    match asked().await {
        // A connection of before the server's crash: the pool drops it, and has another.
        Err(sqlx::Error::Io(_)) => asked().await.unwrap(),
        asked => asked.unwrap(),
    }
}

/// Waits until a job's row is in that state.
pub async fn until_state(db: &TestDb, id: i64, state: &str) -> Row {
    eventually(&format!("job {id} is {state}"), async || {
        row(db, id).await.state == state
    })
    .await;
    row(db, id).await
}

/// Runs one statement.
pub async fn sql(db: &TestDb, statement: &'static str) -> u64 {
    sqlx::query(statement)
        .execute(&db.pool)
        .await
        .unwrap()
        .rows_affected()
}

/// One number.
pub async fn count(db: &TestDb, query: &'static str) -> i64 {
    sqlx::query_scalar(query).fetch_one(&db.pool).await.unwrap()
}

/// Lets every lease run out at once.
pub async fn expire_leases(db: &TestDb) {
    sql(
        db,
        "UPDATE iit_jobs SET lease_expires_at = clock_timestamp() - interval '1 second' WHERE state = 'running'",
    )
    .await;
}

/// Sweeps, and returns the ids of the jobs put back.
pub async fn sweep_ids(db: &TestDb) -> Vec<i64> {
    let swept = sweep(&db.pool).await.unwrap();
    let mut ids: Vec<i64> = swept.into_iter().map(|job| job.id).collect();
    ids.sort_unstable();
    ids
}

/// A table that settlements write to, to see what is committed.
pub async fn results_table(db: &TestDb) {
    sql(db, "CREATE TABLE results (text TEXT NOT NULL)").await;
}

/// What stands in it.
pub async fn results(db: &TestDb) -> Vec<String> {
    sqlx::query_scalar("SELECT text FROM results ORDER BY text")
        .fetch_all(&db.pool)
        .await
        .unwrap()
}

/// Writes a line into it, in a settlement.
pub async fn write_result(settlement: &mut Settlement, text: &str) {
    sqlx::query("INSERT INTO results VALUES ($1)")
        .bind(text)
        .execute(settlement.conn())
        .await
        .unwrap();
}

/// Looks at the state of the world every few milliseconds until it is as it should be. For what sends
/// no signal of its own: rows that another process writes.
pub async fn eventually(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let mut ticks = tokio::time::interval(Duration::from_millis(10));
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let looking = async {
        while !is_so().await {
            ticks.tick().await;
        }
    };
    within(what, looking).await;
}

/// Waits for a signal, but not for ever.
pub async fn within<T>(what: &str, signal: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, signal)
        .await
        .unwrap_or_else(|_| panic!("in vain: {what}"))
}

/// A payload that tells jobs apart.
pub fn numbered(kind: &'static str, n: usize) -> NewJob {
    NewJob {
        payload: json!({ "n": n }),
        ..job(kind)
    }
}

/// Its number.
pub fn number(payload: &Value) -> u64 {
    payload["n"].as_u64().unwrap()
}
