//! What WeCom refuses to the whole app: one message finds out, all others wait, nobody's attempts are
//! used up.

use iit_manager::{
    adapters::wecom::config::WecomConfig,
    store::wecom_gate::{self, Pass, Refusal},
};
use serde_json::json;
use uuid::Uuid;

use super::desk::{Desk, SLOTS};
use crate::{
    queue::rig::TestDb,
    support::fake_wecom::{Endpoint, Fault},
};

/// Messages to as many people.
async fn crowd(desk: &Desk, people: usize) -> Vec<String> {
    let mut texts = Vec::new();
    for person in 0..people {
        let text = format!("致 {person}");
        desk.reply(&format!("p{person}"), &[&text]).await;
        texts.push(text);
    }
    texts
}

#[tokio::test]
async fn a_frequency_block_is_met_by_a_few_probed_by_one_and_then_everybody_gets_his_message_once()
{
    let desk = Desk::new().await;
    let mut texts = crowd(&desk, 30).await;
    desk.wecom.fail_always(
        Endpoint::Send,
        Fault::Errcode(45_009, "api freq out of limit"),
    );
    desk.work().await;
    let met = desk.wecom.calls(Endpoint::Send);
    assert!((1..=SLOTS).contains(&met), "{met} calls");
    assert_eq!(desk.attempts().await, [0; 30]);
    desk.work().await;
    assert_eq!(desk.wecom.calls(Endpoint::Send), met, "closed");

    // Half-open: exactly one tries, and it stays closed for longer.
    desk.later(66).await;
    desk.work().await;
    assert_eq!(desk.wecom.calls(Endpoint::Send), met + 1);
    assert_eq!(desk.attempts().await, [0; 30]);
    let mut conn = desk.db.pool.acquire().await.unwrap();
    let gate = wecom_gate::closed(&mut conn).await.unwrap().remove(0);
    assert_eq!((gate.cause.as_str(), gate.failures), ("45009", 2));
    let wait = (gate.closed_until - chrono::Utc::now()).num_seconds();
    assert!((280..=300).contains(&wait), "{wait}");
    drop(conn);

    desk.wecom.recover();
    desk.later(306).await;
    desk.work().await;
    desk.later(10).await;
    desk.work().await;
    let mut shown = desk.shown();
    shown.sort();
    texts.sort();
    assert_eq!(shown, texts);
    assert_eq!(desk.wecom.calls(Endpoint::Send), met + 1 + 30);
    assert_eq!(desk.attempts().await, [1; 30]);
    assert_eq!(desk.count("iit_wecom_gate").await, 0);
    assert_eq!(desk.count("iit_outbox WHERE state <> 'sent'").await, 0);
}

#[tokio::test]
async fn each_refusal_of_the_app_closes_the_gate_with_its_reason() {
    for (code, says, needs_person) in [
        (60_020, "203.0.113.9", true),
        (301_002, "WECOM_AGENT_ID", true),
        (40_056, "WECOM_AGENT_ID", true),
        (40_001, "WECOM_SECRET", true),
        (45_033, "too many calls at once", false),
        (-1, "WeCom is busy", false),
    ] {
        let desk = Desk::new().await;
        desk.wecom.fail_always(
            Endpoint::Send,
            Fault::Errcode(
                code,
                "not allow to access from your ip, from ip: 203.0.113.9, more",
            ),
        );
        let first = desk.reply("ZhangSan", &["一"]).await;
        desk.work().await;
        desk.reply("LiSi", &["二"]).await;
        desk.work().await;
        assert_eq!(desk.wecom.calls(Endpoint::Send), 1, "{code}");
        let mut conn = desk.db.pool.acquire().await.unwrap();
        let gate = wecom_gate::closed(&mut conn).await.unwrap().remove(0);
        assert_eq!(
            (gate.cause, gate.needs_person),
            (code.to_string(), needs_person)
        );
        assert!(gate.reason.contains(says), "{}", gate.reason);
        assert_eq!(desk.parts(first).await, ["queued"]);
        // Only what one message could be the reason of is counted against it.
        let counted = i32::from(code == -1);
        assert_eq!(desk.attempts().await, [0, counted], "{code}");
    }
}

#[tokio::test]
async fn a_wrong_secret_is_asked_about_once_and_shown_until_it_is_right() {
    let desk = Desk::new().await;
    let mut variables = desk.wecom.variables();
    variables.insert("WECOM_SECRET", "another-secret".to_owned());
    let wrong = WecomConfig::from_lookup(|name| variables.get(name).cloned());
    let wrong = wrong.unwrap().unwrap();
    crowd(&desk, 10).await;
    desk.work_with(&wrong).await;
    let asked = desk.wecom.calls(Endpoint::GetToken);
    assert!((1..=SLOTS).contains(&asked), "{asked}");
    desk.work_with(&wrong).await;
    assert_eq!(desk.wecom.calls(Endpoint::GetToken), asked);
    assert_eq!(desk.wecom.calls(Endpoint::Send), 0);
    // The right one is found out about without anybody's help.
    desk.later(66).await;
    desk.work().await;
    desk.later(10).await;
    desk.work().await;
    assert_eq!(desk.wecom.messages().len(), 10);
    assert_eq!(desk.attempts().await, [1; 10]);
}

