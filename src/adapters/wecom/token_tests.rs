//! The shared token: one refresh at a time, nothing newer thrown away, a dead holder doesn't block.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed expectation is the test's verdict"
)]

use std::sync::atomic::{AtomicU32, Ordering};

use tokio::sync::Notify;

use super::*;

const LIFE: Duration = Duration::from_secs(7_200);

fn clock() -> Clock {
    Clock::fixed(DateTime::from_timestamp(1_700_000_000, 0).unwrap())
}

fn token(value: &str, remaining_s: u64) -> Token {
    Token {
        value: value.into(),
        lifetime: LIFE,
        remaining: Duration::from_secs(remaining_s),
    }
}

/// Hands out `new-1`, `new-2`, …; may be told to wait or to fail.
#[derive(Clone, Default)]
struct Fetcher {
    calls: Arc<AtomicU32>,
    fails: bool,
    gate: Option<Arc<Gate>>,
}

#[derive(Default)]
struct Gate {
    reached: Notify,
    open: Notify,
}

impl TokenFetcher for Fetcher {
    async fn fetch(&self) -> Result<Token, SendError> {
        let number = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        if let Some(gate) = &self.gate {
            gate.reached.notify_one();
            gate.open.notified().await;
        }
        if self.fails {
            return Err(SendError::NotSent {
                why: "no route".to_owned(),
            });
        }
        Ok(Token::fresh(format!("new-{number}").into(), LIFE))
    }
}

/// A store that counts claims and tells when one was turned away.
#[derive(Clone)]
struct Watched {
    store: MemoryTokenStore,
    claims: Arc<AtomicU32>,
    turned_away: Arc<Notify>,
}

impl Watched {
    fn empty() -> Self {
        Self {
            store: MemoryTokenStore::new(clock()),
            claims: Arc::default(),
            turned_away: Arc::default(),
        }
    }
}

impl TokenStore for Watched {
    async fn load(&self) -> anyhow::Result<Option<Token>> {
        self.store.load().await
    }

    async fn claim_refresh(&self, seen: Option<&str>, lease: Duration) -> anyhow::Result<Claim> {
        self.claims.fetch_add(1, Ordering::SeqCst);
        let claim = self.store.claim_refresh(seen, lease).await?;
        if claim == Claim::SomeoneElse {
            self.turned_away.notify_one();
        }
        Ok(claim)
    }

    async fn store(&self, lease: Uuid, token: &Token) -> anyhow::Result<bool> {
        self.store.store(lease, token).await
    }

    async fn release(&self, lease: Uuid) -> anyhow::Result<()> {
        self.store.release(lease).await
    }

    async fn invalidate(&self, if_equals: &str) -> anyhow::Result<bool> {
        self.store.invalidate(if_equals).await
    }
}

fn source(store: &MemoryTokenStore, fetcher: &Fetcher) -> TokenSource<MemoryTokenStore, Fetcher> {
    TokenSource::new(store.clone(), fetcher.clone())
}

fn value(token: &Token) -> &str {
    token.value.expose_secret()
}

