//! WeCom over real TCP: callbacks in, messages out.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed expectation is the test's verdict"
)]

mod callback;
mod client;
mod cut_short;
mod gate;
mod harness;
mod shared_token;
mod vectors;
