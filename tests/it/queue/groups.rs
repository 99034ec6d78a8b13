//! Jobs of one group: in order, one at a time, and no slot held by those that wait.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use iit_manager::queue::{
    NewJob, Outcome,
    claim::{self, Bound},
};
use serde_json::json;
use tokio::sync::{Barrier, Semaphore, mpsc};
use uuid::Uuid;

use super::rig::{
    Desk, Handlers, LONG, Process, QUEUE, TestDb, claim_by, count, eventually, grouped, job,
    number, put, settings, sql, until_state, within,
};

fn member(n: usize) -> NewJob {
    NewJob {
        payload: json!({ "n": n }),
        ..grouped("member", "g")
    }
}

#[tokio::test]
async fn a_group_runs_in_order_one_at_a_time_and_its_waiting_jobs_hold_no_slot() {
    let db = TestDb::new().await;
    for n in 0..3 {
        put(&db, member(n)).await;
    }
    for _ in 0..4 {
        put(&db, job("free")).await;
    }
    let (started, mut starts) = mpsc::unbounded_channel();
    let gate = Arc::new(Semaphore::new(0));
    let at_once = Arc::new(AtomicUsize::new(0));
    let (members, passing) = (started.clone(), Arc::clone(&gate));
    let handlers = Handlers::default()
        .on("member", move |job, desk| {
            members.send(Some(number(&job.payload))).unwrap();
            let (gate, at_once) = (Arc::clone(&passing), Arc::clone(&at_once));
            async move {
                assert_eq!(at_once.fetch_add(1, Ordering::SeqCst), 0);
                gate.acquire().await.unwrap().forget();
                at_once.fetch_sub(1, Ordering::SeqCst);
                desk.done(&job).await
            }
        })
        .on("free", move |job, desk| {
            started.send(None).unwrap();
            async move { desk.done(&job).await }
        });
    let mut settings = settings(LONG);
    settings.concurrency = 2;
    let process = Process::start(&db, settings, handlers).await;
    // The first member holds one slot; all free jobs pass through the other while two members wait.
    let mut first = Vec::new();
    while first.len() < 5 {
        first.push(within("a start", starts.recv()).await.unwrap());
    }
    first.sort_unstable();
    assert_eq!(first, [None, None, None, None, Some(0)]);
    for n in 1..3 {
        gate.add_permits(1);
        assert_eq!(
            within("the next member", starts.recv()).await,
            Some(Some(n))
        );
    }
    gate.add_permits(1);
    eventually("the group is done", async || {
        count(&db, "SELECT count(*) FROM iit_jobs WHERE state <> 'done'").await == 0
    })
    .await;
    process.stop().await;
}

#[tokio::test]
async fn a_head_that_waits_for_its_retry_blocks_the_group_and_a_dead_one_lets_it_go() {
    let db = TestDb::new().await;
    let desk = Desk::of(&db);
    let head = put(&db, member(0)).await;
    put(&db, member(1)).await;
    let claim = async || claim_by(&db, Uuid::new_v4(), 9, LONG).await;

    let mut claimed = claim().await;
    assert_eq!(claimed.len(), 1, "only the head");
    assert_eq!(claim().await.len(), 0, "while the head runs");
    let retry = Outcome::Retry {
        after: Duration::from_secs(60),
        why: "later".to_owned(),
    };
    desk.settle(&claimed.remove(0).lease, retry).await.unwrap();
    assert_eq!(claim().await.len(), 0, "while the head waits for its retry");
    let mut conn = db.pool.acquire().await.unwrap();
    let due = claim::next_due(&mut conn, QUEUE)
        .await
        .unwrap()
        .due
        .unwrap();
    assert!(
        due > Duration::from_secs(50),
        "a blocked job is not due: {due:?}"
    );

    sql(&db, "UPDATE iit_jobs SET run_at = now()").await;
    let mut claimed = claim().await;
    assert_eq!(claimed.len(), 1);
    assert_eq!((claimed[0].lease.job, claimed[0].lease.attempt), (head, 2));
    let dead = Outcome::Dead("no use".to_owned());
    desk.settle(&claimed.remove(0).lease, dead).await.unwrap();
    let claimed = claim().await;
    assert_eq!(number(&claimed[0].payload), 1);
}

#[tokio::test]
async fn a_settled_head_wakes_the_next_of_its_group_without_a_poll() {
    let db = TestDb::new().await;
    let mut ids = Vec::new();
    for n in 0..5 {
        ids.push(put(&db, member(n)).await);
    }
    let process = Process::start(&db, settings(LONG), Handlers::default()).await;
    for id in ids {
        until_state(&db, id, "done").await;
    }
    process.stop().await;
}

#[tokio::test]
async fn claimers_that_race_for_one_group_never_run_two_of_it_at_once() {
    const CLAIMERS: usize = 6;
    let db = TestDb::new().await;
    for n in 0..60 {
        put(&db, member(n)).await;
    }
    let pool = db.another_pool(2 * CLAIMERS as u32).await;
    let (start, running) = (
        Arc::new(Barrier::new(CLAIMERS)),
        Arc::new(AtomicUsize::new(0)),
    );
    let done = Arc::new(std::sync::Mutex::new(Vec::new()));
    let desk = Desk {
        pool: pool.clone(),
        ..Desk::of(&db)
    };
    let claimers = (0..CLAIMERS).map(|_| {
        let (pool, desk) = (pool.clone(), desk.clone());
        let (start, running, done) = (Arc::clone(&start), Arc::clone(&running), Arc::clone(&done));
        tokio::spawn(async move {
            let worker = Uuid::new_v4();
            start.wait().await;
            while done.lock().unwrap().len() < 60 {
                let mut conn = pool.acquire().await.unwrap();
                let taken = claim::claim(&mut conn, QUEUE, worker, 3, LONG, Bound::START).await;
                drop(conn);
                match taken {
                    Ok((taken, _)) => {
                        assert!(taken.len() <= 1, "one of the group at most");
                        for job in taken {
                            assert_eq!(running.fetch_add(1, Ordering::SeqCst), 0);
                            done.lock().unwrap().push(number(&job.payload));
                            running.fetch_sub(1, Ordering::SeqCst);
                            desk.done(&job).await.unwrap();
                        }
                    }
                    // The index refused the second of two that raced.
                    Err(error) => assert_eq!(
                        error.as_database_error().and_then(|e| e.constraint()),
                        Some("iit_jobs_group_runs_one"),
                    ),
                }
            }
        })
    });
    for claimer in within("all claimers end", futures::future::join_all(claimers)).await {
        claimer.unwrap();
    }
    let done = done.lock().unwrap().clone();
    assert_eq!(done, (0..60).collect::<Vec<u64>>());
}

#[tokio::test]
async fn the_index_refuses_a_second_running_job_of_a_group_whatever_writes_it() {
    let db = TestDb::new().await;
    put(&db, member(0)).await;
    let second = put(&db, member(1)).await;
    claim_by(&db, Uuid::new_v4(), 1, LONG).await;
    let forced = sqlx::query(
        "UPDATE iit_jobs SET state = 'running', lease_token = gen_random_uuid(), worker = gen_random_uuid(),
                lease_expires_at = now() WHERE id = $1",
    )
    .bind(second)
    .execute(&db.pool)
    .await
    .unwrap_err();
    let constraint = forced.as_database_error().and_then(|e| e.constraint());
    assert_eq!(constraint, Some("iit_jobs_group_runs_one"));
}
