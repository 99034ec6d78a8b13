//! What one rule says about one row of one record.

use std::sync::Arc;

use serde::Serialize;

use crate::types::finding::{FieldValue, Finding, FindingOutcome, Severity};

/// Why a rule could not be decided. Never a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// A deciding value is blank.
    Missing,
    /// A deciding value is a missing-data code such as `NI`.
    CodedMissing,
    /// A deciding value is not of its field's type: `5,3`, `<5`, a code off the list.
    Invalid,
    /// A date without its day or month, and not every completion gives the same answer.
    PartialDate,
    /// The export has no such column, so nobody knows whether it is blank.
    NotExported,
    /// The field stands at several events and the rule doesn't say which.
    AmbiguousEvent,
    /// No answer exists: a division by zero, text that has no order, a birth after the visit.
    Undefined,
}

/// The answer of one rule for one row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// The condition holds, decided on known values only.
    Pass,
    /// The condition is broken, decided on known values only.
    Fail,
    /// Not decidable; raises a query.
    NotEvaluable {
        /// The first reason, in reading order of the rule.
        reason: Reason,
        /// The fields that would decide it.
        fields: Vec<Arc<str>>,
    },
    /// What would decide it is hidden by branching logic: nothing to ask, nothing passed.
    Hidden,
    /// What would decide it stands on a form nobody opened yet: nothing to ask yet, nothing passed.
    FormNotOpened,
}

/// One rule, one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleResult {
    /// The rule's id, or the hash of field and canonical logic.
    pub rule: Arc<str>,
    /// Position of the rule in the compiled set.
    pub rule_index: usize,
    /// Unique event name of the row; `None` where the project has none.
    pub event: Option<Arc<str>>,
    /// Instance of a repeating form or event.
    pub instance: Option<u32>,
    /// The field a finding is about.
    pub field: Arc<str>,
    /// The answer.
    pub outcome: Outcome,
    /// One sentence with the values filled in; empty on a pass.
    pub message: String,
    /// The rule's severity; `query` when not evaluable.
    pub severity: Severity,
    /// The values the rule rests on; empty on a pass.
    pub values: Vec<FieldValue>,
}

impl RuleResult {
    /// Whether the condition holds.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.outcome == Outcome::Pass
    }

    /// The ledger entry this result asks for: `None` for a pass, a hidden field and an unopened form.
    #[must_use]
    pub fn to_finding(&self, record: &str) -> Option<Finding> {
        let outcome = match self.outcome {
            Outcome::Fail => FindingOutcome::Fail,
            Outcome::NotEvaluable { .. } => FindingOutcome::NotEvaluable,
            Outcome::Pass | Outcome::Hidden | Outcome::FormNotOpened => return None,
        };
        Some(Finding {
            record: record.to_owned(),
            event: self.event.as_deref().map(str::to_owned),
            instance: self.instance,
            rule: self.rule.to_string(),
            field: self.field.to_string(),
            outcome,
            severity: self.severity,
            message: self.message.clone(),
            values: self.values.clone(),
        })
    }
}
