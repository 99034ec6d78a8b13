//! Outside systems, each behind its own module: EDC, language model, WeCom, Dify, documents people hand in.

mod decode;
pub mod dify;
pub mod documents;
pub mod edc;
mod http_client;
pub mod llm;
pub mod wecom;
