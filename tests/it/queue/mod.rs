//! The queue over a real Postgres: what is promised when everything goes well, and when processes,
//! connections and the server itself are taken away.

mod claim;
mod drain;
mod enqueue;
mod groups;
mod guard;
mod lease;
mod rig;
mod settle;
mod wakeup;
