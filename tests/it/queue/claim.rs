//! Out of the queue: each job to one claimer, in order, never early, none left behind.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use iit_manager::queue::{
    NewJob,
    claim::{self, Bound},
    enqueue_many,
};
use tokio::sync::{Barrier, mpsc};
use uuid::Uuid;

use super::rig::{
    Handlers, LONG, Process, QUEUE, TestDb, claim_by, count, eventually, job, number, numbered,
    put, row, settings, sql, within,
};

async fn put_many(db: &TestDb, jobs: &[NewJob]) {
    let mut conn = db.pool.acquire().await.unwrap();
    enqueue_many(&mut conn, jobs).await.unwrap();
}

#[tokio::test]
async fn a_claim_takes_as_many_as_there_are_free_slots_and_counts_the_attempt() {
    let db = TestDb::new().await;
    let jobs: Vec<NewJob> = (0..5).map(|n| numbered("work", n)).collect();
    put_many(&db, &jobs).await;
    let worker = Uuid::new_v4();
    let taken = claim_by(&db, worker, 3, LONG).await;
    let order: Vec<u64> = taken.iter().map(|job| number(&job.payload)).collect();
    assert_eq!(order, [0, 1, 2]);
    for claimed in &taken {
        assert_eq!((claimed.lease.attempt, claimed.lease.max_attempts), (1, 5));
        let row = row(&db, claimed.lease.job).await;
        assert_eq!((row.state.as_str(), row.attempt), ("running", 1));
        assert_eq!(row.worker, Some(worker));
        assert_eq!(row.lease_token, Some(claimed.lease.token));
    }
    assert_eq!(
        claim_by(&db, worker, 9, LONG).await.len(),
        2,
        "what is left"
    );
    assert_eq!(claim_by(&db, worker, 9, LONG).await.len(), 0);
}

#[tokio::test]
async fn priority_comes_before_due_time_and_due_time_before_age() {
    let db = TestDb::new().await;
    let at = |n, priority| numbered("work", n).priority(priority);
    put_many(&db, &[at(3, 5), at(4, 5), at(1, 0), at(2, 0), at(0, -1)]).await;
    // The oldest row becomes due last of its priority.
    sql(
        &db,
        "UPDATE iit_jobs SET run_at = run_at - CASE payload->>'n' WHEN '4' THEN interval '9 s' ELSE interval '5 s' END",
    )
    .await;
    let order: Vec<u64> = claim_by(&db, Uuid::new_v4(), 9, LONG)
        .await
        .iter()
        .map(|job| number(&job.payload))
        .collect();
    assert_eq!(order, [0, 1, 2, 4, 3]);
}

#[tokio::test]
async fn nothing_is_claimed_before_its_time_nor_from_another_queue() {
    let db = TestDb::new().await;
    put(&db, job("work").after(Duration::from_secs(60))).await;
    put(&db, job("work").on_queue("llm")).await;
    assert_eq!(claim_by(&db, Uuid::new_v4(), 9, LONG).await.len(), 0);
    let mut conn = db.pool.acquire().await.unwrap();
    let due = claim::next_due(&mut conn, QUEUE)
        .await
        .unwrap()
        .due
        .unwrap();
    assert!(due > Duration::from_secs(50) && due <= Duration::from_secs(60));
    assert_eq!(
        claim::next_due(&mut conn, "vision").await.unwrap(),
        claim::Outlook::default()
    );
    sql(&db, "UPDATE iit_jobs SET run_at = now()").await;
    assert_eq!(claim_by(&db, Uuid::new_v4(), 9, LONG).await.len(), 1);
}

#[tokio::test]
async fn what_became_due_since_the_last_claim_is_due_at_once() {
    let db = TestDb::new().await;
    put(&db, job("work")).await;
    let mut conn = db.pool.acquire().await.unwrap();
    let due = claim::next_due(&mut conn, QUEUE).await.unwrap().due;
    assert_eq!(due, Some(Duration::ZERO));
}

