//! Outside systems, each behind its own module: EDC, WeCom.

pub mod edc;
pub mod wecom;
