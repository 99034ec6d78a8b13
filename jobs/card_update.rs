//! A clicked card shows what was chosen, in place of its buttons. A courtesy: tried once, never blindly
//! again, and nobody is told when it fails. What the click says is done whether the card shows it or not.

use std::time::Duration;

use anyhow::anyhow;
use serde::{Deserialize, Serialize};

use super::{
    Handle,
    common::{click, services::Services, until_noted::until_noted},
};
use crate::{
    adapters::wecom::{card, error::SendError},
    queue::{Job, JobError, Lease, Outcome, Settled, Settlement},
    store::{
        cards::{self, Update},
        outbox_parts::Hold,
        wecom_gate,
    },
    types::ids::OutboxId,
};

/// The code that came with the click is good for 72 hours (24 by older pages); who looks at the card
/// does so at once.
const WORTH_SHOWING_S: f64 = 12.0 * 60.0 * 60.0;
/// How soon to look again whether WeCom takes anything from this app.
const CLOSED_AGAIN: Duration = Duration::from_secs(30);

/// Show the click on the card of one row of `iit_outbox`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CardUpdate {
    /// The row.
    pub card: OutboxId,
}

impl Job for CardUpdate {
    const KIND: &'static str = "card_update";
    // Where the processes are that can reach WeCom.
    const QUEUE: &'static str = "deliver";
    const MAX_ATTEMPTS: i32 = 4;

    fn key(&self) -> Option<String> {
        Some(self.card.to_string())
    }
}

impl Handle for CardUpdate {
    async fn run(self, services: &Services, lease: &Lease) -> Result<Settled, JobError> {
        let Some(wecom) = &services.wecom else {
            return Err(JobError::dead(anyhow!(
                "WeCom is not configured; set the WECOM_* variables and retry the job"
            )));
        };
        let hold = Hold {
            job: lease.job,
            token: lease.token,
        };
        let mut conn = services.pool.acquire().await?;
        let Some(update) = cards::update_of(&mut conn, self.card).await? else {
            return Err(JobError::Cancel("the click is gone".to_owned()));
        };
        match update.state.as_str() {
            "queued" => {}
            // An earlier attempt died over it: the code may be used up.
            "sending" => return self.end(services, lease, "unknown").await,
            _ => return self.end(services, lease, &update.state).await,
        }
        let code = click::event_of(&update.event).map(|event| event.response_code);
        let Some(code) = code.filter(|code| !code.is_empty() && update.age_s < WORTH_SHOWING_S)
        else {
            return self.end(services, lease, "failed").await;
        };
        let closed = wecom_gate::closed(&mut conn).await?;
        if closed.iter().any(|gate| gate.app == wecom.app()) {
            return Err(JobError::Snooze(CLOSED_AGAIN));
        }
        if !cards::begin_update(&mut conn, self.card, hold).await? {
            return Err(JobError::LostLease);
        }
        // No connection is held while WeCom is asked.
        drop(conn);
        let answer = wecom
            .replace_buttons(&update.recipient, &code, &shown(&update))
            .await;
        let Err(error) = answer else {
            return self.end(services, lease, "done").await;
        };
        tracing::info!(outbox.id = %self.card, cause = %error.cause(), "card.update.failed");
        let goes_again = matches!(error, SendError::Blocked { .. } | SendError::NotSent { .. })
            && lease.attempt < Self::MAX_ATTEMPTS;
        if goes_again {
            self.note(services, "queued").await?;
            let first = error.pause().and_then(|pause| pause.waits.first().copied());
            return Err(JobError::Retry {
                after: first.map(|seconds| Duration::from_secs(seconds.into())),
                why: error.into(),
            });
        }
        let state = match error {
            SendError::Ambiguous { .. } => "unknown",
            _ => "failed",
        };
        self.end(services, lease, state).await
    }

    async fn bury(
        self,
        _services: &Services,
        _lease: &Lease,
        settlement: &mut Settlement,
        _why: &str,
    ) -> Result<(), JobError> {
        let update = cards::update_of(settlement.conn(), self.card).await?;
        let state = match update.as_ref().map(|update| update.state.as_str()) {
            Some("sending") => "unknown",
            _ => "failed",
        };
        cards::note_update(settlement.conn(), self.card, state).await?;
        Ok(())
    }
}

impl CardUpdate {
    /// Notes the end in a database that may be away for a moment: a code is used only once.
    async fn note(&self, services: &Services, state: &str) -> Result<(), sqlx::Error> {
        let note = || async {
            let mut conn = services.pool.acquire().await?;
            cards::note_update(&mut conn, self.card, state).await
        };
        until_noted(note, |error| {
            tracing::warn!(outbox.id = %self.card, %error, "card.update.note.again");
        })
        .await
    }

    async fn end(
        &self,
        services: &Services,
        lease: &Lease,
        state: &str,
    ) -> Result<Settled, JobError> {
        self.note(services, state).await?;
        let settlement = lease
            .settle(&services.pool, &services.wake, &Outcome::Done)
            .await?;
        Ok(settlement.commit().await?)
    }
}

/// What the dead button says: the button that was clicked, or that it came too late.
fn shown(update: &Update) -> String {
    if update.late {
        return "已失效".to_owned();
    }
    let labels: Vec<&str> = update.chips.iter().map(|c| c.label.as_str()).collect();
    let button = usize::try_from(update.choice)
        .ok()
        .and_then(|no| card::buttons(&labels)?.into_iter().nth(no));
    match button {
        Some(button) => format!("已选 {button}"),
        None => "已选择".to_owned(),
    }
}
