//! One outbound message, part by part, in order per person.
//!
//! `sending` is committed before a part leaves. If the process dies before the answer is noted, the
//! next attempt finds `sending` and marks the part `unknown`: the person may have it, so it is not sent
//! again blindly; the parts after it go on.

use std::time::Duration;

use anyhow::anyhow;
use serde::{Deserialize, Serialize};

use super::{Handle, common::services::Services};
use crate::{
    adapters::wecom::error::SendError,
    queue::{Job, JobError, Lease, Outcome, Settled, Settlement, job::backoff},
    store::outbox::{self, Hold},
    types::ids::OutboxId,
};

/// Pause between parts: sent at once they are shown in any order.
const PART_GAP: Duration = Duration::from_millis(200);

/// Deliver one row of `iit_outbox`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Deliver {
    /// The row.
    pub outbox: OutboxId,
    /// The person, lower-cased: messages to one person go out one after the other.
    pub to: String,
}

impl Job for Deliver {
    const KIND: &'static str = "deliver";
    const QUEUE: &'static str = "deliver";
    // With the backoff, about half an hour of WeCom being away.
    const MAX_ATTEMPTS: i32 = 12;

    fn key(&self) -> Option<String> {
        Some(self.outbox.to_string())
    }

    fn group(&self) -> Option<String> {
        Some(format!("deliver:{}", self.to))
    }
}

impl Handle for Deliver {
    async fn run(self, services: &Services, lease: &Lease) -> Result<Settled, JobError> {
        let Some(wecom) = &services.wecom else {
            return Err(JobError::dead(anyhow!(
                "WeCom is not configured; set the WECOM_* variables and retry the job"
            )));
        };
        let pool = &services.pool;
        let (message, parts) = {
            let mut conn = pool.acquire().await?;
            let Some(message) = outbox::get(&mut conn, self.outbox).await? else {
                return Err(JobError::Cancel("the outbound message is gone".to_owned()));
            };
            (message, outbox::parts(&mut conn, self.outbox).await?)
        };
        let hold = Hold {
            job: lease.job,
            token: lease.token,
        };
        let mut unknown = parts.iter().any(|part| part.state == "unknown");
        let mut first = true;
        for part in &parts {
            match part.state.as_str() {
                "queued" => {}
                "sending" => {
                    outbox::unclear_part(&mut *pool.acquire().await?, self.outbox, part.no).await?;
                    unknown = true;
                    continue;
                }
                _ => continue,
            }
            if !first {
                tokio::time::sleep(PART_GAP).await;
            }
            first = false;
            let ours =
                outbox::begin_part(&mut *pool.acquire().await?, self.outbox, part.no, hold).await?;
            if !ours {
                return Err(JobError::LostLease);
            }
            // No connection is held while WeCom is asked.
            let sent = wecom.send_text(&[&message.recipient], &part.text).await;
            let mut conn = pool.acquire().await?;
            match sent {
                Ok(sent) => {
                    outbox::sent_part(&mut conn, self.outbox, part.no, &sent.msg_id).await?;
                }
                Err(SendError::PartialInvalid { msg_id, .. }) => {
                    // One recipient, and that one can't be reached: WeCom took it and showed it to nobody.
                    outbox::sent_part(&mut conn, self.outbox, part.no, &msg_id).await?;
                    return Err(JobError::dead(anyhow!(
                        "the recipient can't be reached: not in the app's visible range, or without a licence"
                    )));
                }
                Err(SendError::Ambiguous { why }) => {
                    tracing::warn!(outbox.id = %self.outbox, part = part.no, why, "deliver.ambiguous");
                    outbox::unclear_part(&mut conn, self.outbox, part.no).await?;
                    unknown = true;
                }
                Err(error) => {
                    // Nothing left, so the part may be tried again.
                    outbox::unsent_part(&mut conn, self.outbox, part.no, hold).await?;
                    return Err(refusal(error, lease.attempt));
                }
            }
        }
        let mut settlement = lease
            .settle(&services.pool, &services.wake, &Outcome::Done)
            .await?;
        let (state, error) = if unknown {
            let why = "至少一部分是否送达不明，未重发 (delivery unknown, not sent again)";
            ("unknown", Some(why))
        } else {
            ("sent", None)
        };
        outbox::finish(settlement.conn(), self.outbox, state, error).await?;
        Ok(settlement.commit().await?)
    }

    async fn bury(
        self,
        _services: &Services,
        _lease: &Lease,
        settlement: &mut Settlement,
        why: &str,
    ) -> Result<(), JobError> {
        outbox::finish(settlement.conn(), self.outbox, "failed", Some(why)).await?;
        Ok(())
    }
}

/// How a refusal ends the attempt: later when that may help, else for good.
fn refusal(error: SendError, attempt: i32) -> JobError {
    match error.retry_after() {
        Some(after) => JobError::Retry {
            after: Some(after.max(backoff(attempt))),
            why: error.into(),
        },
        None => JobError::dead(error),
    }
}
