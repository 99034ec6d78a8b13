//! Language models behind any OpenAI-compatible endpoint.
//!
//! | file | thought |
//! |---|---|
//! | [`config`] | where the model is, what it costs |
//! | [`profile`] | what its server knows and wants to be told: data, `profiles.toml` |
//! | [`request`], [`image`] | what is asked, whoever answers |
//! | `transcript` | whether that can be sent |
//! | `wire` | the same as a server of a given profile takes it |
//! | [`client`] | one call; no retries here, the queue retries |
//! | `transport` | status, size and pace of an answer, before anything else looks at it |
//! | [`reply`] | what came back, read leniently |
//! | [`error`], [`said`], [`retry_after`] | why nothing came back, by what a caller does next |
//! | [`probe`] | tries what an endpoint can do |

pub mod client;
pub mod config;
pub mod error;
pub mod image;
pub mod probe;
pub mod profile;
pub mod reply;
pub mod request;
pub mod retry_after;
pub mod said;
mod transcript;
mod transport;
mod wire;

pub use client::LlmClient;
pub use config::LlmConfig;
pub use error::LlmError;
pub use image::Image;
pub use reply::Reply;
pub use request::{ChatRequest, Format, Message, Role, ToolCall, ToolSpec};
pub use wire::body;
