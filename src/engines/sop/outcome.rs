//! What one step of a run amounts to.

use serde::{Deserialize, Serialize};

use crate::{skills::FinalState, types::finding::Finding};

/// How a node came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeResult {
    /// Everything that applies holds; a review was dismissed; a notice is ready to be sent.
    Pass,
    /// Something is broken; a review was confirmed.
    Fail,
    /// Something could not be decided, and nothing is known to be broken.
    NotEvaluable,
    /// A form that decides was not opened yet; nothing is wrong so far.
    Incomplete,
    /// Something outside was not available: model, tool, EDC.
    Error,
}

impl NodeResult {
    /// The wire form, as it stands in step rows.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::NotEvaluable => "not_evaluable",
            Self::Incomplete => "incomplete",
            Self::Error => "error",
        }
    }
}

/// Where the run goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Next {
    /// On to this node.
    Node(String),
    /// The run is over.
    End(FinalState),
}

/// One node, done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeOutcome {
    /// The node.
    pub node: String,
    /// How it came out.
    pub result: NodeResult,
    /// What goes into the ledger.
    pub findings: Vec<Finding>,
    /// Keys of the rules that were answered for this record, whatever the answer, and the node's own key
    /// when it did its work. An open finding of one of these on this record that is not among `findings`
    /// describes data that was fixed. Rules that could not be answered are not listed: their silence says
    /// nothing.
    pub rules_checked: Vec<String>,
    /// One sentence for the trace: why the node could not do its work, or why the run ends here.
    pub note: Option<String>,
    /// Where the run goes.
    pub next: Next,
}
