//! The way out to WeCom for one part of a message: may it leave now, and what does its answer mean for
//! the part, for the member's limits and for everybody else's messages.
//!
//! ```text
//! depart: gate open? ─▶ room for this member? ─▶ still ours? ─▶ `sending`      one transaction
//!                         … the call, nothing held …
//! arrive: part's state ── member's count ── gate opened or closed              one transaction
//! ```

use std::time::Duration;

use sqlx::{PgConnection, PgPool};

use super::until_noted::until_noted;
use crate::{
    adapters::wecom::{client::Sent, error::SendError, limits::PER_MEMBER},
    store::{
        db,
        outbox_parts::{self, Hold},
        wecom_gate::{self, Pass, Refusal},
        wecom_sends::{self, Limit, Room},
    },
    types::ids::OutboxId,
};

/// So that those who waited for one moment don't all come at it.
const LONGEST_SPREAD_S: f64 = 5.0;

/// One message on its way out.
#[derive(Debug)]
pub struct WayOut<'a> {
    /// The database.
    pub pool: &'a PgPool,
    /// The app it is sent by.
    pub app: &'a str,
    /// Who gets it, in lower case: WeCom's user ids don't tell cases apart.
    pub member: &'a str,
    /// The message.
    pub outbox: OutboxId,
    /// The attempt's hold on it.
    pub hold: Hold,
}

/// Whether a part may leave.
#[derive(Debug)]
pub enum Departure {
    /// Yes, at once; it is marked `sending`.
    Now(Leave),
    /// The member has had as much as WeCom shows.
    Full(Duration),
    /// WeCom refuses the app.
    Closed {
        /// When to ask again.
        after: Duration,
        /// Why.
        reason: String,
    },
    /// Somebody else has the job.
    NotOurs,
}

/// What a part that left must give back or make good.
#[derive(Debug)]
pub struct Leave {
    /// Its place among what the member was sent.
    place: i64,
    /// It finds out whether WeCom takes messages again.
    is_probe: bool,
}

impl WayOut<'_> {
    /// Asks for part `no`, which is in state `was`, to leave.
    ///
    /// # Errors
    /// The database failed; the part did not leave.
    pub async fn depart(&self, no: i32, was: &str) -> Result<Departure, sqlx::Error> {
        let mut tx = db::begin(self.pool).await?;
        let is_probe = match wecom_gate::pass(&mut tx, self.app, self.hold.token).await? {
            Pass::Open => false,
            Pass::Probe => true,
            Pass::Closed { seconds, reason } => {
                tx.rollback().await?;
                let spread = (seconds / 4.0).clamp(0.1, LONGEST_SPREAD_S);
                return Ok(Departure::Closed {
                    after: Duration::from_secs_f64(seconds + rand::random_range(0.0..spread)),
                    reason,
                });
            }
        };
        let limits = PER_MEMBER.map(|limit| Limit {
            messages: limit.messages,
            window_s: limit.window.as_secs_f64(),
        });
        let place = match wecom_sends::take(&mut tx, self.app, self.member, &limits).await? {
            Room::Taken(place) => place,
            Room::In(seconds) => {
                tx.rollback().await?;
                metrics::counter!("iit_wecom_paced_total").increment(1);
                return Ok(Departure::Full(Duration::from_secs_f64(seconds)));
            }
        };
        if !outbox_parts::begin(&mut tx, self.outbox, no, was, self.hold).await? {
            tx.rollback().await?;
            return Ok(Departure::NotOurs);
        }
        tx.commit().await?;
        Ok(Departure::Now(Leave { place, is_probe }))
    }

    /// Notes what became of part `no`, which `was` in that state before it left. Returns how long the app
    /// keeps still if the answer concerns all its messages.
    ///
    /// # Errors
    /// The database stayed away; the part is still marked `sending`.
    pub async fn arrive(
        &self,
        no: i32,
        was: &str,
        leave: &Leave,
        answer: &Result<Sent, SendError>,
    ) -> Result<Duration, sqlx::Error> {
        if let Err(error) = answer {
            metrics::counter!("iit_wecom_refusals_total", "cause" => error.cause()).increment(1);
        }
        let note = || async {
            let mut tx = db::begin(self.pool).await?;
            self.note_part(&mut tx, no, was, leave, answer).await?;
            let still = self.note_gate(&mut tx, leave, answer).await?;
            tx.commit().await?;
            Ok(still)
        };
        until_noted(note, |error| {
            tracing::warn!(outbox.id = %self.outbox, %error, "deliver.note.again");
        })
        .await
    }

    async fn note_part(
        &self,
        conn: &mut PgConnection,
        no: i32,
        was: &str,
        leave: &Leave,
        answer: &Result<Sent, SendError>,
    ) -> Result<(), sqlx::Error> {
        match answer {
            Ok(Sent { msg_id }) => {
                outbox_parts::sent(conn, self.outbox, no, msg_id).await?;
                wecom_sends::arrived(conn, leave.place).await
            }
            Err(SendError::Ambiguous { .. }) => {
                outbox_parts::unclear(conn, self.outbox, no).await?;
                wecom_sends::arrived(conn, leave.place).await
            }
            // The one recipient did not get it, whoever else would have.
            Err(_) => {
                outbox_parts::put_back(conn, self.outbox, no, was, self.hold).await?;
                wecom_sends::give_back(conn, leave.place).await
            }
        }
    }

    /// One message closes the gate for all, and one opens it.
    async fn note_gate(
        &self,
        conn: &mut PgConnection,
        leave: &Leave,
        answer: &Result<Sent, SendError>,
    ) -> Result<Duration, sqlx::Error> {
        let refusal = answer
            .as_ref()
            .err()
            .and_then(|error| Some((error, error.pause()?)));
        let Some((error, pause)) = refusal else {
            if leave.is_probe && wecom_gate::open(conn, self.app, self.hold.token).await? {
                tracing::info!("wecom.gate.opened");
            }
            return Ok(Duration::ZERO);
        };
        let waits: Vec<f64> = pause.waits.iter().map(|&wait| f64::from(wait)).collect();
        let reason = error.to_string();
        let refusal = Refusal {
            cause: &error.cause(),
            reason: &reason,
            waits: &waits,
            needs_person: pause.needs_person,
        };
        let failures = wecom_gate::close(conn, self.app, self.hold.token, &refusal).await?;
        // Told once, not by every message that meets the closed gate.
        if failures == Some(1) {
            let cause = refusal.cause;
            match pause.needs_person {
                true => tracing::error!(cause, reason, "wecom.gate.closed"),
                false => tracing::warn!(cause, reason, "wecom.gate.closed"),
            }
        }
        let index = usize::try_from(failures.unwrap_or(1) - 1).unwrap_or(0);
        let wait = pause.waits.get(index).or(pause.waits.last());
        Ok(Duration::from_secs(u64::from(*wait.unwrap_or(&1))))
    }
}
