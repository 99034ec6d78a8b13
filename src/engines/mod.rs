//! Decisions without I/O: rules, soft rules, SOP, router.

pub mod causality;
pub mod react;
pub mod router;
pub mod rules;
pub mod soft;
pub mod sop;
