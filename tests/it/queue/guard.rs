//! Whatever a handler does, its attempt ends in one settlement, and the worker goes on.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI32, Ordering},
    },
    time::Duration,
};

use anyhow::anyhow;
use iit_manager::store::reader;
use iit_manager::tools::{Registry, Snapshots};
use iit_manager::{
    adapters::edc::EdcPool,
    jobs::{
        Jobs,
        common::{
            services::{ConversationSettings, Services},
            study::SkillCache,
        },
    },
    queue::{JobError, NewJob, Wake},
    types::clock::Clock,
};
use serde_json::json;
use tokio::sync::mpsc;
use uuid::Uuid;

use super::rig::{
    Handlers, LONG, Process, TestDb, count, eventually, job, put, results, results_table, row,
    settings, sql, until_state, write_result,
};

fn attempts(kind: &'static str, max_attempts: i32) -> NewJob {
    NewJob {
        max_attempts,
        ..job(kind)
    }
}

/// Makes waiting jobs due, as time would.
async fn let_time_pass(db: &TestDb, process: &Process) {
    sql(
        db,
        "UPDATE iit_jobs SET run_at = now() WHERE state = 'available'",
    )
    .await;
    process.wake.queues([super::rig::QUEUE.to_owned()]);
}

#[tokio::test]
async fn a_panic_is_retried_and_then_dead_with_its_message_and_the_worker_goes_on() {
    let db = TestDb::new().await;
    let id = put(&db, attempts("panics", 2)).await;
    let owned = put(&db, attempts("panics owned", 1)).await;
    let handlers = Handlers::default()
        .on("panics", |job, _| async move {
            if job.lease.attempt > 0 {
                panic!("no such cell");
            }
            Err(JobError::LostLease)
        })
        .on("panics owned", |job, _| -> std::future::Ready<_> {
            panic!("attempt {}", job.lease.attempt)
        });
    let process = Process::start(&db, settings(LONG), handlers).await;
    let waiting = until_state(&db, owned, "dead").await;
    assert_eq!(
        waiting.last_error.as_deref(),
        Some("the job panicked: attempt 1")
    );
    eventually("the first panic is settled", async || {
        row(&db, id).await.last_error.is_some()
    })
    .await;
    let waiting = row(&db, id).await;
    assert_eq!((waiting.state.as_str(), waiting.attempt), ("available", 1));
    assert!((0.3..=1.3).contains(&waiting.due_in), "{}", waiting.due_in);
    let_time_pass(&db, &process).await;
    let dead = until_state(&db, id, "dead").await;
    assert_eq!(dead.attempt, 2);
    assert_eq!(
        dead.last_error.as_deref(),
        Some("the job panicked: no such cell")
    );
    let next = put(&db, job("fine")).await;
    process.wake.queues([super::rig::QUEUE.to_owned()]);
    until_state(&db, next, "done").await;
    process.stop().await;
}

#[tokio::test]
async fn an_attempt_that_takes_too_long_is_cut_off_and_retried() {
    let db = TestDb::new().await;
    let id = put(&db, job("hangs")).await;
    let (dropped, mut gone) = mpsc::unbounded_channel();
    let handlers =
        Handlers::default()
            .timeout(Duration::from_millis(20))
            .on("hangs", move |_, _| {
                let dropped = SendOnDrop(dropped.clone());
                async move {
                    let _dropped = dropped;
                    std::future::pending().await
                }
            });
    let process = Process::start(&db, settings(LONG), handlers).await;
    gone.recv().await.unwrap();
    let retried = until_state(&db, id, "available").await;
    assert_eq!(retried.attempt, 1);
    let why = retried.last_error.unwrap();
    assert!(why.contains("took longer than"), "{why}");
    process.stop().await;
}

struct SendOnDrop(mpsc::UnboundedSender<()>);

