//! Webhook and REST: verify, store, enqueue, read.
