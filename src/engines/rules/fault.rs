//! What is wrong with a rule, found before any data is read.

use std::fmt;

/// One fault of one rule. Every fault of a rule set is reported, not only the first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleFault {
    /// The rule's id, or `#n` (counted from 1) when it has none.
    pub rule: String,
    /// Where in the rule: `logic.and[1].>=[0]`.
    pub path: String,
    /// What is wrong, and what to write instead.
    pub what: String,
}

impl fmt::Display for RuleFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule {} at {}: {}", self.rule, self.path, self.what)
    }
}

impl std::error::Error for RuleFault {}