#[tokio::test]
async fn what_one_message_is_refused_for_stops_no_other_and_proves_that_wecom_takes_messages() {
    let desk = Desk::new().await;
    desk.wecom
        .fail(Endpoint::Send, 1, Fault::Errcode(45_009, "freq"));
    desk.wecom
        .fail(Endpoint::Send, 2, Fault::Errcode(60_011, "no privilege"));
    let refused = desk.reply("ZhangSan", &["一"]).await;
    desk.work().await;
    desk.later(66).await;
    desk.work().await;
    assert_eq!(desk.state(refused).await, "failed");
    assert!(desk.error(refused).await.contains("60011"));
    assert_eq!(desk.count("iit_wecom_gate").await, 0);
    let other = desk.reply("LiSi", &["二"]).await;
    desk.work().await;
    assert_eq!(desk.state(other).await, "sent");
}

#[tokio::test]
async fn somebody_elses_web_page_counts_against_the_message_that_met_it_and_keeps_the_others() {
    let desk = Desk::new().await;
    desk.wecom.fail_always(Endpoint::Send, Fault::Html(403));
    let met = desk.reply("ZhangSan", &["一"]).await;
    desk.work().await;
    let kept = desk.reply("LiSi", &["二"]).await;
    for _ in 0..14 {
        desk.later(700).await;
        sqlx::query("UPDATE iit_jobs SET run_at = now() + interval '1 hour' WHERE job_key = $1")
            .bind(kept.to_string())
            .execute(&desk.db.pool)
            .await
            .unwrap();
        desk.work().await;
    }
    assert_eq!(desk.wecom.calls(Endpoint::Send), 12);
    assert_eq!(desk.state(met).await, "failed");
    assert!(desk.error(met).await.contains("WECOM_API_BASE"));
    desk.wecom.recover();
    desk.later(4_000).await;
    desk.work().await;
    assert_eq!(desk.state(kept).await, "sent");
}

#[tokio::test]
async fn while_wecom_hangs_only_those_who_tried_are_unknown() {
    let desk = Desk::new().await;
    crowd(&desk, 20).await;
    desk.wecom.fail_always(Endpoint::Send, Fault::Drop);
    desk.work().await;
    let tried = desk.count("iit_outbox WHERE state = 'unknown'").await;
    assert_eq!(desk.wecom.calls(Endpoint::Send) as i64, tried);
    assert!((1..=SLOTS as i64).contains(&tried), "{tried}");
    desk.wecom.recover();
    for _ in 0..3 {
        desk.later(10).await;
        desk.work().await;
    }
    assert_eq!(
        desk.count("iit_outbox WHERE state = 'sent'").await,
        20 - tried
    );
    assert_eq!(desk.wecom.messages().len() as i64, 20 - tried);
}

#[tokio::test]
async fn when_nobody_answers_the_phone_all_wait_for_hours_and_then_it_is_said() {
    let desk = Desk::new().await;
    let id = desk.reply("ZhangSan", &["一"]).await;
    desk.wecom.fail_always(Endpoint::GetToken, Fault::Html(502));
    desk.work().await;
    for _ in 0..40 {
        desk.later(1_800).await;
        desk.work().await;
    }
    assert_eq!(desk.state(id).await, "queued", "20 hours are not a day");
    assert_eq!(desk.attempts().await, [0]);
    desk.later(5 * 3_600).await;
    desk.work().await;
    assert_eq!(desk.state(id).await, "failed");
    let error = desk.error(id).await;
    assert!(
        error.contains("24 小时") && error.contains("502"),
        "{error}"
    );
    assert_eq!(desk.wecom.calls(Endpoint::Send), 0);
}

const NO: Refusal<'static> = Refusal {
    cause: "45009",
    reason: "slow down",
    waits: &[60.0, 300.0],
    needs_person: false,
};

/// The lease of a job that runs.
async fn leased(db: &TestDb) -> Uuid {
    sqlx::query_scalar(
        "INSERT INTO iit_jobs (queue, kind, payload, state, lease_token, lease_expires_at, worker)
         VALUES ('deliver', 'probe', '{}', 'running', gen_random_uuid(), now() + interval '1 hour', gen_random_uuid())
         RETURNING lease_token",
    )
    .fetch_one(&db.pool)
    .await
    .unwrap()
}

