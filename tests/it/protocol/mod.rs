//! What a study has written down: reading documents, searching them, Dify, and the answers that rest on them.

mod files;
mod pdf;
mod search;
mod word;
