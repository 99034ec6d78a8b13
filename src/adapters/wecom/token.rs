//! The access token, shared by all processes that send for one app.
//!
//! WeCom counts `gettoken` calls and a new token may end the old one early, so exactly one process
//! refreshes at a time: it claims a lease in the store, asks WeCom with no transaction open, and
//! stores the answer. The others use the old token while it lasts, else wait for the new one.

use std::future::Future;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use tokio::time::Instant;
use uuid::Uuid;

use super::crypto::hex;
use super::error::SendError;
use crate::types::clock::Clock;

/// A lease outlives the longest `gettoken` call (10 s), so that a live holder never loses it.
const LEASE: Duration = Duration::from_secs(15);
/// How long a sender waits for somebody else's refresh: one dead holder's lease and a refresh of its own.
const PATIENCE: Duration = Duration::from_secs(30);
const FIRST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// Less than this left: don't start a request with it.
const MIN_REMAINING: Duration = Duration::from_secs(15);
/// Refreshed when this share of its life is left.
const REFRESH_AT_REMAINING_PERCENT: u32 = 15;

/// An access token and how long it still lives, by the store's clock.
#[derive(Debug, Clone)]
pub struct Token {
    /// For the query string of every call.
    pub value: SecretString,
    /// `expires_in` as WeCom gave it.
    pub lifetime: Duration,
    /// What is left of it; zero when over.
    pub remaining: Duration,
}

impl Token {
    /// A token just received.
    #[must_use]
    pub fn fresh(value: SecretString, lifetime: Duration) -> Self {
        Self {
            value,
            lifetime,
            remaining: lifetime,
        }
    }

    /// SHA-256 in hex: names a token without being one.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        hex(&Sha256::digest(self.value.expose_secret().as_bytes()))
    }

    fn is_usable(&self) -> bool {
        self.remaining > MIN_REMAINING.min(self.lifetime / 4)
    }

    fn is_due(&self) -> bool {
        self.remaining <= self.lifetime * REFRESH_AT_REMAINING_PERCENT / 100
    }
}

/// Whether this process may refresh now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// Yes; the id goes to [`TokenStore::store`] or [`TokenStore::release`].
    Claimed(Uuid),
    /// A live lease exists, or the stored token is no longer the one seen: load again.
    SomeoneElse,
}

/// Where the token of one app (corp and agent) is kept. On Postgres: one row, each method one short
/// statement, times by the database clock.
pub trait TokenStore: Send + Sync {
    /// The stored token, expired or not.
    fn load(&self) -> impl Future<Output = anyhow::Result<Option<Token>>> + Send;

    /// Takes the lease if nobody holds a live one **and** the stored fingerprint still equals `seen`
    /// (`None`: no token stored), both checked in the same statement.
    fn claim_refresh(
        &self,
        seen: Option<&str>,
        lease: Duration,
    ) -> impl Future<Output = anyhow::Result<Claim>> + Send;

    /// Stores `token` and gives the lease back, if the lease is still `lease`; `false`: it was lost,
    /// nothing stored.
    fn store(
        &self,
        lease: Uuid,
        token: &Token,
    ) -> impl Future<Output = anyhow::Result<bool>> + Send;

    /// Gives the lease back without a token, if it is still `lease`.
    fn release(&self, lease: Uuid) -> impl Future<Output = anyhow::Result<()>> + Send;

    /// Drops the stored token if its fingerprint is `if_equals`; a newer one stays. Says whether it did.
    fn invalidate(&self, if_equals: &str) -> impl Future<Output = anyhow::Result<bool>> + Send;
}

/// Asks WeCom for a token.
pub trait TokenFetcher: Send + Sync {
    /// One `gettoken` call, at most 10 s.
    fn fetch(&self) -> impl Future<Output = Result<Token, SendError>> + Send;
}

/// Hands out tokens from a store, refreshing through a fetcher. One per process and app.
#[derive(Debug)]
pub struct TokenSource<S, F> {
    store: S,
    fetcher: F,
    /// Senders of this process queue here instead of all polling the store.
    turn: tokio::sync::Mutex<()>,
    patience: Duration,
}

impl<S: TokenStore, F: TokenFetcher> TokenSource<S, F> {
    /// A source over `store`.
    pub fn new(store: S, fetcher: F) -> Self {
        Self {
            store,
            fetcher,
            turn: tokio::sync::Mutex::new(()),
            patience: PATIENCE,
        }
    }

    /// Another longest wait for somebody else's refresh (default 30 s).
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// A token that is good for one request now.
    ///
    /// # Errors
    /// What the fetcher says; [`SendError::NotSent`] when the store fails or another process's refresh
    /// doesn't end in 30 s.
    pub async fn get(&self) -> Result<Token, SendError> {
        let known = self.load().await?;
        if let Some(token) = known.filter(Token::is_usable) {
            if !token.is_due() {
                return Ok(token);
            }
            // Somebody in this process is on it already: no need to wait.
            let Ok(_turn) = self.turn.try_lock() else {
                return Ok(token);
            };
            return self.refresh_or_wait().await;
        }
        let _turn = self.turn.lock().await;
        self.refresh_or_wait().await
    }

    /// A token other than `refused`, which WeCom did not accept. If the store holds a newer one already,
    /// that one; nothing is thrown away that is not `refused`.
    ///
    /// # Errors
    /// As [`TokenSource::get`].
    pub async fn replace(&self, refused: &Token) -> Result<Token, SendError> {
        self.store
            .invalidate(&refused.fingerprint())
            .await
            .map_err(store_failed)?;
        self.get().await
    }

