//! Every recorded callback of a self-built app, over TCP, byte for byte.

use iit_manager::adapters::wecom::crypto;
use iit_manager::adapters::wecom::inbound::{Inbound, Kind, Selection};
use serde_json::Value;

use super::harness::{App, Server};

fn vectors() -> Value {
    serde_json::from_str(include_str!("../../data/wecom/callbacks.json")).unwrap()
}

fn app(vectors: &Value, name: &str) -> Option<App> {
    let app = &vectors["apps"][name];
    (app["kind"] == "selfbuilt_xml").then(|| App {
        corp_id: app["corp_id"].as_str().unwrap().to_owned(),
        agent_id: app["agent_id"].as_i64().unwrap(),
        token: app["token"].as_str().unwrap().to_owned(),
        key: app["encoding_aes_key"].as_str().unwrap().to_owned(),
    })
}

fn codes(expect: &Value) -> Vec<i64> {
    let mut codes = vec![expect["code"].as_i64().unwrap()];
    codes.extend(
        expect["accept_codes"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_i64),
    );
    codes
}

/// What `expect` says about the message itself.
fn assert_content(id: &str, inbound: &Inbound, expect: &Value) {
    let expected = |name: &str| {
        expect[name]
            .as_str()
            .unwrap_or_else(|| panic!("{id}: no {name}"))
            .to_owned()
    };
    match &inbound.kind {
        Kind::Text { content } => {
            assert_eq!(expect["kind"], "text", "{id}");
            assert_eq!(*content, expected("content"), "{id}");
        }
        Kind::Image { media_id, pic_url } => {
            assert_eq!(expect["kind"], "image", "{id}");
            assert_eq!(
                (media_id, pic_url),
                (&expected("media_id"), &expected("pic_url")),
                "{id}"
            );
        }
        Kind::Event(event) => {
            assert_eq!(expect["kind"], "event", "{id}");
            for (name, value) in [
                ("event", &event.event),
                ("event_key", &event.event_key),
                ("task_id", &event.task_id),
                ("card_type", &event.card_type),
                ("response_code", &event.response_code),
            ] {
                assert_eq!(
                    value,
                    expect[name].as_str().unwrap_or_default(),
                    "{id} {name}"
                );
            }
            let selected: Vec<Selection> = expect["selected"]
                .as_object()
                .into_iter()
                .flatten()
                .map(|(question, options)| Selection {
                    question: question.clone(),
                    options: serde_json::from_value(options.clone()).unwrap(),
                })
                .collect();
            assert_eq!(event.selected, selected, "{id}");
        }
        Kind::Other { msg_type } => {
            assert_eq!(expect["kind"], "unknown", "{id}");
            assert_eq!(*msg_type, expected("msg_type"), "{id}");
        }
    }
    assert_eq!(inbound.from_user, expected("user"), "{id}");
    assert_eq!(inbound.agent, expect["agent_id"].as_i64().unwrap(), "{id}");
    assert_eq!(inbound.msg_id.as_deref(), expect["msg_id"].as_str(), "{id}");
}

#[tokio::test]
async fn every_recorded_callback_of_a_self_built_app_gets_the_expected_answer() {
    let vectors = vectors();
    let (mut checked, mut robots) = (0, 0);
    for case in vectors["vectors"].as_array().unwrap() {
        let id = case["id"].as_str().unwrap();
        // The robot (智能机器人) speaks JSON and needs an answer of its own; it is not mounted here.
        let Some(app) = app(&vectors, case["app"].as_str().unwrap()) else {
            robots += 1;
            continue;
        };
        checked += 1;
        let expect = &case["expect"];
        let query = case["query"].as_str().unwrap();
        let body = case["body"].as_str().unwrap_or_default();
        let gate = app.gate(case["now"].as_i64().unwrap());
        let server = Server::start(Some(gate.clone())).await;
        let is_get = case["method"] == "GET";
        let answer = if is_get {
            server.get(query).await
        } else {
            server.post(query, body).await
        };
        assert_eq!(
            i64::from(answer.status),
            expect["http"].as_i64().unwrap(),
            "{id}"
        );

        let outcome = if is_get {
            gate.verify_url(query).map(|_| None)
        } else {
            gate.receive(query, body.as_bytes()).map(Some)
        };
        let stored = server.inbox.stored();
        match outcome {
            Ok(inbound) => {
                assert_eq!(expect["code"], 0, "{id}");
                assert_eq!(stored, inbound.into_iter().collect::<Vec<_>>(), "{id}");
                if is_get {
                    assert_eq!(answer.body, expect["body_exact"].as_str().unwrap(), "{id}");
                    assert_eq!(answer.body, case["plaintext"].as_str().unwrap(), "{id}");
                } else {
                    assert!(answer.is_empty_ok(), "{id}: {answer:?}");
                    if expect["duplicate_of"].is_null() {
                        assert_content(id, &stored[0], expect);
                    }
                }
            }
            Err(error) => {
                assert!(
                    codes(expect).contains(&i64::from(error.code())),
                    "{id}: {error}"
                );
                assert!(stored.is_empty(), "{id}");
                assert_reveals_nothing(id, &answer.body);
            }
        }
    }
    assert_eq!(
        (checked, robots),
        (21, 3),
        "recorded cases: self-built, robot"
    );
}

