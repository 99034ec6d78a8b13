//! Where a process can be struck, and the trap that waits for one to get there.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

use crate::statements::Statement;

/// A moment in the life of a process, seen from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Moment {
    /// The statement was sent by the process and not yet handed to Postgres.
    Before(Statement),
    /// Postgres did it; the process does not know yet.
    After(Statement),
    /// The commit of a settlement is about to be handed to Postgres.
    BeforeSettled,
    /// A settlement is committed; the process does not know yet.
    AfterSettled,
    /// An inbound message is about to be committed.
    BeforeReceived,
    /// An inbound message is committed; neither the process nor its sender knows yet.
    AfterReceived,
    /// The model was asked and has not answered.
    Asked,
    /// WeCom was asked to send and has not delivered.
    Sending,
    /// WeCom delivered and has not answered.
    Delivered,
}

/// What becomes of whatever stands still at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Pass,
    /// Its process is gone: goes nowhere any more.
    Swallow,
}

/// A process that reached the moment and stands still there until told.
pub struct Reached {
    pub slot: usize,
    go: oneshot::Sender<Verdict>,
}

impl Reached {
    pub fn go(self, verdict: Verdict) {
        let _ = self.go.send(verdict);
    }
}

struct Armed {
    moment: Moment,
    tell: oneshot::Sender<Reached>,
}

/// At most one trap at a time.
#[derive(Clone, Default)]
pub struct Traps(Arc<Mutex<Option<Armed>>>);

impl Traps {
    fn armed(&self) -> std::sync::MutexGuard<'_, Option<Armed>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Arms the trap; whoever gets there first is reported.
    pub fn arm(&self, moment: Moment) -> oneshot::Receiver<Reached> {
        let (tell, reached) = oneshot::channel();
        *self.armed() = Some(Armed { moment, tell });
        reached
    }

    /// Nobody came.
    pub fn disarm(&self) {
        *self.armed() = None;
    }

    /// Whether the trap waits at that moment.
    pub fn waits_at(&self, moment: Moment) -> bool {
        self.armed()
            .as_ref()
            .is_some_and(|armed| armed.moment == moment)
    }

    /// Called by whoever sees `slot` at `moment`; stands still there when the trap waits for it.
    pub async fn reach(&self, slot: usize, moment: Moment) -> Verdict {
        let armed = {
            let mut armed = self.armed();
            if armed.as_ref().is_none_or(|armed| armed.moment != moment) {
                return Verdict::Pass;
            }
            armed.take()
        };
        let (go, verdict) = oneshot::channel();
        let told = armed.is_some_and(|armed| armed.tell.send(Reached { slot, go }).is_ok());
        if told {
            verdict.await.unwrap_or(Verdict::Pass)
        } else {
            Verdict::Pass
        }
    }
}
