//! A hard rule as people write it, before it is compiled.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::finding::Severity;

/// `{id?, field, logic, message?, severity?}`; `logic` is JSON Logic or a named function
/// (`{"function_name": "visit_window", "args": {…}}`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RuleSpec {
    /// Rule number, cited in queries. Without one the rule is known by the hash of field and logic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The field a finding is about.
    #[serde(default)]
    pub field: String,
    /// The condition that must hold.
    #[serde(default)]
    pub logic: Value,
    /// What to tell people when it does not hold; default: the rule in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Default `error`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
}
