//! What a load balancer and a monitoring system see.

use serde_json::Value;

use crate::support::app::{TestApp, eventually};
use crate::support::postgres::{TestCluster, TestDb};
use crate::support::study::{StudyFolder, Subject};
use iit_manager::boot::postgres::StopMode;
use iit_manager::types::clock::Clock;

async fn ready(app: &TestApp) -> (u16, Value) {
    let response = app.http().get(app.url("/readyz")).send().await.unwrap();
    let status = response.status().as_u16();
    (
        status,
        serde_json::from_str(&response.text().await.unwrap()).unwrap(),
    )
}

#[tokio::test]
async fn a_process_that_stops_is_not_ready_but_alive() {
    let app = TestApp::start().await;
    eventually("readiness", async || {
        (ready(&app).await.0 == 200).then_some(())
    })
    .await;
    app.readiness.drain();
    let (status, body) = ready(&app).await;
    assert_eq!(status, 503);
    assert_eq!(body["faults"], serde_json::json!(["正在停止 (draining)"]));
    let alive = app.http().get(app.url("/healthz")).send().await.unwrap();
    assert_eq!(alive.status(), 200);
    app.stop().await;
}

#[tokio::test]
async fn without_its_database_a_process_is_not_ready_and_says_why_and_recovers() {
    let cluster = TestCluster::start().await;
    let study = StudyFolder::with_eligibility("lung", [Subject::fit("P001")]);
    let app = TestApp::start_on(TestDb::on(&cluster).await, Clock::system()).await;
    app.apply(&study).await;
    cluster.take_down(StopMode::Immediate).await;
    let (status, body) = ready(&app).await;
    assert_eq!(status, 503);
    assert!(
        body["faults"].to_string().contains("数据库没有应答"),
        "{body}"
    );
    let alive = app.http().get(app.url("/healthz")).send().await.unwrap();
    assert_eq!(alive.status(), 200);
    cluster.bring_back().await;
    eventually("readiness", async || {
        (ready(&app).await.0 == 200).then_some(())
    })
    .await;
    let reply = app.ask("ZhangSan", "质控 P001").await;
    assert!(reply.contains("未发现问题"), "{reply}");
    app.stop().await;
}

#[tokio::test]
async fn metrics_show_the_depth_and_the_oldest_age_of_every_queue() {
    let study = StudyFolder::with_eligibility("lung", [Subject::fit("P001")]);
    let app = TestApp::with(&study).await;
    // Two jobs that nobody can take: due ten minutes ago, on a queue without a worker.
    sqlx::query(
        "INSERT INTO iit_jobs (queue, kind, payload, run_at, max_attempts)
         SELECT 'reports', 'weekly', '{}', now() - interval '10 minutes', 1 FROM generate_series(1, 2)",
    )
    .execute(&app.db.pool)
    .await
    .unwrap();
    let page = app.http().get(app.url("/metrics")).send().await.unwrap();
    let kind = page.headers()["content-type"].to_str().unwrap().to_owned();
    assert!(kind.starts_with("text/plain; version=0.0.4"), "{kind}");
    let page = page.text().await.unwrap();
    let value = |line: &str| -> f64 {
        let found = page.lines().find_map(|l| l.strip_prefix(line));
        found
            .unwrap_or_else(|| panic!("no {line} in {page}"))
            .trim()
            .parse()
            .unwrap()
    };
    assert_eq!(
        value("iit_jobs{queue=\"reports\",state=\"available\"} "),
        2.0
    );
    assert!(value("iit_queue_oldest_job_age_seconds{queue=\"reports\"} ") >= 600.0);
    for queue in ["chat", "llm", "edc", "vision", "deliver"] {
        assert_eq!(
            value(&format!(
                "iit_jobs{{queue=\"{queue}\",state=\"available\"}} "
            )),
            0.0
        );
        assert_eq!(
            value(&format!(
                "iit_queue_oldest_job_age_seconds{{queue=\"{queue}\"}} "
            )),
            0.0
        );
    }
    let (status, queues) = app.get("/api/v1/queues").await;
    assert_eq!(status, 200);
    let row = &queues[0];
    assert_eq!(
        [&row["queue"], &row["state"], &row["jobs"]],
        [&"reports".into(), &"available".into(), &Value::from(2)]
    );
    assert!(row["oldest_age_s"].as_f64().unwrap() >= 600.0);
    sqlx::query("DELETE FROM iit_jobs WHERE queue = 'reports'")
        .execute(&app.db.pool)
        .await
        .unwrap();
    app.stop().await;
}

#[tokio::test]
async fn a_process_whose_connections_are_all_in_use_is_not_ready() {
    let app = TestApp::start().await;
    eventually("readiness", async || {
        (ready(&app).await.0 == 200).then_some(())
    })
    .await;
    let mut taken = Vec::new();
    for _ in 0..app.db.pool.options().get_max_connections() {
        taken.push(app.db.pool.acquire().await.unwrap());
    }
    let (status, body) = ready(&app).await;
    assert_eq!(status, 503);
    assert!(body["faults"].to_string().contains("连接已用尽"), "{body}");
    drop(taken);
    eventually("readiness", async || {
        (ready(&app).await.0 == 200).then_some(())
    })
    .await;
    app.stop().await;
}

/// Alive, connected, and yet nothing is claimed: somebody holds a table that claims read.
#[tokio::test]
async fn a_process_whose_claims_stand_still_is_not_ready() {
    let app = TestApp::start().await;
    eventually("readiness", async || {
        (ready(&app).await.0 == 200).then_some(())
    })
    .await;
    let mut holder = app.db.pool.begin().await.unwrap();
    sqlx::query("LOCK TABLE iit_queues IN ACCESS EXCLUSIVE MODE")
        .execute(&mut *holder)
        .await
        .unwrap();
    let said = eventually("it is not ready", async || {
        let (status, body) = ready(&app).await;
        (status == 503).then(|| body.to_string())
    })
    .await;
    assert!(said.contains("claiming stands still"), "{said}");
    holder.rollback().await.unwrap();
    eventually("readiness", async || {
        (ready(&app).await.0 == 200).then_some(())
    })
    .await;
    app.stop().await;
}

#[tokio::test]
async fn a_process_on_an_older_schema_is_not_ready_and_on_a_newer_one_is() {
    let app = TestApp::start().await;
    let migrations = "iit_schema._sqlx_migrations";
    let newer = format!(
        "INSERT INTO {migrations} (version, description, success, checksum, execution_time) VALUES (99991231235959, 'later', true, '\\x00', 0)"
    );
    sqlx::query(sqlx::AssertSqlSafe(newer))
        .execute(&app.db.pool)
        .await
        .unwrap();
    eventually("readiness", async || {
        (ready(&app).await.0 == 200).then_some(())
    })
    .await;
    let older = format!("DELETE FROM {migrations} WHERE version = 20261130200000");
    sqlx::query(sqlx::AssertSqlSafe(older))
        .execute(&app.db.pool)
        .await
        .unwrap();
    let (status, body) = ready(&app).await;
    assert_eq!(status, 503);
    assert!(body["faults"].to_string().contains("iit migrate"), "{body}");
    app.stop().await;
}
