//! Sending through the message API: each outcome told apart, nothing twice, everything in order.

use std::time::Duration;

use iit_manager::adapters::wecom::client::{Deadlines, SHOWN_ONCE_FOR, WecomClient};
use iit_manager::adapters::wecom::config::WecomConfig;
use iit_manager::adapters::wecom::error::SendError;
use iit_manager::adapters::wecom::token::{MemoryTokenStore, Token};
use iit_manager::types::clock::Clock;
use serde_json::json;

use super::harness::at;
use crate::support::fake_wecom::{Endpoint, FakeWecom, Fault, Hold};

pub const LIFE: Duration = Duration::from_secs(7_200);

pub fn empty_store() -> MemoryTokenStore {
    MemoryTokenStore::new(Clock::fixed(at(1_700_000_000)))
}

pub fn client_of(
    config: &WecomConfig,
    store: &MemoryTokenStore,
    deadlines: Deadlines,
) -> WecomClient<MemoryTokenStore> {
    // Another test may have installed it already: that one serves as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    WecomClient::new(config, store.clone(), deadlines).unwrap()
}

pub fn client(wecom: &FakeWecom, store: &MemoryTokenStore) -> WecomClient<MemoryTokenStore> {
    client_of(&wecom.config(), store, Deadlines::default())
}

/// A client of one process, with an empty store.
pub async fn fresh() -> (FakeWecom, WecomClient<MemoryTokenStore>) {
    let wecom = FakeWecom::start().await;
    let client = client(&wecom, &empty_store());
    (wecom, client)
}

pub fn contents(wecom: &FakeWecom) -> Vec<String> {
    wecom
        .messages()
        .into_iter()
        .map(|message| message.content)
        .collect()
}

#[tokio::test]
async fn a_text_reaches_its_reader_and_the_token_is_kept() {
    let (wecom, client) = fresh().await;
    let sent = client
        .send_text(&["ZhangSan"], "质控完成：0 条违规")
        .await
        .unwrap();
    assert_eq!(sent.msg_id, "fake-message-1");
    client
        .send_text(&["ZhangSan", "LiSi"], "第二条")
        .await
        .unwrap();
    let messages = wecom.wait_for_messages(2).await;
    assert_eq!(
        (messages[0].to.as_slice(), messages[0].content.as_str()),
        (["ZhangSan".to_owned()].as_slice(), "质控完成：0 条违规")
    );
    assert_eq!(messages[1].to, ["ZhangSan", "LiSi"]);
    assert_eq!(
        (wecom.calls(Endpoint::GetToken), wecom.calls(Endpoint::Send)),
        (1, 2)
    );
}

#[tokio::test]
async fn what_concerns_the_whole_app_says_how_long_to_keep_still_and_is_not_retried_here() {
    for (code, first_wait, needs_person, suspects_message) in [
        (-1, 3, false, true),
        (45_009, 60, false, false),
        (45_033, 5, false, false),
        (40_001, 60, true, false),
        (40_013, 60, true, false),
        (40_056, 60, true, false),
        (60_020, 60, true, false),
        (301_002, 60, true, false),
    ] {
        for endpoint in [Endpoint::GetToken, Endpoint::Send] {
            let (wecom, client) = fresh().await;
            wecom.fail(
                endpoint,
                1,
                Fault::Errcode(code, "no, from ip: 203.0.113.9, more"),
            );
            let error = client.send_text(&["ZhangSan"], "hi").await.unwrap_err();
            let pause = error.pause().unwrap();
            assert!(
                matches!(error, SendError::Blocked { errcode, .. } if errcode == code),
                "{error:?}"
            );
            assert_eq!(
                (pause.waits[0], pause.needs_person, pause.suspects_message),
                (first_wait, needs_person, suspects_message),
                "{code}"
            );
            assert_eq!((wecom.calls(endpoint), wecom.messages().len()), (1, 0));
        }
    }
}

#[tokio::test]
async fn what_concerns_one_message_stops_no_other_and_most_of_it_for_good() {
    for (code, is_permanent) in [
        (81_013, true),
        (60_111, true),
        (40_003, true),
        (45_002, true),
        (60_011, true),
        (40_058, true),
        (44_004, true),
        (99_999, false),
    ] {
        let (wecom, client) = fresh().await;
        wecom.fail(Endpoint::Send, 1, Fault::Errcode(code, "no"));
        let error = client.send_text(&["ZhangSan"], "hi").await.unwrap_err();
        assert!(
            matches!(error, SendError::Refused { errcode, permanent, .. } if errcode == code && permanent == is_permanent),
            "{error:?}"
        );
        assert_eq!(error.pause(), None);
        assert_eq!(
            (wecom.calls(Endpoint::Send), wecom.messages().len()),
            (1, 0)
        );
    }
}

