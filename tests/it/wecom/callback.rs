//! The callback as WeCom meets it: HTTP answers, repeats, bad bodies, a failing inbox.

use std::time::Duration;

use iit_manager::adapters::wecom::crypto;
use iit_manager::adapters::wecom::inbound::Kind;
use iit_manager::entry::wecom::Limits;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::harness::{Answer, App, Mood, NOW, Server, envelope, request, text_message};

#[tokio::test]
async fn url_verification_takes_a_plus_written_either_way_and_decodes_once() {
    let app = App::b();
    let server = Server::start(Some(app.gate(NOW))).await;
    let mut with_plus = 0;
    for number in 0..40 {
        let plain = format!("161614031755516{number:04}");
        let echo = app.encrypt(&plain);
        with_plus += usize::from(echo.contains('+'));
        let signed = app.sign("1700000000", &echo);
        let escaped = echo
            .replace('+', "%2B")
            .replace('/', "%2F")
            .replace('=', "%3D");
        let lower = echo
            .replace('+', "%2b")
            .replace('/', "%2f")
            .replace('=', "%3d");
        for written in [&escaped, &lower, &echo] {
            let answer = server.get(&format!("{signed}&echostr={written}")).await;
            assert_eq!((answer.status, answer.body.as_str()), (200, plain.as_str()));
        }
        let twice = escaped.replace('%', "%25");
        if twice != escaped {
            assert_eq!(
                server
                    .get(&format!("{signed}&echostr={twice}"))
                    .await
                    .status,
                403
            );
        }
    }
    assert!(with_plus > 5, "the sample must hold ciphertexts with +");
}

