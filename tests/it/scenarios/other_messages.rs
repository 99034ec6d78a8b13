//! What is no text, and work nobody understands.

use crate::support::app::TestApp;
use crate::support::study::{StudyFolder, Subject};

async fn app() -> TestApp {
    TestApp::with(&StudyFolder::with_eligibility(
        "lung",
        [Subject::fit("P001")],
    ))
    .await
}

#[tokio::test]
async fn a_picture_gets_an_honest_answer_and_an_event_none() {
    let app = app().await;
    app.callback("<FromUserName><![CDATA[ZhangSan]]></FromUserName><MsgType><![CDATA[event]]></MsgType><Event><![CDATA[enter_agent]]></Event><EventKey></EventKey>").await;
    app.callback("<FromUserName><![CDATA[ZhangSan]]></FromUserName><MsgType><![CDATA[image]]></MsgType><PicUrl><![CDATA[http://p]]></PicUrl><MediaId><![CDATA[m]]></MediaId><MsgId>77</MsgId>").await;
    app.callback("<FromUserName><![CDATA[ZhangSan]]></FromUserName><MsgType><![CDATA[voice]]></MsgType><MediaId><![CDATA[m]]></MediaId><Format>amr</Format><MsgId>78</MsgId>").await;
    let messages = app.wecom.wait_for_messages(2).await;
    assert!(
        messages
            .iter()
            .all(|m| m.content.contains("只能处理文字消息")),
        "{messages:?}"
    );
    app.settled().await;
    assert_eq!(app.wecom.messages().len(), 2);
    assert_eq!(app.count("iit_inbox WHERE status = 'answered'").await, 3);
    app.stop().await;
}

#[tokio::test]
async fn work_nobody_understands_is_put_aside_with_the_reason_and_nothing_else_stops() {
    let app = app().await;
    sqlx::query(
        r#"INSERT INTO iit_jobs (queue, kind, payload, max_attempts) VALUES
           ('chat', 'nonsense', '{}', 5), ('chat', 'intent', '{"message": 7}', 5),
           ('edc', 'sop_step', '[]', 5), ('edc', 'batch_qc', 'null', 5),
           ('deliver', 'deliver', '{"outbox": "x", "to": "y"}', 5)"#,
    )
    .execute(&app.db.pool)
    .await
    .unwrap();
    app.wiring
        .wake()
        .queues(["chat", "edc", "deliver"].map(str::to_owned));
    let reply = app.ask("ZhangSan", "质控 P001").await;
    assert!(reply.contains("未发现问题"), "{reply}");
    app.settled().await;
    let reasons: Vec<(String, i32, String)> = sqlx::query_as(
        "SELECT kind, attempt, last_error FROM iit_jobs WHERE state = 'dead' ORDER BY kind",
    )
    .fetch_all(&app.db.pool)
    .await
    .unwrap();
    let reasons: Vec<String> = reasons
        .into_iter()
        .map(|(kind, attempt, why)| format!("{kind}, attempt {attempt}: {why}"))
        .collect();
    insta::assert_snapshot!(reasons.join("\n"));
    app.stop_with_dead(&["batch_qc", "deliver", "intent", "nonsense", "sop_step"])
        .await;
}

#[tokio::test]
async fn two_messages_in_one_breath_are_understood_in_order() {
    let app = app().await;
    for _ in 0..5 {
        let before = app.wecom.messages().len();
        sqlx::query("DELETE FROM iit_conversations")
            .execute(&app.db.pool)
            .await
            .unwrap();
        app.says("ZhangSan", "质控 P001").await;
        app.says("ZhangSan", "质控他").await;
        let replies = app.wecom.wait_for_messages(before + 2).await;
        assert!(
            replies
                .iter()
                .all(|reply| reply.content.contains("受试者 P001")),
            "{replies:?}"
        );
        app.settled().await;
    }
    app.stop().await;
}
