//! Language models behind any OpenAI-compatible endpoint.
//!
//! | file | thought |
//! |---|---|
//! | [`config`] | where the model is, what it costs |
//! | [`request`] | what is asked |
//! | [`reply`] | what came back, read leniently |
//! | [`error`] | why nothing came back, by what a caller does next |
//! | [`client`] | one call; no retries here, the queue retries |
//! | `transport` | status, size and form of an answer, before anything else looks at it |

pub mod client;
pub mod config;
pub mod error;
pub mod reply;
pub mod request;
mod transport;

pub use client::LlmClient;
pub use config::LlmConfig;
pub use error::LlmError;
pub use reply::Reply;
pub use request::{ChatRequest, Format, Message, Role, ToolCall, ToolSpec};
