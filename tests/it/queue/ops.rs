//! What operators see of the queue, and their one lever: try a dead job again.

use std::time::Duration;

use iit_manager::queue::{
    NewJob, Outcome,
    depth::{self, Depth},
};
use serde_json::Value;

use super::{
    program,
    rig::{Desk, TestDb, claim_one, count, job, put, row, sql},
};

fn keyed(key: &str) -> NewJob {
    NewJob {
        key: Some(key.to_owned()),
        ..job("work")
    }
}

/// Puts a job and has it given up.
async fn put_dead(db: &TestDb, new: NewJob, why: &str) -> i64 {
    let id = put(db, new).await;
    let claimed = claim_one(db).await;
    assert_eq!(claimed.lease.job, id);
    let dead = Outcome::Dead(why.to_owned());
    Desk::of(db).settle(&claimed.lease, dead).await.unwrap();
    id
}

/// One of each state: dead, running, due, and due later; on another queue as well.
async fn a_busy_queue(db: &TestDb) -> i64 {
    let dead = put_dead(db, job("work"), "EDC 拒绝访问").await;
    put(db, job("work")).await;
    claim_one(db).await;
    for _ in 0..2 {
        put(db, job("work")).await;
    }
    put(db, job("work").after(Duration::from_secs(3600))).await;
    put(db, job("step").on_queue("llm")).await;
    sql(
        db,
        "UPDATE iit_jobs SET run_at = run_at - interval '90 s' WHERE run_at <= now()",
    )
    .await;
    dead
}

#[tokio::test]
async fn depth_counts_by_queue_and_state_with_the_age_of_the_oldest() {
    let db = TestDb::new().await;
    let mut conn = db.pool.acquire().await.unwrap();
    assert_eq!(depth::depth(&mut conn).await.unwrap(), []);
    a_busy_queue(&db).await;
    let depths = depth::depth(&mut conn).await.unwrap();
    let seen: Vec<_> = depths
        .iter()
        .map(
            |Depth {
                 queue,
                 state,
                 jobs,
                 oldest_age_s,
             }| {
                let age = oldest_age_s.map(|s| (90.0..120.0).contains(&s));
                (queue.as_str(), state.as_str(), *jobs, age)
            },
        )
        .collect();
    assert_eq!(
        seen,
        [
            ("edc", "available", 2, Some(true)),
            ("edc", "dead", 1, Some(true)),
            ("edc", "running", 1, Some(true)),
            ("edc", "scheduled", 1, None),
            ("llm", "available", 1, Some(true)),
        ]
    );
}

#[tokio::test]
async fn dead_jobs_are_listed_newest_first_with_their_reasons() {
    let db = TestDb::new().await;
    let first = put_dead(&db, job("work"), "first").await;
    let second = put_dead(&db, job("work"), "second").await;
    let mut conn = db.pool.acquire().await.unwrap();
    let dead = depth::dead(&mut conn, None, None, 10).await.unwrap();
    let listed: Vec<_> = dead.iter().map(|d| (d.id, d.reason.as_deref())).collect();
    assert_eq!(listed, [(second, Some("second")), (first, Some("first"))]);
    assert_eq!(
        depth::dead(&mut conn, Some("edc"), None, 1)
            .await
            .unwrap()
            .len(),
        1
    );
    assert_eq!(
        depth::dead(&mut conn, Some("llm"), None, 9).await.unwrap(),
        []
    );
}

#[tokio::test]
async fn a_retried_job_has_all_its_attempts_again_and_only_dead_jobs_are_retried() {
    let db = TestDb::new().await;
    let dead = put_dead(&db, job("work"), "no").await;
    sql(&db, "UPDATE iit_jobs SET crashes = 3").await;
    let waiting = put(&db, job("work")).await;
    let mut conn = db.pool.acquire().await.unwrap();
    let retried = depth::retry(&mut conn, &[dead, waiting, 999]).await;
    assert_eq!(retried.unwrap(), [("edc".to_owned(), dead)]);
    let again = row(&db, dead).await;
    assert_eq!(
        (again.state.as_str(), again.attempt, again.crashes),
        ("available", 0, 0)
    );
    assert!(again.due_in <= 0.0);
    assert_eq!(claim_one(&db).await.lease.attempt, 1);
    assert_eq!(depth::retry(&mut conn, &[dead]).await.unwrap(), []);
}

