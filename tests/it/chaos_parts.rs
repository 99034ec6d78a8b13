//! What the chaos stands on, without a chaos: the wire as it reads it, the statements it strikes at, and
//! the faults it must find, which have to fit the sources to be planted.

use std::collections::BTreeSet;
use std::path::Path;

#[path = "../chaos/statements.rs"]
#[allow(dead_code, reason = "shared with the chaos, which uses all of it")]
mod statements;
#[path = "../chaos/wire.rs"]
#[allow(dead_code, reason = "shared with the chaos, which uses all of it")]
mod wire;

use statements::Statement;
use wire::{Ending, Message, Opening, Session, opening};

/// A message with its head.
fn message(letter: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![letter];
    bytes.extend(u32::try_from(body.len() + 4).unwrap().to_be_bytes());
    bytes.extend(body);
    bytes
}

async fn read(bytes: &[u8]) -> Message {
    Message::read(&mut &*bytes).await.unwrap().unwrap()
}

#[tokio::test]
async fn a_bound_statement_is_known_with_its_text_and_values_when_it_is_executed() {
    let mut session = Session::default();
    let parse = message(b'P', b"s1\0UPDATE t SET a = $1\0\0\0");
    let bind = message(
        b'B',
        b"\0s1\0\0\x01\0\x01\0\x02\0\0\0\x02hi\xff\xff\xff\xff\0\0",
    );
    let execute = message(b'E', b"\0\0\0\0\0");
    assert_eq!(session.client(&read(&parse).await), None);
    assert_eq!(session.client(&read(&bind).await), None);
    let bound = session.client(&read(&execute).await).unwrap();
    assert_eq!(&*bound.text, "UPDATE t SET a = $1");
    assert_eq!(*bound.values, [Some(b"hi".to_vec()), None]);
}

#[tokio::test]
async fn an_answer_ends_with_the_servers_word_that_it_is_ready() {
    let mut ending = Ending::default();
    let row = message(b'D', b"\0\x01\0\0\0\x08\0\0\0\0\0\0\0\x2a");
    assert!(!ending.server(&read(&row).await));
    assert!(!ending.server(&read(&message(b'C', b"UPDATE 0\0")).await));
    assert!(ending.server(&read(&message(b'Z', b"T")).await));
    assert_eq!((ending.rows, ending.id, ending.open), (1, Some(42), true));
    assert_eq!(ending.touched(), Some(0));
}

#[tokio::test]
async fn a_length_that_cannot_be_is_an_error_and_an_end_between_messages_is_not() {
    assert!(Message::read(&mut &b"Q\0\0\0\x01"[..]).await.is_err());
    assert!(Message::read(&mut &b"Q\xff\xff\xff\xff"[..]).await.is_err());
    assert!(Message::read(&mut &b""[..]).await.unwrap().is_none());
    assert!(opening(&mut &b"\0\0\0\x03abcd"[..]).await.is_err());
    let ssl = [&8_u32.to_be_bytes()[..], &80_877_103_u32.to_be_bytes()].concat();
    assert_eq!(opening(&mut &*ssl).await.unwrap().0, Opening::Encryption);
    // A bind that ends in the middle of a value is no statement.
    let mut session = Session::default();
    let broken = message(b'B', b"\0s1\0\0\0\0\x01\0\0\0\x09hi");
    assert_eq!(session.client(&read(&broken).await), None);
}

#[test]
fn each_statement_the_chaos_strikes_at_stands_in_the_sources() {
    let found: BTreeSet<Statement> = prepared_queries()
        .iter()
        .filter_map(|query| Statement::of(query))
        .collect();
    for statement in [
        Statement::Claim,
        Statement::Ask,
        Statement::Answer,
        Statement::Fence,
        Statement::Advance,
        Statement::Receive,
        Statement::NoteSent,
    ] {
        assert!(found.contains(&statement), "{statement:?}: {found:?}");
    }
    let settle = "BEGIN; SET LOCAL idle_in_transaction_session_timeout = 2000";
    assert_eq!(Statement::of(settle), Some(Statement::OpenSettlement));
    let fenced: Vec<_> = prepared_queries()
        .into_iter()
        .filter(|query| Statement::of(query) == Some(Statement::Ask))
        .collect();
    assert_eq!(fenced.len(), 1, "one statement begins a call: {fenced:?}");
}

/// The texts of the checked queries.
fn prepared_queries() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(".sqlx");
    let files = std::fs::read_dir(folder).unwrap();
    let queries = files.map(|file| {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        let query: serde_json::Value = serde_json::from_str(&text).unwrap();
        query["query"].as_str().unwrap().to_owned()
    });
    queries.collect()
}

#[test]
fn every_planted_fault_fits_the_sources() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut names = BTreeSet::new();
    for file in std::fs::read_dir(root.join("tests/chaos/mutations")).unwrap() {
        let path = file.unwrap().path();
        let patch = std::fs::read_to_string(&path).unwrap();
        for (source, old) in hunks(&patch) {
            let text = std::fs::read_to_string(root.join(&source)).unwrap();
            assert_eq!(
                text.matches(&old).count(),
                1,
                "{} does not fit {source} any more; make it anew where this stood:\n{old}",
                path.display()
            );
        }
        names.insert(path.file_stem().unwrap().to_string_lossy().into_owned());
    }
    let wanted = [
        "ack_before_commit",
        "blind_resend",
        "no_journal",
        "no_lease_check",
        "no_step_fence",
    ];
    assert_eq!(names, wanted.map(str::to_owned).into());
}

/// What each hunk of a patch expects to find: (file, its lines).
fn hunks(patch: &str) -> Vec<(String, String)> {
    let mut hunks: Vec<(String, String)> = Vec::new();
    let mut source = "";
    for line in patch.lines() {
        if let Some(path) = line.strip_prefix("--- a/") {
            source = path;
        } else if line.starts_with("@@") {
            hunks.push((source.to_owned(), String::new()));
        } else if let (Some((_, old)), true) = (hunks.last_mut(), is_old(line)) {
            old.push_str(&line[1..]);
            old.push('\n');
        }
    }
    assert!(!hunks.is_empty(), "no hunk in {patch}");
    hunks
}

fn is_old(line: &str) -> bool {
    !line.starts_with("--- ") && (line.starts_with(' ') || line.starts_with('-'))
}
