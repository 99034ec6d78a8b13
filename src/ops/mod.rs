//! Depth, metrics, health.
