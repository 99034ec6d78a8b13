//! The token under real sends: one refresh for all, a newer one never thrown away, no loops.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use iit_manager::adapters::wecom::client::Deadlines;
use iit_manager::adapters::wecom::config::WecomConfig;
use iit_manager::adapters::wecom::error::SendError;
use iit_manager::adapters::wecom::token::{MemoryTokenStore, Token, TokenStore};
use tokio::sync::Barrier;

use super::client::{LIFE, client, client_of, contents, empty_store, fresh};
use crate::support::fake_wecom::{Endpoint, FakeWecom, Fault, Hold};

/// Sends each text at the same time as the others, over two clients that share only the store.
async fn send_from_two_processes(wecom: &FakeWecom, store: &MemoryTokenStore, texts: &[String]) {
    let processes = [
        Arc::new(client(wecom, store)),
        Arc::new(client(wecom, store)),
    ];
    let start = Arc::new(Barrier::new(texts.len()));
    let sends = texts.iter().cloned().enumerate().map(|(index, text)| {
        let (client, start) = (processes[index % 2].clone(), start.clone());
        tokio::spawn(async move {
            start.wait().await;
            client.send_text(&["ZhangSan"], &text).await
        })
    });
    for sent in join_all(sends).await {
        sent.unwrap().unwrap();
    }
}

fn eight_texts() -> Vec<String> {
    (0..8).map(|number| format!("text {number}")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn eight_senders_of_two_processes_with_an_expired_token_ask_for_one() {
    let wecom = FakeWecom::start().await;
    let gone = Token {
        value: "long-gone".into(),
        lifetime: LIFE,
        remaining: Duration::ZERO,
    };
    send_from_two_processes(&wecom, &empty_store().holding(&gone), &eight_texts()).await;
    let mut delivered = contents(&wecom);
    delivered.sort();
    assert_eq!(delivered, eight_texts());
    assert_eq!(
        (wecom.calls(Endpoint::GetToken), wecom.calls(Endpoint::Send)),
        (1, 8)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn eight_senders_whose_token_died_early_ask_for_one_and_each_message_arrives_once() {
    for kill in [FakeWecom::revoke_token, FakeWecom::expire_token] {
        let wecom = FakeWecom::start().await;
        let store = empty_store().holding(&Token::fresh(wecom.issue_token().into(), LIFE));
        kill(&wecom);
        send_from_two_processes(&wecom, &store, &eight_texts()).await;
        let mut delivered = contents(&wecom);
        delivered.sort();
        assert_eq!(delivered, eight_texts());
        assert_eq!(wecom.calls(Endpoint::GetToken), 1);
    }
}

#[tokio::test]
async fn a_newer_token_in_the_store_is_used_instead_of_asking_again() {
    let wecom = FakeWecom::start().await;
    let old = Token::fresh(wecom.issue_token().into(), LIFE);
    let store = empty_store().holding(&old);
    let hold = Hold::default();
    wecom.fail(Endpoint::Send, 1, Fault::Hold(hold.clone()));
    let slow = client(&wecom, &store);
    let sending = tokio::spawn(async move { slow.send_text(&["ZhangSan"], "hi").await });
    hold.reached.notified().await;
    // While the request with the old token is under way, another process stores a newer one.
    let newer = Token::fresh(wecom.issue_token().into(), LIFE);
    let store = store.holding(&newer);
    hold.open.notify_one();
    sending.await.unwrap().unwrap();
    assert_eq!(
        (wecom.calls(Endpoint::GetToken), wecom.calls(Endpoint::Send)),
        (0, 2)
    );
    assert_eq!(
        store.load().await.unwrap().unwrap().fingerprint(),
        newer.fingerprint()
    );
}

#[tokio::test]
async fn each_token_error_is_cured_by_one_refresh() {
    for code in [40_014, 42_001, 41_001] {
        let (wecom, client) = fresh().await;
        wecom.fail(Endpoint::Send, 1, Fault::Errcode(code, "token"));
        client.send_text(&["ZhangSan"], "hi").await.unwrap();
        assert_eq!(
            (
                wecom.calls(Endpoint::GetToken),
                wecom.calls(Endpoint::Send),
                wecom.messages().len()
            ),
            (2, 2, 1),
            "{code}"
        );
    }
}

#[tokio::test]
async fn a_token_refused_again_after_the_refresh_ends_there() {
    let (wecom, client) = fresh().await;
    wecom.fail_always(
        Endpoint::Send,
        Fault::Errcode(40_014, "invalid access_token"),
    );
    let error = client.send_text(&["ZhangSan"], "hi").await.unwrap_err();
    assert!(
        matches!(
            error,
            SendError::Blocked {
                errcode: 40_014,
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(
        (wecom.calls(Endpoint::GetToken), wecom.calls(Endpoint::Send)),
        (2, 2)
    );
}

#[tokio::test]
async fn a_wrong_secret_is_told_at_once_and_never_retried() {
    let wecom = FakeWecom::start().await;
    let mut variables = wecom.variables();
    variables.insert("WECOM_SECRET", "another-secret".to_owned());
    let config = WecomConfig::from_lookup(|name| variables.get(name).cloned())
        .unwrap()
        .unwrap();
    let error = client_of(&config, &empty_store(), Deadlines::default())
        .send_text(&["ZhangSan"], "hi")
        .await
        .unwrap_err();
    assert!(
        matches!(
            error,
            SendError::Blocked {
                errcode: 40_001,
                ..
            }
        ),
        "{error}"
    );
    assert!(
        error.to_string().contains("WECOM_SECRET") && !error.to_string().contains("another-secret"),
        "{error}"
    );
    assert_eq!(
        (wecom.calls(Endpoint::GetToken), wecom.calls(Endpoint::Send)),
        (1, 0)
    );

    let (wecom, client) = fresh().await;
    wecom.fail(
        Endpoint::Send,
        1,
        Fault::Errcode(40_001, "invalid credential"),
    );
    let error = client.send_text(&["ZhangSan"], "hi").await.unwrap_err();
    assert!(
        matches!(
            error,
            SendError::Blocked {
                errcode: 40_001,
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(
        (wecom.calls(Endpoint::GetToken), wecom.calls(Endpoint::Send)),
        (1, 1)
    );
}
