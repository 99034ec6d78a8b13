//! The WeCom token, kept in Postgres, so that all processes share one.

use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use sqlx::PgPool;
use uuid::Uuid;

use crate::{
    adapters::wecom::{
        config::WecomConfig,
        token::{Claim, Token, TokenStore},
    },
    store::wecom_tokens,
};

/// The row of one app.
#[derive(Debug, Clone)]
pub struct PgTokenStore {
    pool: PgPool,
    app: String,
}

impl PgTokenStore {
    /// The token of the app of `config`.
    #[must_use]
    pub fn new(pool: PgPool, config: &WecomConfig) -> Self {
        Self {
            pool,
            app: config.app(),
        }
    }
}

impl TokenStore for PgTokenStore {
    async fn load(&self) -> anyhow::Result<Option<Token>> {
        let mut conn = self.pool.acquire().await?;
        let stored = wecom_tokens::load(&mut conn, &self.app).await?;
        Ok(stored.map(|stored| Token {
            value: SecretString::from(stored.token),
            lifetime: span(stored.expires_at - stored.obtained_at),
            remaining: span(stored.expires_at - stored.now),
        }))
    }

    async fn claim_refresh(&self, seen: Option<&str>, lease: Duration) -> anyhow::Result<Claim> {
        let mut conn = self.pool.acquire().await?;
        let owner = Uuid::new_v4();
        let claimed =
            wecom_tokens::claim_refresh(&mut conn, &self.app, owner, seen, lease.as_secs_f64())
                .await?;
        Ok(if claimed {
            Claim::Claimed(owner)
        } else {
            Claim::SomeoneElse
        })
    }

    async fn store(&self, lease: Uuid, token: &Token) -> anyhow::Result<bool> {
        let mut conn = self.pool.acquire().await?;
        let value = token.value.expose_secret();
        let lives = token.lifetime.as_secs_f64();
        Ok(wecom_tokens::store(&mut conn, &self.app, lease, value, lives).await?)
    }

    async fn release(&self, lease: Uuid) -> anyhow::Result<()> {
        let mut conn = self.pool.acquire().await?;
        Ok(wecom_tokens::give_up_refresh(&mut conn, &self.app, lease).await?)
    }

    async fn invalidate(&self, if_equals: &str) -> anyhow::Result<bool> {
        let mut conn = self.pool.acquire().await?;
        Ok(wecom_tokens::invalidate(&mut conn, &self.app, if_equals).await?)
    }
}

fn span(delta: chrono::TimeDelta) -> Duration {
    delta.to_std().unwrap_or_default()
}