/// The body of a refusal is one of two fixed texts.
fn assert_reveals_nothing(id: &str, body: &str) {
    let problem: Value = serde_json::from_str(body).unwrap();
    let detail = problem["detail"].as_str().unwrap();
    for word in [
        "signature",
        "签名",
        "decrypt",
        "base64",
        "receiveid",
        "timestamp",
        "padding",
        "-400",
    ] {
        assert!(!detail.to_lowercase().contains(word), "{id}: {detail}");
    }
}

#[tokio::test]
async fn a_recorded_message_and_its_recorded_retry_are_stored_once() {
    let vectors = vectors();
    let find = |id: &str| {
        let cases = vectors["vectors"].as_array().unwrap();
        cases.iter().find(|case| case["id"] == id).unwrap().clone()
    };
    let (first, retry) = (find("p1"), find("d1"));
    let app = app(&vectors, "A").unwrap();
    let server = Server::start(Some(app.gate(retry["now"].as_i64().unwrap()))).await;
    for case in [&first, &retry, &first, &retry] {
        let answer = server
            .post(
                case["query"].as_str().unwrap(),
                case["body"].as_str().unwrap(),
            )
            .await;
        assert!(answer.is_empty_ok(), "{answer:?}");
    }
    assert_eq!(server.inbox.stored().len(), 1);
}

#[tokio::test]
async fn all_messages_of_one_app_together_are_stored_once_each() {
    let vectors = vectors();
    let app = app(&vectors, "A").unwrap();
    let server = Server::start(Some(app.gate(1_700_000_005))).await;
    let mut keys = std::collections::BTreeSet::new();
    for case in vectors["vectors"].as_array().unwrap() {
        if case["app"] != "A" || case["method"] != "POST" || case["expect"]["code"] != 0 {
            continue;
        }
        let (query, body) = (
            case["query"].as_str().unwrap(),
            case["body"].as_str().unwrap(),
        );
        for _ in 0..3 {
            assert!(server.post(query, body).await.is_empty_ok());
        }
        let inbound = app
            .gate(1_700_000_005)
            .receive(query, body.as_bytes())
            .unwrap();
        keys.insert(inbound.dedupe_key().to_owned());
    }
    // p3 and p5 carry the same MsgId, d1 is p1 again.
    assert_eq!(keys.len(), 8);
    assert_eq!(server.inbox.stored().len(), keys.len());
}

#[test]
fn encrypting_gives_what_other_libraries_give() {
    let vectors = vectors();
    for reply in vectors["reply_vectors"].as_array().unwrap() {
        let app = app(&vectors, reply["app"].as_str().unwrap()).unwrap();
        let field = |name: &str| reply[name].as_str().unwrap();
        let random = field("random16").as_bytes().try_into().unwrap();
        let sealed = crypto::encrypt(
            &app.config().aes_key,
            &app.corp_id,
            random,
            field("plaintext"),
        );
        assert_eq!(sealed.unwrap(), field("encrypt"));
        let signature = crypto::signature(
            &app.token,
            field("timestamp"),
            field("nonce"),
            field("encrypt"),
        );
        assert_eq!(signature, field("msg_signature"));
    }
}
