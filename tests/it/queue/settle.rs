//! The end of an attempt: fenced by the lease, one transaction with everything it leads to.

use std::time::Duration;

use iit_manager::{
    queue::{
        EnqueueError, JobError, NewJob, Outcome, SettleError, Wake, enqueue_many, sweep::sweep,
    },
    store,
};
use serde_json::json;
use sqlx::AssertSqlSafe;

use super::rig::{
    Desk, TestDb, claim_one, count, eventually, expire_leases, job, put, results, results_table,
    row, write_result,
};

#[tokio::test]
async fn a_late_settle_changes_nothing_whether_or_not_somebody_has_the_job_again() {
    let db = TestDb::new().await;
    results_table(&db).await;
    let desk = Desk::of(&db);
    let id = put(&db, job("work")).await;
    let stale = claim_one(&db).await;
    expire_leases(&db).await;
    assert_eq!(sweep(&db.pool).await.unwrap().len(), 1);

    let late = stale.lease.settle(&desk.pool, &desk.wake, &Outcome::Done);
    assert!(matches!(late.await, Err(SettleError::LostLease(lost)) if lost == id));
    let fresh = super::rig::claim_suspect(&db).await.unwrap();
    for outcome in [
        Outcome::Done,
        Outcome::Cancel("late".to_owned()),
        Outcome::Dead("late".to_owned()),
        Outcome::Snooze(Duration::ZERO),
        Outcome::Retry {
            after: Duration::ZERO,
            why: "late".to_owned(),
        },
    ] {
        let late = desk.settle(&stale.lease, outcome).await;
        assert!(matches!(late, Err(JobError::LostLease)), "{late:?}");
    }
    let held = row(&db, id).await;
    assert_eq!((held.state.as_str(), held.attempt), ("running", 2));
    assert_eq!(held.lease_token, Some(fresh.lease.token));
    assert_ne!(stale.lease.token, fresh.lease.token);

    desk.done(&fresh).await.unwrap();
    let twice = desk.done(&fresh).await;
    assert!(matches!(twice, Err(JobError::LostLease)), "{twice:?}");
}

