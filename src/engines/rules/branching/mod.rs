//! REDCap's logic language, as branching logic uses it: parse once, decide per row.
//!
//! [`Expr`] and the evaluator are separate, so that functions and calculations can be added to both
//! without touching who uses them.

mod eval;
mod parse;
#[cfg(test)]
mod tests;

pub use eval::{Lookup, Source, decide};
pub use parse::{BinaryOp, Expr, Unsupported, parse};
