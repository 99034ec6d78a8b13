//! The REST side: who may call it, what it refuses and how, and what it remembers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed expectation is the test's verdict"
)]

mod bad_input;
mod health;
mod repeated;
