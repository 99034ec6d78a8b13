//! QC, the ledger and the queue from the command line.

use std::fs;

use serde_json::Value;

use super::{Shell, plain, refused_in_one_sentence, said, study};

#[test]
fn a_qc_of_nothing_names_both_ways_to_say_what_to_check() {
    let folder = tempfile::tempdir().unwrap();
    let output = plain(folder.path(), &["qc", "--project", "lung"])
        .output()
        .unwrap();
    let said = said(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    let first = said.lines().nth(1).unwrap();
    assert!(first.starts_with("iit: 命令行有误"), "{said}");
    assert!(
        first.contains("--record") && first.contains("--all"),
        "{said}"
    );
    assert!(said.contains("\nUsage: iit qc"), "{said}");
    let both = ["qc", "--project", "lung", "--all", "--record", "P001"];
    assert_eq!(
        plain(folder.path(), &both).output().unwrap().status.code(),
        Some(2)
    );
}

#[tokio::test]
async fn a_qc_that_nobody_works_on_says_so() {
    let shell = Shell::new().await;
    let study = study();
    shell.apply(&study);
    let text = shell.succeeds(&["qc", "--project", "lung", "--all"]);
    assert!(
        text.contains("尚无 worker 接手") && text.contains("--wait"),
        "{text}"
    );
    let depth = |queue: &str| {
        let args = ["queue", "depth", "--queue", queue, "--format", "json"];
        let depths: Value = serde_json::from_str(&shell.succeeds(&args)).unwrap();
        depths.as_array().unwrap().len()
    };
    assert_eq!((depth("edc"), depth("chat")), (1, 0));
    for verb in ["depth", "dead", "retry"] {
        let output = shell.run(&["queue", verb, "--queue", "edk"]);
        refused_in_one_sentence(&output, 2, &["edk", "deliver"]);
    }
}

#[tokio::test]
async fn decisions_on_what_does_not_exist_are_wrong_use_and_on_what_is_settled_a_finding() {
    let shell = Shell::new().await;
    let study = study();
    shell.apply(&study);
    shell.succeeds(&["qc", "--project", "lung", "--all", "--wait"]);
    let list = ["pending", "list", "--project", "lung", "--format", "json"];
    let rows: Value = serde_json::from_str(&shell.succeeds(&list)).unwrap();
    let id = rows[0]["id"].as_str().unwrap().to_owned();
    let decide = |id: &str| {
        shell.run(&[
            "pending",
            "decide",
            id,
            "--decision",
            "dismiss",
            "--reason",
            "已核对",
        ])
    };
    let unknown = decide("01900000-0000-7000-8000-000000000000");
    refused_in_one_sentence(
        &unknown,
        2,
        &["没有待办", "no such pending action", "pending list"],
    );
    refused_in_one_sentence(&decide("P001"), 2, &["不是待办编号"]);
    assert_eq!(decide(&id).status.code(), Some(0));
    refused_in_one_sentence(&decide(&id), 1, &["已是 dismissed", "can't be decided"]);
}

#[tokio::test]
async fn a_finding_at_an_event_is_shown_with_its_event() {
    let shell = Shell::new().await;
    let study = study();
    let export = study.export();
    let records = fs::read_to_string(export.join("records.csv")).unwrap();
    let rows = records.lines().enumerate().map(|(at, line)| {
        let (id, cells) = line.split_once(',').unwrap();
        let event = if at == 0 {
            "redcap_event_name"
        } else {
            "screening_arm_1"
        };
        format!("{id},{event},{cells}\n")
    });
    fs::write(export.join("records.csv"), rows.collect::<String>()).unwrap();
    fs::write(
        export.join("events.csv"),
        "event_name,arm_num,unique_event_name\nScreening,1,screening_arm_1\n",
    )
    .unwrap();
    fs::write(
        export.join("form_event_mapping.csv"),
        "arm_num,unique_event_name,form\n1,screening_arm_1,baseline\n",
    )
    .unwrap();
    shell.apply(&study);
    let text = shell.succeeds(&["qc", "--project", "lung", "--record", "P002", "--wait"]);
    assert!(text.starts_with("P002 screening_arm_1 ["), "{text}");
}
