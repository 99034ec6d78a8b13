//! What a job works with: made once at boot, shared by all jobs of the process.

use std::{sync::Arc, time::Duration};

use sqlx::PgPool;

use super::{model::Model, privacy::Redactors, study::SkillCache, tokens::PgTokenStore};
use crate::{
    adapters::{dify::DifyClient, edc::EdcPool, wecom::client::WecomClient},
    engines::router::CONFIDENCE_THRESHOLD,
    queue::Wake,
    tools::{Registry, Snapshots},
    types::clock::Clock,
};

/// Everything a handler may use.
pub struct Services {
    /// The database.
    pub pool: PgPool,
    /// Tells workers about new jobs.
    pub wake: Wake,
    /// For what people see: a project's calendar day. Never for leases or due times.
    pub clock: Clock,
    /// The studies' data sources.
    pub edc: EdcPool,
    /// Compiled skills.
    pub skills: SkillCache,
    /// What of each study is personal.
    pub redactors: Redactors,
    /// The WeCom message API; `None` when it is not configured.
    pub wecom: Option<WecomClient<PgTokenStore>>,
    /// The language model; `None` when none is configured.
    pub model: Option<Model>,
    /// Dify's knowledge base; `None` when it is not configured.
    pub dify: Option<Arc<DifyClient>>,
    /// What the model may call.
    pub tools: Registry,
    /// Connections that can't write, see [`crate::store::reader`].
    pub reader: PgPool,
    /// The studies' data, for the tools.
    pub snapshots: Snapshots,
    /// How the conversation behaves.
    pub conversation: ConversationSettings,
}

/// How the conversation behaves.
#[derive(Debug, Clone)]
pub struct ConversationSettings {
    /// How long 他 still means the patient last spoken of.
    pub memory_idle: Duration,
    /// After how long a person is told that the reply takes its time; zero = never.
    pub progress_after: Duration,
    /// How long the model may take to say what a message wants; then keywords decide.
    pub routing_deadline: Duration,
    /// Under this confidence the agent asks back instead of guessing; 0 to 1.
    pub router_threshold: f64,
    /// In the demo every sender counts as a member of this project.
    pub open_project: Option<String>,
}

impl Default for ConversationSettings {
    fn default() -> Self {
        Self {
            memory_idle: Duration::from_secs(30 * 60),
            progress_after: Duration::from_secs(5),
            routing_deadline: Duration::from_secs(8),
            router_threshold: CONFIDENCE_THRESHOLD,
            open_project: None,
        }
    }
}

/// Shared by all handlers of a process.
pub type Shared = Arc<Services>;
