//! What the integration tests share.

pub mod postgres;
//! Servers and helpers that several test modules share.

pub mod fake_wecom;
