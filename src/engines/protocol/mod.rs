//! A study's documents: from the text as read to passages that can be found and cited, and from a question
//! to what is looked for.
//!
//! | file | thought |
//! |---|---|
//! | [`outline`] | what is a heading, and where in the document we are |
//! | [`paragraphs`] | printed lines back to paragraphs |
//! | [`furniture`] | what a page carries beside its text: running heads, page numbers, tables of contents |
//! | [`passages`] | paragraphs to passages |
//! | [`query`] | a question to a phrase and terms |

pub mod furniture;
pub mod outline;
pub mod paragraphs;
pub mod passages;
pub mod query;

pub use passages::passages;
pub use query::Query;
