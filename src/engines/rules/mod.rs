//! Hard rules: JSON Logic syntax, three-valued answers.
//!
//! A blank passes an upper limit in every JSON Logic engine (`age <= 75` is true when age is missing), and
//! an unknown operator is silently truthy in some. Neither may happen to a trial. So a rule is *compiled*
//! against the study's data dictionary, which rejects what could only be a slip of the pen, and *evaluated*
//! in Kleene's three-valued logic: pass, fail, or not evaluable; not evaluable is never a pass.
//!
//! Pure: no I/O, no clock (`today` is an argument).

pub mod branching;
mod cell;
mod eval;
mod expr;
mod fault;
mod flat;
mod frame;
mod functions;
mod key;
mod layout;
mod message;
mod moment;
mod names;
mod number;
mod parse;
mod result;
mod scope;
mod set;
mod study;
#[cfg(test)]
mod tests;
mod typing;
mod value;
mod words;

pub use fault::RuleFault;
pub use key::rule_key;
pub use parse::operators;
pub use result::{Outcome, Reason, RuleResult};
pub use set::RuleSet;
pub use study::Study;
