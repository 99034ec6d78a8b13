//! Holding on to jobs, and letting go of them when they are somebody else's.

use std::{sync::Arc, time::Duration};

use iit_manager::{
    boot::postgres::StopMode,
    queue::{Outcome, sweep::sweep},
};
use tokio::sync::{Semaphore, mpsc, oneshot};
use uuid::Uuid;

use super::rig::{
    Desk, Handlers, LONG, Process, QUEUE, TestCluster, TestDb, claim_by, count, eventually,
    expire_leases, job, put, results, results_table, row, settings, sql, until_state, within,
    write_result,
};

/// Says when its future is gone.
struct Gone(Option<oneshot::Sender<()>>);

impl Drop for Gone {
    fn drop(&mut self) {
        if let Some(gone) = self.0.take() {
            let _ = gone.send(());
        }
    }
}

/// A handler for `kind` that tells when it began and hangs until it is dropped.
fn hanging(kind: &'static str) -> (Handlers, mpsc::UnboundedReceiver<oneshot::Receiver<()>>) {
    let (begun, begins) = mpsc::unbounded_channel();
    let handlers = Handlers::default().on(kind, move |_, _| {
        let (gone, is_gone) = oneshot::channel();
        begun.send(is_gone).unwrap();
        let gone = Gone(Some(gone));
        async move {
            let _gone = gone;
            std::future::pending().await
        }
    });
    (handlers, begins)
}

#[tokio::test]
async fn a_job_that_takes_many_leases_keeps_its_own() {
    let db = TestDb::new().await;
    let id = put(&db, job("long")).await;
    let gate = Arc::new(Semaphore::new(0));
    let (begun, mut begins) = mpsc::unbounded_channel();
    let passing = Arc::clone(&gate);
    let handlers = Handlers::default().on("long", move |job, desk| {
        let (gate, begun) = (Arc::clone(&passing), begun.clone());
        async move {
            begun.send(()).unwrap();
            gate.acquire().await.unwrap().forget();
            desk.done(&job).await
        }
    });
    let process = Process::start(&db, settings(Duration::from_millis(500)), handlers).await;
    within("it begins", begins.recv()).await.unwrap();
    let first: f64 = lease_end(&db, id).await;
    eventually("three leases have passed", async || {
        lease_end(&db, id).await > first + 1.5
    })
    .await;
    gate.add_permits(1);
    let row = until_state(&db, id, "done").await;
    assert_eq!((row.attempt, row.crashes), (1, 0));
    assert!(begins.try_recv().is_err(), "it began once");
    process.stop().await;
}

async fn lease_end(db: &TestDb, id: i64) -> f64 {
    sqlx::query_scalar(
        "SELECT COALESCE(EXTRACT(EPOCH FROM lease_expires_at), 0)::float8 FROM iit_jobs WHERE id = $1",
    )
    .bind(id)
    .fetch_one(&db.pool)
    .await
    .unwrap()
}

#[tokio::test]
async fn a_job_whose_lease_was_taken_away_is_really_dropped_and_its_slot_is_free() {
    let db = TestDb::new().await;
    let id = put(&db, job("hangs")).await;
    let (handlers, mut begins) = hanging("hangs");
    let process = Process::start(&db, settings(Duration::from_millis(600)), handlers).await;
    let gone = within("it begins", begins.recv()).await.unwrap();
    sql(
        &db,
        "UPDATE iit_jobs SET lease_token = gen_random_uuid(), worker = gen_random_uuid(),
                lease_expires_at = now() + interval '1 hour'",
    )
    .await;
    within("its future is dropped", gone).await.unwrap();
    // The only slot is free again.
    let next = put(&db, job("fine")).await;
    process.wake.queues([QUEUE.to_owned()]);
    until_state(&db, next, "done").await;
    let stolen = row(&db, id).await;
    assert_eq!((stolen.state.as_str(), stolen.attempt), ("running", 1));
    process.stop().await;
}

/// The settlement locks the job's row. A renewal that waited for that lock would cost every other job
/// of the process its lease.
#[tokio::test]
async fn a_settlement_that_takes_long_costs_no_other_job_its_lease() {
    let db = TestDb::new().await;
    results_table(&db).await;
    let slow = put(&db, job("slow settlement")).await;
    let other = put(&db, job("works")).await;
    let gate = Arc::new(Semaphore::new(0));
    let (begun, mut begins) = mpsc::unbounded_channel();
    let (settling, working) = (Arc::clone(&gate), Arc::clone(&gate));
    let begun_too = begun.clone();
    let handlers = Handlers::default()
        .on("slow settlement", move |job, desk| {
            let (gate, begun) = (Arc::clone(&settling), begun.clone());
            async move {
                let mut settlement = job
                    .lease
                    .settle(&desk.pool, &desk.wake, &Outcome::Done)
                    .await?;
                write_result(&mut settlement, "slow").await;
                begun.send(()).unwrap();
                // Statements go on, as a large settlement's would.
                while gate.try_acquire().map(|permit| permit.forget()).is_err() {
                    sqlx::query("SELECT pg_sleep(0.05)")
                        .execute(settlement.conn())
                        .await?;
                }
                Ok(settlement.commit().await?)
            }
        })
        .on("works", move |job, desk| {
            let (gate, begun) = (Arc::clone(&working), begun_too.clone());
            async move {
                begun.send(()).unwrap();
                gate.acquire().await.unwrap().forget();
                desk.done(&job).await
            }
        });
    let mut settings = settings(Duration::from_millis(500));
    settings.concurrency = 2;
    let process = Process::start(&db, settings, handlers).await;
    for _ in 0..2 {
        within("both begin", begins.recv()).await.unwrap();
    }
    let first = lease_end(&db, other).await;
    eventually("three leases have passed", async || {
        lease_end(&db, other).await > first + 1.5
    })
    .await;
    gate.add_permits(2);
    for id in [slow, other] {
        let row = until_state(&db, id, "done").await;
        assert_eq!((row.attempt, row.crashes), (1, 0), "{id}");
    }
    assert_eq!(results(&db).await, ["slow"]);
    process.stop().await;
}

