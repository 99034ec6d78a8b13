//! The reply on its way out: long, refused, lost, late; never twice and never silently lost.

use iit_manager::queue::depth;
use serde_json::json;

use crate::support::app::{TestApp, eventually};
use crate::support::fake_wecom::{Endpoint, Fault};
use crate::support::study::{StudyFolder, Subject, one_node, rule};

async fn app() -> TestApp {
    let young = Subject::fit("P001").with("age", "16");
    TestApp::with(&StudyFolder::with_eligibility("lung", [young])).await
}

#[tokio::test]
async fn a_reply_over_2048_bytes_arrives_whole_in_parts_and_in_order() {
    let study = StudyFolder::new("lung", [Subject::fit("P001").with("age", "16")]);
    let rules: Vec<_> = (1..=9)
        .map(|no| {
            let logic = json!({ ">=": [{ "var": "age" }, 17 + no] });
            rule(
                &format!("IE-{no:02}"),
                "age",
                logic,
                &"年龄不符合方案要求，".repeat(15),
            )
        })
        .collect();
    study.write_skill("eligibility", &one_node(&rules));
    let app = TestApp::with(&study).await;
    let id = app.says("ZhangSan", "质控 P001").await;
    app.wecom.wait_for_messages(2).await;
    app.settled().await;
    let messages = app.wecom.messages();
    assert!(messages.len() >= 3, "{}", messages.len());
    assert!(
        messages
            .iter()
            .all(|m| !m.truncated && m.content.len() <= 2048)
    );
    let joined: String = messages
        .iter()
        .map(|message| message.content.split_once('\n').unwrap().1)
        .collect();
    let whole = app.wecom_message(id).await["replies"][0]["text"].clone();
    assert_eq!(joined, whole.as_str().unwrap());
    assert_eq!(app.count("iit_outbox_parts WHERE state <> 'sent'").await, 0);
    app.stop().await;
}

#[tokio::test]
async fn a_token_that_wecom_no_longer_takes_is_refreshed_once_and_the_reply_arrives() {
    let app = app().await;
    app.ask("ZhangSan", "帮助").await;
    app.wecom.revoke_token();
    let reply = app.ask("ZhangSan", "质控 P001").await;
    assert!(reply.contains("年龄<18岁"), "{reply}");
    app.settled().await;
    assert_eq!(app.wecom.calls(Endpoint::GetToken), 2);
    assert_eq!(app.wecom.calls(Endpoint::Send), 3);
    assert_eq!(app.wecom.messages().len(), 2);
    app.stop().await;
}

#[tokio::test]
async fn a_reply_whose_arrival_is_unknown_is_not_sent_twice() {
    let app = app().await;
    app.wecom.fail(Endpoint::Send, 1, Fault::DropAfterDelivery);
    let id = app.says("ZhangSan", "质控 P001").await;
    app.wecom.wait_for_messages(1).await;
    app.settled().await;
    let message = app.wecom_message(id).await;
    assert_eq!(message["replies"][0]["state"], "unknown");
    assert_eq!(
        app.count("iit_outbox_parts WHERE state = 'unknown'").await,
        1
    );
    app.settled_at_once().await;
    assert_eq!(app.wecom.calls(Endpoint::Send), 1);
    app.stop().await;
}

#[tokio::test]
async fn while_wecom_is_busy_the_reply_waits_and_then_arrives_once() {
    let app = app().await;
    app.wecom
        .fail(Endpoint::Send, 1, Fault::Errcode(-1, "system busy"));
    app.wecom.fail(
        Endpoint::Send,
        2,
        Fault::Errcode(45_009, "api freq out of limit"),
    );
    app.wecom.fail(Endpoint::GetToken, 1, Fault::Drop);
    let id = app.says("ZhangSan", "质控 P001").await;
    app.settled_at_once().await;
    let messages = app.wecom.messages();
    assert_eq!(messages.len(), 1);
    assert!(messages[0].content.contains("年龄<18岁"));
    assert_eq!(app.wecom_message(id).await["replies"][0]["state"], "sent");
    let attempts: i32 = sqlx::query_scalar("SELECT attempt FROM iit_jobs WHERE kind = 'deliver'")
        .fetch_one(&app.db.pool)
        .await
        .unwrap();
    // Only a busy WeCom could be the message's own fault; what all messages meet counts against none.
    assert_eq!(attempts, 2);
    app.stop().await;
}

#[tokio::test]
async fn a_reply_that_never_gets_through_is_a_dead_job_and_can_be_tried_again() {
    let app = app().await;
    app.wecom
        .fail_always(Endpoint::Send, Fault::Errcode(99_999, "something odd"));
    let id = app.says("ZhangSan", "质控 P001").await;
    app.settled_at_once().await;
    assert_eq!(app.wecom_message(id).await["replies"][0]["state"], "failed");
    assert!(app.wecom.messages().is_empty());
    let why = app
        .text("SELECT last_error FROM iit_jobs WHERE state = 'dead'")
        .await;
    assert!(why.is_some_and(|why| !why.is_empty()));

    app.wecom.recover();
    let mut conn = app.db.pool.acquire().await.unwrap();
    let dead = depth::dead(&mut conn, None, None, 10).await.unwrap();
    let retried = depth::retry(&mut conn, &[dead[0].id]).await.unwrap();
    assert_eq!(retried.len(), 1);
    app.wiring.wake().queues(["deliver".to_owned()]);
    app.wecom.wait_for_messages(1).await;
    app.settled().await;
    assert_eq!(app.wecom_message(id).await["replies"][0]["state"], "sent");
    app.stop().await;
}

#[tokio::test]
async fn somebody_wecom_does_not_know_fails_at_once_with_the_reason() {
    let study = StudyFolder::with_eligibility("lung", [Subject::fit("P001")]);
    study.write_project("[[members]]\nwecom_user = \"WangWu\"\nrole = \"dm\"\n");
    let text = std::fs::read_to_string(study.project_file()).unwrap();
    study.write_whole_project(&text);
    let app = TestApp::with(&study).await;
    let id = app.says("WangWu", "质控 P001").await;
    eventually("the end of the delivery", async || {
        let dead = app.count("iit_jobs WHERE state = 'dead'").await;
        (dead == 1).then_some(())
    })
    .await;
    assert_eq!(app.wecom_message(id).await["replies"][0]["state"], "failed");
    let error = app.text("SELECT error FROM iit_outbox").await.unwrap();
    assert!(error.contains("81013"), "{error}");
    app.stop_with_dead(&["deliver"]).await;
}
