//! “One moment, please”, for a person whose reply takes its time: once, and never after the reply.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Handle, common::services::Services, deliver::Deliver};
use crate::{
    engines::react::texts::IN_PROGRESS,
    queue::{Job, JobError, Lease, NewJob, Outcome, Settled, Settlement},
    store::{
        inbox::{Channel, Message},
        outbox, progress,
    },
    types::ids::MessageId,
};

/// Look whether a message is answered by now.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Progress {
    /// The message.
    pub message: MessageId,
}

impl Job for Progress {
    const KIND: &'static str = "progress";
    const QUEUE: &'static str = "chat";
    const MAX_ATTEMPTS: i32 = 3;

    fn key(&self) -> Option<String> {
        Some(self.message.to_string())
    }
}

impl Handle for Progress {
    async fn run(self, services: &Services, lease: &Lease) -> Result<Settled, JobError> {
        let mut settlement = lease
            .settle(&services.pool, &services.wake, &Outcome::Done)
            .await?;
        let said = progress::say(settlement.conn(), self.message, IN_PROGRESS).await?;
        if let Some((id, waiting)) = said
            && waiting.channel == Channel::Wecom
        {
            // Only the demo may know that nobody will deliver.
            if services.wecom.is_none() && services.conversation.open_project.is_some() {
                let why = "示例中未配置企业微信，未发送 (WeCom is not configured in the demo)";
                outbox::conclude(settlement.conn(), id, Some(why)).await?;
            } else {
                let job = Deliver {
                    outbox: id,
                    to: waiting.sender.to_lowercase(),
                };
                settlement.enqueue(NewJob::of(&job)?).await?;
            }
        }
        Ok(settlement.commit().await?)
    }

    /// Nobody needs to be told that they were not told to wait.
    async fn bury(
        self,
        _services: &Services,
        _lease: &Lease,
        _settlement: &mut Settlement,
        _why: &str,
    ) -> Result<(), JobError> {
        Ok(())
    }
}

/// Has the person told if the reply to `message` takes longer than is usual; asked for again, it is the same
/// job.
///
/// # Errors
/// The database failed.
pub async fn watch(
    services: &Services,
    settlement: &mut Settlement,
    message: &Message,
) -> Result<(), JobError> {
    let after = services.conversation.progress_after;
    if after.is_zero() {
        return Ok(());
    }
    let waited = services
        .clock
        .now()
        .signed_duration_since(message.created_at)
        .to_std()
        .unwrap_or(Duration::ZERO);
    let job = NewJob::of(&Progress {
        message: message.id,
    })?;
    settlement
        .enqueue(job.after(after.saturating_sub(waited)))
        .await?;
    Ok(())
}
