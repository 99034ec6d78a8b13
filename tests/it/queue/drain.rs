//! Stopping: nothing new is begun, what runs may finish, and what can't is given back whole.

use std::{sync::Arc, time::Duration};

use iit_manager::queue::Outcome;
use tokio::{
    sync::{Semaphore, mpsc, oneshot},
    time::Instant,
};

use super::rig::{
    Handlers, LONG, PATIENCE, Process, QUEUE, TestDb, count, eventually, job, put, row, settings,
    until_state, within,
};

#[tokio::test]
async fn an_idle_worker_stops_at_once() {
    let db = TestDb::new().await;
    let process = Process::start(&db, settings(LONG), Handlers::default()).await;
    let id = put(&db, job("work")).await;
    process.wake.queues([QUEUE.to_owned()]);
    until_state(&db, id, "done").await;
    let asked = Instant::now();
    process.stop().await;
    // Far from the drain time, and from any interval of the worker's.
    assert!(asked.elapsed() < PATIENCE / 4, "{:?}", asked.elapsed());
}

#[tokio::test]
async fn a_running_job_finishes_under_its_lease_and_nothing_new_is_begun() {
    let db = TestDb::new().await;
    let running = put(&db, job("runs")).await;
    let gate = Arc::new(Semaphore::new(0));
    let (begun, mut begins) = mpsc::unbounded_channel();
    let passing = Arc::clone(&gate);
    let handlers = Handlers::default().on("runs", move |job, desk| {
        let (gate, begun) = (Arc::clone(&passing), begun.clone());
        async move {
            begun.send(()).unwrap();
            gate.acquire().await.unwrap().forget();
            desk.done(&job).await
        }
    });
    let mut settings = settings(Duration::from_millis(400));
    settings.concurrency = 2;
    let process = Process::start(&db, settings, handlers).await;
    within("it begins", begins.recv()).await.unwrap();
    process.ask_to_stop();
    let waiting = put(&db, job("waits")).await;
    process.wake.queues([QUEUE.to_owned()]);
    let end = async || -> f64 {
        sqlx::query_scalar(
            "SELECT EXTRACT(EPOCH FROM lease_expires_at)::float8 FROM iit_jobs WHERE id = $1",
        )
        .bind(running)
        .fetch_one(&db.pool)
        .await
        .unwrap()
    };
    let first = end().await;
    eventually("two leases have passed", async || end().await > first + 0.8).await;
    assert_eq!(row(&db, waiting).await.state, "available");
    gate.add_permits(1);
    process.ended().await;
    let row_ = row(&db, running).await;
    assert_eq!(
        (row_.state.as_str(), row_.attempt, row_.crashes),
        ("done", 1, 0)
    );
    let row_ = row(&db, waiting).await;
    assert_eq!((row_.state.as_str(), row_.attempt), ("available", 0));
}

#[tokio::test]
async fn what_outlasts_the_drain_is_dropped_and_given_back_without_costing_an_attempt() {
    let db = TestDb::new().await;
    let id = put(&db, job("hangs")).await;
    let (begun, mut begins) = mpsc::unbounded_channel();
    let handlers = Handlers::default().on("hangs", move |_, _| {
        let (alive, gone) = oneshot::channel::<()>();
        begun.send(gone).unwrap();
        async move {
            let _alive = alive;
            std::future::pending().await
        }
    });
    let mut short = settings(LONG);
    short.drain = Duration::from_millis(50);
    let process = Process::start(&db, short, handlers).await;
    let mut gone = within("it begins", begins.recv()).await.unwrap();
    process.stop().await;
    assert_eq!(
        gone.try_recv(),
        Err(oneshot::error::TryRecvError::Closed),
        "the handler's future was dropped before the job was given back"
    );
    let given = row(&db, id).await;
    assert_eq!(
        (given.state.as_str(), given.attempt, given.crashes),
        ("available", 0, 0)
    );
    assert!(given.due_in <= 0.0 && given.lease_token.is_none());
    let next = Process::start(&db, settings(LONG), Handlers::default()).await;
    let done = until_state(&db, id, "done").await;
    assert_eq!(done.attempt, 1);
    next.stop().await;
}

#[tokio::test]
async fn a_job_given_back_is_begun_by_another_process_without_a_poll() {
    let db = TestDb::new().await;
    let id = put(&db, job("hangs")).await;
    let (begun, mut begins) = mpsc::unbounded_channel();
    let handlers = Handlers::default().on("hangs", move |_, _| {
        begun.send(()).unwrap();
        std::future::pending()
    });
    let mut short = settings(LONG);
    short.drain = Duration::from_millis(50);
    let leaving = Process::start(&db, short, handlers).await;
    within("it begins", begins.recv()).await.unwrap();
    let staying = Process::start(&db, settings(LONG), Handlers::default()).await;
    leaving.stop().await;
    until_state(&db, id, "done").await;
    staying.stop().await;
}

#[tokio::test]
async fn what_follows_from_a_drained_job_is_begun_by_another_process_without_a_poll() {
    let db = TestDb::new().await;
    let last = put(&db, job("last")).await;
    let gate = Arc::new(Semaphore::new(0));
    let (begun, mut begins) = mpsc::unbounded_channel();
    let passing = Arc::clone(&gate);
    let handlers = Handlers::default().on("last", move |claimed, desk| {
        let (gate, begun) = (Arc::clone(&passing), begun.clone());
        async move {
            begun.send(()).unwrap();
            gate.acquire().await.unwrap().forget();
            let mut settlement = claimed
                .lease
                .settle(&desk.pool, &desk.wake, &Outcome::Done)
                .await?;
            settlement.enqueue(job("next")).await?;
            Ok(settlement.commit().await?)
        }
    });
    let leaving = Process::start(&db, settings(LONG), handlers).await;
    within("it begins", begins.recv()).await.unwrap();
    let staying = Process::start(&db, settings(LONG), Handlers::default()).await;
    leaving.ask_to_stop();
    gate.add_permits(1);
    leaving.ended().await;
    assert_eq!(row(&db, last).await.state, "done");
    eventually("the next job is done", async || {
        count(
            &db,
            "SELECT count(*) FROM iit_jobs WHERE kind = 'next' AND state = 'done'",
        )
        .await
            == 1
    })
    .await;
    staying.stop().await;
}