#[tokio::test]
async fn an_answer_that_got_lost_is_ambiguous_and_never_sent_again() {
    for (fault, delivered) in [
        (Fault::DropAfterDelivery, 1),
        (Fault::Drop, 0),
        (Fault::Html(502), 0),
        (Fault::Html(200), 0),
        (Fault::Flood, 1),
        (Fault::Answer(json!({ "errcode": "zero" })), 1),
    ] {
        let (wecom, client) = fresh().await;
        wecom.fail(Endpoint::Send, 1, fault.clone());
        let error = client.send_text(&["ZhangSan"], "hi").await.unwrap_err();
        assert!(
            matches!(error, SendError::Ambiguous { .. }),
            "{fault:?}: {error:?}"
        );
        assert_eq!(
            (wecom.calls(Endpoint::Send), wecom.messages().len()),
            (1, delivered),
            "{fault:?}"
        );
    }
}

#[tokio::test]
async fn a_deadline_passed_while_wecom_works_is_ambiguous() {
    let wecom = FakeWecom::start().await;
    let store = empty_store().holding(&Token::fresh(wecom.issue_token().into(), LIFE));
    let deadlines = Deadlines {
        total: Duration::from_millis(300),
        ..Deadlines::default()
    };
    let hold = Hold::default();
    wecom.fail(Endpoint::Send, 1, Fault::Hold(hold.clone()));
    let error = client_of(&wecom.config(), &store, deadlines)
        .send_text(&["ZhangSan"], "hi")
        .await
        .unwrap_err();
    assert!(matches!(error, SendError::Ambiguous { .. }), "{error:?}");
    assert_eq!(wecom.calls(Endpoint::Send), 1);
}

#[tokio::test]
async fn what_fails_before_the_message_leaves_is_not_sent() {
    for fault in [
        Fault::Drop,
        Fault::Html(502),
        Fault::Flood,
        Fault::Answer(json!({ "errcode": 0, "access_token": "" })),
    ] {
        let (wecom, client) = fresh().await;
        wecom.fail(Endpoint::GetToken, 1, fault.clone());
        let error = client.send_text(&["ZhangSan"], "hi").await.unwrap_err();
        assert!(
            matches!(error, SendError::NotSent { .. }),
            "{fault:?}: {error:?}"
        );
        assert_eq!(
            (wecom.calls(Endpoint::GetToken), wecom.calls(Endpoint::Send)),
            (1, 0)
        );
        client.send_text(&["ZhangSan"], "hi").await.unwrap();
    }
    let closed = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let mut variables = FakeWecom::start().await.variables();
    variables.insert("WECOM_API_BASE", format!("http://{closed}"));
    let config = WecomConfig::from_lookup(|name| variables.get(name).cloned())
        .unwrap()
        .unwrap();
    let store = empty_store().holding(&Token::fresh("valid".into(), LIFE));
    let error = client_of(&config, &store, Deadlines::default())
        .send_text(&["ZhangSan"], "hi")
        .await
        .unwrap_err();
    assert!(matches!(error, SendError::NotSent { .. }), "{error:?}");
}

#[tokio::test]
async fn a_redirect_or_a_strangers_404_points_at_the_address() {
    for status in [302, 403, 404, 413] {
        let (wecom, client) = fresh().await;
        wecom.fail(Endpoint::Send, 1, Fault::Html(status));
        let error = client.send_text(&["ZhangSan"], "hi").await.unwrap_err();
        let pause = error.pause().unwrap();
        assert!(
            matches!(error, SendError::Blocked { errcode, .. } if errcode == i64::from(status))
                && pause.needs_person
                && pause.suspects_message
                && error.to_string().contains("WECOM_API_BASE"),
            "{error}"
        );
        assert_eq!(wecom.calls(Endpoint::Send), 1);
    }
}

#[tokio::test]
async fn ids_of_digits_and_of_any_case_are_people_and_never_departments() {
    let (wecom, client) = fresh().await;
    wecom.add_member("10086");
    client.send_text(&["10086"], "hi").await.unwrap();
    client
        .send_text(&["ZHANGSAN", "10086"], "hi")
        .await
        .unwrap();
    let requests = wecom.requests();
    assert_eq!(
        (&requests[0]["touser"], &requests[1]["touser"]),
        (&json!("10086"), &json!("ZHANGSAN|10086"))
    );
    for request in requests {
        assert!(request.get("toparty").is_none() && request.get("totag").is_none());
        assert_eq!(request["msgtype"], "text");
    }
}