    async fn load(&self) -> Result<Option<Token>, SendError> {
        self.store.load().await.map_err(store_failed)
    }

    async fn refresh_or_wait(&self) -> Result<Token, SendError> {
        let give_up = Instant::now() + self.patience;
        let mut wait = FIRST_WAIT;
        loop {
            let stored = self.load().await?;
            let seen = stored.as_ref().map(Token::fingerprint);
            let usable = stored.filter(Token::is_usable);
            if let Some(token) = usable.as_ref().filter(|token| !token.is_due()) {
                return Ok(token.clone());
            }
            let claim = self
                .store
                .claim_refresh(seen.as_deref(), LEASE)
                .await
                .map_err(store_failed)?;
            match (claim, usable) {
                (Claim::Claimed(lease), usable) => {
                    if let Some(token) = self.refresh(lease, usable).await? {
                        return Ok(token);
                    }
                }
                (Claim::SomeoneElse, Some(token)) => return Ok(token),
                (Claim::SomeoneElse, None) => {}
            }
            if Instant::now() + wait > give_up {
                return Err(SendError::NotSent {
                    why: "another process did not finish refreshing the WeCom token in time"
                        .to_owned(),
                });
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
    }

    /// `None`: the lease was lost meanwhile, so the store knows better.
    async fn refresh(&self, lease: Uuid, old: Option<Token>) -> Result<Option<Token>, SendError> {
        match self.fetcher.fetch().await {
            Ok(token) => {
                let stored = self
                    .store
                    .store(lease, &token)
                    .await
                    .map_err(store_failed)?;
                Ok(stored.then_some(token))
            }
            Err(error) => {
                if let Err(failed) = self.store.release(lease).await {
                    let error = format!("{failed:#}");
                    tracing::warn!(
                        error,
                        "the WeCom token lease was not given back; it ends by itself"
                    );
                }
                // A failed early refresh is no reason to fail: the old token still works.
                old.map(Some).ok_or(error)
            }
        }
    }
}

fn store_failed(error: anyhow::Error) -> SendError {
    SendError::NotSent {
        why: format!("the WeCom token can't be read or kept: {error:#}"),
    }
}

/// Keeps the token in this process: for tests and for tools that send one message. Clones share it.
#[derive(Debug, Clone)]
pub struct MemoryTokenStore {
    clock: Clock,
    row: Arc<std::sync::Mutex<Row>>,
}

#[derive(Debug, Default)]
struct Row {
    token: Option<(SecretString, Duration, DateTime<Utc>)>,
    lease: Option<(Uuid, DateTime<Utc>)>,
}

impl MemoryTokenStore {
    /// An empty store whose times are `clock`'s.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            row: Arc::default(),
        }
    }

    /// Puts a token in, whatever is there.
    #[must_use]
    pub fn holding(self, token: &Token) -> Self {
        self.with_row(|row, now| row.put(token, now));
        self
    }

    fn with_row<T>(&self, act: impl FnOnce(&mut Row, DateTime<Utc>) -> T) -> T {
        let mut row = self.row.lock().unwrap_or_else(PoisonError::into_inner);
        act(&mut row, self.clock.now())
    }
}

impl Row {
    fn put(&mut self, token: &Token, now: DateTime<Utc>) {
        self.token = Some((token.value.clone(), token.lifetime, now + token.remaining));
    }

    fn token(&self, now: DateTime<Utc>) -> Option<Token> {
        self.token
            .as_ref()
            .map(|(value, lifetime, expires_at)| Token {
                value: value.clone(),
                lifetime: *lifetime,
                remaining: (*expires_at - now).to_std().unwrap_or_default(),
            })
    }

    fn holds(&self, lease: Uuid) -> bool {
        self.lease.is_some_and(|(held, _)| held == lease)
    }
}

impl TokenStore for MemoryTokenStore {
    async fn load(&self) -> anyhow::Result<Option<Token>> {
        Ok(self.with_row(|row, now| row.token(now)))
    }

    async fn claim_refresh(&self, seen: Option<&str>, lease: Duration) -> anyhow::Result<Claim> {
        Ok(self.with_row(|row, now| {
            let stored = row.token(now).map(|token| token.fingerprint());
            let held = row.lease.is_some_and(|(_, until)| until > now);
            if held || stored.as_deref() != seen {
                return Claim::SomeoneElse;
            }
            let id = Uuid::now_v7();
            row.lease = Some((id, now + lease));
            Claim::Claimed(id)
        }))
    }

    async fn store(&self, lease: Uuid, token: &Token) -> anyhow::Result<bool> {
        Ok(self.with_row(|row, now| {
            let held = row.holds(lease);
            if held {
                row.put(token, now);
                row.lease = None;
            }
            held
        }))
    }

    async fn release(&self, lease: Uuid) -> anyhow::Result<()> {
        self.with_row(|row, _| {
            if row.holds(lease) {
                row.lease = None;
            }
        });
        Ok(())
    }

    async fn invalidate(&self, if_equals: &str) -> anyhow::Result<bool> {
        Ok(self.with_row(|row, now| {
            let equal = row
                .token(now)
                .is_some_and(|token| token.fingerprint() == if_equals);
            if equal {
                row.token = None;
            }
            equal
        }))
    }
}

#[cfg(test)]
#[path = "token_tests.rs"]
mod tests;