#[tokio::test]
async fn what_a_settlement_wrote_is_there_with_the_settle_or_not_at_all() {
    let db = TestDb::new().await;
    results_table(&db).await;
    let desk = Desk::of(&db);
    let id = put(&db, job("work")).await;
    let claimed = claim_one(&db).await;

    let mut dropped = claimed
        .lease
        .settle(&desk.pool, &desk.wake, &Outcome::Done)
        .await
        .unwrap();
    write_result(&mut dropped, "never").await;
    dropped.enqueue(job("next")).await.unwrap();
    dropped
        .enqueue_many(&[job("next"), job("next")])
        .await
        .unwrap();
    drop(dropped);
    eventually("the rollback is done", async || {
        count(&db, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'").await == 0
    })
    .await;
    assert_eq!(row(&db, id).await.state, "running");
    assert_eq!(results(&db).await, [""; 0]);
    assert_eq!(count(&db, "SELECT count(*) FROM iit_jobs").await, 1);

    let mut kept = claimed
        .lease
        .settle(&desk.pool, &desk.wake, &Outcome::Done)
        .await
        .unwrap();
    write_result(&mut kept, "once").await;
    kept.enqueue(job("next")).await.unwrap();
    kept.commit().await.unwrap();
    assert_eq!(row(&db, id).await.state, "done");
    assert_eq!(results(&db).await, ["once"]);
    assert_eq!(
        count(
            &db,
            "SELECT count(*) FROM iit_jobs WHERE kind = 'next' AND state = 'available'"
        )
        .await,
        1
    );
}

#[tokio::test]
async fn a_next_job_that_is_refused_takes_the_whole_settlement_with_it() {
    let db = TestDb::new().await;
    results_table(&db).await;
    let desk = Desk::of(&db);
    let id = put(&db, job("work")).await;
    let claimed = claim_one(&db).await;
    let attempt = async {
        let mut settlement = claimed
            .lease
            .settle(&desk.pool, &desk.wake, &Outcome::Done)
            .await?;
        write_result(&mut settlement, "never").await;
        let too_large = NewJob {
            payload: json!({ "text": "x".repeat(9000) }),
            ..job("next")
        };
        settlement.enqueue(too_large).await?;
        settlement.commit().await
    };
    let refused = attempt.await;
    assert!(matches!(
        refused,
        Err(SettleError::Enqueue(EnqueueError::TooLarge { .. }))
    ));
    assert_eq!(results(&db).await, [""; 0]);
    assert_eq!(row(&db, id).await.state, "running");
}

#[tokio::test]
async fn a_claimed_job_is_out_of_everybodys_reach_while_its_settlement_is_open() {
    let db = TestDb::new().await;
    let desk = Desk::of(&db);
    let id = put(&db, job("work")).await;
    let claimed = claim_one(&db).await;
    expire_leases(&db).await;
    let settlement = claimed
        .lease
        .settle(&desk.pool, &desk.wake, &Outcome::Done)
        .await
        .unwrap();
    assert_eq!(sweep(&db.pool).await.unwrap(), []);
    settlement.commit().await.unwrap();
    assert_eq!(sweep(&db.pool).await.unwrap(), []);
    assert_eq!(row(&db, id).await.state, "done");
}

#[tokio::test]
async fn each_outcome_leaves_the_row_as_it_says() {
    let db = TestDb::new().await;
    let desk = Desk::of(&db);
    let minute = Duration::from_secs(60);
    let retry = Outcome::Retry {
        after: minute,
        why: "busy".to_owned(),
    };
    let cases = [
        (Outcome::Done, "done", 1, None, 0.0),
        (retry, "available", 1, Some("busy"), 60.0),
        (Outcome::Snooze(minute), "available", 0, None, 60.0),
        (
            Outcome::Cancel("not wanted".to_owned()),
            "cancelled",
            1,
            Some("not wanted"),
            0.0,
        ),
        (
            Outcome::Dead("no use".to_owned()),
            "dead",
            1,
            Some("no use"),
            0.0,
        ),
    ];
    for (outcome, state, attempt, error, due_in) in cases {
        let id = put(&db, job("work")).await;
        let claimed = claim_one(&db).await;
        desk.settle(&claimed.lease, outcome.clone()).await.unwrap();
        let row = row(&db, id).await;
        assert_eq!(
            (row.state.as_str(), row.attempt),
            (state, attempt),
            "{outcome:?}"
        );
        assert_eq!(row.last_error.as_deref(), error, "{outcome:?}");
        assert_eq!((row.lease_token, row.worker, row.crashes), (None, None, 0));
        assert!(
            (row.due_in - due_in).abs() < 30.0,
            "{outcome:?}: {}",
            row.due_in
        );
    }
}

#[tokio::test]
async fn the_table_refuses_rows_that_make_no_sense() {
    let db = TestDb::new().await;
    put(&db, job("work")).await;
    let lease =
        "lease_token = gen_random_uuid(), lease_expires_at = now(), worker = gen_random_uuid()";
    let cases = [
        ("state = 'lost'".to_owned(), "job_state_is_known"),
        ("state = 'running'".to_owned(), "job_leased_while_running"),
        (
            "state = 'running', lease_token = gen_random_uuid(), worker = gen_random_uuid()"
                .to_owned(),
            "job_leased_while_running",
        ),
        (lease.to_owned(), "job_leased_while_running"),
        ("state = 'done'".to_owned(), "job_finished_when_final"),
        ("finished_at = now()".to_owned(), "job_finished_when_final"),
        (
            format!("state = 'dead', finished_at = now(), {lease}"),
            "job_leased_while_running",
        ),
        ("attempt = -1".to_owned(), "job_attempt_is_counted"),
        ("crashes = -1".to_owned(), "job_attempt_is_counted"),
        (
            "max_attempts = 0".to_owned(),
            "job_max_attempts_is_positive",
        ),
        (
            "payload = jsonb_build_object('text', repeat('x', 8192))".to_owned(),
            "job_payload_is_small",
        ),
    ];
    for (change, constraint) in cases {
        let statement = format!("UPDATE iit_jobs SET {change}");
        let refused = sqlx::query(AssertSqlSafe(statement))
            .execute(&db.pool)
            .await
            .unwrap_err();
        let named = refused.as_database_error().and_then(|e| e.constraint());
        // A row that breaks two is refused by either.
        assert!(
            named == Some(constraint) || named == Some("job_finished_when_final"),
            "{change}: {refused}"
        );
    }
    assert_eq!(
        count(
            &db,
            "SELECT count(*) FROM iit_jobs WHERE state = 'available' AND attempt = 0"
        )
        .await,
        1
    );
}

#[tokio::test]
async fn what_is_dropped_while_its_transaction_opens_leaves_no_open_transaction_in_the_pool() {
    let db = TestDb::new().await;
    results_table(&db).await;
    put(&db, job("work")).await;
    let lease = claim_one(&db).await.lease;
    let pool = db.another_pool(1).await;
    let wake = Wake::new(uuid::Uuid::new_v4());
    let mut written = 0;
    // Dropped at every moment from before the begin is sent to after it is answered.
    for after in (0..60).map(|n| Duration::from_micros(n * 25)) {
        let _ = tokio::time::timeout(after, lease.settle(&pool, &wake, &Outcome::Done)).await;
        let _ = tokio::time::timeout(after, store::db::begin(&pool)).await;
        sqlx::query("INSERT INTO results VALUES ('next')")
            .execute(&pool)
            .await
            .unwrap();
        written += 1;
        assert_eq!(results(&db).await.len(), written, "dropped after {after:?}");
    }
}

/// What only shows after minutes of work beside an old snapshot, which keeps every entry of that index: with
/// a table that is mostly finished, the planner finds the index of the few running jobs cheaper than the
/// primary key, until it has to pass all jobs that ever ran.
#[tokio::test]
async fn a_settlement_never_looks_for_its_job_among_all_that_ran() {
    let db = TestDb::new().await;
    let finished: Vec<_> = (0..2000).map(|_| job("work")).collect();
    let mut conn = db.pool.acquire().await.unwrap();
    enqueue_many(&mut conn, &finished).await.unwrap();
    sqlx::query("UPDATE iit_jobs SET state = 'done', finished_at = now()")
        .execute(&mut *conn)
        .await
        .unwrap();
    put(&db, job("work")).await;
    let claimed = claim_one(&db).await;
    sqlx::raw_sql("ANALYZE iit_jobs")
        .execute(&mut *conn)
        .await
        .unwrap();
    let scans = async |conn: &mut sqlx::PgConnection| -> Vec<(String, i64)> {
        sqlx::raw_sql("SELECT pg_stat_force_next_flush()")
            .execute(&mut *conn)
            .await
            .unwrap();
        sqlx::query_as(
            "SELECT indexrelname::text, idx_scan FROM pg_stat_user_indexes
             WHERE relname = 'iit_jobs' ORDER BY 1",
        )
        .fetch_all(conn)
        .await
        .unwrap()
    };
    let before = scans(&mut conn).await;
    drop(conn);

    let desk = Desk {
        pool: db.another_pool(1).await,
        ..Desk::of(&db)
    };
    let done = claimed
        .lease
        .settle_only(&desk.pool, &desk.wake, &Outcome::Done)
        .await;
    done.unwrap();
    let after = scans(&mut *desk.pool.acquire().await.unwrap()).await;
    let used: Vec<&str> = before
        .iter()
        .zip(&after)
        .filter(|(before, after)| before != after)
        .map(|(_, after)| after.0.as_str())
        .collect();
    assert_eq!(used, ["iit_jobs_pkey"]);
}