#[tokio::test]
async fn a_message_that_may_be_repeated_is_shown_once_and_any_other_each_time() {
    let (wecom, client) = fresh().await;
    let [one, other] = [1, 2].map(uuid::Uuid::from_u128);
    let once = async |message| {
        let sent = client.send_text_once(&["ZhangSan"], "提醒", message);
        sent.await.unwrap();
    };
    once(one).await;
    once(one).await;
    assert_eq!(contents(&wecom), ["提醒"]);
    once(other).await;
    assert_eq!(contents(&wecom), ["提醒"; 2], "the same words of another");
    wecom.pass_time(SHOWN_ONCE_FOR - Duration::from_secs(60));
    once(one).await;
    assert_eq!(contents(&wecom).len(), 2);
    wecom.pass_time(Duration::from_secs(4 * 3600));
    once(one).await;
    assert_eq!(contents(&wecom).len(), 3);
    for _ in 0..2 {
        client.send_text(&["ZhangSan"], "未发现问题").await.unwrap();
    }
    assert_eq!(contents(&wecom).len(), 5, "two answers");
}

#[tokio::test]
async fn unreachable_people_are_named_as_the_caller_wrote_them() {
    let (wecom, client) = fresh().await;
    let error = client
        .send_text(&["ZhangSan", "WangWu"], "hi")
        .await
        .unwrap_err();
    assert_eq!(
        error,
        SendError::PartialInvalid {
            users: vec!["WangWu".to_owned()],
            msg_id: "fake-message-1".to_owned()
        }
    );
    assert!(
        !error.to_string().contains("WangWu"),
        "the sentence goes to logs: {error}"
    );
    assert_eq!(wecom.messages()[0].to, ["ZhangSan"]);

    let error = client.send_text(&["WangWu"], "hi").await.unwrap_err();
    assert!(
        matches!(
            error,
            SendError::Refused {
                errcode: 81_013,
                permanent: true,
                ..
            }
        ),
        "{error}"
    );

    wecom.fail(
        Endpoint::Send,
        3,
        Fault::Answer(json!({ "unlicenseduser": "zhangsan" })),
    );
    let error = client.send_text(&["ZhangSan"], "hi").await.unwrap_err();
    assert!(
        matches!(
            error,
            SendError::Refused {
                errcode: 81_013,
                permanent: true,
                ..
            }
        ),
        "{error}"
    );
}

#[tokio::test]
async fn everybody_nobody_and_unsendable_texts_are_refused_before_any_call() {
    let (wecom, client) = fresh().await;
    let long = "字".repeat(683);
    for (to, text) in [
        (vec!["@all"], "hi"),
        (vec!["@ALL"], "hi"),
        (vec!["ZhangSan", "@all"], "hi"),
        (vec![], "hi"),
        (vec![""], "hi"),
        (vec!["ZhangSan|LiSi"], "hi"),
        (vec!["张三"], "hi"),
        (vec!["ZhangSan"], ""),
        (vec!["ZhangSan"], " \n"),
        (vec!["ZhangSan"], long.as_str()),
    ] {
        let error = client.send_text(&to, text).await.unwrap_err();
        assert!(
            matches!(
                error,
                SendError::Refused {
                    errcode: 0,
                    permanent: true,
                    ..
                }
            ),
            "{to:?}: {error:?}"
        );
    }
    assert_eq!(
        wecom.calls(Endpoint::GetToken) + wecom.calls(Endpoint::Send),
        0
    );
}

#[tokio::test]
async fn no_error_shows_a_secret_a_token_an_address_or_the_text() {
    for fault in [
        Fault::Drop,
        Fault::Html(502),
        Fault::Html(302),
        Fault::Errcode(40_014, "invalid"),
        Fault::Errcode(7, "odd"),
    ] {
        for endpoint in [Endpoint::GetToken, Endpoint::Send] {
            let (wecom, client) = fresh().await;
            wecom.fail_always(endpoint, fault.clone());
            let error = client
                .send_text(&["ZhangSan"], "受试者 001 的数据")
                .await
                .unwrap_err();
            let shown = format!("{error} {error:?} {client:?}");
            for secret in [
                FakeWecom::SECRET,
                "fake-access-token",
                "access_token=",
                "corpsecret",
                "受试者 001",
            ] {
                assert!(!shown.contains(secret), "{secret} in {shown}");
            }
        }
    }
}

#[test]
fn what_is_unclear_or_reaches_nobody_keeps_the_app_still_too() {
    for error in [
        SendError::Ambiguous { why: String::new() },
        SendError::NotSent { why: String::new() },
    ] {
        let pause = error.pause().unwrap();
        assert!(!pause.needs_person && !pause.suspects_message, "{error:?}");
        assert!(pause.waits[0] < 5, "{error:?}");
    }
}
