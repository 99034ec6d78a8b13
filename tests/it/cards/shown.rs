//! The clicked card shows the choice: a courtesy, tried once, in nobody's way.

use super::{answer_to, app_with_an_old_patient, asked};
use crate::support::app::TestApp;
use crate::support::fake_wecom::{Endpoint, Fault, ShownCard};

/// What is known of the update.
async fn state(app: &TestApp) -> String {
    let state = app.text("SELECT update_state FROM iit_card_clicks").await;
    state.unwrap()
}

/// A click that was answered, with something wrong with the updates of cards.
async fn clicked_with(fault: Fault) -> (TestApp, ShownCard) {
    let app = app_with_an_old_patient().await;
    app.wecom.fail(Endpoint::UpdateCard, 1, fault);
    let (_, card) = asked(&app, "ZhangSan", "质控他").await;
    let reply = answer_to(&app, "ZhangSan", &card, 0).await;
    assert!(reply.contains("受试者 P001"), "{reply}");
    app.settled_at_once().await;
    (app, card)
}

#[tokio::test]
async fn what_was_certainly_not_taken_is_tried_again() {
    for fault in [
        Fault::Errcode(-1, "busy"),
        Fault::Errcode(45_009, "freq"),
        Fault::Html(404),
    ] {
        let (app, card) = clicked_with(fault).await;
        assert_eq!(app.wecom.calls(Endpoint::UpdateCard), 2);
        assert_eq!(state(&app).await, "done");
        let shown = app.wecom.wait_for_replaced(&card.task_id()).await;
        assert_eq!(shown, "已选 是，P001");
        app.stop().await;
    }
}

#[tokio::test]
async fn what_may_have_been_taken_is_not_tried_again() {
    for fault in [Fault::DropAfterDelivery, Fault::Drop, Fault::Html(502)] {
        let (app, _) = clicked_with(fault).await;
        assert_eq!(app.wecom.calls(Endpoint::UpdateCard), 1);
        assert_eq!(state(&app).await, "unknown");
        app.stop().await;
    }
}

#[tokio::test]
async fn a_code_that_is_used_up_or_too_old_is_given_up_quietly() {
    for code in [42_016, 42_022, 40_058, 99_999] {
        let (app, _) = clicked_with(Fault::Errcode(code, "no")).await;
        assert_eq!(app.wecom.calls(Endpoint::UpdateCard), 1);
        assert_eq!(state(&app).await, "failed");
        app.stop().await;
    }
}

#[tokio::test]
async fn a_wecom_that_never_takes_it_leaves_no_dead_job() {
    let app = app_with_an_old_patient().await;
    app.wecom
        .fail_always(Endpoint::UpdateCard, Fault::Errcode(45_033, "busy"));
    let (_, card) = asked(&app, "ZhangSan", "质控他").await;
    answer_to(&app, "ZhangSan", &card, 0).await;
    app.settled_at_once().await;
    assert_eq!(app.wecom.calls(Endpoint::UpdateCard), 4);
    assert_eq!(state(&app).await, "failed");
    app.stop().await;
}

#[tokio::test]
async fn a_click_of_long_ago_is_not_shown_any_more() {
    let app = app_with_an_old_patient().await;
    let (_, card) = asked(&app, "ZhangSan", "质控他").await;
    app.settled().await;
    app.hold_queue("deliver").await;
    app.clicks("ZhangSan", &card, 0, 0).await;
    // The answer and the update.
    app.wait_for_jobs("deliver", 4).await;
    sqlx::query("UPDATE iit_inbox SET created_at = created_at - interval '13 hours'")
        .execute(&app.db.pool)
        .await
        .unwrap();
    app.release_queue("deliver").await;
    app.settled().await;
    assert_eq!(app.wecom.calls(Endpoint::UpdateCard), 0);
    assert_eq!(state(&app).await, "failed");
    app.stop().await;
}

#[tokio::test]
async fn an_update_whose_process_died_over_it_is_not_sent_again() {
    let app = app_with_an_old_patient().await;
    let (_, card) = asked(&app, "ZhangSan", "质控他").await;
    app.settled().await;
    app.hold_queue("deliver").await;
    app.clicks("ZhangSan", &card, 0, 0).await;
    app.wait_for_jobs("deliver", 4).await;
    sqlx::query("UPDATE iit_card_clicks SET update_state = 'sending'")
        .execute(&app.db.pool)
        .await
        .unwrap();
    app.release_queue("deliver").await;
    app.settled().await;
    assert_eq!(app.wecom.calls(Endpoint::UpdateCard), 0);
    assert_eq!(state(&app).await, "unknown");
    app.stop().await;
}
