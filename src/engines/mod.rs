//! Decisions without I/O: rules, SOP, router.

pub mod router;
pub mod rules;
pub mod sop;
