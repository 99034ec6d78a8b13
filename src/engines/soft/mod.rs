//! Soft rules: a judgement by a language model, and what of it is believed.
//!
//! | file | thought |
//! |---|---|
//! | [`data`] | what the model is shown of a record, and whether a quote stands in it |
//! | [`prompt`] | what the model is told, and a conversation rendered from its parts |
//! | [`quotes`] | whether what an answer cites stands in what was shown |
//! | [`verdict`] | what it answered, checked: a pass or a fail needs a quote that is really there |

pub mod data;
pub mod prompt;
pub mod quotes;
#[cfg(test)]
mod tests;
pub mod verdict;

pub use data::{Data, TooLarge};
pub use prompt::{Opening, correction, render};
pub use verdict::{Judgement, judge, judge_with};

/// Which prompts and checks these are; kept with every call.
pub const PROMPT_VERSION: &str = "soft-4";
/// Most answers asked for before the judgement is left to a person, the first included.
pub const TRIES: usize = 3;
/// Most turns of one judgement in which tools are called; after them it has to answer.
pub const TOOL_TURNS: usize = 5;