#[tokio::test]
async fn a_dead_job_whose_work_stands_in_the_queue_again_stays_dead() {
    let db = TestDb::new().await;
    let standing = put_dead(&db, keyed("a"), "no").await;
    let older = put_dead(&db, keyed("b"), "no").await;
    let newer = put_dead(&db, keyed("b"), "no").await;
    put(&db, keyed("a")).await;
    let mut conn = db.pool.acquire().await.unwrap();
    let retried = depth::retry(&mut conn, &[standing, older, newer])
        .await
        .unwrap();
    assert_eq!(
        retried,
        [("edc".to_owned(), newer)],
        "the newest of one key"
    );
    assert_eq!(row(&db, standing).await.state, "dead");
    assert_eq!(row(&db, older).await.state, "dead");
}

/// Numbers that differ from run to run.
fn settled_text(text: &str) -> String {
    let text = replaced(text, r"\b9\d\.\d\b", "90.0");
    replaced(
        &text,
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d",
        "2026-01-01 00:00:00",
    )
}

fn replaced(text: &str, pattern: &str, with: &str) -> String {
    regex::Regex::new(pattern)
        .unwrap()
        .replace_all(text, with)
        .into_owned()
}

#[tokio::test]
async fn the_commands_show_tables_to_people_and_arrays_to_programs() {
    let db = TestDb::new().await;
    let dead = a_busy_queue(&db).await;
    let output = program::run(&db, &["queue", "depth"]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    insta::assert_snapshot!("queue_depth", settled_text(&text));

    let output = program::run(&db, &["queue", "depth", "--format", "json"]);
    let rows: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(rows.len(), 5);
    assert_eq!(rows[0]["queue"], "edc");
    assert_eq!(rows[0]["jobs"], 2);
    assert!(rows[3]["oldest_age_s"].is_null());

    let output = program::run(&db, &["queue", "dead"]);
    let text = String::from_utf8(output.stdout).unwrap();
    insta::assert_snapshot!("queue_dead", settled_text(&text));
    let output = program::run(
        &db,
        &["queue", "dead", "--format", "json", "--queue", "edc"],
    );
    let rows: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0]["id"], dead);
    assert_eq!(rows[0]["reason"], "EDC 拒绝访问");
    let output = program::run(
        &db,
        &["queue", "dead", "--format", "json", "--queue", "llm"],
    );
    assert_eq!(
        serde_json::from_slice::<Vec<Value>>(&output.stdout).unwrap(),
        [] as [Value; 0]
    );
}

#[tokio::test]
async fn the_retry_command_says_what_it_could_not_retry_and_leaves_a_trace() {
    let db = TestDb::new().await;
    let dead = put_dead(&db, job("work"), "no").await;
    let running = put(&db, job("work")).await;
    claim_one(&db).await;
    let ids = [dead.to_string(), running.to_string()];
    let args = ["queue", "retry", "--format", "json", &ids[0], &ids[1]];
    let output = program::run(&db, &args);
    assert_eq!(
        output.status.code(),
        Some(1),
        "one of the two could not be retried"
    );
    assert_eq!(
        serde_json::from_slice::<Vec<i64>>(&output.stdout).unwrap(),
        [dead]
    );
    insta::assert_snapshot!(String::from_utf8(output.stderr).unwrap(), @"iit: 任务 2 不是可重试的死任务 (not dead, or its run, batch or message has already gone on without it)");
    assert_eq!(row(&db, dead).await.state, "available");
    assert_eq!(row(&db, running).await.state, "running");
    assert_eq!(
        count(
            &db,
            "SELECT count(*) FROM iit_audit_log WHERE action = 'job.retried'"
        )
        .await,
        1
    );
    let output = program::run(&db, &["queue", "retry"]);
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    insta::assert_snapshot!(text, @"已重试 0 个任务 · 0 jobs retried");
    let output = program::run(&db, &["queue", "retry", "not-a-number"]);
    assert_eq!(output.status.code(), Some(2));
}