#[tokio::test]
async fn many_claimers_at_once_never_get_the_same_job_and_leave_none() {
    const CLAIMERS: usize = 8;
    const JOBS: usize = 600;
    let db = TestDb::new().await;
    let jobs: Vec<NewJob> = (0..JOBS).map(|n| numbered("work", n)).collect();
    put_many(&db, &jobs).await;
    let pool = db.another_pool(CLAIMERS as u32).await;
    let start = Arc::new(Barrier::new(CLAIMERS));
    let claimers = (0..CLAIMERS).map(|n| {
        let (pool, start) = (pool.clone(), Arc::clone(&start));
        tokio::spawn(async move {
            let mut conn = pool.acquire().await.unwrap();
            let (mut mine, mut bound) = (Vec::new(), Bound::START);
            start.wait().await;
            // Rows locked by another claimer are skipped, so an empty answer alone proves nothing.
            let mut empty = 0;
            while empty < 3 {
                let slots = 1 + (mine.len() + n) % 5;
                let (taken, last) =
                    claim::claim(&mut conn, QUEUE, Uuid::new_v4(), slots, LONG, bound)
                        .await
                        .unwrap();
                assert!(taken.len() <= slots);
                empty = if taken.is_empty() { empty + 1 } else { 0 };
                bound = if taken.is_empty() { Bound::START } else { last };
                mine.extend(
                    taken
                        .into_iter()
                        .map(|job| (job.lease.job, job.lease.token)),
                );
            }
            mine
        })
    });
    let mut all = Vec::new();
    for claimer in futures::future::join_all(claimers).await {
        all.extend(claimer.unwrap());
    }
    let ids: BTreeSet<i64> = all.iter().map(|(id, _)| *id).collect();
    assert_eq!((all.len(), ids.len()), (JOBS, JOBS));
    for (id, token) in all {
        assert_eq!(row(&db, id).await.lease_token, Some(token));
    }
}

/// The claimer goes on from where its last full claim ended. Jobs that come to stand before that place
/// must not have to wait until a claim finds too few.
#[tokio::test]
async fn jobs_enqueued_before_the_moving_bound_are_run_while_full_claims_go_on() {
    const BACKLOG: usize = 1000;
    let db = TestDb::new().await;
    let steps: Vec<NewJob> = (0..BACKLOG)
        .map(|n| numbered("step", n).priority(10))
        .collect();
    put_many(&db, &steps).await;
    let order = Arc::new(Mutex::new(Vec::new()));
    let (begun, mut begins) = mpsc::unbounded_channel();
    let (steps_seen, urgent_seen) = (Arc::clone(&order), Arc::clone(&order));
    let handlers = Handlers::default()
        .on("step", move |job, desk| {
            steps_seen.lock().unwrap().push("step");
            let _ = begun.send(());
            async move { desk.done(&job).await }
        })
        .on("urgent", move |job, desk| {
            urgent_seen.lock().unwrap().push("urgent");
            async move { desk.done(&job).await }
        });
    let mut settings = settings(LONG);
    settings.concurrency = 2;
    let process = Process::start(&db, settings, handlers).await;
    for _ in 0..10 {
        within("a step begins", begins.recv()).await.unwrap();
    }
    // The bound stands somewhere among the steps; these stand before every one of them.
    put_many(&db, &[job("urgent").priority(-5), job("urgent")]).await;
    eventually("all are done", async || {
        count(&db, "SELECT count(*) FROM iit_jobs WHERE state <> 'done'").await == 0
    })
    .await;
    process.stop().await;
    let order = order.lock().unwrap().clone();
    assert_eq!(order.len(), BACKLOG + 2);
    let last_urgent = order.iter().rposition(|kind| *kind == "urgent").unwrap();
    assert!(last_urgent < BACKLOG - 50, "{last_urgent}");
}
