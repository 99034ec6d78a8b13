//! Tests of the rule engine as a whole; each file a promise.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed expectation is the test's verdict"
)]

mod blanking;
mod blanks;
mod designation;
mod differential;
mod faults;
mod functions;
mod kleene;
mod messages;
mod no_pass;
mod official;
mod populated;
mod reached;
mod rows;
mod standard_rules;
mod support;
mod typed;
