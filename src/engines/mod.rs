//! Decisions without I/O: rules, soft rules, SOP, router, redaction.

pub mod redaction;
pub mod router;
pub mod rules;
pub mod soft;
pub mod sop;
