//! The queue over a real Postgres: what is promised when everything goes well, and when processes,
//! connections and the server itself are taken away.

mod cancel;
mod claim;
mod control;
mod drain;
mod enqueue;
mod freeze;
mod groups;
mod guard;
mod history;
mod kill;
mod late_delivery;
mod lease;
mod model;
mod ops;
pub mod program;
mod proofs;
pub mod rig;
mod serve;
mod settle;
mod suspects;
mod wakeup;
