//! The kinds behind the recorded callbacks: each check of the gate, from both sides of its border.

use iit_manager::adapters::wecom::callback::CallbackError;
use iit_manager::adapters::wecom::crypto;
use iit_manager::adapters::wecom::inbound::{Inbound, Kind};
use proptest::prelude::*;

use super::harness::{App, NOW, envelope, request, text_message};

fn receive(query: &str, body: &str) -> Result<Inbound, CallbackError> {
    App::b().gate(NOW).receive(query, body.as_bytes())
}

#[test]
fn any_single_bit_of_the_signature_decides() {
    let (query, body) = request(&text_message(&App::b(), 1, "质控 ID=001"));
    assert!(receive(&query, &body).is_ok());
    let start = "msg_signature=".len();
    for position in 0..40 {
        for bit in 0..8 {
            let flipped = query.as_bytes()[start + position] ^ (1 << bit);
            let broken = format!(
                "{}%{flipped:02X}{}",
                &query[..start + position],
                &query[start + position + 1..]
            );
            let error = receive(&broken, &body).unwrap_err();
            let expected = if flipped < 0x80 {
                matches!(error, CallbackError::Signature)
            } else {
                matches!(error, CallbackError::Query(_))
            };
            assert!(expected, "byte {position} bit {bit}: {error}");
        }
    }
}

#[test]
fn the_signature_covers_timestamp_nonce_and_ciphertext() {
    let (query, body) = request(&text_message(&App::b(), 1, "hi"));
    for broken in [
        query.replace("1700000000", "1700000001"),
        query.replace("8642", "8643"),
    ] {
        assert_eq!(receive(&broken, &body), Err(CallbackError::Signature));
    }
    let other = envelope(&App::b().encrypt(&text_message(&App::b(), 2, "ho")));
    assert_eq!(receive(&query, &other), Err(CallbackError::Signature));
}

#[test]
fn the_replay_window_holds_on_both_sides_and_only_after_the_signature() {
    let app = App::b();
    let encrypted = app.encrypt(&text_message(&app, 1, "hi"));
    let body = envelope(&encrypted);
    for (age, fresh) in [
        (0, true),
        (300, true),
        (-300, true),
        (301, false),
        (-301, false),
        (7_200, false),
        (1_700_000_000, false),
    ] {
        let query = app.sign(&(NOW - age).to_string(), &encrypted);
        assert_eq!(
            receive(&query, &body).err(),
            (!fresh).then_some(CallbackError::Stale),
            "age {age}"
        );
    }
    for odd in [
        "soon",
        "1.7e9",
        "-1700000000",
        "99999999999999999999",
        "+1700000000",
        " 1700000000",
    ] {
        let query = app.sign(odd, &encrypted).replace(' ', "%20");
        assert_eq!(receive(&query, &body), Err(CallbackError::Stale), "{odd}");
    }
    let forged = app.sign("1600000000", &encrypted).replace("8642", "1");
    assert_eq!(receive(&forged, &body), Err(CallbackError::Signature));
}

#[test]
fn a_message_for_another_company_key_or_token_is_refused() {
    let app = App::b();
    let message = text_message(&app, 1, "hi");
    let foreign = App {
        corp_id: "wwSecondCorp00002".to_owned(),
        ..app.clone()
    }
    .encrypt(&message);
    assert_eq!(
        receive(&app.sign("1700000000", &foreign), &envelope(&foreign)),
        Err(CallbackError::ReceiveId)
    );
    let rotated = App {
        key: "jWmYm7qr5nMoAUwZRjGtBxmz3KA1tkAj3ykkR6q2B2C".to_owned(),
        ..app.clone()
    }
    .encrypt(&message);
    let error = receive(&app.sign("1700000000", &rotated), &envelope(&rotated)).unwrap_err();
    assert_eq!((error.code(), error.http_status()), (-40_007, 400));
    let sealed = app.encrypt(&message);
    let old_token = App {
        token: "tokB_old".to_owned(),
        ..app
    }
    .sign("1700000000", &sealed);
    assert_eq!(
        receive(&old_token, &envelope(&sealed)),
        Err(CallbackError::Signature)
    );
}

