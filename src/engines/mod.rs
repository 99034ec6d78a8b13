//! Decisions without I/O: rules, soft rules, SOP, router, ReAct, redaction, passages of documents.

pub mod causality;
pub mod protocol;
pub mod react;
pub mod redaction;
pub mod router;
pub mod rules;
pub mod soft;
pub mod sop;
