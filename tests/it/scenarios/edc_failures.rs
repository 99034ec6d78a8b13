//! The data source fails on the way: a check that was not made never looks like one that passed.

use serde_json::json;

use crate::support::app::{TestApp, eventually};
use crate::support::study::{StudyFolder, Subject, eligibility};

#[tokio::test]
async fn records_that_become_unreadable_take_on_error_with_a_query_and_a_reply() {
    let mut study = StudyFolder::with_eligibility("lung", [Subject::fit("P001")]);
    let app = TestApp::with(&study).await;
    // Broken after the message was understood: the job finds the file as it is by then.
    app.hold_queue("edc").await;
    app.says("ZhangSan", "质控 P001").await;
    app.wait_for_jobs("edc", 1).await;
    study.break_records("record_id,age\nP001,\"45\n");
    app.release_queue("edc").await;
    let reply = app.wecom.wait_for_messages(1).await.remove(0).content;
    insta::assert_snapshot!(redact_folder(&reply, &study));
    app.settled_at_once().await;
    let run = app.runs_of("P001").await.remove(0);
    assert_eq!(
        [&run["status"], &run["final_state"], &run["standing"]],
        ["done", "end_review_required", "review"]
    );
    let action = app.action("lung", "eligibility/check").await;
    assert_eq!(
        [&action["status"], &action["outcome"], &action["severity"]],
        ["open", "not_evaluable", "query"]
    );
    // Mended: the query is settled by the next check.
    study.write_records();
    let reply = app.ask("ZhangSan", "质控 P001").await;
    assert!(reply.contains("未发现问题"), "{reply}");
    app.settled().await;
    assert_eq!(
        app.action("lung", "eligibility/check").await["status"],
        "close_proposed"
    );
    app.stop_with_dead(&["sop_step"]).await;
}

/// Leaves the export where the next look at it fails in a way that may pass.
fn make_unavailable(study: &StudyFolder) {
    let records = study.export().join("records.csv");
    std::fs::remove_file(&records).unwrap();
    // A link to itself: an input/output error, not a missing file.
    std::os::unix::fs::symlink("records.csv", &records).unwrap();
}

#[tokio::test]
async fn a_source_that_does_not_answer_is_asked_again_and_the_check_is_made_once() {
    let mut study = StudyFolder::with_eligibility("lung", [Subject::fit("P001").with("age", "16")]);
    let app = TestApp::with(&study).await;
    app.hold_queue("edc").await;
    app.says("ZhangSan", "质控 P001").await;
    app.wait_for_jobs("edc", 1).await;
    make_unavailable(&study);
    app.release_queue("edc").await;
    eventually("a failed attempt", async || {
        let failed = app.count(
            "iit_jobs WHERE queue = 'edc' AND state = 'available' AND last_error IS NOT NULL",
        );
        (failed.await == 1).then_some(())
    })
    .await;
    assert!(app.wecom.messages().is_empty());
    study.write_records();
    app.settled_at_once().await;
    let messages = app.wecom.messages();
    assert_eq!(messages.len(), 1);
    assert!(messages[0].content.contains("年龄<18岁"), "{messages:?}");
    let run = app.runs_of("P001").await.remove(0);
    assert_eq!(run["steps"].as_array().unwrap().len(), 1);
    assert_eq!(run["steps"][0]["attempt"], 2);
    app.stop().await;
}

#[tokio::test]
async fn a_source_that_never_answers_takes_on_error_after_the_last_attempt() {
    let study = StudyFolder::with_eligibility("lung", [Subject::fit("P001")]);
    let app = TestApp::with(&study).await;
    app.hold_queue("edc").await;
    app.says("ZhangSan", "质控 P001").await;
    app.wait_for_jobs("edc", 1).await;
    make_unavailable(&study);
    app.release_queue("edc").await;
    app.settled_at_once().await;
    let reply = app.wecom.messages().remove(0).content;
    assert!(
        reply.contains("检查未能完成") && !reply.contains("未发现问题"),
        "{reply}"
    );
    let run = app.runs_of("P001").await.remove(0);
    assert_eq!(
        [&run["final_state"], &run["standing"]],
        ["end_review_required", "review"]
    );
    assert_eq!(run["steps"][0]["attempt"], 5);
    assert_eq!(app.ledger("lung", "status=open").await.len(), 1);
    app.stop_with_dead(&["sop_step"]).await;
}

