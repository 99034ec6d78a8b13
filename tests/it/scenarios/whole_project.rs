//! "对全项目做质控": a summary, whatever the number of pages.

use crate::support::app::{TestApp, tally};
use crate::support::binary::Iit;
use crate::support::study::{StudyFolder, Subject, eligibility, reviewed_eligibility};

/// 120 subjects, which is three pages; every tenth too young, one without an age.
fn study() -> StudyFolder {
    let subjects = (1..=120).map(|no| {
        let subject = Subject::fit(&format!("P{no:03}"));
        match no {
            7 => subject.with("age", ""),
            _ if no % 10 == 0 => subject.with("age", "16"),
            _ => subject,
        }
    });
    StudyFolder::with_eligibility("lung", subjects)
}

#[tokio::test]
async fn the_whole_project_is_checked_and_the_summary_counts_what_was_found() {
    let app = TestApp::with(&study()).await;
    let id = app.says("ZhangSan", "对全项目做质控").await;
    let reply = app.wecom.wait_for_messages(1).await.remove(0).content;
    insta::assert_snapshot!(reply);
    app.settled().await;
    assert_eq!(app.wecom.messages().len(), 1);
    assert_eq!(app.count("iit_task_run WHERE status = 'done'").await, 120);
    assert_eq!(app.count("iit_task_step").await, 120);
    assert_eq!(app.count("iit_pending_actions").await, 14);
    assert_eq!(
        app.wecom_message(id).await["runs"]
            .as_array()
            .unwrap()
            .len(),
        120
    );
    let kinds: Vec<String> = sqlx::query_scalar("SELECT kind FROM iit_jobs WHERE state = 'done'")
        .fetch_all(&app.db.pool)
        .await
        .unwrap();
    let kinds = tally(kinds.iter().map(String::as_str));
    // The plan and three pages.
    assert_eq!(
        kinds,
        [("batch_qc", 4), ("deliver", 1), ("intent", 1)].into()
    );
    app.stop().await;
}

#[tokio::test]
async fn runs_that_go_on_after_their_page_are_counted_when_they_stop() {
    let study = study();
    study.write_skill("eligibility", &reviewed_eligibility());
    let app = TestApp::with(&study).await;
    let batch = app.qc("lung", None).await;
    assert_eq!(
        [
            &batch["state"],
            &batch["total"],
            &batch["done"],
            &batch["failed"]
        ],
        [
            &serde_json::json!("done"),
            &120.into(),
            &120.into(),
            &0.into()
        ]
    );
    // 12 too young, and the one without an age, whose on_not_evaluable ends in a review state.
    assert_eq!(app.count("iit_task_run WHERE status = 'waiting'").await, 12);
    assert_eq!(app.count("iit_task_run WHERE status = 'running'").await, 0);
    app.stop().await;
}

#[tokio::test]
async fn records_that_do_not_exist_are_counted_as_failed_and_named() {
    let app = TestApp::with(&study()).await;
    let batch = app.qc("lung", Some(&["P001", "P999", "P001"])).await;
    assert_eq!(
        [&batch["total"], &batch["done"], &batch["failed"]],
        [&2.into(), &1.into(), &1.into() as &serde_json::Value]
    );
    assert!(batch["note"].as_str().unwrap().contains("P999"), "{batch}");
    assert!(batch["error"].is_null(), "{batch}");
    app.stop().await;
}

#[tokio::test]
async fn a_study_without_subjects_is_answered_too() {
    let app = TestApp::with(&StudyFolder::with_eligibility("lung", [])).await;
    let reply = app.ask("ZhangSan", "对全项目做质控").await;
    assert!(reply.contains("没有可以质控的受试者"), "{reply}");
    app.stop().await;
}

#[tokio::test]
async fn many_skills_over_several_subjects_end_in_one_reply_whoever_finishes_last() {
    let study = StudyFolder::new("lung", ["P001", "P002", "P003"].map(Subject::fit));
    for skill in ["a", "b", "c", "d", "e"] {
        study.write_skill(skill, &eligibility());
    }
    let app = TestApp::with(&study).await;
    for round in 1..=5 {
        let reply = app.ask("ZhangSan", "质控 P001、P002 和 P003").await;
        for record in ["P001", "P002", "P003"] {
            assert!(reply.contains(&format!("受试者 {record}")), "{reply}");
        }
        assert!(!reply.contains("进行中"), "{reply}");
        app.settled().await;
        assert_eq!(app.wecom.messages().len(), round);
    }
    assert_eq!(app.count("iit_task_run WHERE status = 'done'").await, 75);
    assert_eq!(
        app.count("iit_batches WHERE state = 'done' AND done = 3")
            .await,
        5
    );
    app.stop().await;
}

#[tokio::test]
async fn a_record_is_counted_once_when_one_skill_goes_on_and_another_is_faulty() {
    let study = StudyFolder::with_eligibility("lung", ["P001", "P002"].map(Subject::fit));
    let path = format!("{}/tests/data/skills/v26.json", env!("CARGO_MANIFEST_DIR"));
    study.write_skill_file("v26.json", &std::fs::read_to_string(path).unwrap());
    let app = TestApp::with(&study).await;
    // A version that no dictionary fits, as an older program may have stored it.
    sqlx::query(
        "UPDATE iit_skills SET config = jsonb_set(config, '{nodes,check,rules,0,logic}',
         '{\">=\": [{\"var\": \"nope\"}, 18]}') WHERE skill_type = 'eligibility'",
    )
    .execute(&app.db.pool)
    .await
    .unwrap();
    let batch = app.qc("lung", None).await;
    assert_eq!(
        [
            &batch["state"],
            &batch["total"],
            &batch["done"],
            &batch["failed"]
        ],
        [&serde_json::json!("done"), &2.into(), &0.into(), &2.into()]
    );
    let ran = Iit::on(&app.db)
        .run(&[
            "qc",
            "--project",
            "lung",
            "--all",
            "--wait",
            "--format",
            "json",
        ])
        .await;
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(
        serde_json::from_str::<serde_json::Value>(&ran.stdout).is_ok(),
        "{ran:?}"
    );
    assert!(ran.stderr.contains("2 例未能检查"), "{ran:?}");
    app.stop().await;
}

#[tokio::test]
async fn a_command_beside_a_running_worker_gets_its_own_result() {
    let app = TestApp::with(&study()).await;
    let iit = Iit::on(&app.db);
    let args = [
        "qc",
        "--project",
        "lung",
        "--all",
        "--wait",
        "--format",
        "json",
    ];
    let (one, two) = tokio::join!(iit.json(&args), iit.json(&args));
    assert_eq!(one, two);
    assert_eq!(one.as_array().unwrap().len(), 14);
    app.settled().await;
    assert_eq!(app.count("iit_pending_actions").await, 14);
    assert_eq!(app.count("iit_pending_action_history").await, 14);
    app.stop().await;
}
