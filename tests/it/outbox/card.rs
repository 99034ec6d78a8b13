//! A question's card on its way: after the text, once, and never in the text's way.

use iit_manager::adapters::wecom::config::WecomConfig;
use serde_json::json;

use super::desk::Desk;
use crate::queue::{
    program::worker_with,
    rig::{count, eventually},
};
use crate::support::{
    binary::Iit,
    fake_wecom::{Endpoint, Fault, Hold},
};

const QUESTION: &str = "请问您指的是哪位患者？\n1. P001\n2. P002";

async fn question(desk: &Desk) -> iit_manager::types::ids::OutboxId {
    desk.question("ZhangSan", QUESTION, &["P001", "P002"]).await
}

#[tokio::test]
async fn the_text_goes_first_and_the_card_repeats_the_choices() {
    let desk = Desk::new().await;
    let id = question(&desk).await;
    desk.work().await;
    assert_eq!(desk.state(id).await, "sent");
    let requests = desk.wecom.requests();
    let kinds: Vec<_> = requests.iter().map(|r| r["msgtype"].clone()).collect();
    assert_eq!(kinds, ["text", "template_card"]);
    assert_eq!(desk.shown(), [QUESTION]);
    assert_eq!(desk.wecom.cards()[0].buttons(), ["P001", "P002"]);
    assert_eq!(desk.count("iit_wecom_sends").await, 2, "both take a place");
}

#[tokio::test]
async fn a_refused_card_is_given_up_and_the_text_is_not_said_twice() {
    for fault in [
        Fault::Errcode(40_058, "template_card"),
        Fault::Errcode(40_008, "invalid message type"),
        Fault::Errcode(42_014, "invalid task_id"),
        Fault::Errcode(42_018, "invalid button key"),
        Fault::Errcode(43_012, "callback url"),
        Fault::Errcode(45_002, "too long"),
        Fault::Errcode(60_011, "no privilege"),
        Fault::Errcode(99_999, "who knows"),
        Fault::Errcode(-1, "busy"),
        Fault::Html(404),
    ] {
        let desk = Desk::new().await;
        desk.wecom.fail(Endpoint::Send, 2, fault.clone());
        let id = question(&desk).await;
        desk.work().await;
        assert_eq!(desk.state(id).await, "sent", "{fault:?}");
        assert_eq!(desk.parts(id).await, ["sent", "failed"], "{fault:?}");
        desk.later(86_400).await;
        desk.work().await;
        assert_eq!(desk.wecom.calls(Endpoint::Send), 2, "{fault:?}");
        assert_eq!(desk.shown(), [QUESTION]);
        assert!(desk.wecom.cards().is_empty());
        assert_eq!(desk.count("iit_jobs WHERE state <> 'done'").await, 0);
    }
}

#[tokio::test]
async fn what_stops_the_app_keeps_the_card_waiting_and_not_the_text() {
    let desk = Desk::new().await;
    desk.wecom
        .fail(Endpoint::Send, 2, Fault::Errcode(45_009, "freq"));
    let id = question(&desk).await;
    desk.work().await;
    assert_eq!(desk.parts(id).await, ["sent", "queued"]);
    desk.later(66).await;
    desk.work().await;
    assert_eq!(desk.state(id).await, "sent");
    assert_eq!((desk.shown().len(), desk.wecom.cards().len()), (1, 1));
}

#[tokio::test]
async fn a_card_that_a_closed_gate_kept_for_a_day_does_not_make_the_answer_fail() {
    let desk = Desk::new().await;
    let id = question(&desk).await;
    desk.wecom
        .fail(Endpoint::Send, 2, Fault::Errcode(45_009, "freq"));
    desk.work().await;
    desk.wecom
        .fail_always(Endpoint::Send, Fault::Errcode(45_009, "freq"));
    desk.later(86_500).await;
    desk.work().await;
    assert_eq!(desk.state(id).await, "sent");
    assert_eq!(desk.parts(id).await, ["sent", "queued"]);
}

#[tokio::test]
async fn a_card_whose_arrival_is_unclear_stays_unknown_and_an_operator_can_send_it_again() {
    for fault in [Fault::DropAfterDelivery, Fault::Drop, Fault::Html(502)] {
        let desk = Desk::new().await;
        let iit = Iit::on(&desk.db);
        desk.wecom.fail(Endpoint::Send, 2, fault);
        let id = question(&desk).await;
        desk.work().await;
        desk.later(86_400).await;
        desk.work().await;
        assert_eq!(desk.state(id).await, "unknown");
        assert_eq!(desk.parts(id).await, ["sent", "unknown"]);
        assert_eq!(desk.wecom.calls(Endpoint::Send), 2);
        let listed = iit.json(&["outbox", "list", "--format", "json"]).await;
        assert_eq!(
            listed[0]["part_states"],
            json!(["text sent", "card unknown"])
        );
        let table = iit.ok(&["outbox", "list"]).await;
        assert!(table.contains("card unknown"), "{table}");
        iit.ok(&["outbox", "resend", &id.to_string()]).await;
        desk.work().await;
        assert_eq!(desk.state(id).await, "sent");
        assert_eq!(desk.shown(), [QUESTION]);
        // The same name: one that had arrived is not shown twice.
        assert_eq!(desk.wecom.cards().len(), 1);
    }
}