#[tokio::test]
async fn a_probe_whose_worker_died_holds_nobody_up_longer_than_its_lease() {
    let db = TestDb::new().await;
    let mut conn = db.pool.acquire().await.unwrap();
    let (a, b) = (leased(&db).await, leased(&db).await);
    let now = Refusal {
        waits: &[0.0],
        ..NO
    };
    wecom_gate::close(&mut conn, "app", a, &now).await.unwrap();
    assert_eq!(
        wecom_gate::pass(&mut conn, "app", a).await.unwrap(),
        Pass::Probe
    );
    assert!(matches!(
        wecom_gate::pass(&mut conn, "app", b).await.unwrap(),
        Pass::Closed { .. }
    ));
    sqlx::query("UPDATE iit_jobs SET lease_expires_at = now() WHERE lease_token = $1")
        .bind(a)
        .execute(&db.pool)
        .await
        .unwrap();
    assert_eq!(
        wecom_gate::pass(&mut conn, "app", b).await.unwrap(),
        Pass::Probe
    );
    assert!(
        !wecom_gate::open(&mut conn, "app", a).await.unwrap(),
        "too late"
    );
}

#[tokio::test]
async fn one_probe_at_a_time_and_another_when_it_never_comes_back() {
    let db = TestDb::new().await;
    let mut conn = db.pool.acquire().await.unwrap();
    let (a, b) = (leased(&db).await, leased(&db).await);
    assert_eq!(
        wecom_gate::pass(&mut conn, "app", a).await.unwrap(),
        Pass::Open
    );
    let closed = wecom_gate::close(&mut conn, "app", a, &NO).await.unwrap();
    assert_eq!(closed, Some(1));
    let closed = wecom_gate::close(&mut conn, "app", b, &NO).await.unwrap();
    assert_eq!(closed, None, "it was under way when the gate closed");
    let later = async |seconds: f64| {
        sqlx::query(
            "UPDATE iit_wecom_gate SET closed_until = closed_until - make_interval(secs => $1),
                                       probe_until = probe_until - make_interval(secs => $1)",
        )
        .bind(seconds)
        .execute(&db.pool)
        .await
        .unwrap();
    };
    let waits = |pass: Pass| match pass {
        Pass::Closed { seconds, .. } => seconds,
        other => panic!("{other:?}"),
    };
    later(58.0).await;
    let wait = waits(wecom_gate::pass(&mut conn, "app", a).await.unwrap());
    assert!((0.9..=2.0).contains(&wait), "{wait}");
    assert_eq!(
        wecom_gate::pass(&mut conn, "other app", a).await.unwrap(),
        Pass::Open
    );
    later(5.0).await;
    assert_eq!(
        wecom_gate::pass(&mut conn, "app", a).await.unwrap(),
        Pass::Probe
    );
    assert_eq!(
        waits(wecom_gate::pass(&mut conn, "app", b).await.unwrap()),
        1.0
    );
    assert!(!wecom_gate::open(&mut conn, "app", b).await.unwrap());
    later(91.0).await;
    assert_eq!(
        wecom_gate::pass(&mut conn, "app", b).await.unwrap(),
        Pass::Probe
    );
    assert!(
        !wecom_gate::open(&mut conn, "app", a).await.unwrap(),
        "too late"
    );
    assert_eq!(
        wecom_gate::close(&mut conn, "app", b, &NO).await.unwrap(),
        Some(2)
    );
    later(400.0).await;
    assert_eq!(
        wecom_gate::pass(&mut conn, "app", b).await.unwrap(),
        Pass::Probe
    );
    let other = Refusal {
        cause: "60020",
        ..NO
    };
    assert_eq!(
        wecom_gate::close(&mut conn, "app", b, &other)
            .await
            .unwrap(),
        Some(1),
        "another reason begins anew"
    );
    later(61.0).await;
    wecom_gate::pass(&mut conn, "app", a).await.unwrap();
    assert!(wecom_gate::open(&mut conn, "app", a).await.unwrap());
    assert_eq!(
        wecom_gate::pass(&mut conn, "app", b).await.unwrap(),
        Pass::Open
    );
}

#[tokio::test]
async fn unlicensed_or_unknown_people_fail_by_themselves() {
    let desk = Desk::new().await;
    desk.wecom.fail(
        Endpoint::Send,
        1,
        Fault::Answer(json!({ "unlicenseduser": "zhangsan" })),
    );
    let unlicensed = desk.reply("ZhangSan", &["一"]).await;
    desk.work().await;
    let other = desk.reply("LiSi", &["二"]).await;
    desk.work().await;
    assert_eq!(desk.state(unlicensed).await, "failed");
    assert_eq!(desk.state(other).await, "sent");
}