impl Drop for SendOnDrop {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

#[tokio::test]
async fn each_error_ends_the_attempt_as_it_says() {
    let db = TestDb::new().await;
    let dead = put(&db, job("dead")).await;
    let cancelled = put(&db, job("cancelled")).await;
    let snoozed = put(&db, job("snoozed")).await;
    let used_up = put(&db, attempts("fails", 1)).await;
    let refused = put(&db, job("refused by the database")).await;
    let handlers = Handlers::default()
        .on("dead", |_, _| async {
            Err(JobError::dead(anyhow!("inner").context("outer")))
        })
        .on("cancelled", |_, _| async {
            Err(JobError::Cancel("the run is gone".to_owned()))
        })
        .on("snoozed", |_, _| async {
            Err(JobError::Snooze(Duration::from_secs(60)))
        })
        .on("fails", |_, _| async {
            Err(JobError::retry(anyhow!("the EDC is away")))
        })
        .on("refused by the database", |_, desk| async move {
            sqlx::query("SELECT 1 / 0").execute(&desk.pool).await?;
            Err(JobError::LostLease)
        });
    let process = Process::start(&db, settings(LONG), handlers).await;
    let row = until_state(&db, dead, "dead").await;
    assert_eq!(
        (row.attempt, row.last_error.as_deref()),
        (1, Some("outer: inner"))
    );
    let row = until_state(&db, cancelled, "cancelled").await;
    assert_eq!(row.last_error.as_deref(), Some("the run is gone"));
    let row = until_state(&db, used_up, "dead").await;
    assert_eq!(row.last_error.as_deref(), Some("the EDC is away"));
    let row = until_state(&db, refused, "dead").await;
    assert!(row.last_error.unwrap().contains("division by zero"));
    let row = super::rig::row(&db, snoozed).await;
    assert_eq!((row.state.as_str(), row.attempt), ("available", 0));
    assert!(row.due_in > 30.0);
    process.stop().await;
}

#[tokio::test]
async fn who_waits_for_a_dead_job_is_told_in_the_same_transaction() {
    let db = TestDb::new().await;
    results_table(&db).await;
    let id = put(&db, attempts("fails", 1)).await;
    let handlers = Handlers::default()
        .on("fails", |_, _| async {
            Err(JobError::retry(anyhow!("no")))
        })
        .bury(|job, settlement, why| {
            Box::pin(async move {
                write_result(settlement, &format!("{}: {why}", job.kind)).await;
                settlement.enqueue(super::rig::job("told")).await?;
                Ok(())
            })
        });
    let process = Process::start(&db, settings(LONG), handlers).await;
    until_state(&db, id, "dead").await;
    assert_eq!(results(&db).await, ["fails: no"]);
    eventually("the job that tells runs", async || {
        count(
            &db,
            "SELECT count(*) FROM iit_jobs WHERE kind = 'told' AND state = 'done'",
        )
        .await
            == 1
    })
    .await;
    process.stop().await;
}

#[tokio::test]
async fn a_burial_that_fails_for_good_leaves_nothing_but_the_dead_job() {
    let db = TestDb::new().await;
    results_table(&db).await;
    let fails = put(&db, job("fails")).await;
    let panics = put(&db, job("panics")).await;
    let dead = |_, _| async { Err(JobError::dead(anyhow!("no use"))) };
    let handlers = Handlers::default()
        .on("fails", dead)
        .on("panics", dead)
        .bury(|job, settlement, _| {
            Box::pin(async move {
                write_result(settlement, "half").await;
                if job.kind == "panics" {
                    panic!("while burying");
                }
                Err(JobError::dead(anyhow!("nobody to tell")))
            })
        });
    let process = Process::start(&db, settings(LONG), handlers).await;
    for id in [fails, panics] {
        let row = until_state(&db, id, "dead").await;
        assert_eq!(row.last_error.as_deref(), Some("no use"));
    }
    assert_eq!(results(&db).await, [""; 0]);
    process.stop().await;
}

/// Telling may fail for a while, and is then tried again; a job whose telling never succeeds must not
/// go round for ever.
#[tokio::test]
async fn a_burial_that_keeps_failing_is_tried_again_and_then_done_without_it() {
    let db = TestDb::new().await;
    let id = put(&db, attempts("fails", 1)).await;
    let tried = Arc::new(AtomicI32::new(0));
    let tries = Arc::clone(&tried);
    let handlers = Handlers::default()
        .on("fails", |_, _| async {
            Err(JobError::retry(anyhow!("no")))
        })
        .bury(move |_, _, _| {
            tries.fetch_add(1, Ordering::SeqCst);
            Box::pin(async { Err(JobError::retry(anyhow!("not now"))) })
        });
    let lease = Duration::from_millis(60);
    let process = Process::start(&db, settings(lease), handlers).await;
    let row = until_state(&db, id, "dead").await;
    assert!(tried.load(Ordering::SeqCst) >= 3, "{row:?}");
    process.stop().await;
}

#[tokio::test]
async fn a_job_that_took_its_process_down_three_times_is_quarantined() {
    let db = TestDb::new().await;
    results_table(&db).await;
    let id = put(&db, job("crashes")).await;
    for crash in 1..=3 {
        // Alone at first, then as a suspect.
        match crash {
            1 => drop(super::rig::claim_one(&db).await),
            _ => drop(super::rig::claim_suspect(&db).await.unwrap()),
        }
        super::rig::expire_leases(&db).await;
        assert_eq!(super::rig::sweep_ids(&db).await, [id]);
        assert_eq!(row(&db, id).await.crashes, crash);
    }
    let handlers = Handlers::default()
        .on("crashes", |_, _| async { panic!("must not run again") })
        .bury(|_, settlement, why| {
            Box::pin(async move {
                write_result(settlement, why).await;
                Ok(())
            })
        });
    let process = Process::start(&db, settings(LONG), handlers).await;
    let dead = until_state(&db, id, "dead").await;
    assert_eq!(dead.last_error.as_deref(), Some("crashed the worker"));
    assert_eq!(results(&db).await, ["crashed the worker"]);
    process.stop().await;
}

#[tokio::test]
async fn a_job_whose_attempts_were_used_up_by_crashes_is_buried_without_another_try() {
    let db = TestDb::new().await;
    let id = put(&db, attempts("crashes", 1)).await;
    super::rig::claim_one(&db).await;
    super::rig::expire_leases(&db).await;
    iit_manager::queue::sweep::sweep(&db.pool).await.unwrap();
    let handlers = Handlers::default().on("crashes", |_, _| async { panic!("must not run again") });
    let process = Process::start(&db, settings(LONG), handlers).await;
    let dead = until_state(&db, id, "dead").await;
    assert_eq!(dead.last_error.as_deref(), Some("its attempts are used up"));
    process.stop().await;
}

/// The program's own registry: what it can't read or does not know ends no worker.
#[tokio::test]
async fn unknown_kinds_and_unreadable_payloads_die_with_a_sentence_each() {
    let db = TestDb::new().await;
    let unknown = put(&db, job("from the future")).await;
    let unreadable = put(
        &db,
        NewJob {
            payload: json!({ "run": "not an id" }),
            ..job("sop_step")
        },
    )
    .await;
    let wake = Wake::new(Uuid::new_v4());
    let services = Services {
        pool: db.pool.clone(),
        wake: wake.clone(),
        clock: Clock::system(),
        edc: EdcPool::default(),
        skills: SkillCache::default(),
        wecom: None,
        model: None,
        tools: Registry::standard(),
        reader: reader::pool(&db.pool),
        snapshots: Snapshots::default(),
        conversation: ConversationSettings::default(),
    };
    let jobs = Jobs::register(Arc::new(services));
    let process = Process::start_with(&db, settings(LONG), jobs, wake).await;
    let row = until_state(&db, unknown, "dead").await;
    insta::assert_snapshot!(row.last_error.unwrap(), @"no job is called `from the future` in this version; retry it after an update with `iit queue retry`");
    let row = until_state(&db, unreadable, "dead").await;
    assert_eq!(row.attempt, 1, "read again it would read the same");
    insta::assert_snapshot!(row.last_error.unwrap(), @"the payload of this `sop_step` job can't be read (UUID parsing failed: invalid character: found `n` at 0); cancel it, or retry it with a version that can");
    let gone = put(
        &db,
        NewJob {
            payload: json!({ "run": Uuid::new_v4(), "step": 0 }),
            ..job("sop_step")
        },
    )
    .await;
    process.wake.queues([super::rig::QUEUE.to_owned()]);
    let row = until_state(&db, gone, "cancelled").await;
    assert_eq!(row.last_error.as_deref(), Some("the run is gone"));
    process.stop().await;
}
