//! WeCom drops what is too much for one member, and says ok. So nobody may send too much.

use iit_manager::store::wecom_sends::{self, Limit, Room};

use super::desk::Desk;
use crate::{
    queue::rig::TestDb,
    support::fake_wecom::{Endpoint, Fault},
};

#[tokio::test]
async fn somebody_flooded_gets_everything_later_and_in_order() {
    let desk = Desk::new().await;
    let texts: Vec<String> = (1..=70).map(|no| format!("第 {no} 条")).collect();
    for (no, text) in texts.iter().enumerate() {
        // One person, however the id is written.
        let to = if no % 2 == 0 { "ZhangSan" } else { "zhangsan" };
        desk.reply(to, &[text]).await;
    }
    let other = desk.reply("LiSi", &["另一人"]).await;
    desk.work().await;
    assert_eq!(desk.wecom.messages().len(), 30 + 1);
    assert_eq!(desk.state(other).await, "sent", "others don't wait for it");
    desk.later(50).await;
    desk.work().await;
    assert_eq!(desk.wecom.messages().len(), 31, "a minute is not over");
    for _ in 0..2 {
        desk.later(71).await;
        desk.work().await;
    }
    let shown: Vec<String> = desk
        .shown()
        .into_iter()
        .filter(|text| text != "另一人")
        .collect();
    assert_eq!(shown, texts);
    assert_eq!(desk.wecom.dropped(), 0);
    assert_eq!(desk.wecom.calls(Endpoint::Send), 71);
    assert_eq!(desk.attempts().await, [1; 71], "waiting uses up no attempt");
}

#[tokio::test]
async fn one_message_of_many_parts_goes_on_where_it_had_to_stop() {
    let desk = Desk::new().await;
    let parts: Vec<String> = (1..=33).map(|no| format!("({no}/33)")).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let id = desk.notice("ZhangSan", &parts).await;
    desk.work().await;
    assert_eq!(desk.state(id).await, "queued");
    assert_eq!(desk.wecom.messages().len(), 30);
    desk.later(71).await;
    desk.work().await;
    assert_eq!(desk.state(id).await, "sent");
    assert_eq!(desk.shown(), parts);
}

#[tokio::test]
async fn without_counting_the_thirty_first_would_be_lost() {
    let desk = Desk::new().await;
    for _ in 0..30 {
        desk.reply("ZhangSan", &["一"]).await;
    }
    desk.work().await;
    sqlx::query("DELETE FROM iit_wecom_sends")
        .execute(&desk.db.pool)
        .await
        .unwrap();
    let lost = desk.reply("ZhangSan", &["二"]).await;
    desk.work().await;
    assert_eq!(desk.state(lost).await, "sent");
    assert_eq!((desk.wecom.messages().len(), desk.wecom.dropped()), (30, 1));
}

#[tokio::test]
async fn what_was_not_delivered_takes_no_place() {
    let desk = Desk::new().await;
    desk.wecom
        .fail(Endpoint::Send, 1, Fault::Errcode(60_011, "no privilege"));
    desk.wecom.fail(Endpoint::Send, 2, Fault::DropAfterDelivery);
    desk.reply("ZhangSan", &["一"]).await;
    desk.work().await;
    assert_eq!(desk.count("iit_wecom_sends").await, 0);
    desk.reply("ZhangSan", &["二"]).await;
    desk.work().await;
    assert_eq!(
        desk.count("iit_wecom_sends").await,
        1,
        "it may have arrived"
    );
}

const LIMITS: [Limit; 2] = [
    Limit {
        messages: 3,
        window_s: 60.0,
    },
    Limit {
        messages: 5,
        window_s: 3_600.0,
    },
];

/// Seconds until there is room, after messages so many seconds ago.
async fn room_after(db: &TestDb, ago: &[f64]) -> Option<f64> {
    let mut tx = db.pool.begin().await.unwrap();
    for seconds in ago {
        sqlx::query(
            "INSERT INTO iit_wecom_sends (app, member, at)
             VALUES ('app', 'zhangsan', clock_timestamp() - make_interval(secs => $1)),
                    ('app', 'lisi', now()), ('other', 'zhangsan', now())",
        )
        .bind(seconds)
        .execute(&mut *tx)
        .await
        .unwrap();
    }
    let room = wecom_sends::take(&mut tx, "app", "zhangsan", &LIMITS).await;
    let counted: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM iit_wecom_sends WHERE app = 'app' AND member = 'zhangsan'",
    )
    .fetch_one(&mut *tx)
    .await
    .unwrap();
    tx.rollback().await.unwrap();
    match room.unwrap() {
        Room::Taken(_) => {
            let kept = ago.iter().filter(|seconds| **seconds < 3_600.0).count();
            assert_eq!(
                counted,
                kept as i64 + 1,
                "what is of no use any more is gone"
            );
            None
        }
        Room::In(seconds) => {
            assert_eq!(counted, ago.len() as i64, "not counted");
            Some(seconds)
        }
    }
}

#[tokio::test]
async fn room_comes_when_the_oldest_of_a_full_window_leaves_it() {
    let db = TestDb::new().await;
    for (ago, expected) in [
        (&[][..], None),
        (&[1.0, 2.0], None),
        (&[1.0, 2.0, 3.0], Some(57.0)),
        (&[1.0, 2.0, 59.0], Some(1.0)),
        (&[1.0, 2.0, 61.0], None),
        (&[10.0, 20.0, 30.0, 40.0], Some(30.0)),
        (&[1.0, 2.0, 100.0, 200.0, 600.0], Some(3_000.0)),
        (&[1.0, 2.0, 3.0, 200.0, 600.0], Some(3_000.0)),
        (&[100.0, 200.0, 300.0, 400.0, 3_700.0], None),
    ] {
        let room = room_after(&db, ago).await;
        match (room, expected) {
            (None, None) => {}
            (Some(got), Some(wanted)) => {
                assert!((wanted - got).abs() < 1.0, "{ago:?}: {got}, not {wanted}");
            }
            other => panic!("{ago:?}: {other:?}"),
        }
    }
}
