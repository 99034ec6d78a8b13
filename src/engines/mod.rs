//! Decisions without I/O: rules, soft rules, SOP, router, passages of documents.

pub mod protocol;
pub mod react;
//! Decisions without I/O: rules, soft rules, SOP, router, redaction.

pub mod redaction;
pub mod router;
pub mod rules;
pub mod soft;
pub mod sop;
