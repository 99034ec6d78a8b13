//! Webhook and REST: verify, store, enqueue, read.

pub mod wecom;
