//! The router that asks a language model: what it is told, what of its answer can be used, and what of
//! that is believed. The asking itself is the caller's.
//!
//! | file | thought |
//! |---|---|
//! | [`prompt`] | what the model is told: the person's words as data, never a chart's |
//! | [`schema`] | the form its answer shall have |
//! | [`reply`] | what it answered, checked against what people wrote |
//! | [`believe`] | from its reading to intents, by the promises the keyword router keeps |
//!
//! The model says what a message wants. Whom it is about is read by our own code from the words people wrote,
//! and a check starts at once only where both readings agree.

pub mod believe;
pub mod prompt;
pub mod reply;
pub mod schema;
#[cfg(test)]
mod tests;

pub use believe::believe;
pub use prompt::{Context, Opening, Said, correction, render};
pub use reply::{Claim, read};

/// Which prompts and checks these are; kept with every call.
pub const PROMPT_VERSION: &str = "intent-1";
/// Most answers asked for before the keyword router decides, the first included.
pub const TRIES: usize = 2;
/// Most tokens of one answer.
pub const ANSWER_TOKENS: u32 = 700;
/// Most intents of one message.
pub const MAX_INTENTS: usize = 5;
