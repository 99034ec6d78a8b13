//! The queue over a real Postgres: what is promised when everything goes well, and when processes,
//! connections and the server itself are taken away.

mod claim;
mod drain;
mod enqueue;
mod freeze;
mod groups;
mod guard;
mod kill;
mod late_delivery;
mod lease;
mod model;
mod ops;
pub mod program;
mod rig;
mod settle;
mod suspects;
mod wakeup;
