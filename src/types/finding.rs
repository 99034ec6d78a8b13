//! What a check found, and how two findings are told to be the same.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// How much a finding matters. `query`: somebody has to fill in or explain something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Nothing to do; shown only.
    Info,
    /// A question to the site.
    Query,
    /// Probably wrong.
    Warning,
    /// Wrong, or a protocol violation.
    Error,
}

impl Severity {
    /// The wire form.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Query => "query",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// Why something is in the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingOutcome {
    /// The rule is broken.
    Fail,
    /// The rule could not be decided; never a pass.
    NotEvaluable,
}

/// One field and what stood in it when the finding was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldValue {
    /// Field name.
    pub field: String,
    /// The value as exported; `None` when blank.
    pub value: Option<String>,
}

/// One finding about one place in the data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Record id.
    pub record: String,
    /// Unique event name; `None` where the project has none.
    pub event: Option<String>,
    /// Instance of a repeating form or event.
    pub instance: Option<u32>,
    /// The rule by its id, or by the hash of field and canonical logic (see S5).
    pub rule: String,
    /// The field the finding is about.
    pub field: String,
    /// Broken, or not decidable.
    pub outcome: FindingOutcome,
    /// How much it matters.
    pub severity: Severity,
    /// One sentence with the values filled in.
    pub message: String,
    /// The values it rests on.
    pub values: Vec<FieldValue>,
}

impl Finding {
    /// The identity of this finding over re-runs: project, rule, record, event, instance, field.
    ///
    /// No value is in it, so a corrected value meets its own earlier finding. Parts are length-prefixed:
    /// no two different tuples can give the same bytes.
    #[must_use]
    pub fn fingerprint(&self, project: &str) -> String {
        let instance = self.instance.map(|n| n.to_string()).unwrap_or_default();
        let mut hash = Sha256::new();
        for part in [
            project,
            &self.rule,
            &self.record,
            self.event.as_deref().unwrap_or_default(),
            &instance,
            &self.field,
        ] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part.as_bytes());
        }
        hash.finalize().iter().map(|b| format!("{b:02x}")).collect()
    }
}
