//! How a study stands, by its data and by our ledger; and what a snapshot costs.

use std::sync::Arc;

use iit_manager::{
    adapters::edc::RedcapFiles,
    store::{projects, reader},
    tools::{Snapshot, Snapshots},
    types::clock::Clock,
};
use serde_json::json;

use super::{Rig, five, told};
use crate::support::app::TestApp;
use crate::support::study::{StudyFolder, Subject};

#[tokio::test]
async fn totals_agree_with_the_ledger_and_with_the_data() {
    let study = StudyFolder::with_eligibility(
        "lung",
        [
            Subject::fit("P001").with("age", "16"),
            Subject::fit("P002")
                .with("age", "17")
                .with("enroll_date", "2026-04-01"),
            Subject::fit("P003").with("ecog", ""),
            Subject::fit("P004")
                .with("enroll_date", "")
                .with("sex", "2"),
        ],
    );
    let other = StudyFolder::with_eligibility("liver", [Subject::fit("Q001").with("age", "16")]);
    let app = TestApp::with(&study).await;
    app.apply(&other).await;
    app.qc("lung", None).await;
    app.qc("liver", None).await;
    let mut conn = app.db.pool.acquire().await.unwrap();
    let project = projects::get(&mut conn, "lung").await.unwrap().unwrap();
    drop(conn);
    let edc = RedcapFiles::new(study.export());
    let data = Snapshot::read(&edc, &Clock::system()).await.unwrap();
    let rig = Rig::reading(project.file, data, reader::pool(&app.db.pool));
    let mut stats = rig.ok("get_project_stats", json!({})).await;
    let ledger = app.ledger("lung", "").await;
    assert_eq!(stats.value["findings"]["unsettled"], ledger.len());
    let severe = ledger
        .iter()
        .filter(|row| row["severity"] == "error")
        .count();
    assert_eq!(
        stats.value["findings"]["unsettled_by_severity"]["error"],
        severe
    );
    assert!(stats.value["last_check"]["at"].is_string());
    stats.value["last_check"]["at"] = json!("…");
    insta::assert_json_snapshot!(told(&stats));
    app.stop().await;
}

#[tokio::test]
async fn a_database_that_is_away_makes_the_tool_unavailable_and_not_the_count_zero() {
    let refused = five().refused("get_project_stats", json!({})).await;
    insta::assert_snapshot!(refused, @"质控台账暂时无法读取，请稍后再试或联系管理员");
}

#[tokio::test]
async fn a_snapshot_is_kept_until_the_data_changes() {
    let mut study = StudyFolder::new("lung", [Subject::fit("P001"), Subject::fit("P002")]);
    let edc = RedcapFiles::new(study.export());
    let snapshots = Snapshots::default();
    let clock = Clock::system();
    let first = snapshots.current("lung", &edc, &clock).await.unwrap();
    let again = snapshots.current("lung", &edc, &clock).await.unwrap();
    assert!(Arc::ptr_eq(&first.records, &again.records));
    assert!(again.taken_at >= first.taken_at);
    study.set("P001", "age", "46");
    let changed = snapshots.current("lung", &edc, &clock).await.unwrap();
    assert_ne!(changed.fingerprint, first.fingerprint);
    let age = |snapshot: &Snapshot| {
        let record = snapshot.record("P001").unwrap();
        record
            .base_row(None)
            .unwrap()
            .get("age")
            .unwrap()
            .to_owned()
    };
    // Who holds the old one still reads what stood then.
    assert_eq!(
        (age(&first), age(&changed)),
        ("45".to_owned(), "46".to_owned())
    );
    study.remove("P002");
    let fewer = snapshots.current("lung", &edc, &clock).await.unwrap();
    assert!(fewer.record("P002").is_none() && fewer.records.len() == 1);
}
