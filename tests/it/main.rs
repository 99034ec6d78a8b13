//! The one integration-test binary.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed expectation is the test's verdict"
)]

mod architecture;
mod postgres;
mod postgres_choice;
mod support;
mod test_databases;
