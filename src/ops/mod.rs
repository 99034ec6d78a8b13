//! Depth, metrics, health: what operators and their tools read.

pub mod health;
pub mod metrics;
