//! Whether it arrived, nobody knows: what becomes of replies and of notices, and what is not left
//! unclear.

use iit_manager::queue::{Wake, worker::Handler};
use iit_manager::{
    boot::postgres::StopMode,
    queue::claim::{self, Bound},
};
use uuid::Uuid;

use super::desk::Desk;
use crate::{
    queue::rig::{LONG, TestCluster, TestDb},
    support::fake_wecom::{Endpoint, Fault, Hold},
};

#[tokio::test]
async fn of_a_reply_the_unclear_part_is_not_repeated_and_the_parts_after_it_go_on() {
    let desk = Desk::new().await;
    desk.wecom.fail(Endpoint::Send, 2, Fault::DropAfterDelivery);
    let id = desk.reply("ZhangSan", &["一", "二", "三"]).await;
    desk.work().await;
    desk.later(2).await;
    desk.work().await;
    assert_eq!(desk.state(id).await, "unknown");
    assert_eq!(desk.parts(id).await, ["sent", "unknown", "sent"]);
    assert!(desk.error(id).await.contains("delivery unknown"));
    desk.later(86_400).await;
    desk.work().await;
    assert_eq!(desk.shown(), ["一", "二", "三"]);
    assert_eq!(desk.wecom.calls(Endpoint::Send), 3);
}

#[tokio::test]
async fn of_a_notice_the_unclear_part_is_sent_again_and_shown_once() {
    for (fault, delivered_before) in [(Fault::DropAfterDelivery, 1), (Fault::Drop, 0)] {
        let desk = Desk::new().await;
        desk.wecom.fail(Endpoint::Send, 1, fault);
        let id = desk.notice("ZhangSan", &["一", "二"]).await;
        desk.work().await;
        assert_eq!(desk.wecom.messages().len(), delivered_before);
        assert_eq!(desk.parts(id).await, ["unknown", "queued"], "in order");
        desk.later(10).await;
        desk.work().await;
        assert_eq!(desk.state(id).await, "sent");
        assert_eq!(desk.shown(), ["一", "二"]);
        assert_eq!(desk.wecom.calls(Endpoint::Send), 3);
    }
}

#[tokio::test]
async fn a_notice_that_wecom_would_not_compare_any_more_stays_unknown() {
    let desk = Desk::new().await;
    desk.wecom.fail(Endpoint::Send, 1, Fault::DropAfterDelivery);
    let id = desk.notice("ZhangSan", &["一"]).await;
    desk.work().await;
    desk.later(4 * 3_600).await;
    desk.work().await;
    assert_eq!(desk.state(id).await, "unknown");
    assert_eq!(desk.wecom.calls(Endpoint::Send), 1);
}

#[tokio::test]
async fn a_notice_that_never_gets_a_clear_answer_ends_as_unknown() {
    let desk = Desk::new().await;
    desk.wecom
        .fail_always(Endpoint::Send, Fault::DropAfterDelivery);
    let id = desk.notice("ZhangSan", &["一"]).await;
    for _ in 0..14 {
        desk.work().await;
        desk.later(400).await;
    }
    assert_eq!(desk.state(id).await, "unknown");
    assert_eq!(desk.wecom.calls(Endpoint::Send), 12);
    assert_eq!(desk.shown(), ["一"]);
}

#[tokio::test]
async fn a_message_given_up_over_a_part_that_was_leaving_is_unknown_and_not_failed() {
    let desk = Desk::new().await;
    let id = desk.reply("ZhangSan", &["一", "二"]).await;
    for statement in [
        "UPDATE iit_jobs SET crashes = 3",
        "UPDATE iit_outbox_parts SET state = 'sending', left_at = now() WHERE no = 0",
    ] {
        sqlx::query(statement).execute(&desk.db.pool).await.unwrap();
    }
    desk.work().await;
    assert_eq!(desk.state(id).await, "unknown");
    assert_eq!(desk.parts(id).await, ["unknown", "queued"]);
    let error = desk.error(id).await;
    assert!(
        error.contains("delivery unknown") && error.contains("crashed the worker"),
        "{error}"
    );
    assert_eq!(desk.wecom.calls(Endpoint::Send), 0);
}

#[tokio::test]
async fn an_answer_that_comes_while_the_database_is_away_is_noted_when_it_is_back() {
    let cluster = TestCluster::start().await;
    let desk = Desk::on(TestDb::on(&cluster).await).await;
    let id = desk.reply("ZhangSan", &["一", "二"]).await;
    let hold = Hold::default();
    desk.wecom
        .fail(Endpoint::Send, 1, Fault::Hold(hold.clone()));
    let job = {
        let mut conn = desk.db.pool.acquire().await.unwrap();
        let claimed = claim::claim(&mut conn, "deliver", Uuid::new_v4(), 1, LONG, Bound::START);
        claimed.await.unwrap().0.remove(0)
    };
    let sending = tokio::spawn(desk.jobs(Wake::new(Uuid::new_v4())).run(job));
    hold.reached.notified().await;
    // A claim is not waited for on disk; a commit that is takes it along.
    sqlx::query("CREATE TABLE flushed ()")
        .execute(&desk.db.pool)
        .await
        .unwrap();
    cluster.take_down(StopMode::Immediate).await;
    hold.open.notify_one();
    desk.wecom.wait_for_messages(1).await;
    cluster.bring_back().await;
    sending.await.unwrap().unwrap();
    assert_eq!(desk.state(id).await, "sent");
    assert_eq!(desk.shown(), ["一", "二"]);
    assert_eq!(desk.wecom.calls(Endpoint::Send), 2);
}

#[tokio::test]
async fn an_answer_that_comes_after_others_gave_the_part_up_clears_the_doubt() {
    let desk = Desk::new().await;
    let id = desk.reply("ZhangSan", &["一"]).await;
    let hold = Hold::default();
    desk.wecom
        .fail(Endpoint::Send, 1, Fault::Hold(hold.clone()));
    let job = {
        let mut conn = desk.db.pool.acquire().await.unwrap();
        let claimed = claim::claim(&mut conn, "deliver", Uuid::new_v4(), 1, LONG, Bound::START);
        claimed.await.unwrap().0.remove(0)
    };
    let late = tokio::spawn(desk.jobs(Wake::new(Uuid::new_v4())).run(job));
    hold.reached.notified().await;
    crate::queue::rig::expire_leases(&desk.db).await;
    iit_manager::queue::sweep::sweep(&desk.db.pool)
        .await
        .unwrap();
    desk.work().await;
    assert_eq!(desk.state(id).await, "unknown");
    hold.open.notify_one();
    late.await.unwrap().unwrap_err();
    assert_eq!(desk.state(id).await, "sent");
    assert_eq!(desk.shown(), ["一"]);
}

#[tokio::test]
async fn two_notices_with_the_same_words_are_two() {
    let desk = Desk::new().await;
    for _ in 0..2 {
        desk.notice("ZhangSan", &["受试者 001 请复核"]).await;
    }
    desk.work().await;
    assert_eq!(desk.shown(), ["受试者 001 请复核"; 2]);
}
