//! A skill as the engine takes it: both written shapes in one form, every default filled in.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::final_state::FinalState;
use crate::types::{catch_up::CatchUp, rule::RuleSpec};

/// Tools a node may name. Read-only ones first; the last four change or send something and are for
/// SOPs only. `update_record` and `write_clinical_data` are one tool.
pub const TOOLS: [&str; 13] = [
    "read_clinical_data",
    "search_records",
    "aggregate",
    "search_protocol",
    "get_project_stats",
    "check_visit_window",
    "assess_ae_causality",
    "check_ethics_compliance",
    "read_chronicle",
    "manage_issue",
    "update_record",
    "write_clinical_data",
    "send_notification",
];

/// One checked skill. Made only by [`super::load`] and [`super::from_config`], so its graph is sound.
#[derive(Debug, Clone, PartialEq)]
pub struct Skill {
    /// `qc_process`, `weekly_report`, …: unique in a project.
    pub skill_type: String,
    /// What people call it.
    pub name: String,
    /// Five-field cron in the project's time zone; Monday = 1, Sunday = 0 or 7.
    pub schedule: Option<String>,
    /// What becomes of the times nobody was there for.
    pub catch_up: CatchUp,
    /// The configuration as written, comments apart: what is stored and pinned by a run.
    pub config: Value,
    /// Where `config` stood in its file: `config`, or empty for a bare skill. Paths of faults found
    /// after loading begin with it.
    pub config_path: String,
    /// What it does.
    pub body: Body,
}

impl Skill {
    /// The SOP, when the skill is one.
    #[must_use]
    pub fn sop(&self) -> Option<&Sop> {
        match &self.body {
            Body::Sop(sop) => Some(sop),
            Body::Report(_) => None,
        }
    }
}

/// What a skill does.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// Checks a record step by step.
    Sop(Sop),
    /// Writes a report and sends it.
    Report(Report),
}

/// A scheduled report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// WeCom users or groups of the project file.
    pub recipients: Vec<String>,
    /// Sections in order.
    pub sections: Vec<String>,
}

/// A standard operating procedure: a graph of nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct Sop {
    /// What people call it.
    pub name: String,
    /// Where a run begins; always a key of `nodes`.
    pub start_node: String,
    /// Nodes by name.
    pub nodes: BTreeMap<String, Node>,
}

/// One step of a SOP.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// What is done.
    pub work: Work,
    /// Where to go next.
    pub routes: Routes,
    /// Most visits in one run; the next one ends the run `end_review_required`.
    pub max_visits: Option<u32>,
}

/// What a node does.
#[derive(Debug, Clone, PartialEq)]
pub enum Work {
    /// Rules decided by computing.
    HardRule {
        /// At least one.
        rules: Vec<RuleSpec>,
    },
    /// A judgement by a language model.
    SoftInstruction {
        /// What to judge.
        instruction: String,
        /// Tools it may call.
        tools: Vec<String>,
    },
    /// A person decides.
    HumanReview {
        /// What the person is asked.
        message: String,
    },
    /// One tool call.
    Tool {
        /// Its name.
        tool: String,
        /// Its arguments.
        args: Map<String, Value>,
    },
    /// Tells somebody.
    Notify {
        /// The text, with `{record}` and `{findings}` filled in.
        message: String,
        /// WeCom users or groups; empty: the study's coordinators.
        to: Vec<String>,
    },
}

impl Work {
    /// The node type as written.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::HardRule { .. } => "hard_rule",
            Self::SoftInstruction { .. } => "soft_instruction",
            Self::HumanReview { .. } => "human_review",
            Self::Tool { .. } => "tool",
            Self::Notify { .. } => "notify",
        }
    }
}

/// Where a node leads, defaults filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Routes {
    /// Everything holds; a review was dismissed; a notice is queued.
    pub on_pass: Target,
    /// Something is broken; a review was confirmed.
    pub on_fail: Target,
    /// Something outside (EDC, model, tool) was not available.
    pub on_error: Target,
    /// Something could not be decided.
    pub on_not_evaluable: Target,
}

/// What a branch names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// Another node.
    Node(String),
    /// The end of the run.
    End(FinalState),
}

impl Target {
    /// The target a name stands for.
    #[must_use]
    pub fn parse(name: &str) -> Self {
        FinalState::parse(name).map_or_else(|| Self::Node(name.to_owned()), Self::End)
    }
}
