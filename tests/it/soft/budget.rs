//! Budgets: nothing leaves that they do not hold, over all workers.

use serde_json::json;

use super::{outcomes, run, soft_skill, study};
use crate::support::app::TestApp;
use crate::support::fake_llm::FakeLlm;
use crate::support::study::{StudyFolder, Subject};

async fn app_with_limits(model: &FakeLlm, study: &StudyFolder, limits: &str) -> TestApp {
    study.write_project(&format!("[llm]\n{limits}"));
    TestApp::with_model(study, model).await
}

#[tokio::test]
async fn a_project_without_budget_asks_nothing_and_says_so() {
    let model = FakeLlm::passing().await;
    let app = app_with_limits(
        &model,
        &study([Subject::fit("P001")]),
        "day_max_tokens = 100",
    )
    .await;
    app.qc("lung", None).await;
    assert_eq!(outcomes(&run(&app).await), ["error"]);
    assert_eq!(model.log().len(), 0);
    let finding = app.action("lung", "history/history").await;
    insta::assert_snapshot!(finding["message"].as_str().unwrap());
    assert_eq!(
        app.text("SELECT error FROM iit_llm_calls").await.unwrap(),
        "over budget"
    );
    assert_eq!(
        app.count("iit_llm_spend WHERE reserved_tokens <> 0").await,
        0
    );
    app.stop().await;
}

#[tokio::test]
async fn many_at_once_never_overdraw_the_day() {
    let model = FakeLlm::passing().await;
    let subjects: Vec<Subject> = (0..30).map(|n| Subject::fit(&format!("P{n:03}"))).collect();
    // A question is reserved at some 1,900 tokens and uses 120.
    let app = app_with_limits(&model, &study(subjects), "day_max_tokens = 4000").await;
    app.qc("lung", None).await;
    let asked = model.log().len();
    let (tokens, reserved): (i64, i64) = sqlx::query_as(
        "SELECT tokens, reserved_tokens FROM iit_llm_spend WHERE scope = 'project' AND owner = 'lung'",
    )
    .fetch_one(&app.db.pool)
    .await
    .unwrap();
    assert_eq!(reserved, 0, "every reservation is resolved");
    assert_eq!(tokens, 120 * i64::try_from(asked).unwrap());
    assert!((1..30).contains(&asked), "{asked}: some, and not all");
    let refused = app.count("iit_llm_calls WHERE error = 'over budget'").await;
    assert_eq!(refused, 30 - i64::try_from(asked).unwrap());
    app.stop().await;
}

#[tokio::test]
async fn cost_counts_by_the_price_and_ends_the_day_as_well() {
    let model = FakeLlm::passing().await;
    let study = study([Subject::fit("P001")]);
    study.write_project("[llm]\nday_max_cost = 0.0001");
    let mut variables = model.variables();
    variables.push(("LLM_PRICE_INPUT", "2".to_owned()));
    variables.push(("LLM_PRICE_OUTPUT", "8".to_owned()));
    let db = crate::support::postgres::TestDb::new().await;
    let app = TestApp::start_with(db, iit_manager::types::clock::Clock::system(), &variables).await;
    app.apply(&study).await;
    app.qc("lung", None).await;
    assert_eq!(
        outcomes(&run(&app).await),
        ["error"],
        "a question may cost a cent"
    );
    study.write_project("[llm]\nday_max_cost = 1.0");
    app.apply_project(&study).await;
    app.qc("lung", None).await;
    let cost = app
        .text("SELECT cost::text FROM iit_llm_calls WHERE state = 'answered'")
        .await;
    assert_eq!(cost.unwrap(), (100 * 2 + 20 * 8).to_string());
    assert_eq!(
        app.text("SELECT cost::text FROM iit_llm_spend WHERE scope = 'all'")
            .await
            .unwrap(),
        "360"
    );
    app.stop().await;
}

#[tokio::test]
async fn a_run_that_goes_round_is_ended_by_its_own_budget() {
    let model = FakeLlm::passing().await;
    let study = study([Subject::fit("P001")]);
    let mut skill = soft_skill();
    skill["nodes"]["history"]["on_pass"] = json!("again");
    skill["nodes"]["history"]["max_visits"] = json!(50);
    skill["nodes"]["again"] = json!({
        "type": "soft_instruction", "instruction": "再看一遍", "max_visits": 50,
        "on_pass": "history", "on_fail": "end_review_required"
    });
    study.write_skill("history", &skill);
    let app = app_with_limits(&model, &study, "run_max_calls = 7").await;
    app.qc("lung", None).await;
    assert_eq!(model.log().len(), 7);
    let run = run(&app).await;
    assert_eq!(outcomes(&run).last(), Some(&"error"));
    assert_eq!(run["standing"], "review");
    app.stop().await;
}
