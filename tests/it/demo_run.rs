//! The sample study checked by the real program: exactly what was counted independently, every time.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed expectation is the test's verdict"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::binary::Iit;
use crate::support::postgres::TestDb;
use crate::support::study::replace;

fn demo() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("demo")
}

/// Places by rule and outcome, `01-701-1028#1` for the first row of a repeating form.
type Places = BTreeMap<(String, String), BTreeSet<String>>;

fn places(findings: &Value) -> Places {
    let mut places = Places::new();
    for finding in findings.as_array().unwrap() {
        let text = |key: &str| finding[key].as_str().unwrap().to_owned();
        let place = match finding["instance"].as_u64() {
            Some(instance) => format!("{}#{instance}", text("record")),
            None => text("record"),
        };
        let new = places
            .entry((text("rule"), text("outcome")))
            .or_default()
            .insert(place);
        assert!(new, "found twice: {finding}");
    }
    places
}

fn expected() -> Places {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/demo_expected.json");
    let counted: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    let mut places = Places::new();
    for (rule, row) in counted["rules"].as_object().unwrap() {
        for outcome in ["fail", "not_evaluable"] {
            for place in row[outcome].as_array().unwrap() {
                places
                    .entry((rule.clone(), outcome.to_owned()))
                    .or_default()
                    .insert(place.as_str().unwrap().to_owned());
            }
        }
    }
    places
}

async fn apply(iit: &Iit, folder: &Path) {
    let path = |name: &str| folder.join(name).display().to_string();
    iit.ok(&["project", "apply", &path("project.toml")]).await;
    iit.ok(&["skills", "apply", "--project", "demo", &path("skills")])
        .await;
}

#[tokio::test]
async fn the_whole_study_has_exactly_the_findings_counted_independently_and_again_the_same() {
    let db = TestDb::new().await;
    let iit = Iit::on(&db);
    apply(&iit, &demo()).await;
    let all = [
        "qc",
        "--project",
        "demo",
        "--all",
        "--wait",
        "--format",
        "json",
    ];
    let ledger = ["pending", "list", "--project", "demo", "--format", "json"];
    let findings = iit.json(&all).await;
    assert_eq!(places(&findings), expected());
    let first = iit.json(&ledger).await;
    // A human_review asks for a decision beside what was found.
    let rows = first.as_array().unwrap();
    let reviews = rows
        .iter()
        .filter(|row| row["rule"] == "eligibility/pi_review")
        .count();
    assert_eq!(rows.len() - reviews, findings.as_array().unwrap().len());

    assert_eq!(iit.json(&all).await, findings);
    let second = iit.json(&ledger).await;
    let identity = |rows: &Value| -> Vec<(Value, Value, Value)> {
        let rows = rows.as_array().unwrap().iter();
        rows.map(|row| {
            (
                row["id"].clone(),
                row["fingerprint"].clone(),
                row["created_at"].clone(),
            )
        })
        .collect()
    };
    assert_eq!(identity(&first), identity(&second));
    let steps: i64 = sqlx::query_scalar("SELECT count(*) FROM iit_task_step")
        .fetch_one(&db.pool)
        .await
        .unwrap();
    assert!(steps >= 2 * 306 * 4, "{steps}");
    // Notices wait for a process that has WeCom.
    let unsettled: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM iit_jobs WHERE state <> 'done' AND kind <> 'deliver'",
    )
    .fetch_one(&db.pool)
    .await
    .unwrap();
    assert_eq!(unsettled, 0);
}

#[tokio::test]
async fn the_demo_once_ends_with_0_from_an_empty_folder() {
    let db = TestDb::new().await;
    let iit = Iit::on(&db);
    let shown = iit.ok(&["demo", "--once"]).await;
    assert!(
        shown.contains("受试者 306 例：完成 306，未能检查 0；发现 398 条"),
        "{shown}"
    );
    for rule in ["IE-002", "AE-001", "VW-04", "ETH-001"] {
        assert!(shown.contains(rule), "{rule}: {shown}");
    }
    // It brought its own copy of the study.
    assert!(iit.folder().join("data/demo/study/records.csv").is_file());
    let copied = fs::read(iit.folder().join("data/demo/study/records.csv")).unwrap();
    assert!(copied == fs::read(demo().join("study/records.csv")).unwrap());
}

#[tokio::test]
async fn one_changed_cell_changes_the_findings() {
    let db = TestDb::new().await;
    let iit = Iit::on(&db);
    let copy = iit.folder().join("copy");
    for part in ["study", "skills"] {
        fs::create_dir_all(copy.join(part)).unwrap();
        for file in fs::read_dir(demo().join(part)).unwrap() {
            let file = file.unwrap();
            fs::copy(file.path(), copy.join(part).join(file.file_name())).unwrap();
        }
    }
    fs::copy(demo().join("project.toml"), copy.join("project.toml")).unwrap();
    apply(&iit, &copy).await;
    let one = [
        "qc",
        "--project",
        "demo",
        "--record",
        "01-701-1015",
        "--wait",
        "--format",
        "json",
    ];
    let before = places(&iit.json(&one).await);
    assert!(
        !before.keys().any(|(rule, _)| rule == "IE-001"),
        "{before:?}"
    );

    let records = copy.join("study/records.csv");
    let text = fs::read_to_string(&records).unwrap();
    let row = "01-701-1015,,,site_701,2013-12-24,63,";
    assert_eq!(text.matches(row).count(), 1);
    replace(
        &records,
        &text.replace(row, "01-701-1015,,,site_701,2013-12-24,49,"),
    );
    let after = places(&iit.json(&one).await);
    let mut wanted = before.clone();
    wanted.insert(
        ("IE-001".to_owned(), "fail".to_owned()),
        ["01-701-1015".to_owned()].into(),
    );
    assert_eq!(after, wanted);

    // And a blank is no pass.
    replace(
        &records,
        &text.replace(row, "01-701-1015,,,site_701,2013-12-24,,"),
    );
    let blank = places(&iit.json(&one).await);
    assert!(
        blank.contains_key(&("IE-001".to_owned(), "not_evaluable".to_owned())),
        "{blank:?}"
    );
    replace(&records, &text);
    assert_eq!(places(&iit.json(&one).await), before);
    let list = [
        "pending",
        "list",
        "--project",
        "demo",
        "--rule",
        "IE-001",
        "--format",
        "json",
    ];
    assert_eq!(iit.json(&list).await[0]["status"], "close_proposed");
}
