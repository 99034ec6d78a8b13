//! Where exactly a call breaks decides whether the message may be sent again: a server that cuts the
//! conversation in each place, over plain TCP.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use iit_manager::adapters::wecom::client::Deadlines;
use iit_manager::adapters::wecom::config::WecomConfig;
use iit_manager::adapters::wecom::error::SendError;
use iit_manager::adapters::wecom::token::Token;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::client::{LIFE, client_of, empty_store};
use crate::support::fake_wecom::FakeWecom;

/// What the server does with a connection.
#[derive(Debug, Clone, Copy)]
enum Manner {
    /// Closes it at once.
    Slam,
    /// Reads so many bytes of the request, then closes.
    ReadThenClose(usize),
    /// Reads the whole request, then says nothing.
    Stall,
    /// Reads the whole request, writes this, then closes.
    Answer(&'static str),
    /// Never reads, never writes, never closes.
    Deaf,
}

/// A server with one manner; counts the requests that came whole.
async fn server(manner: Manner) -> (u16, Arc<Mutex<usize>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let whole = Arc::new(Mutex::new(0));
    let counted = whole.clone();
    tokio::spawn(async move {
        let mut kept = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            match manner {
                Manner::Slam => drop(stream),
                Manner::Deaf => kept.push(stream),
                Manner::ReadThenClose(bytes) => {
                    let mut some = vec![0; bytes];
                    stream.read_exact(&mut some).await.unwrap();
                }
                Manner::Stall => {
                    read_request(&mut stream).await;
                    *counted.lock().unwrap() += 1;
                    kept.push(stream);
                }
                Manner::Answer(answer) => {
                    read_request(&mut stream).await;
                    *counted.lock().unwrap() += 1;
                    stream.write_all(answer.as_bytes()).await.unwrap();
                    stream.shutdown().await.unwrap();
                }
            }
        }
    });
    (port, whole)
}

async fn read_request(stream: &mut TcpStream) {
    let mut bytes = Vec::new();
    loop {
        let mut more = [0; 4096];
        let read = stream.read(&mut more).await.unwrap();
        bytes.extend_from_slice(&more[..read]);
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| {
                    line.to_lowercase()
                        .strip_prefix("content-length: ")?
                        .parse()
                        .ok()
                })
                .unwrap_or(0);
            if body.len() >= length {
                return;
            }
        }
        assert_ne!(read, 0, "the request came whole");
    }
}

/// One send to `base`, with a token at hand, so that it is the only call.
async fn send(base: &str, deadlines: Deadlines) -> Result<(), SendError> {
    let mut variables = FakeWecom::start().await.variables();
    variables.insert("WECOM_API_BASE", base.to_owned());
    let config = WecomConfig::from_lookup(|name| variables.get(name).cloned());
    let store = empty_store().holding(&Token::fresh("valid".into(), LIFE));
    client_of(&config.unwrap().unwrap(), &store, deadlines)
        .send_text(&["ZhangSan"], "hi")
        .await
        .map(|_| ())
}

const SOON: Deadlines = Deadlines {
    connect: Duration::from_millis(300),
    total: Duration::from_millis(600),
};

#[tokio::test]
async fn once_the_connection_stands_whatever_breaks_is_ambiguous_and_asked_once() {
    let cases = [
        Manner::Slam,
        Manner::ReadThenClose(10),
        Manner::ReadThenClose(150),
        Manner::Stall,
        Manner::Answer(""),
        Manner::Answer("HTTP/1.1 2"),
        Manner::Answer("HTTP/1.1 200 OK\r\nContent-Type: app"),
        Manner::Answer("HTTP/1.1 200 OK\r\nContent-Length: 60\r\n\r\n{\"errcode\":0,"),
        Manner::Answer(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nd\r\n{\"errcode\":0,\r\n",
        ),
        Manner::Answer("HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n{\"errcode\":0,"),
        Manner::Answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
        Manner::Answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"),
        Manner::Answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]"),
        Manner::Answer("HTTP/1.1 200 OK\r\nContent-Length: 16\r\n\r\n{\"errcode\":null}"),
        Manner::Answer("HTTP/1.1 204 No Content\r\n\r\n"),
        Manner::Answer("HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n"),
        Manner::Answer("HTTP/1.1 499 Closed\r\nContent-Length: 0\r\n\r\n"),
        Manner::Answer("HTTP/1.1 500 Oops\r\nContent-Length: 2\r\n\r\nno"),
        Manner::Answer("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 13\r\n\r\n{\"errcode\":0}"),
        Manner::Answer("HTTP/1.1 504 Gateway Timeout\r\nContent-Length: 0\r\n\r\n"),
        Manner::Answer("SSH-2.0-OpenSSH_9.2\r\n"),
    ];
    for manner in cases {
        let (port, whole) = server(manner).await;
        let answer = send(&format!("http://127.0.0.1:{port}"), SOON).await;
        assert!(
            matches!(answer, Err(SendError::Ambiguous { .. })),
            "{manner:?}: {answer:?}"
        );
        assert!(*whole.lock().unwrap() <= 1, "{manner:?}");
    }
}

#[tokio::test]
async fn before_the_connection_stands_nothing_was_sent() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = free.local_addr().unwrap();
    drop(free);
    let (plain, _) = server(Manner::Answer("HTTP/1.1 400 Bad Request\r\n\r\n")).await;
    let (deaf, _) = server(Manner::Deaf).await;
    let (slam, _) = server(Manner::Slam).await;
    for base in [
        format!("http://{closed}"),
        "http://wecom.invalid".to_owned(),
        // Not TLS, no answer to the handshake, hung up on it.
        format!("https://127.0.0.1:{slam}"),
        format!("https://127.0.0.1:{deaf}"),
    ] {
        let answer = send(&base, SOON).await;
        assert!(
            matches!(answer, Err(SendError::NotSent { .. })),
            "{base}: {answer:?}"
        );
    }
    let answer = send(&format!("https://127.0.0.1:{plain}"), SOON).await;
    assert!(
        matches!(answer, Err(SendError::NotSent { .. })),
        "{answer:?}"
    );
}

#[tokio::test]
async fn a_clear_refusal_is_one_even_without_a_body() {
    for (answer, errcode) in [
        (
            "HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n",
            302,
        ),
        ("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", 403),
        ("HTTP/1.1 429 Too Many\r\nContent-Length: 0\r\n\r\n", 429),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 17\r\n\r\n{\"errcode\":45009}",
            45_009,
        ),
    ] {
        let (port, whole) = server(Manner::Answer(answer)).await;
        let error = send(&format!("http://127.0.0.1:{port}"), SOON).await;
        assert!(
            matches!(error, Err(SendError::Blocked { errcode: code, .. }) if code == errcode),
            "{answer}: {error:?}"
        );
        assert_eq!(*whole.lock().unwrap(), 1);
    }
}
