//! Dify's knowledge base, asked for passages. What leaves is the question and nothing else.
//!
//! | file | thought |
//! |---|---|
//! | [`config`] | where it is, and with which key |
//! | [`client`] | one call |
//! | [`answer`] | what it says, read leniently |
//! | [`error`] | why there is no answer |

pub mod answer;
pub mod client;
pub mod config;
pub mod error;

pub use client::DifyClient;
pub use config::DifyConfig;
pub use error::DifyError;
