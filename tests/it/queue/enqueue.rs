//! Into the queue: with the caller's transaction, once by key, and never what could not be read again.

use std::time::Duration;

use iit_manager::queue::{EnqueueError, Enqueued, NewJob, Outcome, enqueue, enqueue_many};
use serde_json::{Value, json};

use super::rig::{Desk, TestDb, claim_one, count, job, numbered, put, row, sql, until_state};

fn keyed(key: &str) -> NewJob {
    NewJob {
        key: Some(key.to_owned()),
        ..job("work")
    }
}

fn carrying(payload: Value) -> NewJob {
    NewJob {
        payload,
        ..job("work")
    }
}

#[tokio::test]
async fn a_job_goes_away_with_the_transaction_that_caused_it() {
    let db = TestDb::new().await;
    let mut tx = db.pool.begin().await.unwrap();
    enqueue(&mut tx, job("work")).await.unwrap();
    enqueue_many(&mut tx, &[job("work"), job("work")])
        .await
        .unwrap();
    tx.rollback().await.unwrap();
    assert_eq!(count(&db, "SELECT count(*) FROM iit_jobs").await, 0);

    let mut tx = db.pool.begin().await.unwrap();
    let id = enqueue(&mut tx, job("work")).await.unwrap().id();
    tx.commit().await.unwrap();
    assert_eq!(row(&db, id).await.state, "available");
}

#[tokio::test]
async fn a_key_stands_once_while_its_job_is_unfinished_and_is_free_after() {
    let db = TestDb::new().await;
    let first = put(&db, keyed("a")).await;
    let mut conn = db.pool.acquire().await.unwrap();
    let again = enqueue(&mut conn, keyed("a")).await.unwrap();
    assert_eq!(again, Enqueued::Duplicate(first), "while it waits");
    let claimed = claim_one(&db).await;
    let again = enqueue(&mut conn, keyed("a")).await.unwrap();
    assert_eq!(again, Enqueued::Duplicate(first), "while it runs");
    let mut other_kind = keyed("a");
    other_kind.kind = "other work";
    assert!(matches!(
        enqueue(&mut conn, other_kind).await.unwrap(),
        Enqueued::New(_)
    ));

    Desk::of(&db).done(&claimed).await.unwrap();
    let again = enqueue(&mut conn, keyed("a")).await.unwrap();
    assert!(
        matches!(again, Enqueued::New(id) if id > first),
        "{again:?}"
    );
}

#[tokio::test]
async fn of_two_transactions_with_one_key_the_second_waits_and_finds_a_duplicate() {
    let db = TestDb::new().await;
    let mut first = db.pool.begin().await.unwrap();
    let id = enqueue(&mut first, keyed("a")).await.unwrap().id();
    let pool = db.pool.clone();
    let second = tokio::spawn(async move {
        let mut tx = pool.begin().await.unwrap();
        let enqueued = enqueue(&mut tx, keyed("a")).await.unwrap();
        tx.commit().await.unwrap();
        enqueued
    });
    super::rig::eventually("the second waits for the first", async || {
        count(
            &db,
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
        )
        .await
            == 1
    })
    .await;
    first.commit().await.unwrap();
    assert_eq!(second.await.unwrap(), Enqueued::Duplicate(id));
}

#[tokio::test]
async fn a_dead_job_does_not_hold_its_key() {
    let db = TestDb::new().await;
    let first = put(&db, keyed("a")).await;
    let claimed = claim_one(&db).await;
    let dead = Outcome::Dead("no".to_owned());
    Desk::of(&db).settle(&claimed.lease, dead).await.unwrap();
    until_state(&db, first, "dead").await;
    put(&db, keyed("a")).await;
}

#[tokio::test]
async fn payloads_that_are_too_large_are_refused_by_their_stored_size() {
    let db = TestDb::new().await;
    let mut conn = db.pool.acquire().await.unwrap();
    // As stored: `{"text": "…"}`.
    let fits = carrying(json!({ "text": "x".repeat(8192 - 12) }));
    enqueue(&mut conn, fits).await.unwrap();
    let one_more = carrying(json!({ "text": "x".repeat(8192 - 11) }));
    let error = enqueue(&mut conn, one_more).await.unwrap_err();
    assert!(
        matches!(
            error,
            EnqueueError::TooLarge {
                kind: "work",
                bytes: 8193
            }
        ),
        "{error}"
    );
    // Small as we write it, too large as Postgres does, with a space after each comma.
    let many = carrying(json!(vec![1; 3000]));
    let error = enqueue(&mut conn, many.clone()).await.unwrap_err();
    assert!(matches!(error, EnqueueError::TooLarge { .. }), "{error}");
    let error = enqueue_many(&mut conn, &[job("work"), many])
        .await
        .unwrap_err();
    assert!(matches!(error, EnqueueError::TooLarge { .. }), "{error}");
    assert_eq!(count(&db, "SELECT count(*) FROM iit_jobs").await, 1);
}

#[tokio::test]
async fn nul_is_refused_wherever_it_stands_and_a_written_out_escape_is_not() {
    let db = TestDb::new().await;
    let mut conn = db.pool.acquire().await.unwrap();
    for payload in [
        json!({ "id": "a\u{0}b" }),
        json!({ "a\u{0}": 1 }),
        json!([[{ "deep": ["\u{0}"] }]]),
    ] {
        let error = enqueue(&mut conn, carrying(payload)).await.unwrap_err();
        assert!(
            matches!(error, EnqueueError::Nul { kind: "work" }),
            "{error}"
        );
    }
    let spelled = json!({ "text": r"C:\u0000" });
    let id = enqueue(&mut conn, carrying(spelled.clone()))
        .await
        .unwrap()
        .id();
    let claimed = claim_one(&db).await;
    assert_eq!((claimed.lease.job, claimed.payload), (id, spelled));
}

#[tokio::test]
async fn many_jobs_keep_their_order_and_lose_their_duplicates() {
    let db = TestDb::new().await;
    put(&db, keyed("standing")).await;
    let mut jobs: Vec<NewJob> = (0..500).map(|n| numbered("work", n)).collect();
    jobs[7].key = Some("standing".to_owned());
    jobs[8].key = Some("twice".to_owned());
    jobs[9].key = Some("twice".to_owned());
    let mut conn = db.pool.acquire().await.unwrap();
    assert_eq!(enqueue_many(&mut conn, &jobs).await.unwrap(), 498);
    let stored: Vec<i64> = sqlx::query_scalar(
        "SELECT (payload->>'n')::int8 FROM iit_jobs WHERE payload ? 'n' ORDER BY id",
    )
    .fetch_all(&mut *conn)
    .await
    .unwrap();
    let expected: Vec<i64> = (0..500).filter(|n| ![7, 9].contains(n)).collect();
    assert_eq!(stored, expected);
    assert_eq!(enqueue_many(&mut conn, &[]).await.unwrap(), 0);
}

#[tokio::test]
async fn a_delay_counts_from_the_clock_of_the_database() {
    let db = TestDb::new().await;
    let delay = Duration::from_secs(3600);
    let id = put(&db, job("work").after(delay)).await;
    assert_eq!(
        count(
            &db,
            "SELECT EXTRACT(EPOCH FROM run_at - created_at)::int8 FROM iit_jobs"
        )
        .await,
        3600
    );
    let due_in = row(&db, id).await.due_in;
    assert!((3590.0..=3600.0).contains(&due_in), "{due_in}");
    sql(&db, "DELETE FROM iit_jobs").await;
}
