//! From a message to intents: text in, decision out, no I/O.
//!
//! [`keyword::route`] needs no model: it stands in whenever the language model is off, slow or broken,
//! and its answer is marked [`Routing::degraded`]. A model-driven router fills the same [`Routing`] from
//! the same message and [`Conversation`], so callers never care which one answered.
//!
//! Two promises hold whichever way a message is written: a negated command never starts a QC, and a
//! record id in the answer was written by a person (in the message, the memory, the history) or lies
//! inside a range a person wrote.

mod answer;
pub mod certain;
mod clause;
mod command;
mod cues;
mod entities;
mod explicit;
mod fold;
mod follow_up;
mod ids;
mod intent;
pub mod keyword;
mod message;
pub mod model;
mod parts;
mod quoted;
mod reference;
mod resolve;
mod subject;
pub mod texts;

#[cfg(test)]
mod tests;

pub use explicit::{confirmed_change, confirmed_check};
pub use intent::{
    Choice, Clarification, Consent, Conversation, DEFAULT_IDLE, Entities, Intent, IntentKind,
    Memory, PATIENT_SLOT, Routing, Speaker, Turn,
};
pub use resolve::named;

/// Under this confidence a router asks back instead of guessing.
pub const CONFIDENCE_THRESHOLD: f64 = 0.6;

/// Turns of the conversation a router looks at.
pub const HISTORY_TURNS: usize = 3;