#[tokio::test]
async fn a_message_about_a_study_that_cannot_be_read_is_answered_with_an_apology() {
    let study = StudyFolder::with_eligibility("lung", [Subject::fit("P001")]);
    let app = TestApp::with(&study).await;
    study.break_records("record_id,age\nP001,\"45\n");
    let reply = app.ask("ZhangSan", "质控 P001").await;
    assert!(reply.contains("没有处理成功"), "{reply}");
    app.settled().await;
    assert_eq!(app.wecom_message(1).await["status"], "failed");
    app.stop_with_dead(&["intent"]).await;
}

#[tokio::test]
async fn a_whole_project_that_cannot_be_read_is_answered_as_not_done() {
    let study = StudyFolder::with_eligibility("lung", [Subject::fit("P001"), Subject::fit("P002")]);
    let app = TestApp::with(&study).await;
    study.break_records("record_id,age\nP001,\"45\n");
    let reply = app.ask("ZhangSan", "对全项目做质控").await;
    insta::assert_snapshot!(redact_folder(&reply, &study));
    app.stop_with_dead(&["batch_qc"]).await;
}

#[tokio::test]
async fn a_page_that_cannot_be_read_counts_its_records_as_failed() {
    let study = StudyFolder::with_eligibility("lung", [Subject::fit("P001"), Subject::fit("P002")]);
    let app = TestApp::with(&study).await;
    app.hold_queue("edc").await;
    app.says("ZhangSan", "对全项目做质控").await;
    app.wait_for_jobs("edc", 1).await;
    // The plan runs, the page does not.
    app.release_held("edc").await;
    app.wait_for_jobs("edc", 2).await;
    study.break_records("record_id,age\nP001,\"45\n");
    app.release_queue("edc").await;
    let reply = app.wecom.wait_for_messages(1).await.remove(0).content;
    insta::assert_snapshot!(redact_folder(&reply, &study));
    app.stop_with_dead(&["batch_qc"]).await;
}

#[tokio::test]
async fn a_subject_deleted_after_the_message_was_understood_is_never_passed() {
    let mut study =
        StudyFolder::with_eligibility("lung", [Subject::fit("P001"), Subject::fit("P002")]);
    let app = TestApp::with(&study).await;
    app.hold_queue("edc").await;
    app.says("ZhangSan", "质控 P001").await;
    app.wait_for_jobs("edc", 1).await;
    study.remove("P001");
    app.release_queue("edc").await;
    let reply = app.wecom.wait_for_messages(1).await.remove(0).content;
    assert!(
        !reply.contains("通过") && !reply.contains("未发现问题"),
        "{reply}"
    );
    insta::assert_snapshot!(reply);
    app.stop_with_dead(&["sop_step"]).await;
}

#[tokio::test]
async fn a_skill_the_dictionary_no_longer_fits_fails_its_records_and_says_why() {
    let study = StudyFolder::with_eligibility("lung", [Subject::fit("P001"), Subject::fit("P002")]);
    let app = TestApp::with(&study).await;
    // The data manager renames a field in REDCap; the skill still names the old one.
    let metadata = study.export().join("metadata.csv");
    let text = std::fs::read_to_string(&metadata).unwrap();
    crate::support::study::replace(&metadata, &text.replace("\necog,", "\necog_score,"));
    let records = study.export().join("records.csv");
    let text = std::fs::read_to_string(&records).unwrap();
    study.break_records(&text.replace(",ecog,", ",ecog_score,"));

    let batch = app.qc("lung", None).await;
    assert_eq!(
        [&batch["done"], &batch["failed"]],
        [&json!(0), &json!(2)],
        "{batch}"
    );
    let reply = app.ask("ZhangSan", "对全项目做质控").await;
    insta::assert_snapshot!(reply);
    let reply = app.ask("ZhangSan", "质控 P001").await;
    insta::assert_snapshot!(reply);
    app.settled().await;
    let runs = app.runs_of("P001").await;
    assert!(
        runs.iter().all(|run| run["standing"] != "clean"),
        "{runs:?}"
    );

    // One skill that fits beside it does not hide that the other could not run.
    let mut fitting = eligibility();
    fitting["nodes"]["check"]["rules"]
        .as_array_mut()
        .unwrap()
        .pop();
    std::fs::remove_file(study.skills().join("eligibility.json")).unwrap();
    study.write_skill("age_only", &fitting);
    app.apply(&study).await;
    let batch = app.qc("lung", None).await;
    assert_eq!(
        [&batch["done"], &batch["failed"]],
        [&json!(0), &json!(2)],
        "{batch}"
    );
    app.stop_with_dead(&["sop_step"]).await;
}

fn redact_folder(text: &str, study: &StudyFolder) -> String {
    text.replace(&study.export().display().to_string(), "[export]")
}