#[tokio::test]
async fn missing_or_doubled_parameters_are_one_plain_400() {
    let app = App::b();
    let server = Server::start(Some(app.gate(NOW))).await;
    let echo = app.encrypt("1").replace('+', "%2B");
    let good = format!(
        "{}&echostr={echo}",
        app.sign("1700000000", &app.encrypt("1"))
    );
    assert_eq!(server.get(&good).await.status, 200);
    let mut bodies = std::collections::BTreeSet::new();
    for name in ["msg_signature", "timestamp", "nonce", "echostr"] {
        let without: Vec<&str> = good
            .split('&')
            .filter(|pair| !pair.starts_with(name))
            .collect();
        let doubled = format!("{good}&{name}=1");
        for query in [without.join("&"), doubled] {
            let answer = server.get(&query).await;
            assert_eq!(answer.status, 400, "{query}");
            bodies.insert(answer.body);
        }
    }
    let bare = server
        .send_raw(b"GET /wecom/callback HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        .await;
    assert_eq!(bare.status, 400);
    bodies.insert(bare.body);
    insta::assert_snapshot!(bodies.into_iter().collect::<Vec<_>>().join("\n"), @r#"{"detail":"此请求不是完整的企业微信回调，原因见服务器日志 (the request is not a complete WeCom callback; the server log says why)","status":400,"title":"无法读取回调 (callback not readable)","type":"about:blank"}"#);
}

#[tokio::test]
async fn refusals_of_one_status_look_alike() {
    let app = App::b();
    let server = Server::start(Some(app.gate(NOW))).await;
    let sealed = app.encrypt(&text_message(&app, 1, "hi"));
    let foreign = App {
        corp_id: "ww1".to_owned(),
        ..app.clone()
    }
    .encrypt("x");
    let forged = server
        .post(&app.sign("1700000000", "other"), envelope(&sealed))
        .await;
    let stale = server
        .post(&app.sign("1600000000", &sealed), envelope(&sealed))
        .await;
    let misaddressed = server
        .post(&app.sign("1700000000", &foreign), envelope(&foreign))
        .await;
    assert_eq!(
        (&forged.body, &forged.body),
        (&stale.body, &misaddressed.body)
    );
    assert_eq!(
        (forged.status, stale.status, misaddressed.status),
        (403, 403, 403)
    );
    insta::assert_snapshot!(forged.body, @r#"{"detail":"此请求未通过企业微信回调校验，原因见服务器日志 (the request did not pass the WeCom callback checks; the server log says why)","status":403,"title":"回调未通过校验 (callback not accepted)","type":"about:blank"}"#);
    assert!(
        forged
            .head
            .contains("content-type: application/problem+json")
    );
    assert!(server.inbox.stored().is_empty());
}

#[tokio::test]
async fn three_deliveries_at_once_are_one_message_and_two_events_of_a_second_are_two() {
    let app = App::b();
    let server = Server::start(Some(app.gate(NOW))).await;
    let (query, body) = request(&text_message(&app, 42, "质控 P001"));
    let (one, two, three) = tokio::join!(
        server.post(&query, &body),
        server.post(&query, &body),
        server.post(&query, &body)
    );
    assert!([one, two, three].iter().all(Answer::is_empty_ok));
    assert_eq!(server.inbox.stored().len(), 1);
    for key in ["fb:up:1", "fb:down:1"] {
        let event = format!(
            "<xml><FromUserName>ZhangSan</FromUserName><CreateTime>1700000000</CreateTime><MsgType>event</MsgType><Event>CLICK</Event><EventKey>{key}</EventKey></xml>"
        );
        let (query, body) = request(&event);
        assert!(server.post(&query, &body).await.is_empty_ok());
    }
    assert_eq!(server.inbox.stored().len(), 3);
}

#[tokio::test]
async fn a_failing_or_stuck_inbox_is_a_500_and_the_next_delivery_is_stored() {
    let app = App::b();
    let limits = Limits {
        inbox_deadline: Duration::from_millis(50),
        ..Limits::default()
    };
    let server = Server::start_with(Some(app.gate(NOW)), limits).await;
    let (query, body) = request(&text_message(&app, 7, "质控 P001"));
    for mood in [Mood::Fails, Mood::Hangs] {
        server.inbox.set(mood);
        let answer = server.post(&query, &body).await;
        assert_eq!(answer.status, 500);
        assert!(!answer.body.contains("database"), "{}", answer.body);
        assert!(server.inbox.stored().is_empty());
    }
    server.inbox.set(Mood::Works);
    assert!(server.post(&query, &body).await.is_empty_ok());
    assert_eq!(server.inbox.stored().len(), 1);
}

#[tokio::test]
async fn a_body_of_20_mb_is_read_away_and_answered_413() {
    let app = App::b();
    let server = Server::start(Some(app.gate(NOW))).await;
    let (query, _) = request(&text_message(&app, 7, "x"));
    let answer = server.post(&query, vec![b'a'; 20 * 1024 * 1024]).await;
    assert_eq!(answer.status, 413);
    insta::assert_snapshot!(answer.body, @r#"{"detail":"回调请求体上限为 256 KB，图片与文件请在企业微信中发送 (the callback takes at most 256 KB; send pictures and files in WeCom itself)","status":413,"title":"请求过大 (request too large)","type":"about:blank"}"#);
    let mut chunked = format!("POST /wecom/callback?{query} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n").into_bytes();
    for _ in 0..40 {
        chunked.extend_from_slice(b"10000\r\n");
        chunked.extend(std::iter::repeat_n(b'a', 0x10000));
        chunked.extend_from_slice(b"\r\n");
    }
    chunked.extend_from_slice(b"0\r\n\r\n");
    assert_eq!(server.send_raw(&chunked).await.status, 413);
    assert!(server.inbox.stored().is_empty());
}

#[tokio::test]
async fn the_longest_text_a_person_can_type_fits() {
    let app = App::b();
    let server = Server::start(Some(app.gate(NOW))).await;
    let content = "质".repeat(20_000);
    let (query, body) = request(&text_message(&app, 7, &content));
    assert!(server.post(&query, &body).await.is_empty_ok());
    assert_eq!(server.inbox.stored()[0].kind, Kind::Text { content });
}

#[tokio::test]
async fn bytes_that_are_no_utf8_are_a_400_outside_and_inside_the_encryption() {
    let app = App::b();
    let server = Server::start(Some(app.gate(NOW))).await;
    let (query, body) = request(&text_message(&app, 7, "x"));
    let mut broken = body.into_bytes();
    broken.insert(5, 0xff);
    assert_eq!(server.post(&query, &broken).await.status, 400);

    let inner = [b"<xml><FromUserName>Z</FromUserName><CreateTime>1</CreateTime><MsgType>text</MsgType><Content>\xd6\xca\xbf\xd8</Content></xml>".as_slice()].concat();
    let mut plain = vec![1; 16];
    plain.extend_from_slice(&u32::try_from(inner.len()).unwrap().to_be_bytes());
    plain.extend_from_slice(&inner);
    plain.extend_from_slice(app.corp_id.as_bytes());
    let pad = 32 - plain.len() % 32;
    plain.extend(std::iter::repeat_n(u8::try_from(pad).unwrap(), pad));
    let sealed = crypto::encrypt_padded(&app.config().aes_key, plain).unwrap();
    let answer = server
        .post(&app.sign("1700000000", &sealed), envelope(&sealed))
        .await;
    assert_eq!(answer.status, 400);
    assert!(server.inbox.stored().is_empty());
}

#[tokio::test]
async fn nul_and_lone_surrogates_are_replaced_and_the_message_is_kept() {
    let app = App::b();
    let server = Server::start(Some(app.gate(NOW))).await;
    let message = text_message(&app, 9, "]]>&#xD83D;&#0;<![CDATA[\0质控");
    let (query, body) = request(&message);
    assert!(server.post(&query, &body).await.is_empty_ok());
    let stored = server.inbox.stored();
    let Kind::Text { content } = &stored[0].kind else {
        panic!("{:?}", stored[0].kind)
    };
    assert_eq!(content, "\u{fffd}\u{fffd}\u{fffd}质控");
}

#[tokio::test]
async fn a_body_that_never_ends_is_a_408_and_one_cut_off_stores_nothing() {
    let app = App::b();
    let limits = Limits {
        body_deadline: Duration::from_millis(50),
        ..Limits::default()
    };
    let server = Server::start_with(Some(app.gate(NOW)), limits).await;
    let (query, body) = request(&text_message(&app, 7, "x"));
    let head = format!(
        "POST /wecom/callback?{query} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len() + 1
    );
    let answer = server.send_raw(format!("{head}{body}").as_bytes()).await;
    assert_eq!(answer.status, 408);

    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream
        .write_all(format!("{head}{body}").as_bytes())
        .await
        .unwrap();
    stream.shutdown().await.unwrap();
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest).await;
    assert!(server.inbox.stored().is_empty());
}

#[tokio::test]
async fn without_configuration_both_methods_say_what_to_set() {
    let server = Server::start(None).await;
    let (query, body) = request("x");
    let answer = server.post(&query, &body).await;
    assert_eq!(answer.status, 503);
    assert_eq!(server.get(&query).await.body, answer.body);
    let problem: Value = serde_json::from_str(&answer.body).unwrap();
    assert!(
        problem["detail"]
            .as_str()
            .unwrap()
            .contains("WECOM_ENCODING_AES_KEY")
    );
}

#[tokio::test]
async fn other_methods_are_a_405() {
    let server = Server::start(Some(App::b().gate(NOW))).await;
    let answer = server
        .send_raw(b"DELETE /wecom/callback?a=b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        .await;
    assert_eq!(answer.status, 405);
}
