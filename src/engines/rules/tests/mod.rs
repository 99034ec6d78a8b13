//! Tests of the rule engine as a whole; each file a promise.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed expectation is the test's verdict"
)]

mod blanking;
mod designation;
mod differential;
mod faults;
mod functions;
mod kleene;
mod messages;
mod official;
mod rows;
mod support;
mod typed;
