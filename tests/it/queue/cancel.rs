//! Cancelling: whoever waits for the job is told in the same transaction, whatever state it was in.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use iit_manager::{
    jobs::common::cancel::{self, Ended},
    queue::{JobError, Outcome},
};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::{
    program::{self, Study},
    rig::{
        Desk, Handlers, LONG, Process, QUEUE, TestDb, claim_one, count, grouped, handler, job, put,
        results, results_table, row, settings, sql, until_state, within, write_result,
    },
};

/// Handlers that write down what they are told at a job's end.
fn telling() -> Handlers {
    Handlers::default().bury(|job, settlement, why| {
        Box::pin(async move {
            write_result(settlement, &format!("{}: {why}", job.kind)).await;
            Ok(())
        })
    })
}

async fn cancel_it(db: &TestDb, handlers: Handlers, id: i64) -> Result<Ended, JobError> {
    let desk = Desk::of(db);
    let handler = handler(handlers, desk.clone());
    cancel::cancel(&*handler, &db.pool, &desk.wake, id, "cli:ops", "no use").await
}

#[tokio::test]
async fn a_waiting_job_is_cancelled_told_and_audited_and_its_key_is_free() {
    let db = TestDb::new().await;
    results_table(&db).await;
    let keyed = || iit_manager::queue::NewJob {
        key: Some("k".to_owned()),
        ..job("work")
    };
    let id = put(&db, keyed()).await;
    assert_eq!(
        cancel_it(&db, telling(), id).await.unwrap(),
        Ended::Cancelled
    );
    let cancelled = row(&db, id).await;
    assert_eq!(
        (cancelled.state.as_str(), cancelled.attempt),
        ("cancelled", 0)
    );
    assert_eq!(cancelled.last_error.as_deref(), Some("no use"));
    assert_eq!(results(&db).await, ["work: no use"]);
    assert_eq!(
        count(&db, "SELECT count(*) FROM iit_audit_log WHERE action = 'job.cancelled' AND reason = 'no use'").await,
        1
    );
    assert_eq!(cancel_it(&db, telling(), id).await.unwrap(), Ended::Nothing);
    assert_eq!(
        cancel_it(&db, telling(), 999).await.unwrap(),
        Ended::Nothing
    );
    put(&db, keyed()).await;
}

#[tokio::test]
async fn a_job_whose_waiters_cannot_be_told_stays_as_it_was() {
    let db = TestDb::new().await;
    results_table(&db).await;
    let id = put(&db, job("work")).await;
    let failing = Handlers::default().bury(|_, settlement, _| {
        Box::pin(async move {
            write_result(settlement, "half").await;
            Err(JobError::retry(anyhow::anyhow!("the run is locked")))
        })
    });
    assert!(cancel_it(&db, failing, id).await.is_err());
    assert_eq!(row(&db, id).await.state, "available");
    assert_eq!(results(&db).await, [""; 0]);
    assert_eq!(count(&db, "SELECT count(*) FROM iit_audit_log").await, 0);
}

#[tokio::test]
async fn a_running_job_is_dropped_by_its_process_and_told_and_its_slot_is_free() {
    let db = TestDb::new().await;
    results_table(&db).await;
    let id = put(&db, job("hangs")).await;
    let (begun, mut begins) = mpsc::unbounded_channel();
    let handlers = telling().on("hangs", move |_, _| {
        let (alive, gone) = oneshot::channel::<()>();
        begun.send(gone).unwrap();
        async move {
            let _alive = alive;
            std::future::pending().await
        }
    });
    let process = Process::start(&db, settings(Duration::from_millis(600)), handlers).await;
    let gone = within("it begins", begins.recv()).await.unwrap();
    assert_eq!(
        cancel_it(&db, telling(), id).await.unwrap(),
        Ended::Cancelling
    );
    assert!(within("its future is dropped", gone).await.is_err());
    let cancelled = until_state(&db, id, "cancelled").await;
    assert_eq!((cancelled.attempt, cancelled.crashes), (1, 0));
    assert_eq!(cancelled.last_error.as_deref(), Some("no use"));
    assert_eq!(results(&db).await, ["hangs: no use"]);
    let next = put(&db, job("fine")).await;
    process.wake.queues([QUEUE.to_owned()]);
    until_state(&db, next, "done").await;
    process.stop().await;
}

#[tokio::test]
async fn an_attempt_that_settles_before_it_hears_of_the_cancellation_stands() {
    let db = TestDb::new().await;
    results_table(&db).await;
    let desk = Desk::of(&db);
    let (done, retried) = (put(&db, job("done")).await, put(&db, job("retried")).await);
    let (one, two) = (claim_one(&db).await, claim_one(&db).await);
    for id in [done, retried] {
        assert_eq!(
            cancel_it(&db, telling(), id).await.unwrap(),
            Ended::Cancelling
        );
    }
    desk.done(&one).await.unwrap();
    let retry = Outcome::Retry {
        after: Duration::ZERO,
        why: "the EDC is away".to_owned(),
    };
    desk.settle(&two.lease, retry).await.unwrap();
    assert_eq!(row(&db, done).await.state, "done");
    // The retried one is not run again: whoever claims it ends it.
    let handlers = telling().on("retried", |_, _| async { panic!("must not run") });
    let process = Process::start(&db, settings(LONG), handlers).await;
    until_state(&db, retried, "cancelled").await;
    assert_eq!(results(&db).await, ["retried: no use"]);
    process.stop().await;
}

