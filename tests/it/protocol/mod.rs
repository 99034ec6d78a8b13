//! What a study has written down: reading documents, searching them, Dify, and the answers that rest on them.

mod answers;
mod commands;
mod dify;
mod files;
mod pdf;
mod search;
mod tool;
mod word;
