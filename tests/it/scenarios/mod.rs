//! What people write in WeCom and what comes back, through the whole program.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed expectation is the test's verdict"
)]

mod checks;
mod conversation;
mod delivery;
mod edc_failures;
mod membership;
mod review;
mod sop_shapes;
mod whole_project;