#[tokio::test]
async fn a_dead_job_is_put_away_without_telling_anybody_twice() {
    let db = TestDb::new().await;
    results_table(&db).await;
    let id = put(&db, job("work")).await;
    let dead = Outcome::Dead("EDC 拒绝访问".to_owned());
    Desk::of(&db)
        .settle(&claim_one(&db).await.lease, dead)
        .await
        .unwrap();
    assert_eq!(
        cancel_it(&db, telling(), id).await.unwrap(),
        Ended::Cancelled
    );
    let row = row(&db, id).await;
    assert_eq!(row.state, "cancelled");
    assert_eq!(
        row.last_error.as_deref(),
        Some("no use; EDC 拒绝访问"),
        "both reasons"
    );
    assert_eq!(results(&db).await, [""; 0]);
}

#[tokio::test]
async fn a_cancelled_head_lets_the_next_of_its_group_run_without_a_poll() {
    let db = TestDb::new().await;
    let head = put(&db, grouped("head", "g").after(Duration::from_secs(3600))).await;
    let next = put(&db, grouped("next", "g")).await;
    let process = Process::start(&db, settings(LONG), Handlers::default()).await;
    let handler = handler(
        Handlers::default(),
        Desk {
            pool: db.pool.clone(),
            wake: process.wake.clone(),
        },
    );
    let cancelled = cancel::cancel(
        &*handler,
        &db.pool,
        &process.wake,
        head,
        "cli:ops",
        "no use",
    )
    .await;
    assert_eq!(cancelled.unwrap(), Ended::Cancelled);
    until_state(&db, next, "done").await;
    process.stop().await;
}

/// A cancellation and its process's own settlement race for the row, again and again.
#[tokio::test]
async fn a_job_is_either_done_or_cancelled_and_told_never_both() {
    let db = TestDb::new().await;
    results_table(&db).await;
    let ran = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&ran);
    let handlers = telling().on("work", move |job, desk| {
        counted.fetch_add(1, Ordering::SeqCst);
        async move {
            let mut settlement = job
                .lease
                .settle(&desk.pool, &desk.wake, &Outcome::Done)
                .await?;
            write_result(&mut settlement, "done").await;
            Ok(settlement.commit().await?)
        }
    });
    let process = Process::start(&db, settings(LONG), handlers).await;
    for _ in 0..40 {
        let id = put(&db, job("work")).await;
        process.wake.queues([QUEUE.to_owned()]);
        let ended = cancel_it(&db, telling(), id).await.unwrap();
        let end = match ended {
            Ended::Cancelled => "cancelled",
            // It hears of the request too late: it settles first.
            Ended::Cancelling | Ended::Nothing => "done",
        };
        until_state(&db, id, end).await;
    }
    let cancelled = count(
        &db,
        "SELECT count(*) FROM iit_jobs WHERE state = 'cancelled'",
    )
    .await;
    let told = results(&db).await;
    assert_eq!(
        told.iter().filter(|text| *text == "work: no use").count() as i64,
        cancelled
    );
    assert_eq!(told.len(), 40);
    assert_eq!(ran.load(Ordering::SeqCst) as i64, 40 - cancelled);
    process.stop().await;
}

