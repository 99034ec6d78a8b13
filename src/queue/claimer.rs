//! One queue's claimer in one process: it turns free slots into claimed jobs, and sleeps when there are
//! none. One suspect at a time runs in the process, beside the usual jobs.

use std::{sync::Arc, time::Duration};

use sqlx::PgConnection;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use super::{
    claim::{self, Ask, Bound, ClaimedJob, Which},
    cursor::Cursor,
    limit::{self, Within},
    worker::{Slot, Worker},
};

/// A busy claimer looks for suspects this often.
const SUSPECTS_EVERY: Duration = Duration::from_millis(250);
/// The shortest sleep until a due time: the row may be in another claimer's hands right now.
const SHORTEST_SLEEP: Duration = Duration::from_millis(5);

impl Worker {
    /// Claims for `queue` until `stop`.
    pub(super) async fn claim_forever(
        self,
        queue: String,
        claimed: mpsc::Sender<Slot>,
        stop: CancellationToken,
    ) {
        let slots = Arc::new(Semaphore::new(self.settings.concurrency.max(1)));
        let mut cursor = Cursor::new(Instant::now());
        let mut looked_for_suspects = Instant::now();
        let mut apart = None;
        let mut limited = false;
        let mut trouble: u32 = 0;
        loop {
            self.progress.tick(&queue);
            let first = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                permit = Arc::clone(&slots).acquire_owned() => permit,
                // Busy, not stuck: readiness must not fail because every slot works.
                () = tokio::time::sleep(self.settings.poll) => continue,
            };
            let Ok(first) = first else { return };
            let mut permits = vec![first];
            while let Ok(permit) = Arc::clone(&slots).try_acquire_owned() {
                permits.push(permit);
            }
            let asked = Instant::now();
            if asked.duration_since(looked_for_suspects) >= SUSPECTS_EVERY {
                looked_for_suspects = asked;
                apart = apart.or_else(|| Arc::clone(&self.suspects).try_acquire_owned().ok());
            }
            let from = cursor.next(asked);
            let ask = self.ask(&queue, permits.len(), from);
            let found = self.claim(ask, apart.is_some(), limited).await;
            match found {
                Ok(found) => {
                    trouble = 0;
                    cursor.claimed(from, found.bound, asked, Instant::now());
                    let full =
                        found.usual.len() + usize::from(found.suspect.is_some()) == permits.len();
                    let jobs = found.usual.into_iter().map(|job| (job, None));
                    // Without a suspect its permit goes back.
                    let suspect = found.suspect.map(|job| (job, apart.take()));
                    apart = None;
                    for ((job, apart), permit) in suspect.into_iter().chain(jobs).zip(permits) {
                        let held = self.keeper.hold(&job.lease, asked);
                        let slot = Slot {
                            job,
                            held,
                            permit,
                            apart,
                        };
                        if claimed.send(slot).await.is_err() {
                            return;
                        }
                    }
                    if full {
                        continue;
                    }
                    limited = found.limited;
                    if from.is_start() {
                        (apart, limited) = self.idle(&queue, found.at_limit, &stop).await;
                        cursor.go_back(Instant::now());
                    } else if let Some(wait) = cursor.go_back(Instant::now()) {
                        tokio::select! {
                            () = stop.cancelled() => return,
                            () = self.wake.wait(&queue) => {}
                            () = tokio::time::sleep(wait.min(self.settings.poll)) => {}
                        }
                    }
                }
                Err(error) => {
                    trouble = trouble.saturating_add(1);
                    apart = None;
                    if !is_group_race(&error) {
                        tracing::warn!(queue, %error, "queue.claim.failed");
                    }
                    let pause = Duration::from_millis(50 << trouble.min(6));
                    tokio::select! {
                        () = stop.cancelled() => return,
                        () = tokio::time::sleep(pause) => {}
                    }
                }
            }
        }
    }

    fn ask<'a>(&self, queue: &'a str, slots: usize, bound: Bound) -> Ask<'a> {
        Ask {
            queue,
            worker: self.process,
            slots,
            lease: self.settings.lease,
            bound,
            which: Which::Usual,
            limited: false,
        }
    }

    /// One round: a suspect first if this process may run one, usual jobs for the rest of the slots.
    async fn claim(
        &self,
        ask: Ask<'_>,
        suspect: bool,
        limited: bool,
    ) -> Result<Found, sqlx::Error> {
        let mut conn = self.claims.acquire().await?;
        let mut found = Found {
            usual: Vec::new(),
            suspect: None,
            bound: ask.bound,
            limited,
            at_limit: false,
        };
        if suspect {
            let ask = Ask {
                slots: 1,
                bound: Bound::START,
                which: Which::Suspect,
                ..ask
            };
            let (mut jobs, _) = found.take(&mut conn, ask).await?;
            found.suspect = jobs.pop();
        }
        let slots = ask.slots - usize::from(found.suspect.is_some());
        if slots > 0 {
            match found.take(&mut conn, Ask { slots, ..ask }).await {
                Ok((jobs, bound)) => (found.usual, found.bound) = (jobs, bound),
                Err(error) if found.suspect.is_none() => return Err(error),
                // What is claimed already must be run.
                Err(error) => tracing::warn!(queue = ask.queue, %error, "queue.claim.failed"),
            }
        }
        Ok(found)
    }

    /// Waits for a wake-up, the next due time, or the poll interval, whichever is first. When a suspect is
    /// due, also for the leave to run one, which is returned; and whether the queue is limited.
    async fn idle(
        &self,
        queue: &str,
        at_limit: bool,
        stop: &CancellationToken,
    ) -> (Option<OwnedSemaphorePermit>, bool) {
        let outlook = async {
            let mut conn = self.claims.acquire().await?;
            claim::next_due(&mut conn, queue).await
        };
        let outlook = outlook.await.unwrap_or_default();
        // What is due can't be claimed: whoever changes that wakes us.
        let barred = outlook.paused || (at_limit && outlook.limited);
        let until = |due: Option<Duration>| match due {
            Some(due) if !barred => due.max(SHORTEST_SLEEP).min(self.settings.poll),
            _ => self.settings.poll,
        };
        let leave = async {
            if barred || outlook.suspect_due.is_none() {
                std::future::pending::<()>().await;
            }
            tokio::time::sleep(until(outlook.suspect_due)).await;
            Arc::clone(&self.suspects).acquire_owned().await.ok()
        };
        let leave = tokio::select! {
            () = stop.cancelled() => None,
            () = self.wake.wait(queue) => None,
            () = tokio::time::sleep(until(outlook.due)) => None,
            leave = leave => leave,
        };
        (leave, outlook.limited)
    }
}

/// What one round of a claimer brought.
struct Found {
    usual: Vec<ClaimedJob>,
    suspect: Option<ClaimedJob>,
    bound: Bound,
    /// The queue has a limit over all processes.
    limited: bool,
    /// It had no room.
    at_limit: bool,
}

impl Found {
    /// Claims, within the queue's limit if it has one.
    async fn take(
        &mut self,
        conn: &mut PgConnection,
        ask: Ask<'_>,
    ) -> Result<(Vec<ClaimedJob>, Bound), sqlx::Error> {
        if self.limited {
            match limit::claim(conn, ask).await? {
                Within::Claimed(jobs, bound) => return Ok((jobs, bound)),
                Within::Full => {
                    self.at_limit = true;
                    return Ok((Vec::new(), ask.bound));
                }
                Within::NotLimited => self.limited = false,
            }
        }
        claim::take(conn, ask).await
    }
}

/// Two processes claimed two jobs of one group at the same moment; the index refused the second.
fn is_group_race(error: &sqlx::Error) -> bool {
    error
        .as_database_error()
        .is_some_and(|db| db.constraint() == Some("iit_jobs_group_runs_one"))
}
