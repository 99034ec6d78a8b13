//! Calls to language models: the journal, what they cost, and the breaker all workers share.

pub mod calls;
pub mod providers;
pub mod spend;
