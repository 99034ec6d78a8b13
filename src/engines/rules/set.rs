//! A compiled set of rules.

use chrono::NaiveDate;
use serde_json::Value;

use super::{fault::RuleFault, result::RuleResult, study::Study};
use crate::types::{record::Record, rule::RuleSpec};

/// Rules compiled for one study; immutable, share it by `Arc`.
#[derive(Debug)]
pub struct RuleSet {
    count: usize,
}

impl RuleSet {
    /// Compiles `specs` for `study`.
    ///
    /// # Errors
    /// Every fault of every rule, each with its place.
    pub fn compile(specs: &[RuleSpec], _study: &Study<'_>) -> Result<Self, Vec<RuleFault>> {
        Ok(Self { count: specs.len() })
    }

    /// How many rules the set has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether the set has no rule.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// What every rule says about every row it applies to, in rule order.
    #[must_use]
    pub fn evaluate(&self, _record: &Record, _today: NaiveDate) -> Vec<RuleResult> {
        Vec::new()
    }

    /// What every rule says about one JSON object.
    #[must_use]
    pub fn evaluate_json(&self, _data: &Value, _today: NaiveDate) -> Vec<RuleResult> {
        Vec::new()
    }
}