/// A frozen machine, or a network that swallows packets, must not keep a job locked for hours.
#[tokio::test]
async fn a_settlement_that_falls_silent_is_ended_by_the_server_within_a_lease() {
    let db = TestDb::new().await;
    results_table(&db).await;
    let desk = Desk::of(&db);
    let id = put(&db, job("freezes")).await;
    let lease = Duration::from_millis(300);
    let claimed = claim_by(&db, Uuid::new_v4(), 1, lease).await.remove(0);
    let mut frozen = claimed
        .lease
        .settle(&desk.pool, &desk.wake, &Outcome::Done)
        .await
        .unwrap();
    write_result(&mut frozen, "late").await;
    eventually("the sweep gets the job", async || {
        !sweep(&db.pool).await.unwrap().is_empty()
    })
    .await;
    let row = row(&db, id).await;
    assert_eq!((row.state.as_str(), row.crashes), ("available", 1));
    assert!(frozen.commit().await.is_err());
    assert_eq!(results(&db).await, [""; 0]);
}

#[tokio::test]
async fn a_database_away_for_longer_than_a_lease_has_its_jobs_aborted_here() {
    let cluster = TestCluster::start().await;
    let db = TestDb::on(&cluster).await;
    let id = put(&db, job("hangs")).await;
    let (handlers, mut begins) = hanging("hangs");
    let process = Process::start(&db, settings(Duration::from_millis(400)), handlers).await;
    let gone = within("it begins", begins.recv()).await.unwrap();
    cluster.take_down(StopMode::Immediate).await;
    within("its future is dropped", gone).await.unwrap();
    cluster.bring_back().await;
    // Swept and claimed again by the same process.
    let again = within("it begins again", begins.recv()).await.unwrap();
    let row = row(&db, id).await;
    assert_eq!(
        (row.state.as_str(), row.attempt, row.crashes),
        ("running", 2, 1)
    );
    drop(process);
    within("it ends with its process", again).await.unwrap();
}

#[tokio::test]
async fn many_sweeps_at_once_put_each_job_back_once() {
    let db = TestDb::new().await;
    let mut ids = Vec::new();
    for _ in 0..20 {
        ids.push(put(&db, job("work")).await);
    }
    claim_by(&db, Uuid::new_v4(), 20, LONG).await;
    assert_eq!(sweep(&db.pool).await.unwrap(), [], "while the leases hold");
    expire_leases(&db).await;
    let sweeps = futures::future::join_all((0..6).map(|_| sweep(&db.pool))).await;
    let mut swept: Vec<i64> = sweeps
        .into_iter()
        .flat_map(|swept| swept.unwrap())
        .map(|job| {
            assert!(!job.blamed, "nobody was alone");
            job.id
        })
        .collect();
    swept.sort_unstable();
    assert_eq!(swept, ids, "each by exactly one sweep");
    assert_eq!(sweep(&db.pool).await.unwrap(), []);
    assert_eq!(
        count(
            &db,
            "SELECT count(*) FROM iit_jobs WHERE state = 'available' AND suspect AND crashes = 0"
        )
        .await,
        20
    );
}

#[tokio::test]
async fn two_workers_on_one_host_are_two_and_neither_touches_the_others_jobs() {
    let db = TestDb::new().await;
    let (handlers, mut begins) = hanging("hangs");
    let mut short = settings(LONG);
    short.drain = Duration::from_millis(50);
    let first = Process::start(&db, short.clone(), handlers).await;
    let one = put(&db, job("hangs")).await;
    first.wake.queues([QUEUE.to_owned()]);
    let _one_runs = within("the first begins", begins.recv()).await.unwrap();
    let (handlers, mut begins) = hanging("hangs");
    let second = Process::start(&db, short, handlers).await;
    let other = put(&db, job("hangs")).await;
    second.wake.queues([QUEUE.to_owned()]);
    let other_gone = within("the second begins", begins.recv()).await.unwrap();
    let (one_row, other_row) = (row(&db, one).await, row(&db, other).await);
    assert_ne!(one_row.worker, other_row.worker);
    second.stop().await;
    within("the second's job is dropped", other_gone)
        .await
        .unwrap();
    let after = row(&db, one).await;
    assert_eq!(after.lease_token, one_row.lease_token);
    assert_eq!((after.state.as_str(), after.attempt), ("running", 1));
    drop(first);
}
