//! A worker process is frozen past its leases and thaws when others have done its work.

use nix::sys::signal::Signal;
use sqlx::{Connection, PgConnection};

use super::{
    program::{
        Gate, RECORDS, Study, assert_nothing_lost_or_repeated, attempts_of_step, final_rows,
        until_batches_done, until_waiting,
    },
    rig::{TestDb, eventually},
};

#[tokio::test]
async fn a_worker_frozen_within_a_settlement_finds_it_undone_and_goes_on() {
    let db = TestDb::new().await;
    let study = Study::apply(&db);
    let gate = Gate::at_step(&db, 2).await;
    study.request_qc();
    let frozen = study.worker("edc,llm");
    until_waiting(&db, "advisory", RECORDS).await;
    frozen.signal(Signal::SIGSTOP);
    // The rows go in, but nobody is there to commit them.
    gate.open().await;
    let other = study.worker("edc,llm");
    until_batches_done(&db, 1).await;
    assert_nothing_lost_or_repeated(&db, 1).await;
    assert_eq!(attempts_of_step(&db, 2).await, [2, 2, 2]);
    other.stop().await;

    let before = final_rows(&db).await;
    frozen.signal(Signal::SIGCONT);
    // Thawed, it is the only worker there is.
    study.request_qc();
    until_batches_done(&db, 2).await;
    frozen.stop().await;
    let after = final_rows(&db).await;
    let changed: Vec<_> = before.iter().filter(|row| !after.contains(row)).collect();
    assert!(changed.is_empty(), "{changed:#?}");
    assert_nothing_lost_or_repeated(&db, 2).await;
}

#[tokio::test]
async fn a_worker_frozen_before_its_settlement_settles_too_late_and_changes_nothing() {
    let db = TestDb::new().await;
    let study = Study::apply(&db);
    study.request_qc();
    let pages = study.worker("edc");
    eventually("the page is done", async || {
        super::rig::count(
            &db,
            "SELECT count(*) FROM iit_jobs WHERE state = 'available' AND queue = 'llm'",
        )
        .await
            == RECORDS
    })
    .await;
    pages.stop().await;
    // The step's job has read its run, and now waits for the project: what it goes on with is stale.
    let mut lock = PgConnection::connect(&db.url).await.unwrap();
    sqlx::raw_sql("BEGIN; LOCK TABLE iit_schema.iit_projects IN ACCESS EXCLUSIVE MODE")
        .execute(&mut lock)
        .await
        .unwrap();
    let frozen = study.worker("llm");
    until_waiting(&db, "relation", RECORDS).await;
    frozen.signal(Signal::SIGSTOP);
    lock.close().await.unwrap();
    let other = study.worker("edc,llm");
    until_batches_done(&db, 1).await;
    other.stop().await;
    assert_nothing_lost_or_repeated(&db, 1).await;
    assert_eq!(attempts_of_step(&db, 1).await, [2, 2, 2]);

    let before = final_rows(&db).await;
    frozen.signal(Signal::SIGCONT);
    // Its orderly end waits for everything it has in hand.
    frozen.stop().await;
    assert_eq!(final_rows(&db).await, before);
}
