//! A worker process dies, and the server with it, while leases are held in the middle of runs.

use super::{
    program::{
        Gate, RECORDS, Study, assert_nothing_lost_or_repeated, attempts_of_step,
        until_batches_done, until_waiting,
    },
    rig::{TestCluster, TestDb, count, sql},
};

#[tokio::test]
async fn a_killed_worker_and_a_crashed_server_lose_nothing_and_repeat_nothing() {
    let cluster = TestCluster::start().await;
    let db = TestDb::on(&cluster).await;
    let study = Study::apply(&db);
    let _gate = Gate::at_step(&db, 2).await;
    study.request_qc();
    let first = study.worker("edc,llm");
    until_waiting(&db, "advisory", RECORDS).await;
    assert_eq!(
        count(&db, "SELECT count(*) FROM iit_jobs WHERE state = 'running' AND attempt = 1 AND kind = 'sop_step'").await,
        RECORDS
    );
    assert_eq!(
        count(&db, "SELECT max(step_no)::int8 FROM iit_task_run").await,
        2
    );
    // Claims are not waited for on disk; a commit that is takes them along, so that the crash finds
    // them there.
    sql(&db, "CREATE TABLE flushed ()").await;
    first.kill().await;
    cluster.restart_immediate().await;

    let second = study.worker("edc,llm");
    until_batches_done(&db, 1).await;
    second.stop().await;
    assert_nothing_lost_or_repeated(&db, 1).await;
    for step in [0, 1, 3, 4] {
        assert_eq!(attempts_of_step(&db, step).await, [1, 1, 1], "step {step}");
    }
    assert_eq!(
        attempts_of_step(&db, 2).await,
        [2, 2, 2],
        "the interrupted one"
    );
    assert_eq!(
        count(
            &db,
            "SELECT count(*) FROM iit_jobs WHERE suspect AND crashes = 0"
        )
        .await,
        RECORDS,
        "none of them was alone, so none is charged"
    );
}

#[tokio::test]
async fn a_worker_killed_while_it_settles_a_page_leaves_no_half_page() {
    let db = TestDb::new().await;
    let study = Study::apply(&db);
    let gate = Gate::at_step(&db, 0).await;
    study.request_qc();
    let first = study.worker("edc");
    until_waiting(&db, "advisory", 1).await;
    first.kill().await;
    gate.open().await;
    assert_eq!(count(&db, "SELECT count(*) FROM iit_task_run").await, 0);
    let second = study.worker("edc,llm");
    until_batches_done(&db, 1).await;
    second.stop().await;
    assert_nothing_lost_or_repeated(&db, 1).await;
    assert_eq!(attempts_of_step(&db, 0).await, [2, 2, 2]);
}
