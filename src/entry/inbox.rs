//! WeCom messages into the inbox: the row and its `intent` job in one transaction.

use serde_json::json;
use sqlx::PgPool;

use super::wecom::{ReceiveInbound, Received};
use crate::{
    adapters::wecom::inbound::{Inbound, Kind},
    jobs::intent,
    queue::Wake,
    store::{
        db,
        inbox::{Channel, NewMessage},
    },
};

/// The inbox in Postgres. Cheap to clone.
#[derive(Clone)]
pub struct PgInbox {
    pool: PgPool,
    wake: Wake,
}

impl PgInbox {
    /// Over `pool`.
    #[must_use]
    pub fn new(pool: PgPool, wake: Wake) -> Self {
        Self { pool, wake }
    }
}

impl ReceiveInbound for PgInbox {
    async fn receive(&self, inbound: Inbound) -> anyhow::Result<Received> {
        let (kind, text) = match &inbound.kind {
            Kind::Text { content } => ("text", content.as_str()),
            Kind::Image { .. } => ("image", ""),
            Kind::Event(_) => ("event", ""),
            Kind::Other { .. } => ("other", ""),
        };
        let detail = match &inbound.kind {
            Kind::Text { .. } => json!({ "agent": inbound.agent, "sanitised": inbound.sanitised }),
            kind => json!({ "agent": inbound.agent, "sanitised": inbound.sanitised, "kind": kind }),
        };
        let mut tx = db::begin(&self.pool).await?;
        let stored = intent::receive(
            &mut tx,
            &NewMessage {
                channel: Channel::Wecom,
                dedupe_key: Some(inbound.dedupe_key()),
                project: None,
                sender: &inbound.from_user,
                kind,
                text,
                detail,
            },
        )
        .await?;
        tx.commit().await?;
        Ok(match stored {
            Some(_) => {
                self.wake.queues([intent::queue_of_messages()]);
                Received::New
            }
            None => Received::Duplicate,
        })
    }
}