#[tokio::test]
async fn a_token_with_life_left_is_used_without_asking() {
    let fetcher = Fetcher::default();
    let store = MemoryTokenStore::new(clock()).holding(&token("old", 1_100));
    assert_eq!(value(&source(&store, &fetcher).get().await.unwrap()), "old");
    assert_eq!(fetcher.calls.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn it_is_refreshed_when_fifteen_percent_are_left() {
    let fetcher = Fetcher::default();
    let store = MemoryTokenStore::new(clock()).holding(&token("old", 1_080));
    assert_eq!(
        value(&source(&store, &fetcher).get().await.unwrap()),
        "new-1"
    );
    assert_eq!(value(&store.load().await.unwrap().unwrap()), "new-1");
}

#[tokio::test]
async fn a_failed_early_refresh_falls_back_to_the_old_token_and_frees_the_lease() {
    let failing = Fetcher {
        fails: true,
        ..Fetcher::default()
    };
    let store = MemoryTokenStore::new(clock()).holding(&token("old", 600));
    assert_eq!(value(&source(&store, &failing).get().await.unwrap()), "old");
    assert_eq!(
        value(&source(&store, &Fetcher::default()).get().await.unwrap()),
        "new-1"
    );
}

#[tokio::test]
async fn a_failed_refresh_without_a_usable_token_is_said() {
    let failing = Fetcher {
        fails: true,
        ..Fetcher::default()
    };
    let store = MemoryTokenStore::new(clock()).holding(&token("old", 0));
    assert!(matches!(
        source(&store, &failing).get().await,
        Err(SendError::NotSent { .. })
    ));
}

#[tokio::test]
async fn a_newer_token_is_never_thrown_away_for_an_older_refusal() {
    let fetcher = Fetcher::default();
    let store = MemoryTokenStore::new(clock()).holding(&token("newer", 7_000));
    let got = source(&store, &fetcher)
        .replace(&token("older", 5_000))
        .await
        .unwrap();
    assert_eq!(
        (value(&got), fetcher.calls.load(Ordering::SeqCst)),
        ("newer", 0)
    );
    let got = source(&store, &fetcher)
        .replace(&token("newer", 7_000))
        .await
        .unwrap();
    assert_eq!(
        (value(&got), fetcher.calls.load(Ordering::SeqCst)),
        ("new-1", 1)
    );
}

#[tokio::test]
async fn while_one_process_refreshes_another_goes_on_with_the_old_token() {
    let gate = Arc::new(Gate::default());
    let slow = Fetcher {
        gate: Some(gate.clone()),
        ..Fetcher::default()
    };
    let store = MemoryTokenStore::new(clock()).holding(&token("old", 600));
    let first = source(&store, &slow);
    let refreshing = tokio::spawn(async move { first.get().await });
    gate.reached.notified().await;
    let other = Fetcher::default();
    assert_eq!(value(&source(&store, &other).get().await.unwrap()), "old");
    gate.open.notify_one();
    assert_eq!(value(&refreshing.await.unwrap().unwrap()), "new-1");
    assert_eq!(other.calls.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn with_no_usable_token_another_process_waits_for_the_one_refresh() {
    let gate = Arc::new(Gate::default());
    let slow = Fetcher {
        gate: Some(gate.clone()),
        ..Fetcher::default()
    };
    let watched = Watched::empty();
    let first = TokenSource::new(watched.clone(), slow);
    let refreshing = tokio::spawn(async move { first.get().await });
    gate.reached.notified().await;
    let other = Fetcher::default();
    let second = TokenSource::new(watched.clone(), other.clone());
    let waiting = tokio::spawn(async move { second.get().await });
    watched.turned_away.notified().await;
    gate.open.notify_one();
    refreshing.await.unwrap().unwrap();
    assert_eq!(value(&waiting.await.unwrap().unwrap()), "new-1");
    assert_eq!(other.calls.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn senders_of_one_process_queue_instead_of_each_asking_the_store() {
    let gate = Arc::new(Gate::default());
    let fetcher = Fetcher {
        gate: Some(gate.clone()),
        ..Fetcher::default()
    };
    let watched = Watched::empty();
    let source = TokenSource::new(watched.clone(), fetcher.clone());
    let senders = futures::future::join_all((0..8).map(|_| source.get()));
    let (tokens, ()) = tokio::join!(senders, async {
        gate.reached.notified().await;
        gate.open.notify_one();
    });
    assert!(
        tokens
            .iter()
            .all(|token| value(token.as_ref().unwrap()) == "new-1")
    );
    assert_eq!(fetcher.calls.load(Ordering::SeqCst), 1);
    assert_eq!(watched.claims.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_refresh_that_never_ends_is_given_up_on_with_a_sentence() {
    let store = MemoryTokenStore::new(clock());
    store
        .claim_refresh(None, Duration::from_secs(3_600))
        .await
        .unwrap();
    let error = source(&store, &Fetcher::default())
        .with_patience(Duration::from_millis(60))
        .get()
        .await
        .unwrap_err();
    assert!(
        matches!(&error, SendError::NotSent { why } if why.contains("in time")),
        "{error}"
    );
}

#[tokio::test]
async fn a_lease_past_its_time_is_taken_over_and_its_late_holder_stores_nothing() {
    let now = Arc::new(std::sync::Mutex::new(
        DateTime::from_timestamp(1_700_000_000, 0).unwrap(),
    ));
    let reader = now.clone();
    let store = MemoryTokenStore::new(Clock::from_fn(move || *reader.lock().unwrap()));
    let Claim::Claimed(dead) = store.claim_refresh(None, LEASE).await.unwrap() else {
        panic!("free lease")
    };
    assert_eq!(
        store.claim_refresh(None, LEASE).await.unwrap(),
        Claim::SomeoneElse
    );
    *now.lock().unwrap() += LEASE;
    assert_eq!(
        value(&source(&store, &Fetcher::default()).get().await.unwrap()),
        "new-1"
    );
    assert!(!store.store(dead, &token("late", 7_200)).await.unwrap());
    store.release(dead).await.unwrap();
    assert_eq!(value(&store.load().await.unwrap().unwrap()), "new-1");
}

#[tokio::test]
async fn a_claim_for_a_token_no_longer_stored_is_refused() {
    let store = MemoryTokenStore::new(clock()).holding(&token("current", 10));
    assert_eq!(
        store.claim_refresh(None, LEASE).await.unwrap(),
        Claim::SomeoneElse
    );
    let stale = token("gone", 10).fingerprint();
    assert_eq!(
        store.claim_refresh(Some(&stale), LEASE).await.unwrap(),
        Claim::SomeoneElse
    );
    let current = token("current", 10).fingerprint();
    assert!(matches!(
        store.claim_refresh(Some(&current), LEASE).await.unwrap(),
        Claim::Claimed(_)
    ));
}

#[test]
fn a_token_shows_neither_in_debug_nor_in_its_fingerprint() {
    let secret = token("very-secret-value", 1);
    assert!(
        !format!("{secret:?}").contains("very-secret")
            && !secret.fingerprint().contains("very-secret")
    );
}
