//! The long-lived processes from outside: how they stop, and what they show meanwhile.

use nix::sys::signal::Signal;
use serde_json::Value;

use super::{
    program::{
        Gate, RECORDS, Study, assert_nothing_lost_or_repeated, attempts_of_step,
        until_batches_done, until_waiting,
    },
    rig::{TestDb, eventually},
};

/// An address that nobody listens on.
fn free_address() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

fn client() -> reqwest::Client {
    // An error means that a provider is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().build().unwrap()
}

/// Status and body, once somebody answers.
async fn get(http: &reqwest::Client, address: &str, path: &str) -> Option<(u16, String)> {
    let answer = http
        .get(format!("http://{address}{path}"))
        .send()
        .await
        .ok()?;
    Some((answer.status().as_u16(), answer.text().await.ok()?))
}

async fn until_ready(http: &reqwest::Client, address: &str) {
    eventually("the process is ready", async || {
        matches!(get(http, address, "/readyz").await, Some((200, _)))
    })
    .await;
}

#[tokio::test]
async fn a_process_that_drains_says_so_and_serves_until_its_last_job_has_ended() {
    let db = TestDb::new().await;
    let study = Study::apply(&db);
    let gate = Gate::at_step(&db, 2).await;
    let (http, address) = (client(), free_address());
    let all = study.start(&["all"], &[("IIT_BIND", &address)]);
    until_ready(&http, &address).await;
    study.request_qc();
    until_waiting(&db, "advisory", RECORDS).await;

    all.signal(Signal::SIGTERM);
    let mut body = String::new();
    eventually("it is not ready", async || {
        let (status, said) = get(&http, &address, "/readyz").await.unwrap();
        body = said;
        status == 503
    })
    .await;
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(body["faults"][0], "正在停止 (draining)");
    // Longer than it lingers for load balancers: the jobs are what it waits for.
    let asked = std::time::Instant::now();
    while asked.elapsed().as_secs() < 3 {
        let (status, _) = get(&http, &address, "/healthz").await.unwrap();
        assert_eq!(status, 200);
        tokio::task::yield_now().await;
    }
    gate.open().await;
    all.ended().await;
    assert_eq!(
        attempts_of_step(&db, 2).await,
        [1, 1, 1],
        "nothing was cut off"
    );
    assert!(get(&http, &address, "/healthz").await.is_none());

    let next = study.worker("edc,llm");
    until_batches_done(&db, 1).await;
    next.stop().await;
    assert_nothing_lost_or_repeated(&db, 1).await;
}

#[tokio::test]
async fn a_web_process_stays_reachable_for_a_moment_while_it_is_not_ready() {
    let db = TestDb::new().await;
    let study = Study::apply(&db);
    let (http, address) = (client(), free_address());
    let web = study.start(&["web"], &[("IIT_BIND", &address)]);
    until_ready(&http, &address).await;
    web.signal(Signal::SIGTERM);
    eventually("it is not ready", async || {
        matches!(get(&http, &address, "/readyz").await, Some((503, _)))
    })
    .await;
    web.ended().await;
}

#[tokio::test]
async fn a_worker_shows_health_and_metrics_where_it_is_told_to_and_nothing_else() {
    let db = TestDb::new().await;
    let study = Study::apply(&db);
    let (http, address) = (client(), free_address());
    let settings = [
        ("IIT_METRICS_BIND", address.as_str()),
        ("IIT_WORKER_CONCURRENCY", "3"),
    ];
    let worker = study.start(&["worker", "--queues", "edc,llm"], &settings);
    until_ready(&http, &address).await;
    study.request_qc();
    until_batches_done(&db, 1).await;
    let (status, page) = get(&http, &address, "/metrics").await.unwrap();
    assert_eq!(status, 200);
    for line in [
        "iit_worker_slots{state=\"free\"} 6",
        "iit_worker_slots{state=\"busy\"} 0",
        "iit_job_attempts_total{kind=\"batch_qc\",outcome=\"done\"} 2",
        "iit_lease_lost_total 0",
        "iit_jobs_rescued_total{reason=\"blamed\"} 0",
        "iit_queue_paused{queue=\"edc\"} 0",
        "iit_jobs{queue=\"vision\",state=\"dead\"} 0",
        "# TYPE iit_job_wait_seconds histogram",
        "# TYPE iit_job_run_seconds histogram",
        "iit_job_run_seconds_count{queue=\"edc\",kind=\"batch_qc\",outcome=\"done\"} 2",
    ] {
        assert!(page.lines().any(|l| l == line), "no `{line}` in {page}");
    }
    assert!(
        page.contains("iit_table_dead_tuples{table=\"iit_jobs\"} "),
        "{page}"
    );
    assert!(page.contains("iit_oldest_xact_age_seconds "), "{page}");
    assert!(
        page.contains("iit_job_wait_seconds_bucket{queue=\"edc\",kind=\"batch_qc\",le=\"0.25\"} "),
        "{page}"
    );
    let (status, _) = get(&http, &address, "/api/v1/queues").await.unwrap();
    assert_eq!(status, 404, "no API here");
    worker.stop().await;
}
