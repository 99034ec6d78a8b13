//! A firing in the running program: it starts one check of the whole project, once, and says honestly
//! when it does not.

use serde_json::json;

use super::{count, due_since, firings, nightly, round_at, schedule, tick_in};
use crate::support::app::{TestApp, eventually};
use crate::support::study::one_node;

#[tokio::test]
async fn at_its_time_a_scheduled_skill_checks_the_whole_project_once() {
    let study = nightly(&json!({}));
    study.write_skill(
        "other",
        &one_node(&[crate::support::study::rule(
            "OT-1",
            "sex",
            json!({ "in": [{ "var": "sex" }, ["1", "2"]] }),
            "性别",
        )]),
    );
    let app = TestApp::with(&study).await;
    due_since(&app.db.pool, "2026-12-01T19:00:00Z").await;

    let early = tick_in(&app, "2026-12-01T18:59:59Z").await;
    assert_eq!((early.fired, early.missed), (0, 0));
    assert_eq!(count(&app.db.pool, "iit_batches").await, 0);

    let due = tick_in(&app, "2026-12-01T19:00:00Z").await;
    assert_eq!((due.fired, due.missed), (1, 0));
    let line = schedule(&app.db.pool).await;
    assert_eq!(line.next_fire_at, Some(super::at("2026-12-02T19:00:00Z")));
    let last = line.last.unwrap();
    assert_eq!(
        (last.state.as_str(), last.batch_state.as_deref(), last.late),
        ("started", Some("done"), false)
    );
    let asked: (String, String, Option<serde_json::Value>, i32) =
        sqlx::query_as("SELECT requested_by, skill_type, records, done FROM iit_batches")
            .fetch_one(&app.db.pool)
            .await
            .unwrap();
    assert_eq!(
        asked,
        ("cron".to_owned(), "eligibility".to_owned(), None, 2)
    );
    // Only the scheduled skill ran, and its findings stand in the ledger.
    assert_eq!(
        count(
            &app.db.pool,
            "iit_task_run WHERE skill_type <> 'eligibility'"
        )
        .await,
        0
    );
    assert_eq!(app.ledger("lung", "status=open").await.len(), 1);

    // The same moment again, and a clock that was set back, start nothing.
    for now in ["2026-12-01T19:00:00Z", "2026-12-01T12:00:00Z"] {
        let again = tick_in(&app, now).await;
        assert_eq!((again.fired, again.missed), (0, 0), "{now}");
    }
    tick_in(&app, "2026-12-02T19:00:30Z").await;
    assert_eq!(
        firings(&app.db.pool).await,
        ["12-02 03:00 started", "12-03 03:00 started"]
    );
    assert_eq!(count(&app.db.pool, "iit_batches").await, 2);
    assert_eq!(
        app.wecom.messages().len(),
        0,
        "nobody is told what went well"
    );
    app.stop().await;
}

#[tokio::test]
async fn a_firing_whose_job_runs_again_starts_no_second_batch() {
    let app = TestApp::with(&nightly(&json!({}))).await;
    due_since(&app.db.pool, "2026-12-01T19:00:00Z").await;
    tick_in(&app, "2026-12-01T19:00:00Z").await;
    // As after a worker that was swept when its settlement had been committed.
    let again = sqlx::query(
        "UPDATE iit_jobs SET state = 'available', finished_at = NULL WHERE kind = 'cron_skill'",
    )
    .execute(&app.db.pool)
    .await
    .unwrap();
    assert_eq!(again.rows_affected(), 1);
    app.settled_at_once().await;
    assert_eq!(count(&app.db.pool, "iit_batches").await, 1);
    app.stop().await;
}

/// A batch that the last firing started, and that is not finished.
async fn leave_running(app: &TestApp) {
    let left = sqlx::query("UPDATE iit_batches SET state = 'running', finished_at = NULL")
        .execute(&app.db.pool)
        .await
        .unwrap();
    assert!(left.rows_affected() >= 1);
}

