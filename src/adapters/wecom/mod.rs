//! 企业微信 (WeCom): callback cryptography and the message API.
//!
//! Inwards: [`callback::Gate`] turns one HTTP request into an [`inbound::Inbound`] or says why not.
//! Outwards: [`client::WecomClient`] sends text, and choices as buttons ([`card`]), with a token that all
//! processes share ([`token`]).

pub mod callback;
pub mod card;
pub mod client;
pub mod config;
pub mod crypto;
pub mod errcode;
pub mod error;
pub mod http;
pub mod inbound;
pub mod limits;
pub mod query;
pub mod split;
pub mod token;
pub mod xml;
