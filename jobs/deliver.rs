//! One outbound message, part by part, in order per person.
//!
//! `sending` is committed before a part leaves. If the process dies before the answer is noted, the
//! next attempt finds `sending` and marks the part `unknown`: the person may have it, so it is not sent
//! again blindly; the parts after it go on.
//!
//! What happens to a part whose arrival is unclear depends on who waits for it:
//! - of a **reply**, it stays `unknown`. The person sees that something is missing and asks again; shown
//!   twice, a verdict looks like two.
//! - of a **notice**, it is sent again. Nobody waits for a notice, so nobody would ask; and WeCom, told to
//!   compare requests, shows the same one only once for some hours.
//!
//! A reply's choices leave once more as a card, after the text that says them with their numbers: the
//! WeChat plug-in shows no cards, and WeCom does not tell who reads there. So a card that WeCom refuses, or
//! that is switched off, is given up at once and keeps nobody from having been answered; one whose arrival
//! is unclear stays `unknown` like any part of a reply.
//!
//! What WeCom refuses is tried again, goes on later or is given up as
//! [`errcode`](crate::adapters::wecom::errcode) says. A refusal of the whole app uses up nobody's attempts:
//! the gate ([`way_out`](super::common::way_out)) keeps all messages waiting, for a day at most.

use std::time::Duration;

use anyhow::anyhow;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::PgConnection;
use tokio::time::Instant;

use super::{
    Handle,
    common::{
        services::Services,
        way_out::{Departure, WayOut},
    },
};
use crate::{
    adapters::wecom::{card, client::SHOWN_ONCE_FOR, error::SendError},
    queue::{
        Job, JobError, Lease, NewJob, Outcome, Settled, Settlement, depth, enqueue, job::backoff,
    },
    store::{
        audit,
        outbox::{self, Outbound},
        outbox_parts::{self, Hold, OutboundPart, give_up_card},
        progress,
    },
    types::ids::OutboxId,
};

/// Pause between parts: sent at once they are shown in any order.
const PART_GAP: Duration = Duration::from_millis(200);
/// Parts are sent for so long in one attempt; the rest goes on in the next, before a slow WeCom makes the
/// attempt's own time run out in the middle of a part.
const AT_A_STRETCH: Duration = Duration::from_secs(60);
/// Before WeCom forgets with what it compares a repeated notice.
const REPEATABLE_S: f64 = SHOWN_ONCE_FOR.as_secs_f64() - 600.0;
/// What a closed gate kept for so long is not news any more.
const GIVE_UP_AFTER_S: f64 = 24.0 * 60.0 * 60.0;
/// What only this message was refused with may pass, but not within a minute.
const REFUSED_AGAIN: Duration = Duration::from_secs(60);

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
    // With the backoff, about half an hour of answers that concern this message alone.
    const MAX_ATTEMPTS: i32 = 12;
    // A stretch, one more part with a token to fetch, and a database that comes back late.
    const TIMEOUT: Duration = Duration::from_secs(240);

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
        let hold = Hold {
            job: lease.job,
            token: lease.token,
        };
        let (message, parts) = {
            let mut conn = pool.acquire().await?;
            if progress::is_overtaken(&mut conn, self.outbox).await? {
                drop(conn);
                let mut settlement = lease.settle(pool, &services.wake, &Outcome::Done).await?;
                progress::withdraw(settlement.conn(), self.outbox).await?;
                return Ok(settlement.commit().await?);
            }
            let Some(message) = outbox::get(&mut conn, self.outbox).await? else {
                return Err(JobError::Cancel("the outbound message is gone".to_owned()));
            };
            let parts = outbox_parts::of(&mut conn, self.outbox, REPEATABLE_S).await?;
            for part in parts.iter().filter(|part| part.state == "sending") {
                outbox_parts::left_unclear(&mut conn, self.outbox, part.no, hold).await?;
            }
            (message, parts)
        };
        let is_notice = message.message.is_none();
        let way = WayOut {
            pool,
            app: wecom.app(),
            member: &self.to,
            outbox: self.outbox,
            hold,
        };
        let begun = Instant::now();
        let mut first = true;
        for part in &parts {
            let Some(was) = leaves_as(part, is_notice) else {
                continue;
            };
            let card = match part.is_card {
                true => card_of(&message).filter(|_| wecom.sends_cards()),
                false => None,
            };
            if part.is_card && card.is_none() {
                let mut conn = pool.acquire().await?;
                give_up_card(&mut conn, self.outbox, part.no, "skipped", hold).await?;
                continue;
            }
            if begun.elapsed() > AT_A_STRETCH {
                return Err(JobError::Snooze(Duration::ZERO));
            }
            if !first {
                tokio::time::sleep(PART_GAP).await;
            }
            first = false;
            let leave = match way.depart(part.no, was).await? {
                Departure::Now(leave) => leave,
                Departure::Full(after) => return Err(JobError::Snooze(after)),
                Departure::Closed { after, reason } => return Err(wait(&message, after, reason)),
                Departure::NotOurs => return Err(JobError::LostLease),
            };
            // No connection is held while WeCom is asked.
            let to = [message.recipient.as_str()];
            let answer = match &card {
                Some(card) => wecom.send_card(&to, card).await,
                None if is_notice => wecom.send_text_once(&to, &part.text, self.outbox.0).await,
                None => wecom.send_text(&to, &part.text).await,
            };
            let still = way.arrive(part.no, was, &leave, &answer).await?;
            match answer {
                Ok(_) => {}
                Err(SendError::Ambiguous { why }) => {
                    tracing::warn!(outbox.id = %self.outbox, part = part.no, why, "deliver.ambiguous");
                    if is_notice && card.is_none() {
                        return Err(JobError::Retry {
                            after: Some(still.max(backoff(lease.attempt))),
                            why: SendError::Ambiguous { why }.into(),
                        });
                    }
                }
                Err(error) => match error.pause() {
                    Some(pause) if !pause.suspects_message => {
                        return Err(wait(&message, still, error));
                    }
                    // The text says the same, and has arrived.
                    _ if card.is_some() => {
                        let cause = error.cause();
                        tracing::warn!(outbox.id = %self.outbox, %cause, %error, "deliver.card.refused");
                        let mut conn = pool.acquire().await?;
                        give_up_card(&mut conn, self.outbox, part.no, "failed", hold).await?;
                    }
                    _ => return Err(refusal(error, still, lease.attempt)),
                },
            }
        }
        let mut settlement = lease.settle(pool, &services.wake, &Outcome::Done).await?;
        outbox::conclude(settlement.conn(), self.outbox, None).await?;
        Ok(settlement.commit().await?)
    }

    async fn bury(
        self,
        _services: &Services,
        _lease: &Lease,
        settlement: &mut Settlement,
        why: &str,
    ) -> Result<(), JobError> {
        outbox::conclude(settlement.conn(), self.outbox, Some(why)).await?;
        Ok(())
    }
}

