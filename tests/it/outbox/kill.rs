//! A worker process is killed while WeCom has its request in hand.

use crate::{
    queue::{
        program::worker_with,
        rig::{count, eventually},
    },
    support::fake_wecom::{Endpoint, Fault, Hold},
};

use super::desk::Desk;

/// Sends a message of three parts; the process dies while the second is under way, another goes on.
/// Returns what people see.
async fn killed_at_the_second_part(desk: &Desk, end: &str) -> Vec<String> {
    let hold = Hold::default();
    desk.wecom
        .fail(Endpoint::Send, 2, Fault::Hold(hold.clone()));
    let variables = desk.wecom.variables();
    let first = worker_with(&desk.db, "deliver", &variables);
    tokio::time::timeout(crate::queue::rig::PATIENCE, hold.reached.notified())
        .await
        .unwrap();
    assert_eq!(
        count(
            &desk.db,
            "SELECT count(*) FROM iit_outbox_parts WHERE state = 'sending'"
        )
        .await,
        1
    );
    first.kill().await;
    hold.open.notify_one();
    let second = worker_with(&desk.db, "deliver", &variables);
    eventually("the message has come to an end", async || {
        let ended: i64 = sqlx::query_scalar("SELECT count(*) FROM iit_outbox WHERE state = $1")
            .bind(end)
            .fetch_one(&desk.db.pool)
            .await
            .unwrap();
        ended == 1
    })
    .await;
    second.stop().await;
    desk.shown()
}

#[tokio::test]
async fn of_a_reply_that_part_is_unknown_and_the_rest_arrives_once() {
    let desk = Desk::new().await;
    let id = desk.reply("ZhangSan", &["一", "二", "三"]).await;
    let mut shown = killed_at_the_second_part(&desk, "unknown").await;
    assert_eq!(desk.parts(id).await, ["sent", "unknown", "sent"]);
    assert_eq!(desk.wecom.calls(Endpoint::Send), 3);
    // Whether WeCom went on with a request whose sender is gone is its own affair.
    shown.retain(|text| text != "二");
    assert_eq!(shown, ["一", "三"]);
}

#[tokio::test]
async fn of_a_notice_that_part_is_sent_again_and_every_part_is_seen_once() {
    let desk = Desk::new().await;
    let id = desk.notice("ZhangSan", &["一", "二", "三"]).await;
    let mut shown = killed_at_the_second_part(&desk, "sent").await;
    assert_eq!(desk.parts(id).await, ["sent"; 3]);
    assert_eq!(desk.wecom.calls(Endpoint::Send), 4);
    shown.sort();
    assert_eq!(shown, ["一", "三", "二"]);
}
