//! Servers, databases and helpers that several test modules share.

pub mod fake_wecom;
pub mod postgres;
