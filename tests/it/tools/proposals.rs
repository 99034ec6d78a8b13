//! What the tools of a skill propose: nothing is written by the tool itself.

use iit_manager::{
    adapters::edc::RedcapFiles,
    store::{ledger, projects, reader},
    tools::{Proposal, Snapshot},
    types::{clock::Clock, finding::Severity, ids::RunId},
};
use serde_json::json;

use super::{Rig, five};
use crate::support::app::TestApp;
use crate::support::study::{StudyFolder, Subject};

#[tokio::test]
async fn a_raised_query_names_one_place_and_the_value_that_stands_there() {
    let rig = five();
    let args = json!({
        "action": "raise", "record_id": "S001", "field": "是否严重", "instance": 2, "message": "请补充住院日期",
    });
    let raised = rig.ok("manage_issue", args).await;
    let [Proposal::Raise(finding)] = &raised.proposals[..] else {
        panic!("{raised:?}");
    };
    assert_eq!(
        (finding.record.as_str(), finding.instance),
        ("S001", Some(2))
    );
    assert_eq!(finding.event.as_deref(), Some("w2_arm_1"));
    assert_eq!(finding.severity, Severity::Query);
    assert_eq!(finding.values[0].value.as_deref(), Some("1"));
    for args in [
        json!({ "action": "raise", "record_id": "S001", "field": "aeser", "message": "?" }),
        json!({ "action": "raise", "record_id": "S001", "field": "aeser", "instance": 9, "message": "?" }),
        json!({ "action": "raise", "record_id": "S001", "message": "?" }),
        json!({ "action": "raise", "record_id": "S009", "field": "age", "message": "?" }),
        json!({ "action": "raise", "record_id": "S001", "field": "age" }),
        json!({ "action": "close", "issue_id": "x", "message": "?" }),
        json!({ "action": "delete", "message": "?" }),
    ] {
        rig.refused("manage_issue", args).await;
    }
}

#[tokio::test]
async fn notices_go_to_people_of_the_study_only() {
    let rig = five();
    let sent = rig
        .ok(
            "send_notification",
            json!({ "text": "请复核", "to": ["admins", "zhangsan"] }),
        )
        .await;
    assert!(matches!(&sent.proposals[..], [Proposal::Notify { to, .. }] if to.len() == 2));
    let refused = rig
        .refused(
            "send_notification",
            json!({ "text": "数据", "to": "outsider" }),
        )
        .await;
    assert!(refused.contains("outsider"), "{refused}");
}

#[tokio::test]
async fn a_write_is_refused_with_the_truth() {
    let rig = five();
    for tool in ["update_record", "write_clinical_data"] {
        let args = json!({ "record_id": "S001", "values": { "age": "46" }, "reason": "笔误" });
        let refused = rig.refused(tool, args).await;
        assert!(refused.contains("没有写入任何内容"), "{refused}");
    }
}

#[tokio::test]
async fn a_query_of_this_study_can_be_proposed_to_close_and_one_of_another_is_unknown() {
    let study = StudyFolder::with_eligibility("lung", [Subject::fit("P001").with("age", "16")]);
    let app = TestApp::with(&study).await;
    let other = StudyFolder::with_eligibility("liver", [Subject::fit("Q001").with("age", "16")]);
    app.apply(&other).await;
    app.qc("lung", None).await;
    app.qc("liver", None).await;
    let mut conn = app.db.pool.acquire().await.unwrap();
    let project = projects::get(&mut conn, "lung").await.unwrap().unwrap();
    let data = Snapshot::read(&RedcapFiles::new(study.export()), &Clock::system())
        .await
        .unwrap();
    let rig = Rig::reading(project.file, data, reader::pool(&app.db.pool));
    let id = |row: &serde_json::Value| row["id"].as_str().unwrap().to_owned();
    let ours = id(&app.ledger("lung", "").await[0]);
    let theirs = id(&app.ledger("liver", "").await[0]);
    let close = |id: &str| json!({ "action": "close", "issue_id": id, "message": "年龄已核对" });
    let refused = rig.refused("manage_issue", close(&theirs)).await;
    assert!(refused.contains("没有编号为"), "{refused}");
    let closing = rig.ok("manage_issue", close(&ours)).await;
    assert_eq!(
        app.ledger("lung", "").await[0]["status"],
        "open",
        "a tool writes nothing"
    );
    let [Proposal::Close { id, reason }] = &closing.proposals[..] else {
        panic!("{closing:?}");
    };
    let run = RunId::generate();
    assert!(
        ledger::suggest_close(&mut conn, "lung", *id, run, reason)
            .await
            .unwrap()
    );
    assert!(
        !ledger::suggest_close(&mut conn, "lung", *id, run, reason)
            .await
            .unwrap()
    );
    assert!(
        !ledger::suggest_close(&mut conn, "liver", *id, run, reason)
            .await
            .unwrap()
    );
    assert_eq!(app.ledger("lung", "").await[0]["status"], "close_proposed");
    app.stop().await;
}