fn listed(output: &std::process::Output) -> Vec<Value> {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

#[tokio::test]
async fn the_command_ends_a_request_whose_jobs_are_cancelled_instead_of_leaving_it_open() {
    let db = TestDb::new().await;
    let study = Study::apply(&db);
    study.request_qc();
    let cancelled = program::run(
        &db,
        &[
            "queue",
            "cancel",
            "--queue",
            "edc",
            "--reason",
            "wrong study",
            "--format",
            "json",
        ],
    );
    assert!(cancelled.status.success(), "{cancelled:?}");
    assert_eq!(listed(&cancelled).len(), 1);
    assert_eq!(listed(&cancelled)[0]["state"], "cancelled");
    program::until_batches_ended(&db, 1).await;

    // Steps in the middle of their runs: the runs go on as after a step that could not be done.
    study.request_qc();
    let pages = study.worker("edc");
    super::rig::eventually("the steps wait", async || {
        count(
            &db,
            "SELECT count(*) FROM iit_jobs WHERE state = 'available' AND queue = 'llm'",
        )
        .await
            == program::RECORDS
    })
    .await;
    let cancelled = program::run(
        &db,
        &["queue", "cancel", "--kind", "sop_step", "--format", "json"],
    );
    assert_eq!(
        listed(&cancelled).len() as i64,
        program::RECORDS,
        "{cancelled:?}"
    );
    program::until_batches_ended(&db, 2).await;
    pages.stop().await;
    assert_eq!(
        count(
            &db,
            "SELECT count(*) FROM iit_task_run WHERE status = 'running'"
        )
        .await,
        0
    );
    let notes: Vec<String> = sqlx::query_scalar(
        "SELECT finding->>'message' FROM iit_task_step, jsonb_array_elements(findings) AS finding WHERE no = 1",
    )
    .fetch_all(&db.pool)
    .await
    .unwrap();
    assert_eq!(notes.len() as i64, program::RECORDS);
    for note in notes {
        assert!(note.contains("检查未能完成：由 cli:"), "{note}");
    }
}

#[tokio::test]
async fn the_command_must_be_told_which_jobs_and_says_what_it_could_not_cancel() {
    let db = TestDb::new().await;
    let id = put(&db, job("work")).await.to_string();
    for args in [
        vec!["queue", "cancel"],
        vec!["queue", "cancel", "--all", "1"],
        vec!["queue", "cancel", "--queue", "nowhere"],
        vec!["queue", "cancel", "x"],
        vec!["queue", "retry", "--all", "1"],
    ] {
        let output = program::run(&db, &args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {output:?}");
        assert!(output.stdout.is_empty());
    }
    assert_eq!(row(&db, 1).await.state, "available");
    let output = program::run(&db, &["queue", "cancel", &id, "77"]);
    assert_eq!(output.status.code(), Some(1));
    insta::assert_snapshot!(String::from_utf8(output.stdout).unwrap(), @"已取消 1 个任务，其中 0 个正在停止 · 1 jobs cancelled, 0 of them still stopping");
    insta::assert_snapshot!(String::from_utf8(output.stderr).unwrap(), @"iit: 任务 77 已经结束或不存在 (finished already, or unknown)");
    let output = program::run(
        &db,
        &["queue", "cancel", "--all", "--dead", "--format", "json"],
    );
    assert_eq!(listed(&output), [] as [Value; 0]);
    sql(
        &db,
        "INSERT INTO iit_jobs (queue, kind, payload, state, attempt, last_error, finished_at)
         VALUES ('llm', 'sop_step', '{}', 'dead', 5, 'no', now()), ('edc', 'batch_qc', '{}', 'dead', 5, 'no', now())",
    )
    .await;
    let output = program::run(
        &db,
        &[
            "queue", "cancel", "--dead", "--kind", "sop_step", "--format", "csv",
        ],
    );
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), 2, "{text}");
    assert_eq!(
        count(&db, "SELECT count(*) FROM iit_jobs WHERE state = 'dead'").await,
        1
    );
}

#[tokio::test]
async fn the_commands_pause_limit_and_resume_and_say_how_the_queue_stands() {
    let db = TestDb::new().await;
    let json = |args: &[&str]| {
        let mut args = args.to_vec();
        args.extend(["--format", "json"]);
        let output = program::run(&db, &args);
        assert!(output.status.success(), "{output:?}");
        listed(&output)
    };
    let paused = json(&["queue", "pause", "--queue", "edc"]);
    assert_eq!(paused.len(), 1);
    assert_eq!(paused[0]["queue"], "edc");
    assert!(paused[0]["paused_by"].as_str().unwrap().starts_with("cli:"));
    put(&db, job("work")).await;
    assert_eq!(
        super::rig::claim_by(&db, uuid::Uuid::new_v4(), 1, LONG)
            .await
            .len(),
        0
    );
    let limited = json(&["queue", "limit", "--queue", "edc", "3"]);
    assert_eq!(limited[0]["max_running"], 3);
    assert_eq!(json(&["queue", "pause"]).len(), 5, "all of them");
    let depth = program::run(&db, &["queue", "depth"]);
    let text = String::from_utf8(depth.stdout).unwrap();
    assert!(
        text.contains("edc: 已暂停 paused") && text.contains("最多同时 3 个"),
        "{text}"
    );
    let resumed = json(&["queue", "resume"]);
    assert!(resumed.iter().all(|queue| queue["paused_at"].is_null()));
    let text = program::run(&db, &["queue", "limit", "--queue", "edc", "none"]);
    insta::assert_snapshot!(String::from_utf8(text.stdout).unwrap(), @"edc: 运行中 open");
    for max in ["0", "-1", "many"] {
        let output = program::run(&db, &["queue", "limit", "--queue", "edc", "--", max]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
    }
    let traces = "SELECT count(*) FROM iit_audit_log WHERE entity = 'queue' AND action = ";
    for (action, times) in [("paused", 5), ("resumed", 5), ("limited", 2)] {
        let query = format!("{traces}'queue.{action}'");
        let found: i64 = sqlx::query_scalar(sqlx::AssertSqlSafe(query))
            .fetch_one(&db.pool)
            .await
            .unwrap();
        assert_eq!(found, times, "{action}");
    }
}
