//! The one integration-test binary.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed expectation is the test's verdict"
)]

mod architecture;
mod postgres;
mod support;
mod demo_study;
mod edc;

mod support;
mod wecom;
mod skills;
mod sop;