#[tokio::test]
async fn while_the_last_check_runs_a_firing_is_skipped_and_the_second_in_a_row_is_told() {
    let app = TestApp::with(&nightly(&json!({}))).await;
    due_since(&app.db.pool, "2026-12-01T19:00:00Z").await;
    tick_in(&app, "2026-12-01T19:00:00Z").await;
    leave_running(&app).await;
    tick_in(&app, "2026-12-02T19:00:00Z").await;
    assert_eq!(app.wecom.messages().len(), 0, "once may happen");
    for night in ["2026-12-03T19:00:00Z", "2026-12-04T19:00:00Z"] {
        tick_in(&app, night).await;
    }
    assert_eq!(
        firings(&app.db.pool).await,
        [
            "12-02 03:00 started",
            "12-03 03:00 skipped",
            "12-04 03:00 skipped",
            "12-05 03:00 skipped"
        ]
    );
    assert_eq!(count(&app.db.pool, "iit_batches").await, 1);
    // To the coordinator, and not again every night.
    let messages = app.wecom.messages();
    assert_eq!(messages.len(), 1);
    assert_eq!(messages[0].to, ["LiSi"]);
    insta::assert_snapshot!(messages[0].content, @"【定时质控】研究 lung · 入排核查：上一次检查一直没有结束，已连续跳过。请联系管理员查看，或放宽定时。");

    sqlx::query("UPDATE iit_batches SET state = 'done', finished_at = now()")
        .execute(&app.db.pool)
        .await
        .unwrap();
    tick_in(&app, "2026-12-05T19:00:00Z").await;
    assert_eq!(
        firings(&app.db.pool).await.last().unwrap(),
        "12-06 03:00 started"
    );
    app.stop().await;
}

#[tokio::test]
async fn times_caught_up_with_one_by_one_wait_for_each_other() {
    let app = TestApp::with(&nightly(
        &json!({ "catchup": "all", "catchup_window": "7d" }),
    ))
    .await;
    due_since(&app.db.pool, "2026-12-01T19:00:00Z").await;
    let ticked = round_at(&app.db.pool, app.wiring.wake(), "2026-12-04T01:00:00Z").await;
    assert_eq!((ticked.fired, ticked.missed), (3, 0));
    eventually("three checks, one after the other", async || {
        // Without waiting for the time between two looks.
        sqlx::query("UPDATE iit_jobs SET run_at = now() WHERE state = 'available'")
            .execute(&app.db.pool)
            .await
            .unwrap();
        app.wiring.wake().queues(["edc".to_owned()]);
        (count(&app.db.pool, "iit_batches WHERE state = 'done'").await == 3).then_some(())
    })
    .await;
    app.settled().await;
    assert_eq!(
        firings(&app.db.pool).await,
        [
            "12-02 03:00 started late",
            "12-03 03:00 started late",
            "12-04 03:00 started late"
        ]
    );
    // No two of them at once.
    let overlapping: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM iit_batches a JOIN iit_batches b ON a.id < b.id WHERE b.started_at < a.finished_at",
    )
    .fetch_one(&app.db.pool)
    .await
    .unwrap();
    assert_eq!(overlapping, 0);
    app.stop().await;
}

