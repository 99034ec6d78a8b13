//! What a tool is.

use std::future::Future;

use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::scope::Scope;
use crate::{
    engines::react::{
        Said,
        thread::{Ruled, Ruling},
    },
    types::{causality::Scale, finding::Finding, ids::PendingActionId},
};

/// What using a tool does to the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// Nothing.
    Read,
    /// Puts something before a person, who decides.
    Propose,
    /// Tells people something.
    Notify,
}

/// One tool. Its file is the only place that knows it, beside the line in [`super::Registry::standard`].
pub trait Tool: Send + Sync + 'static {
    /// What the model writes; its JSON schema is what the model is told.
    type Args: DeserializeOwned + JsonSchema + Send;
    /// The name the model calls it by.
    const NAME: &'static str;
    /// What it does and when to use it, in Chinese, for the model.
    const DESCRIPTION: &'static str;
    /// What using it does.
    const EFFECT: Effect;

    /// Does it, within `scope`.
    ///
    /// # Errors
    /// [`ToolError`]: what the model is told, or that a person has to look.
    fn run(
        &self,
        scope: &Scope<'_>,
        args: Self::Args,
    ) -> impl Future<Output = Result<Observation, ToolError>> + Send;
}

/// What a tool gave back.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Observation {
    /// What the model is shown.
    pub value: Value,
    /// What it is told beside that: nothing was found, there is more, a name was taken for another.
    pub notes: Vec<String>,
    /// The records it rests on.
    pub records: Vec<String>,
    /// Documents it rests on, as an answer cites them: name and section.
    pub sources: Vec<String>,
    /// Names the model used that nobody could map to a field; the job keeps them for the data manager
    /// (`store::unmapped_names::note`).
    pub unmapped: Vec<String>,
    /// Fields in `value` that identify a person, by name: shown as they are, redacted at the gate.
    pub identifiers: Vec<String>,
    /// It rests on something the arguments supposed, and not on the record alone.
    pub supposed: bool,
    /// What a tool that checks something decided; a SOP's node takes its branch by it.
    pub ruling: Option<Ruling>,
    /// The answer is still to be given, by a language model; then nothing else of this counts.
    pub judgement: Option<Judgement>,
    /// What a tool of effect [`Effect::Propose`] or [`Effect::Notify`] wants done; the job writes it in its
    /// settlement.
    pub proposals: Vec<Proposal>,
}

/// A judgement that a tool needs a language model for: asked in a run of its own, which answers the call.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// The record it is about.
    pub record: String,
    /// The event that is assessed, as people call it.
    pub event: String,
    /// In whose words.
    pub scale: Scale,
    /// How the conversation begins.
    pub opening: Vec<Said>,
}

/// Something for a person to decide.
#[derive(Debug, Clone, PartialEq)]
pub enum Proposal {
    /// A new line of the ledger.
    Raise(Finding),
    /// The site's explanation of a ledger row.
    Answer {
        /// The row.
        id: PendingActionId,
        /// What the site says.
        text: String,
    },
    /// A ledger row seems settled; a person closes it.
    Close {
        /// The row.
        id: PendingActionId,
        /// Why.
        reason: String,
    },
    /// A notice to people of the study.
    Notify {
        /// Members and groups; nobody named: the coordinators.
        to: Vec<String>,
        /// What they are told.
        text: String,
    },
}

impl Observation {
    /// Just this.
    #[must_use]
    pub fn of(value: Value) -> Self {
        Self {
            value,
            ..Self::default()
        }
    }

    /// What needs a language model.
    #[must_use]
    pub fn judged(judgement: Judgement) -> Self {
        Self {
            judgement: Some(judgement),
            ..Self::default()
        }
    }

    /// With what was decided.
    #[must_use]
    pub fn ruled(mut self, outcome: Ruled, text: impl Into<String>) -> Self {
        self.ruling = Some(Ruling {
            outcome,
            text: text.into(),
        });
        self
    }

    /// With one more thing to tell.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }
}

impl ToolError {
    /// Names nobody could map, as in [`Observation::unmapped`].
    #[must_use]
    pub fn unmapped(&self) -> &[String] {
        match self {
            Self::Unmapped { names, .. } => names,
            Self::Arguments(_) | Self::Unavailable(_) => &[],
        }
    }
}

/// Why a tool gave nothing back. Each counts as a failed call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// The arguments can't be used; what is wrong, for the model, which may try again.
    #[error("{0}")]
    Arguments(String),
    /// Names that mean no field, or several; what they may mean, for the model, which may try again.
    #[error("{what}")]
    Unmapped {
        /// The names, for the data manager to map.
        names: Vec<String>,
        /// What the model is told.
        what: String,
    },
    /// What it needs can't be reached; one sentence for the model and for people, nothing internal in it.
    #[error("{0}")]
    Unavailable(String),
}
