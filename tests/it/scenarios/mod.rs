//! What people write in WeCom and what comes back, through the whole program.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed expectation is the test's verdict"
)]

mod calendar;
mod checks;
mod conversation;
mod delivery;
mod edc_failures;
mod membership;
mod other_messages;
mod record_ids;
mod review;
mod sop_shapes;
mod whole_project;
