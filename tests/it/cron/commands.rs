//! `iit schedule`, and what `iit skills apply` says of a schedule.

use serde_json::{Value, json};

use super::{due_since, nightly, round_at};
use crate::support::binary::Iit;
use crate::support::postgres::TestDb;
use iit_manager::queue::Wake;

async fn applied() -> (TestDb, Iit, String) {
    let study = nightly(&json!({ "catchup_window": "2d" }));
    study.write_skill_file(
        "weekly_report.json",
        include_str!("../../../skills/examples/weekly_report.json"),
    );
    let db = TestDb::new().await;
    let iit = Iit::on(&db);
    iit.ok(&["project", "apply", study.project_file().to_str().unwrap()])
        .await;
    let said = iit
        .ok(&[
            "skills",
            "apply",
            "--project",
            "lung",
            study.skills().to_str().unwrap(),
        ])
        .await;
    (db, iit, said)
}

#[tokio::test]
async fn what_is_applied_says_when_it_comes_next_or_why_it_does_not() {
    let (_db, _iit, said) = applied().await;
    let today = regex::Regex::new(r"\d{4}-\d\d-\d\d").unwrap();
    insta::assert_snapshot!(today.replace_all(&said, "[day]"), @r"
    技能 eligibility：第 1 版 · version 1
      定时 schedule `0 3 * * *`：下次 next [day] 03:00 +08:00 Asia/Shanghai
    技能 weekly_report：第 1 版 · version 1
      定时 schedule `0 9 * * 1`：未启用：报告类技能在后续版本中运行，目前不触发 reports come with a later release (disabled)
    ");
}

#[tokio::test]
async fn lists_read_as_promised() {
    let (db, iit, _) = applied().await;
    due_since(&db.pool, "2026-12-01T19:00:00Z").await;
    round_at(&db.pool, &Wake::default(), "2026-12-04T01:00:00Z").await;
    insta::assert_snapshot!(
        "schedules",
        iit.ok(&["schedule", "list", "--project", "lung"]).await
    );
    let rows = iit
        .json(&["schedule", "list", "--project", "lung", "--format", "json"])
        .await;
    insta::assert_json_snapshot!("schedules_json", without_jobs(rows));
    let csv = iit
        .ok(&["schedule", "list", "--project", "lung", "--format", "csv"])
        .await;
    insta::assert_snapshot!("schedules_csv", csv);
    insta::assert_snapshot!(
        "firings",
        iit.ok(&["schedule", "firings", "--project", "lung"]).await
    );
    let missed = [
        "schedule",
        "firings",
        "--project",
        "lung",
        "--state",
        "missed",
        "--skill",
        "eligibility",
    ];
    let rows = iit
        .json(&[&missed[..], &["--format", "json"]].concat())
        .await;
    assert_eq!(rows.as_array().unwrap().len(), 2);
    let rows = iit
        .json(&[&missed[..], &["--limit", "1", "--format", "json"]].concat())
        .await;
    assert_eq!(rows[0]["due"], "2026-12-02T19:00:00Z", "newest first");
}

#[tokio::test]
async fn what_does_not_exist_is_exit_code_2_and_one_sentence() {
    let (_db, iit, _) = applied().await;
    for args in [
        &["schedule", "list", "--project", "nope"][..],
        &["schedule", "firings", "--project", "nope"],
        &[
            "schedule",
            "firings",
            "--project",
            "lung",
            "--state",
            "mised",
        ],
    ] {
        let ran = iit.run(args).await;
        assert_eq!(ran.code, 2, "{args:?}: {ran:?}");
        assert!(!ran.refusal().is_empty());
    }
}

fn without_jobs(mut rows: Value) -> Value {
    for row in rows.as_array_mut().unwrap() {
        if row["last"]["job"].is_number() {
            row["last"]["job"] = json!("[job]");
        }
    }
    rows
}