#[tokio::test]
async fn cards_that_are_switched_off_leave_the_text_alone() {
    let desk = Desk::new().await;
    let mut variables = desk.wecom.variables();
    variables.insert("WECOM_CARDS", "off".to_owned());
    let off = WecomConfig::from_lookup(|name| variables.get(name).cloned());
    let id = question(&desk).await;
    desk.work_with(&off.unwrap().unwrap()).await;
    assert_eq!(desk.state(id).await, "sent");
    assert_eq!(desk.parts(id).await, ["sent", "skipped"]);
    assert_eq!(desk.wecom.calls(Endpoint::Send), 1);
    assert_eq!(desk.shown(), [QUESTION]);
}

#[tokio::test]
async fn a_text_that_can_never_be_sent_takes_its_card_along() {
    let desk = Desk::new().await;
    desk.wecom
        .fail(Endpoint::Send, 1, Fault::Errcode(60_011, "no privilege"));
    let id = question(&desk).await;
    desk.work().await;
    assert_eq!(desk.state(id).await, "failed");
    assert_eq!(desk.wecom.calls(Endpoint::Send), 1);
    assert!(desk.wecom.cards().is_empty());
}

#[tokio::test]
async fn somebody_whose_id_is_all_digits_gets_his_text_and_his_card_alone() {
    let desk = Desk::new().await;
    let id = desk.question("10086", QUESTION, &["2", "1"]).await;
    desk.work().await;
    assert_eq!(desk.state(id).await, "sent");
    for request in desk.wecom.requests() {
        assert_eq!(request["touser"], "10086");
        assert!(request.get("toparty").is_none() && request.get("totag").is_none());
    }
    let card = desk.wecom.cards().remove(0);
    assert_eq!(
        (card.to.as_str(), card.buttons()),
        ("10086", vec!["2".to_owned(), "1".to_owned()])
    );
    assert_eq!(card.card["button_list"][1]["key"], "chip-1");
}

#[tokio::test]
async fn a_card_that_is_one_too_many_for_a_member_waits_for_room() {
    let desk = Desk::new().await;
    for no in 0..29 {
        desk.reply("ZhangSan", &[&no.to_string()]).await;
    }
    let id = question(&desk).await;
    desk.work().await;
    assert_eq!(desk.parts(id).await, ["sent", "queued"]);
    desk.later(71).await;
    desk.work().await;
    assert_eq!(desk.state(id).await, "sent");
    assert_eq!((desk.wecom.cards().len(), desk.wecom.dropped()), (1, 0));
}

/// A worker process dies while the `part`th part of a question is under way; another goes on.
async fn killed_at(part: usize) -> (Desk, Vec<String>) {
    let desk = Desk::new().await;
    let id = question(&desk).await;
    let hold = Hold::default();
    desk.wecom
        .fail(Endpoint::Send, part, Fault::Hold(hold.clone()));
    let variables = desk.wecom.variables();
    let first = worker_with(&desk.db, "deliver", &variables);
    tokio::time::timeout(crate::queue::rig::PATIENCE, hold.reached.notified())
        .await
        .unwrap();
    first.kill().await;
    hold.open.notify_one();
    let second = worker_with(&desk.db, "deliver", &variables);
    eventually("the message has come to an end", async || {
        count(
            &desk.db,
            "SELECT count(*) FROM iit_outbox WHERE state = 'unknown'",
        )
        .await
            == 1
    })
    .await;
    second.stop().await;
    let parts = desk.parts(id).await;
    (desk, parts)
}

#[tokio::test]
async fn a_process_killed_between_text_and_card_repeats_neither() {
    let (desk, parts) = killed_at(2).await;
    assert_eq!(parts, ["sent", "unknown"]);
    assert_eq!(desk.wecom.calls(Endpoint::Send), 2);
    assert_eq!(desk.shown(), [QUESTION]);
}

#[tokio::test]
async fn a_process_killed_over_the_text_leaves_it_unknown_and_the_card_still_asks() {
    let (desk, parts) = killed_at(1).await;
    assert_eq!(parts, ["unknown", "sent"]);
    assert_eq!(desk.wecom.calls(Endpoint::Send), 2);
    assert_eq!(desk.wecom.cards().len(), 1);
}
