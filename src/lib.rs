//! IIT Manager: an agent for investigator-initiated clinical trials.
//!
//! Messages, ticks and batches only *enqueue* jobs on Postgres; workers take one job at a time, do one
//! step, and commit the result together with the next job. Data flows one way:
//!
//! ```text
//! entry ──enqueue──▶ queue ──claim──▶ jobs/<kind>.rs ──▶ tools, engines ──▶ adapters, store
//!                      ▲                                    │
//!                      └────────── settle + next job ◀──────┘      outbox ──▶ deliver ──▶ WeCom
//! ```
//!
//! The **ladder**: a module imports only from rungs strictly below its own, and neighbours on a rung
//! never import each other (`tests/it/architecture.rs` enforces it).
//!
//! | rung | modules | what lives there |
//! |---|---|---|
//! | 0 | [`types`] | ids, clock, states, the study's dictionary and records |
//! | 1 | [`store`], [`adapters`], [`queue`], [`skills`] | SQL per aggregate; outside systems; the job queue; skill files |
//! | 2 | [`memory`] | what the agent remembers of a conversation |
//! | 3 | [`engines`] | rules, SOP, router, ReAct: pure decisions |
//! | 4 | [`tools`] | what the model may call: they compute with the rules, and no engine names one |
//! | 5 | [`jobs`] | one file per job kind: the front page of the program |
//! | 6 | [`ops`] | depth, metrics, health |
//! | 7 | [`entry`] | webhook and REST: verify, store, enqueue |
//! | 8 | [`boot`] | configuration, private Postgres, wiring, commands |

pub mod adapters;
pub mod boot;
pub mod engines;
pub mod entry;
#[path = "../jobs/mod.rs"]
pub mod jobs;
pub mod memory;
pub mod ops;
pub mod queue;
pub mod skills;
pub mod store;
pub mod tools;
pub mod types;