/// The choices of a message on a card; `None` when they don't fit.
fn card_of(message: &Outbound) -> Option<serde_json::Value> {
    let labels: Vec<&str> = message.chips.iter().map(|c| c.label.as_str()).collect();
    card::choices(message.id, &message.text, &labels)
}

/// The state in which a part may leave; `None`: it has left, and stays as it is.
fn leaves_as(part: &OutboundPart, is_notice: bool) -> Option<&'static str> {
    match part.state.as_str() {
        "queued" => Some("queued"),
        "sending" | "unknown" if is_notice && part.recent && !part.is_card => Some("unknown"),
        _ => None,
    }
}

/// What concerns all messages waits with all of them and uses up no attempt, but not for ever.
fn wait(message: &Outbound, after: Duration, why: impl std::fmt::Display) -> JobError {
    if message.waited_s > GIVE_UP_AFTER_S {
        JobError::dead(anyhow!(
            "24 小时内未能发出 (could not be sent for 24 hours): {why}"
        ))
    } else {
        JobError::Snooze(after)
    }
}

/// What this message may be the reason of counts against it, and ends it when it can't ever pass.
fn refusal(error: SendError, still: Duration, attempt: i32) -> JobError {
    let after = match &error {
        SendError::Blocked { .. } => still,
        SendError::Refused {
            permanent: false, ..
        } => REFUSED_AGAIN,
        _ => return JobError::dead(error),
    };
    JobError::Retry {
        after: Some(after.max(backoff(attempt))),
        why: error.into(),
    }
}

/// What came of an operator's wish to send a message again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resend {
    /// It is on its way; workers of this queue should know.
    Queued {
        /// Where its job stands.
        queue: String,
    },
    /// There is no such message.
    NoSuch,
    /// It is `queued` or `sent`: nothing to send again.
    Not {
        /// Its state.
        state: String,
    },
}

/// Sends a message again on purpose, every part of it that is not known to have arrived: written to the
/// audit log, and once however often it is asked for at the same time.
///
/// # Errors
/// The database failed.
pub async fn resend(
    conn: &mut PgConnection,
    id: OutboxId,
    actor: &str,
    reason: Option<&str>,
) -> Result<Resend, anyhow::Error> {
    let Some(resent) = outbox::resend(conn, id).await? else {
        return Ok(match outbox::get(conn, id).await? {
            None => Resend::NoSuch,
            Some(message) => Resend::Not {
                state: message.state,
            },
        });
    };
    audit::record(
        conn,
        audit::Entry {
            project: resent.project.as_deref(),
            actor,
            action: "outbox.resent",
            entity: "outbox",
            entity_id: &id.to_string(),
            old: Some(json!({ "state": resent.was })),
            new: Some(json!({ "state": "queued", "resends": resent.resends })),
            reason,
        },
    )
    .await?;
    let job = NewJob::of(&Deliver {
        outbox: id,
        to: resent.recipient.to_lowercase(),
    })?;
    let queue = job.queue.clone();
    // A job that was given up over it goes on, rather than stay among the dead for ever.
    let given_up = depth::dead_by_key(conn, job.kind, job.key.as_deref()).await?;
    if depth::retry(conn, &given_up).await?.is_empty() {
        enqueue(conn, job).await?;
    }
    Ok(Resend::Queued { queue })
}
