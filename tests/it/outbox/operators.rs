//! What operators see of messages that did not surely arrive, and how they send one again.

use iit_manager::store::wecom_gate::{self, Refusal};
use serde_json::json;
use uuid::Uuid;

use super::desk::Desk;
use crate::support::{
    binary::Iit,
    fake_wecom::{Endpoint, Fault},
};

#[tokio::test]
async fn an_unknown_message_is_listed_and_sent_again_once_for_each_time_it_is_asked_for() {
    let desk = Desk::new().await;
    let iit = Iit::on(&desk.db);
    desk.wecom.fail(Endpoint::Send, 2, Fault::DropAfterDelivery);
    let id = desk.reply("ZhangSan", &["一", "二"]).await;
    desk.work().await;
    desk.reply("LiSi", &["好"]).await;
    desk.later(2).await;
    desk.work().await;
    desk.later(2).await;
    desk.work().await;
    let listed = iit.json(&["outbox", "list", "--format", "json"]).await;
    let rows = listed.as_array().unwrap();
    let ours: Vec<_> = rows.iter().filter(|row| row["id"] == json!(id)).collect();
    assert_eq!(rows.len(), 1);
    assert_eq!(ours[0]["state"], "unknown");
    assert_eq!(ours[0]["kind"], "reply");
    assert_eq!(
        (
            &ours[0]["parts"],
            &ours[0]["parts_sent"],
            &ours[0]["recipient"]
        ),
        (&json!(2), &json!(1), &json!("ZhangSan"))
    );
    let sent = iit
        .json(&["outbox", "list", "--state", "sent", "--format", "json"])
        .await;
    assert_eq!(sent.as_array().unwrap().len(), 1);
    let table = iit.ok(&["outbox", "list"]).await;
    assert!(
        table.contains(&id.to_string()) && table.contains("1/2"),
        "{table}"
    );

    let args = [
        "outbox",
        "resend",
        &id.to_string(),
        "--reason",
        "电话确认未收到",
    ];
    iit.ok(&args).await;
    let twice = iit.run(&args).await;
    assert_eq!(twice.code, 1);
    assert!(twice.refusal().contains("queued"), "{}", twice.refusal());
    desk.work().await;
    assert_eq!(desk.state(id).await, "sent");
    assert_eq!(desk.shown().iter().filter(|text| *text == "一").count(), 1);
    assert_eq!(desk.shown().iter().filter(|text| *text == "二").count(), 2);
    let again = iit.run(&args).await;
    assert_eq!(again.code, 1, "{again:?}");

    let audited: Vec<(String, serde_json::Value, Option<String>)> = sqlx::query_as(
        "SELECT actor, new, reason FROM iit_audit_log WHERE action = 'outbox.resent' AND entity_id = $1",
    )
    .bind(id.to_string())
    .fetch_all(&desk.db.pool)
    .await
    .unwrap();
    assert_eq!(
        audited,
        [(
            "cli:tester".to_owned(),
            json!({ "state": "queued", "resends": 1 }),
            Some("电话确认未收到".to_owned())
        )]
    );
}

#[tokio::test]
async fn two_operators_at_once_send_it_again_once() {
    let desk = Desk::new().await;
    desk.wecom.fail(Endpoint::Send, 1, Fault::DropAfterDelivery);
    let id = desk.reply("ZhangSan", &["一"]).await.to_string();
    desk.work().await;
    let iit = Iit::on(&desk.db);
    let args = ["outbox", "resend", id.as_str()];
    let (a, b) = tokio::join!(iit.run(&args), iit.run(&args));
    let mut codes = [a.code, b.code];
    codes.sort_unstable();
    assert_eq!(codes, [0, 1]);
    desk.later(2).await;
    desk.work().await;
    assert_eq!(desk.shown(), ["一", "一"]);
    assert_eq!(
        desk.count("iit_audit_log WHERE action = 'outbox.resent'")
            .await,
        1
    );
}

#[tokio::test]
async fn a_failed_message_sent_again_takes_its_dead_job_along() {
    let desk = Desk::new().await;
    let iit = Iit::on(&desk.db);
    desk.wecom
        .fail(Endpoint::Send, 1, Fault::Errcode(60_011, "no privilege"));
    let id = desk.reply("ZhangSan", &["一"]).await;
    desk.work().await;
    assert_eq!(desk.state(id).await, "failed");
    iit.ok(&["outbox", "resend", &id.to_string()]).await;
    desk.work().await;
    assert_eq!(desk.state(id).await, "sent");
    assert_eq!(desk.count("iit_jobs WHERE state = 'dead'").await, 0);
    assert_eq!(desk.count("iit_jobs").await, 1);
    assert_eq!(desk.shown(), ["一"]);
}

#[tokio::test]
async fn a_retried_dead_job_sends_what_never_left_and_nothing_else() {
    let desk = Desk::new().await;
    let iit = Iit::on(&desk.db);
    desk.wecom.fail(Endpoint::Send, 1, Fault::DropAfterDelivery);
    desk.wecom
        .fail(Endpoint::Send, 2, Fault::Errcode(60_011, "no privilege"));
    let id = desk.reply("ZhangSan", &["一", "二"]).await;
    desk.work().await;
    desk.later(2).await;
    desk.work().await;
    assert_eq!(desk.state(id).await, "unknown");
    assert!(desk.error(id).await.contains("60011"));
    iit.ok(&["queue", "retry"]).await;
    assert_eq!(desk.state(id).await, "queued");
    desk.work().await;
    assert_eq!(desk.parts(id).await, ["unknown", "sent"]);
    assert_eq!(desk.shown(), ["一", "二"]);
}

#[tokio::test]
async fn what_does_not_exist_is_wrong_use() {
    let desk = Desk::new().await;
    let iit = Iit::on(&desk.db);
    for id in ["7", "", "0197a2b0-0000-7000-8000-000000000000"] {
        let ran = iit.run(&["outbox", "resend", id]).await;
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.refusal().contains("iit outbox list"), "{ran:?}");
    }
    let ran = iit.run(&["outbox", "list", "--state", "lost"]).await;
    assert_eq!(ran.code, 2);
}

#[tokio::test]
async fn a_closed_gate_is_shown_wherever_operators_look() {
    let desk = Desk::new().await;
    let iit = Iit::on(&desk.db);
    let fine = iit.ok(&["queue", "depth"]).await;
    assert!(!fine.contains("暂停"), "{fine}");
    let refusal = Refusal {
        cause: "60020",
        reason: "请把 203.0.113.9 加入应用的“企业可信IP”",
        waits: &[60.0],
        needs_person: true,
    };
    let mut conn = desk.db.pool.acquire().await.unwrap();
    wecom_gate::close(&mut conn, "app", Uuid::new_v4(), &refusal)
        .await
        .unwrap();
    for args in [&["queue", "depth"][..], &["outbox", "list"]] {
        let said = iit.ok(args).await;
        assert!(
            said.contains("暂停") && said.contains("203.0.113.9"),
            "{said}"
        );
    }
    let json = iit.json(&["queue", "depth", "--format", "json"]).await;
    assert!(json.is_array());
    let doctor = iit.run(&["doctor"]).await;
    assert_eq!(doctor.code, 1, "{doctor:?}");
    assert!(doctor.stdout.contains("203.0.113.9"), "{doctor:?}");
}
