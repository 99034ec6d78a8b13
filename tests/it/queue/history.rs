//! Finished jobs leave the hot table; what is unfinished or dead stays, whatever its age.

use std::time::Duration;

use iit_manager::queue::history::{forget, retire};

use super::rig::{TestDb, count, sql};

const HOUR: Duration = Duration::from_secs(3600);

/// A job of each state, `n` times, finished two hours ago where it is.
async fn fill(db: &TestDb, n: i32) {
    let insert = format!(
        "INSERT INTO iit_jobs (queue, kind, payload, state, attempt, last_error, created_at, finished_at,
                               lease_token, lease_expires_at, worker)
         SELECT 'edc', 'work', jsonb_build_object('n', n), s.state, 1, 'once failed', now() - interval '3 hours',
                CASE WHEN s.state IN ('done', 'cancelled', 'dead') THEN now() - interval '2 hours' END,
                CASE WHEN s.state = 'running' THEN gen_random_uuid() END,
                CASE WHEN s.state = 'running' THEN now() + interval '1 hour' END,
                CASE WHEN s.state = 'running' THEN gen_random_uuid() END
         FROM generate_series(1, {n}) AS n,
              unnest(ARRAY['available', 'running', 'done', 'cancelled', 'dead']) AS s(state)"
    );
    sqlx::query(sqlx::AssertSqlSafe(insert))
        .execute(&db.pool)
        .await
        .unwrap();
}

/// One whole walk; how many were moved, and in how many windows.
async fn walk(db: &TestDb) -> (i64, usize) {
    let (mut at, mut moved, mut windows) = (0, 0, 0);
    loop {
        let window = retire(&db.pool, at, HOUR).await.unwrap();
        moved += window.moved;
        windows += 1;
        match window.next {
            Some(next) => at = next,
            None => return (moved, windows),
        }
    }
}

#[tokio::test]
async fn done_and_cancelled_jobs_move_whole_and_everything_else_stays() {
    let db = TestDb::new().await;
    fill(&db, 500).await;
    sql(
        &db,
        "UPDATE iit_jobs SET finished_at = now() WHERE id IN (SELECT id FROM iit_jobs WHERE state = 'done' LIMIT 2)",
    )
    .await;
    assert_eq!(
        walk(&db).await,
        (998, 3),
        "all but the two that just finished"
    );
    assert_eq!(
        count(
            &db,
            "SELECT count(*) FROM iit_jobs WHERE state IN ('available', 'running', 'dead')"
        )
        .await,
        1500
    );
    assert_eq!(
        count(&db, "SELECT count(*) FROM iit_job_history WHERE last_error = 'once failed' AND attempt = 1 AND payload ? 'n'").await,
        998
    );
    assert_eq!(
        count(
            &db,
            "SELECT count(*) FROM iit_jobs JOIN iit_job_history USING (id)"
        )
        .await,
        0
    );
    assert_eq!(walk(&db).await.0, 0);
}

#[tokio::test]
async fn processes_that_walk_at_once_move_each_job_once() {
    let db = TestDb::new().await;
    fill(&db, 600).await;
    let walks = futures::future::join_all((0..4).map(|_| walk(&db))).await;
    let moved: i64 = walks.into_iter().map(|(moved, _)| moved).sum();
    assert_eq!(moved, 1200);
    assert_eq!(
        count(&db, "SELECT count(*) FROM iit_job_history").await,
        1200
    );
}

#[tokio::test]
async fn the_history_is_forgotten_after_its_time_in_small_batches() {
    let db = TestDb::new().await;
    fill(&db, 1500).await;
    walk(&db).await;
    assert_eq!(forget(&db.pool, 3 * HOUR).await.unwrap(), 0);
    assert_eq!(forget(&db.pool, HOUR).await.unwrap(), 2000);
    assert_eq!(forget(&db.pool, HOUR).await.unwrap(), 1000);
    assert_eq!(count(&db, "SELECT count(*) FROM iit_job_history").await, 0);
}

/// A row that somebody holds must not hold up the walk, nor the walk the claims.
#[tokio::test]
async fn a_held_row_is_passed_over() {
    let db = TestDb::new().await;
    fill(&db, 2).await;
    let mut holder = db.pool.begin().await.unwrap();
    sqlx::query("SELECT FROM iit_jobs WHERE state = 'done' ORDER BY id LIMIT 1 FOR UPDATE")
        .execute(&mut *holder)
        .await
        .unwrap();
    assert_eq!(walk(&db).await.0, 3);
    holder.rollback().await.unwrap();
    assert_eq!(walk(&db).await.0, 1);
}
