//! Soft rules: a judgement by a language model, and what of it is believed.
//!
//! | file | thought |
//! |---|---|
//! | [`data`] | what the model is shown of a record, and whether a quote stands in it |
//! | [`prompt`] | what the model is told, and a conversation rendered from its parts |
//! | [`verdict`] | what it answered, checked: a pass or a fail needs a quote that is really there |

pub mod data;
pub mod prompt;
#[cfg(test)]
mod tests;
pub mod verdict;

pub use data::{Data, TooLarge};
pub use prompt::{Opening, Said, correction, render};
pub use verdict::{Judgement, judge};

/// Which prompts and checks these are; kept with every call.
pub const PROMPT_VERSION: &str = "soft-3";
/// Most answers asked for before the judgement is left to a person, the first included.
pub const TRIES: usize = 3;
