//! The thin adapter that lets apalis run our workers.
//!
//! `Kind = Ephemeral` and `Error = Infallible` on purpose: a decode error or one `Err` from `poll_next`
//! would end the worker. No safety rests on apalis's own timeout, retry, concurrency or catch-panic
//! layers; lease, guard and settle are ours.

use std::{
    convert::Infallible,
    task::{Context, Poll},
};

use apalis_core::{
    backend::{Backend, BackendConfig, finalize::Ephemeral},
    task::{Task, builder::TaskBuilder, task_id::RandomId},
    worker::context::WorkerContext,
};
use tokio::sync::mpsc;
use tower::layer::util::Identity;

use super::worker::Slot;

/// One queue's claimed jobs, as an apalis backend: it ends when the claimer does.
pub struct ClaimedJobs {
    slots: mpsc::Receiver<Slot>,
}

impl ClaimedJobs {
    /// Over the receiving end of a claimer's channel.
    #[must_use]
    pub fn new(slots: mpsc::Receiver<Slot>) -> Self {
        Self { slots }
    }
}

impl Backend for ClaimedJobs {
    type Task = Task<Slot>;
    type Error = Infallible;

    fn poll_ready(
        &mut self,
        _cx: &mut Context<'_>,
        _worker: &WorkerContext,
    ) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
        _worker: &WorkerContext,
    ) -> Poll<Option<Result<Self::Task, Self::Error>>> {
        self.slots
            .poll_recv(cx)
            .map(|slot| slot.map(|slot| Ok(TaskBuilder::new(slot).build())))
    }

    /// The claimer has ended and nothing is in flight. apalis waits for a stop even then, so it is asked
    /// to; an error means that it is stopping already.
    fn poll_close(
        &mut self,
        _cx: &mut Context<'_>,
        worker: &WorkerContext,
    ) -> Poll<Result<(), Self::Error>> {
        let _ = worker.stop();
        Poll::Ready(Ok(()))
    }
}

impl BackendConfig for ClaimedJobs {
    type Args = Slot;
    type Id = RandomId;
    type Kind = Ephemeral;
    type Config = ();
    type Layer = Identity;

    fn config(&self) -> &Self::Config {
        &()
    }

    fn middleware(&mut self, _worker: &mut WorkerContext) -> Self::Layer {
        Identity::new()
    }
}
