//! What a router is given and what it decides.

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

/// What a part of a message wants. The names on the wire are upper snake case (`QC_TASK`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum IntentKind {
    /// A check of one subject, some, or the whole project; or, with [`Intent::wishes_write`], a change
    /// of data, which only the SOP may make.
    QcTask,
    /// A question about the study's data.
    QaQuery,
    /// A question about the protocol.
    ProtocolQa,
    /// A report of a week, a month, the project.
    Report,
    /// Praise, blame, thanks, or a wish about how the agent should behave.
    Feedback,
    /// What the agent can do, and how.
    Help,
    /// Nothing this agent is for.
    OutOfScope,
    /// Something is missing; the intent carries a [`Clarification`].
    Unclear,
}

impl IntentKind {
    /// The name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::QcTask => "QC_TASK",
            Self::QaQuery => "QA_QUERY",
            Self::ProtocolQa => "PROTOCOL_QA",
            Self::Report => "REPORT",
            Self::Feedback => "FEEDBACK",
            Self::Help => "HELP",
            Self::OutOfScope => "OUT_OF_SCOPE",
            Self::Unclear => "UNCLEAR",
        }
    }
}

impl std::fmt::Display for IntentKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// A router's decision: at least one intent, in the order of the message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Routing {
    /// Never empty.
    pub intents: Vec<Intent>,
    /// True when the keyword rules decided in place of a language model; the reply must say so.
    pub degraded: bool,
}

/// One thing a message wants.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Intent {
    /// What is wanted. [`IntentKind::Unclear`] exactly when `clarification` is present.
    pub kind: IntentKind,
    /// 0 to 1.
    pub confidence: f64,
    /// Whom and what it is about.
    pub entities: Entities,
    /// The person wants data changed. Such an intent is answered with a proposal the person confirms;
    /// it must never start a run by itself.
    pub wishes_write: bool,
    /// It is about the past or a trend, so the chronicle goes into the answer.
    pub about_past: bool,
    /// What to ask back.
    pub clarification: Option<Clarification>,
    /// Whether the person has to say yes before anything starts.
    #[serde(default)]
    pub consent: Consent,
    /// The part of the message it came from, as written.
    pub text: String,
}

/// A person's yes to what is about to start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Consent {
    /// The command is plain; what it starts writes nothing by itself.
    #[default]
    NotNeeded,
    /// The command may be misread, or is not the person's own words: it is proposed, not started.
    Needed,
    /// The person confirmed the proposal.
    Given,
}

/// Whom and what an intent is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entities {
    /// Record ids, upper-case and half-width, otherwise as written (`001` stays `001`), in order.
    pub record_ids: Vec<String>,
    /// A visit (`V3`, `C1D1`, `基线`).
    pub visit: Option<String>,
    /// A form as named (`不良事件表`).
    pub form: Option<String>,
    /// A field as named (`年龄`).
    pub field: Option<String>,
    /// Every record of the project.
    pub whole_project: bool,
}

/// In [`Clarification::resume`], where the patient's id goes.
pub const PATIENT_SLOT: &str = "{patient}";

/// A question back, with answers to tap or to type as a number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clarification {
    /// The question, in Chinese.
    pub question: String,
    /// Suggested answers; may be empty.
    pub choices: Vec<Choice>,
    /// When the question asks for a patient: the request with [`PATIENT_SLOT`] where the id belongs, so
    /// that an id typed as the answer completes it.
    pub resume: Option<String>,
}

/// One suggested answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// What the button says.
    pub label: String,
    /// The message that choosing it stands for; complete in itself.
    pub text: String,
}

/// Who said something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Speaker {
    /// The person.
    User,
    /// The agent.
    #[serde(alias = "agent", alias = "bot", alias = "system")]
    Assistant,
}

/// One earlier message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// Who said it.
    pub role: Speaker,
    /// What was said.
    pub text: String,
}

/// How long a patient stays the one meant by 他 when nothing else is configured.
pub const DEFAULT_IDLE: TimeDelta = TimeDelta::minutes(30);

/// Which patient the conversation was about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Memory<'a> {
    /// The patient last talked about.
    pub last_patient: Option<&'a str>,
    /// When that was.
    pub last_patient_at: Option<DateTime<Utc>>,
    /// Recent enough to resolve references; a stale one is only offered in a question.
    pub fresh: bool,
}

impl<'a> Memory<'a> {
    /// A memory that is fresh when `idle` has not passed since. A time in the future (a clock set back)
    /// counts as fresh.
    #[must_use]
    pub fn since(
        last_patient: Option<&'a str>,
        last_patient_at: Option<DateTime<Utc>>,
        now: DateTime<Utc>,
        idle: TimeDelta,
    ) -> Self {
        Self {
            last_patient,
            last_patient_at,
            fresh: last_patient.is_some()
                && last_patient_at.is_some_and(|at| now.signed_duration_since(at) <= idle),
        }
    }

    /// The patient a reference resolves to.
    #[must_use]
    pub fn resolved(&self) -> Option<&'a str> {
        self.known().filter(|_| self.fresh)
    }

    /// The patient remembered, fresh or stale; a blank id is nobody.
    #[must_use]
    pub fn known(&self) -> Option<&'a str> {
        self.last_patient.filter(|id| !id.trim().is_empty())
    }
}

/// What a router knows beside the message.
#[derive(Debug, Clone, Copy, Default)]
pub struct Conversation<'a> {
    /// Earlier turns, oldest first; the last [`super::HISTORY_TURNS`] pairs are enough.
    pub history: &'a [Turn],
    /// Which patient the conversation was about.
    pub memory: Memory<'a>,
    /// The question the agent asked last, while it waits for an answer.
    pub pending: Option<&'a Clarification>,
}