#[test]
fn a_ciphertext_cut_anywhere_is_refused_even_when_signed() {
    let app = App::b();
    let sealed = app.encrypt(&text_message(&app, 1, "质控 ID=001"));
    for length in 0..sealed.len() {
        let cut = &sealed[..length];
        let error = receive(&app.sign("1700000000", cut), &envelope(cut)).unwrap_err();
        assert!(
            matches!(error.code(), -40_005 | -40_007 | -40_008 | -40_010),
            "{length}: {error}"
        );
    }
}

#[test]
fn the_envelope_may_be_written_in_any_plain_way() {
    let app = App::b();
    let sealed = app.encrypt(&text_message(&app, 1, "hi"));
    let query = app.sign("1700000000", &sealed);
    for body in [
        format!("<xml><Encrypt>{sealed}</Encrypt></xml>"),
        format!(
            "\u{feff}<?xml version=\"1.0\" encoding=\"UTF-8\"?>\r\n<xml>\r\n  <AgentID>7</AgentID>\r\n  <Encrypt>\r\n    <![CDATA[{sealed}]]>\r\n  </Encrypt>\r\n</xml>\r\n"
        ),
        format!(
            "<xml a='1'><!-- c --><Unknown><Encrypt>x</Encrypt></Unknown><Encrypt><![CDATA[{}]]><![CDATA[{}]]></Encrypt><ToUserName/></xml>",
            &sealed[..9],
            &sealed[9..]
        ),
        format!(
            "<xml><Encrypt>{}</Encrypt></xml>",
            sealed.replace('=', "&#61;").replace('+', "&#x2B;")
        ),
    ] {
        assert!(receive(&query, &body).is_ok(), "{body}");
    }
    for body in [
        String::new(),
        "{}".to_owned(),
        sealed.clone(),
        "<xml/>".to_owned(),
        "<xml><Encrypt/></xml><xml/>".to_owned(),
        format!("<xml><encrypt>{sealed}</encrypt></xml>"),
        format!("<xml><a><Encrypt>{sealed}</Encrypt></a></xml>"),
        format!("<XML><Encrypt>{sealed}</Encrypt></XML>"),
        format!("<xml><Encrypt>{sealed}</Encrypt>"),
        format!("<xml><Encrypt>{sealed}</Encrypt><Encrypt>{sealed}</Encrypt></xml>"),
        format!("<!DOCTYPE xml><xml><Encrypt>{sealed}</Encrypt></xml>"),
        format!(
            "<!DOCTYPE xml SYSTEM \"file:///etc/passwd\"><xml><Encrypt>{sealed}</Encrypt></xml>"
        ),
    ] {
        let error = receive(&query, &body).unwrap_err();
        assert_eq!(
            (error.code(), error.http_status()),
            (-40_002, 400),
            "{body}"
        );
    }
    let empty = receive(&query, "<xml><Encrypt/></xml>").unwrap_err();
    assert_eq!(empty, CallbackError::Signature);
}

#[test]
fn a_document_type_inside_the_encrypted_message_is_refused_too() {
    let bomb = "<!DOCTYPE x [<!ENTITY a SYSTEM \"file:///etc/passwd\">]><xml><FromUserName>Z</FromUserName><CreateTime>1</CreateTime><MsgType>text</MsgType><Content>&a;</Content></xml>";
    let (query, body) = request(bomb);
    assert!(matches!(
        receive(&query, &body),
        Err(CallbackError::Malformed(_))
    ));
}

proptest! {
    #[test]
    fn no_query_and_body_make_the_gate_panic(query in ".{0,200}", body in proptest::collection::vec(any::<u8>(), 0..300)) {
        let gate = App::b().gate(NOW);
        prop_assert!(gate.verify_url(&query).is_err());
        prop_assert!(gate.receive(&query, &body).is_err());
    }

    #[test]
    fn signed_garbage_is_refused_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..20)) {
        let app = App::b();
        let blocks: Vec<u8> = bytes.iter().flat_map(|b| std::iter::repeat_n(*b, 16)).collect();
        let sealed = crypto::encrypt_padded(&app.config().aes_key, blocks).unwrap();
        prop_assert!(receive(&app.sign("1700000000", &sealed), &envelope(&sealed)).is_err());
    }

    #[test]
    fn any_text_typed_arrives_as_typed(content in "[^\r\0]{0,80}", id in 1_u64..) {
        let app = App::b();
        let message = text_message(&app, id, &content.replace("]]>", "]]]]><![CDATA[>"));
        let (query, body) = request(&message);
        prop_assert_eq!(receive(&query, &body).unwrap().kind, Kind::Text { content });
    }
}
