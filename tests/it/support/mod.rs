//! Servers, databases and helpers that several test modules share.

pub mod app;
pub mod binary;
pub mod fake_llm;
pub mod fake_wecom;
pub mod hold;
pub mod postgres;
pub mod study;
