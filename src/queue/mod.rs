//! The job queue: a Postgres backend for apalis. It knows no job by name.
//!
//! apalis runs the workers; the database decides. Enqueueing is part of the caller's transaction;
//! a claim takes a lease; a settle is fenced by that lease and commits a job's result together with the
//! next jobs. What happens between the two may be killed at any moment.
//!
//! | file | thought |
//! |---|---|
//! | [`job`] | what a job is, what may come of it |
//! | [`enqueue`] | into the queue, inside the caller's transaction |
//! | [`claim`] | out of the queue, as many as there are free slots |
//! | `cursor` | where the next claim begins |
//! | [`lease`] | holding on: renewal, and letting go when it fails |
//! | [`settle`] | the fenced end of an attempt, with everything it leads to |
//! | [`sweep`] | leases nobody renews any more |
//! | [`wake`] | telling workers that there is something to do |
//! | [`worker`] | one process's worker half: its parts, drain |
//! | `claimer` | free slots into claimed jobs |
//! | [`guard`] | from a claimed row to a settled one, whatever the handler does |
//! | [`backend`] | the thin adapter that lets apalis run it |
//! | [`depth`] | what operators ask, and trying a dead job again |
//! | [`cancel`] | ending what nobody wants any more |
//! | [`control`] | pausing and limiting a queue |
//! | `limit` | claims of a limited queue |
//! | [`history`] | finished jobs leave the hot table |

pub mod backend;
pub mod cancel;
pub mod claim;
mod claimer;
pub mod control;
mod cursor;
pub mod depth;
pub mod enqueue;
pub mod guard;
pub mod history;
pub mod job;
pub mod lease;
mod limit;
pub mod settle;
pub mod sweep;
pub mod wake;
pub mod worker;

pub use enqueue::{EnqueueError, Enqueued, NewJob, enqueue, enqueue_many};
pub use job::{Job, JobError, Outcome};
pub use lease::Lease;
pub use settle::{SettleError, Settled, Settlement};
pub use wake::Wake;
