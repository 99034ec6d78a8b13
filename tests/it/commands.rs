//! The commands as people and programs run them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed expectation is the test's verdict"
)]

use serde_json::Value;

use crate::support::app::redacted;
use crate::support::binary::Iit;
use crate::support::postgres::TestDb;
use crate::support::study::{StudyFolder, Subject};

fn study() -> StudyFolder {
    let subjects = [
        Subject::fit("P001").with("age", "16"),
        Subject::fit("P002"),
        Subject::fit("P003").with("ecog", ""),
    ];
    StudyFolder::with_eligibility("lung", subjects)
}

async fn apply(iit: &Iit, study: &StudyFolder) {
    let path = |path: std::path::PathBuf| path.display().to_string();
    iit.ok(&["project", "apply", &path(study.project_file())])
        .await;
    iit.ok(&[
        "skills",
        "apply",
        "--project",
        study.id(),
        &path(study.skills()),
    ])
    .await;
}

#[tokio::test]
async fn qc_in_three_formats_says_the_same_and_fail_on_sets_the_exit_code() {
    let db = TestDb::new().await;
    let (iit, study) = (Iit::on(&db), study());
    apply(&iit, &study).await;
    let all = ["qc", "--project", "lung", "--all", "--wait"];
    let with = |more: &[&'static str]| [&all[..], more].concat();
    insta::assert_snapshot!(iit.ok(&with(&["--format", "table"])).await);
    insta::assert_snapshot!(iit.ok(&with(&["--format", "csv"])).await);
    insta::assert_json_snapshot!(iit.json(&with(&["--format", "json"])).await);
    for (level, code) in [("error", 1), ("warning", 1), ("query", 1)] {
        let ran = iit.run(&with(&["--fail-on", level])).await;
        assert_eq!(ran.code, code, "{level}: {ran:?}");
    }
    // P003 has a query only, P002 nothing.
    for (record, level, code) in [
        ("P003", "warning", 0),
        ("P003", "query", 1),
        ("P002", "query", 0),
    ] {
        let args = [
            "qc",
            "--project",
            "lung",
            "--record",
            record,
            "--wait",
            "--fail-on",
            level,
        ];
        assert_eq!(iit.run(&args).await.code, code, "{record} {level}");
    }
}

#[tokio::test]
async fn what_does_not_exist_is_exit_code_2_and_one_sentence() {
    let db = TestDb::new().await;
    let (iit, study) = (Iit::on(&db), study());
    apply(&iit, &study).await;
    study.write_skill("another", &crate::support::study::eligibility());
    let skills = study.skills().display().to_string();
    let mut sentences = Vec::new();
    for args in [
        &["qc", "--project", "nope", "--all"][..],
        &["qc", "--project", "lung", "--record", "P9", "--wait"],
        &["qc", "--project", "lung", "--record", "p001"],
        &["qc", "--project", "lung", "--all", "--skill", "nope"],
        &["pending", "list", "--project", "nope"],
        &["pending", "list", "--project", "lung", "--status", "opened"],
        &[
            "pending",
            "decide",
            "7",
            "--decision",
            "close",
            "--reason",
            "x",
        ],
        &[
            "pending",
            "decide",
            "01a22d99-55d7-74a8-9fe2-76fb876ee37a",
            "--decision",
            "agree",
            "--reason",
            "x",
        ],
        &[
            "pending",
            "decide",
            "01a22d99-55d7-74a8-9fe2-76fb876ee37a",
            "--decision",
            "close",
            "--reason",
            " ",
        ],
        &[
            "skills",
            "apply",
            "--project",
            "lung",
            "--type",
            "t",
            &skills,
        ],
        &["skills", "apply", "--project", "nope", "."],
        &["project", "apply", "nope.toml"],
        &["worker", "--queues", "nope"],
    ] {
        let ran = iit.run(args).await;
        assert_eq!(ran.code, 2, "{args:?}: {ran:?}");
        let line = format!("{}\n  {}", args.join(" "), ran.refusal());
        sentences.push(line.replace(&skills, "[skills]"));
    }
    insta::assert_snapshot!(sentences.join("\n"));
    for args in [
        &["qc", "--project", "lung"][..],
        &["qc", "--project", "lung", "--all", "--record", "P001"],
        &["qc", "--project", "lung", "--all", "--fail-on", "error"],
        &["qc", "--project", "lung", "--all", "--format", "xml"],
        &["nope"],
    ] {
        let ran = iit.run(args).await;
        assert_eq!(
            (ran.code, ran.stdout.as_str()),
            (2, ""),
            "{args:?}: {ran:?}"
        );
    }
    let jobs: i64 = sqlx::query_scalar("SELECT count(*) FROM iit_jobs")
        .fetch_one(&db.pool)
        .await
        .unwrap();
    assert_eq!(jobs, 0, "nothing was queued");
}

#[tokio::test]
async fn a_database_that_does_not_answer_is_exit_code_3_without_its_password() {
    let db = TestDb::new().await;
    let mut iit = Iit::on(&db);
    iit.use_url("postgres://iit:hunter2@127.0.0.1:1/iit");
    let ran = iit.run(&["project", "list"]).await;
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(!ran.refusal().contains("hunter2"), "{ran:?}");
    iit.use_url("mysql://root:hunter2@db/iit");
    let ran = iit.run(&["project", "list"]).await;
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(!ran.refusal().contains("hunter2"), "{ran:?}");
}

#[tokio::test]
async fn lists_read_as_promised() {
    let db = TestDb::new().await;
    let (iit, study) = (Iit::on(&db), study());
    assert_eq!(
        iit.json(&["project", "list", "--format", "json"]).await,
        serde_json::json!([])
    );
    apply(&iit, &study).await;
    insta::assert_snapshot!("projects", iit.ok(&["project", "list"]).await);
    insta::assert_json_snapshot!(
        "projects_json",
        iit.json(&["project", "list", "--format", "json"]).await
    );
    insta::assert_snapshot!(
        "projects_csv",
        iit.ok(&["project", "list", "--format", "csv"]).await
    );

    let queued = iit
        .json(&["qc", "--project", "lung", "--all", "--format", "json"])
        .await;
    assert!(queued[0]["batch_id"].is_string(), "{queued}");
    let depth = iit.json(&["queue", "depth", "--format", "json"]).await;
    insta::assert_json_snapshot!("depth", redacted(depth));
    let table = iit.ok(&["queue", "depth"]).await;
    assert!(
        table.contains("edc") && table.contains("available"),
        "{table}"
    );

    iit.ok(&["qc", "--project", "lung", "--all", "--wait"])
        .await;
    assert_eq!(
        iit.json(&["queue", "depth", "--format", "json"]).await,
        serde_json::json!([])
    );
    let pending = iit
        .json(&["pending", "list", "--project", "lung", "--format", "json"])
        .await;
    insta::assert_json_snapshot!("pending", redacted(pending.clone()));
    let csv = iit
        .ok(&["pending", "list", "--project", "lung", "--format", "csv"])
        .await;
    insta::assert_snapshot!("pending_csv_header", csv.lines().next().unwrap());
    assert_eq!(csv.lines().count(), 1 + pending.as_array().unwrap().len());
    let table = iit.ok(&["pending", "list", "--project", "lung"]).await;
    insta::assert_snapshot!("pending_table", without_ids(&table, &pending));
}

fn without_ids(text: &str, rows: &Value) -> String {
    rows.as_array()
        .unwrap()
        .iter()
        .fold(text.to_owned(), |text, row| {
            let id = row["id"].as_str().unwrap();
            text.replace(id, &"-".repeat(id.len()))
        })
}

#[tokio::test]
async fn a_decision_on_the_command_line_is_taken_once_and_audited() {
    let db = TestDb::new().await;
    let (iit, study) = (Iit::on(&db), study());
    apply(&iit, &study).await;
    iit.ok(&["qc", "--project", "lung", "--record", "P001", "--wait"])
        .await;
    let list = ["pending", "list", "--project", "lung", "--format", "json"];
    let id = iit.json(&list).await[0]["id"].as_str().unwrap().to_owned();
    let dismiss = [
        "pending",
        "decide",
        &id,
        "--decision",
        "dismiss",
        "--reason",
        "方案允许",
    ];
    iit.ok(&dismiss).await;
    let ran = iit.run(&dismiss).await;
    assert_eq!(ran.code, 1, "{ran:?}");
    ran.refusal();
    let audited: (String, String) = sqlx::query_as(
        "SELECT actor, reason FROM iit_audit_log WHERE action = 'pending_action.dismissed'",
    )
    .fetch_one(&db.pool)
    .await
    .unwrap();
    assert_eq!(audited, ("cli:tester".to_owned(), "方案允许".to_owned()));
}

#[tokio::test]
async fn dead_jobs_are_listed_with_their_reason_and_retried() {
    let db = TestDb::new().await;
    let iit = Iit::on(&db);
    sqlx::query(
        "INSERT INTO iit_jobs (queue, kind, payload, state, attempt, max_attempts, last_error, finished_at)
         VALUES ('edc', 'nonsense', '{}', 'dead', 1, 5, 'no job is called nonsense', '2026-03-01 10:00+00')",
    )
    .execute(&db.pool)
    .await
    .unwrap();
    let dead = iit.json(&["queue", "dead", "--format", "json"]).await;
    insta::assert_json_snapshot!("dead", redacted(dead));
    let ran = iit.run(&["doctor"]).await;
    assert_eq!(ran.code, 1, "a dead job needs somebody: {ran:?}");
    let retried = iit.json(&["queue", "retry", "--format", "json"]).await;
    assert_eq!(retried.as_array().unwrap().len(), 1);
    let ran = iit.run(&["queue", "retry", &retried[0].to_string()]).await;
    assert_eq!(ran.code, 1, "{ran:?}");
    assert_eq!(
        iit.json(&["queue", "dead", "--format", "json"]).await,
        serde_json::json!([])
    );
}

#[tokio::test]
async fn a_faulty_skill_stores_none_and_names_every_place() {
    let db = TestDb::new().await;
    let (iit, study) = (Iit::on(&db), study());
    let path = |path: std::path::PathBuf| path.display().to_string();
    iit.ok(&["project", "apply", &path(study.project_file())])
        .await;
    study.write_skill_file("bad.json", "{\"nodes\": {}}");
    let ran = iit
        .run(&[
            "skills",
            "apply",
            "--project",
            "lung",
            &path(study.skills()),
        ])
        .await;
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stderr.contains("bad.json"), "{ran:?}");
    let skills: i64 = sqlx::query_scalar("SELECT count(*) FROM iit_skills")
        .fetch_one(&db.pool)
        .await
        .unwrap();
    assert_eq!(skills, 0);
}
