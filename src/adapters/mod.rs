//! Outside systems, each behind its own module: EDC, language model, WeCom.

pub mod edc;
mod http_client;
pub mod llm;
pub mod wecom;
