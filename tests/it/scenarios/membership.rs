//! Whose study a message is about.

use crate::support::app::TestApp;
use crate::support::study::{StudyFolder, Subject};

#[tokio::test]
async fn a_member_of_two_studies_is_asked_once_and_the_answer_is_remembered() {
    let lung = StudyFolder::with_eligibility("lung", [Subject::fit("P001")]);
    let colon = StudyFolder::with_eligibility("colon", [Subject::fit("P001").with("age", "80")]);
    let app = TestApp::with(&lung).await;
    app.apply(&colon).await;
    let reply = app.ask("ZhangSan", "质控 P001").await;
    insta::assert_snapshot!(reply);
    assert_eq!(app.count("iit_task_run").await, 0);
    // 1 is colon, whose patient is too old; the first message is what is then done.
    let reply = app.ask("ZhangSan", "1").await;
    assert!(
        reply.contains("研究 colon") && reply.contains("年龄>75岁"),
        "{reply}"
    );
    let reply = app.ask("ZhangSan", "质控 P001").await;
    assert!(reply.contains("研究 colon"), "{reply}");
    // LiSi chooses for himself.
    app.ask("LiSi", "质控 P001").await;
    let reply = app.ask("LiSi", "lung").await;
    assert!(
        reply.contains("研究 lung") && reply.contains("未发现问题"),
        "{reply}"
    );
    app.stop().await;
}

#[tokio::test]
async fn a_member_of_two_studies_who_answers_something_else_is_asked_again() {
    let lung = StudyFolder::with_eligibility("lung", [Subject::fit("P001")]);
    let colon = StudyFolder::with_eligibility("colon", [Subject::fit("P002")]);
    let app = TestApp::with(&lung).await;
    app.apply(&colon).await;
    app.ask("ZhangSan", "质控 P001").await;
    let reply = app.ask("ZhangSan", "7").await;
    assert!(reply.contains("请问这条消息是关于哪个项目的"), "{reply}");
    assert_eq!(app.count("iit_task_run").await, 0);
    app.stop().await;
}

#[tokio::test]
async fn a_stranger_is_refused_politely_and_the_refusal_is_audited() {
    let study = StudyFolder::with_eligibility("lung", [Subject::fit("P001")]);
    let app = TestApp::with(&study).await;
    app.wecom.add_member("WangWu");
    insta::assert_snapshot!(app.ask("WangWu", "质控 P001").await);
    app.settled().await;
    assert_eq!(app.count("iit_task_run").await, 0);
    let audited: (String, Option<String>, String) = sqlx::query_as(
        "SELECT actor, project_id, entity_id FROM iit_audit_log WHERE action = 'message.refused'",
    )
    .fetch_one(&app.db.pool)
    .await
    .unwrap();
    let message = app.wecom_message(1).await;
    assert_eq!(
        audited,
        (
            "WangWu".to_owned(),
            None,
            message["id"].as_str().unwrap().to_owned()
        )
    );
    app.stop().await;
}

#[tokio::test]
async fn somebody_taken_out_of_the_study_is_refused_from_then_on() {
    let study = StudyFolder::with_eligibility("lung", [Subject::fit("P001")]);
    let app = TestApp::with(&study).await;
    app.ask("LiSi", "质控 P001").await;
    let text = std::fs::read_to_string(study.project_file()).unwrap();
    study.write_whole_project(&text.replace("wecom_user = \"LiSi\"", "wecom_user = \"ZhaoLiu\""));
    app.apply(&study).await;
    let reply = app.ask("LiSi", "质控他").await;
    assert!(reply.contains("还不是任何研究项目的成员"), "{reply}");
    app.stop().await;
}

#[tokio::test]
async fn a_study_without_skills_says_so() {
    let study = StudyFolder::new("lung", [Subject::fit("P001")]);
    let app = TestApp::with(&study).await;
    let reply = app.ask("ZhangSan", "质控 P001").await;
    assert!(reply.contains("还没有启用任何质控技能"), "{reply}");
    assert!(!reply.contains("通过"), "{reply}");
    app.stop().await;
}