#[tokio::test]
async fn a_skill_switched_off_after_its_time_came_is_not_run() {
    let study = nightly(&json!({}));
    let app = TestApp::with(&study).await;
    due_since(&app.db.pool, "2026-12-01T19:00:00Z").await;
    // The job is taken only after the skill is off.
    sqlx::query("CREATE FUNCTION later() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.run_at := now() + interval '1 hour'; RETURN NEW; END $$")
        .execute(&app.db.pool).await.unwrap();
    sqlx::query(
        "CREATE TRIGGER later BEFORE INSERT ON iit_jobs FOR EACH ROW EXECUTE FUNCTION later()",
    )
    .execute(&app.db.pool)
    .await
    .unwrap();
    round_at(&app.db.pool, app.wiring.wake(), "2026-12-01T19:00:00Z").await;
    sqlx::query("UPDATE iit_skills SET is_active = false")
        .execute(&app.db.pool)
        .await
        .unwrap();
    app.settled_at_once().await;
    assert_eq!(firings(&app.db.pool).await, ["12-02 03:00 cancelled"]);
    assert_eq!(count(&app.db.pool, "iit_batches").await, 0);
    assert_eq!(
        schedule(&app.db.pool).await.disabled_by.as_deref(),
        Some("inactive")
    );
    app.stop().await;
}

#[tokio::test]
async fn a_check_that_could_not_be_made_is_told_to_the_coordinators() {
    let study = nightly(&json!({}));
    let app = TestApp::with(&study).await;
    study.break_records("\"");
    due_since(&app.db.pool, "2026-12-01T19:00:00Z").await;
    round_at(&app.db.pool, app.wiring.wake(), "2026-12-01T19:00:00Z").await;
    app.settled_at_once().await;
    assert_eq!(firings(&app.db.pool).await, ["12-02 03:00 started"]);
    assert_eq!(
        schedule(&app.db.pool)
            .await
            .last
            .unwrap()
            .batch_state
            .as_deref(),
        Some("failed")
    );
    let messages = app.wecom.messages();
    assert_eq!(messages.len(), 1);
    assert_eq!(messages[0].to, ["LiSi"]);
    let batch: uuid::Uuid = sqlx::query_scalar("SELECT id FROM iit_batches")
        .fetch_one(&app.db.pool)
        .await
        .unwrap();
    insta::assert_snapshot!(messages[0].content.replace(&batch.to_string(), "[id]"), @"【定时质控】研究 lung · 入排核查：2026-12-02 03:00 没有做成质控：数据源或技能有问题，详情见批次记录。本次未检查（批次 [id]）。");
    app.stop_with_dead(&["batch_qc"]).await;
}

#[tokio::test]
async fn a_firing_that_dies_is_told_in_its_burial_and_an_operator_can_try_it_again() {
    let app = TestApp::with(&nightly(&json!({}))).await;
    due_since(&app.db.pool, "2026-12-01T19:00:00Z").await;
    // Data the database refuses is refused again next time: the job dies at its first attempt.
    sqlx::query("ALTER TABLE iit_batches ADD CONSTRAINT none_today CHECK (requested_by <> 'cron')")
        .execute(&app.db.pool)
        .await
        .unwrap();
    tick_in(&app, "2026-12-01T19:00:00Z").await;
    assert_eq!(firings(&app.db.pool).await, ["12-02 03:00 failed"]);
    let job = schedule(&app.db.pool).await.last.unwrap().job.unwrap();
    let messages = app.wecom.messages();
    assert_eq!(messages.len(), 1);
    assert_eq!(messages[0].to, ["LiSi"]);
    insta::assert_snapshot!(messages[0].content.replace(&format!("任务 {job}"), "任务 [job]"), @"【定时质控】研究 lung · 入排核查：2026-12-02 03:00 没有启动成功，本次未检查。请联系管理员（任务 [job]，原因见 iit queue dead）。");

    sqlx::query("ALTER TABLE iit_batches DROP CONSTRAINT none_today")
        .execute(&app.db.pool)
        .await
        .unwrap();
    let iit = crate::support::binary::Iit::on(&app.db);
    iit.ok(&["queue", "retry", &job.to_string()]).await;
    app.settled().await;
    assert_eq!(firings(&app.db.pool).await, ["12-02 03:00 started"]);
    assert_eq!(
        schedule(&app.db.pool)
            .await
            .last
            .unwrap()
            .batch_state
            .as_deref(),
        Some("done")
    );
    app.stop().await;
}
