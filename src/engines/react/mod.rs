//! The right brain: a question answered by reasoning over read-only tools, turn by turn. Pure: each decision
//! is made of the rows of one thread, so it is the same after a crash.
//!
//! | file | thought |
//! |---|---|
//! | [`thread`] | the rows of a conversation, typed |
//! | [`prompt`] | what the model is told, and a request rendered from the rows |
//! | [`budget`] | turns and tokens: whether there is another turn, and whether it is the last |
//! | [`decide`] | what the model's answer asks for: calls, an answer, a correction |
//! | [`calls`] | calls that were made before, and tools that keep failing |
//! | [`figures`] | the figures of a text |
//! | [`verify`] | whether each figure of an answer stands in what the tools gave |
//! | [`texts`] | what people read: polite ends, the basis of an answer |

pub mod budget;
pub mod calls;
pub mod decide;
pub mod figures;
pub mod prompt;
#[cfg(test)]
mod tests;
pub mod texts;
pub mod thread;
pub mod verify;

pub use budget::{Limits, Next, next};
pub use decide::{Decision, decide};
pub use texts::End;
pub use thread::{Given, Question, Said};

/// Which prompts and checks these are; kept with every call.
pub const PROMPT_VERSION: &str = "react-1";
