//! Without an answer in time the keywords decide, and the reply says so.

use iit_manager::types::clock::Clock;

use super::{Ids, always, app, intent, intents, outcomes};
use crate::support::app::{TestApp, eventually};
use crate::support::fake_llm::{Answer, FakeLlm, Hold};
use crate::support::postgres::TestDb;

async fn reason(app: &TestApp) -> String {
    app.text(
        "SELECT s.note FROM iit_task_step s JOIN iit_task_run r ON r.id = s.run_id
         WHERE r.kind = 'intent' ORDER BY s.committed_at DESC LIMIT 1",
    )
    .await
    .unwrap_or_default()
}

#[tokio::test]
async fn a_slow_model_is_not_waited_for_and_its_late_answer_is_journaled_and_not_used() {
    let ids = Ids::random();
    let model = always("HELP").await;
    let hold = Hold::default();
    let late = intents([intent("HELP", "今天天气怎么样啊", &[])]);
    model.next([Answer::Held(hold.clone(), late)]);
    let app = app(&ids, &model, &[("IIT_ROUTING_DEADLINE_S", "0.3")]).await;
    let reply = app.ask("ZhangSan", "今天天气怎么样啊").await;
    assert!(
        reply.contains("超出了我的范围"),
        "as the keywords read it: {reply}"
    );
    assert!(reply.contains("关键词模式"), "{reply}");
    assert_eq!(outcomes(&app.db).await, ["fallback"]);
    assert!(reason(&app).await.contains("deadline"));
    hold.open.notify_one();
    eventually("the late answer", async || {
        let answered = app.count("iit_llm_calls WHERE state = 'answered' AND settled");
        (answered.await == 1).then_some(())
    })
    .await;
    app.settled().await;
    let message = app.wecom_message(1).await;
    assert_eq!(message["replies"].as_array().unwrap().len(), 1);
    assert_eq!(message["replies"][0]["degraded"], true);
    assert_eq!(message["intents"][0]["kind"], "OUT_OF_SCOPE");
    app.stop().await;
}

#[tokio::test]
async fn a_model_that_never_answers_to_the_point_leaves_it_to_the_keywords() {
    let ids = Ids::random();
    let model = FakeLlm::start(|_| "我觉得是质控。".to_owned()).await;
    let app = app(&ids, &model, &[]).await;
    let text = format!("麻烦把 {} 的数据过一遍质控哈", ids.young);
    let reply = app.ask("ZhangSan", &text).await;
    assert!(
        reply.contains("年龄<18岁") && reply.contains("关键词模式"),
        "{reply}"
    );
    let message = app.chat("lung", "LiSi", &text).await;
    assert_eq!(message["replies"][0]["degraded"], true);
    assert_eq!(model.log().len(), 4, "one repair each, no more");
    let twice = ["invalid_reply", "invalid_reply"];
    assert_eq!(outcomes(&app.db).await, [twice, twice].concat());
    app.stop().await;
}

#[tokio::test]
async fn a_provider_in_trouble_is_asked_once_more_and_an_unpaid_one_not_again() {
    let ids = Ids::random();
    let model = always("OUT_OF_SCOPE").await;
    let app = app(&ids, &model, &[]).await;
    // A fault that passes within the deadline costs the person nothing.
    model.next([Answer::Http(
        503,
        Vec::new(),
        "<html>busy</html>".to_owned(),
    )]);
    let reply = app.ask("ZhangSan", "帮我想个团建方案").await;
    assert!(!reply.contains("关键词模式"), "{reply}");
    // A server that does not know the schema is asked without.
    let refusal = r#"{"error":{"code":400,"message":"response_format"}}"#;
    model.next([Answer::Http(400, Vec::new(), refusal.to_owned())]);
    let reply = app.ask("ZhangSan", "帮我想个团建方案").await;
    assert!(!reply.contains("关键词模式"), "{reply}");
    // Asked to wait longer than the deadline: the person does not wait.
    let wait = vec![("retry-after", "600".to_owned())];
    model.next([Answer::Http(429, wait, String::new())]);
    let before = model.log().len();
    for _ in 0..2 {
        let reply = app.ask("ZhangSan", "帮我想个团建方案").await;
        assert!(reply.contains("关键词模式"), "{reply}");
    }
    assert_eq!(
        model.log().len(),
        before + 1,
        "the breaker holds the second back"
    );
    assert!(reason(&app).await.contains("unavailable"));
    sqlx::query("UPDATE iit_llm_providers SET open_until = now()")
        .execute(&app.db.pool)
        .await
        .unwrap();
    model.always(Some(Answer::Http(402, Vec::new(), String::new())));
    let before = model.log().len();
    for _ in 0..2 {
        let reply = app.ask("ZhangSan", "帮我想个团建方案").await;
        assert!(reply.contains("关键词模式"), "{reply}");
    }
    assert_eq!(model.log().len(), before + 1);
    assert!(reason(&app).await.contains("withheld"));
    app.stop().await;
}

#[tokio::test]
async fn a_study_that_forbids_external_models_sends_no_message_out() {
    let ids = Ids::random();
    let variables = [
        // Nothing listens there, and nothing may be sent there.
        ("LLM_BASE_URL", "https://llm.example.invalid/v1".to_owned()),
        ("LLM_MODEL", "m".to_owned()),
    ];
    let app = TestApp::start_with(TestDb::new().await, Clock::system(), &variables).await;
    app.apply(&ids.study()).await;
    let reply = app.ask("ZhangSan", "帮我看看天气").await;
    assert!(reply.contains("关键词模式"), "{reply}");
    app.settled().await;
    assert_eq!(app.count("iit_llm_calls").await, 0);
    assert_eq!(app.count("iit_task_run").await, 0);
    app.stop().await;
}

#[tokio::test]
async fn a_day_budget_that_is_used_up_leaves_it_to_the_keywords() {
    let ids = Ids::random();
    let model = always("OUT_OF_SCOPE").await;
    let app = app(&ids, &model, &[("LLM_MAX_TOKENS_PER_DAY", "10")]).await;
    let reply = app.ask("ZhangSan", "帮我看看天气").await;
    assert!(reply.contains("关键词模式"), "{reply}");
    assert_eq!(model.log().len(), 0);
    assert!(reason(&app).await.contains("withheld"));
    app.stop().await;
}
