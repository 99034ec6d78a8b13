//! What a job works with: made once at boot, shared by all jobs of the process.

use std::{sync::Arc, time::Duration};

use sqlx::PgPool;

use super::{model::Model, study::SkillCache, tokens::PgTokenStore};
use crate::{
    adapters::{edc::EdcPool, wecom::client::WecomClient},
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
    /// The WeCom message API; `None` when it is not configured.
    pub wecom: Option<WecomClient<PgTokenStore>>,
    /// The language model; `None` when none is configured.
    pub model: Option<Model>,
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
    /// In the demo every sender counts as a member of this project.
    pub open_project: Option<String>,
}

impl Default for ConversationSettings {
    fn default() -> Self {
        Self {
            memory_idle: Duration::from_secs(30 * 60),
            progress_after: Duration::from_secs(5),
            open_project: None,
        }
    }
}

/// Shared by all handlers of a process.
pub type Shared = Arc<Services>;
