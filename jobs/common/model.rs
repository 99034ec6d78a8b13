//! The language model of this process, and what a study allows it.

use std::time::Duration;

use crate::{
    adapters::llm::{
        LlmClient, LlmConfig,
        config::{Price, micro_yuan},
    },
    store::llm::spend::DayLimits,
    types::project,
};

/// The configured model.
#[derive(Debug)]
pub struct Model {
    /// One call.
    pub client: LlmClient,
    /// What the breaker knows it by.
    pub provider: String,
    /// What tokens cost.
    pub price: Price,
    /// How long a call may take.
    pub timeout: Duration,
    host: String,
    external: bool,
    tokens_per_day: i64,
    cost_per_day: Option<i64>,
}

impl Model {
    /// The model of `config`.
    ///
    /// # Errors
    /// The HTTP client can't be built.
    pub fn new(config: &LlmConfig) -> anyhow::Result<Self> {
        Ok(Self {
            client: LlmClient::new(config)?,
            provider: config.provider(),
            price: config.price,
            timeout: config.timeout,
            host: config.host().to_owned(),
            external: config.is_external(),
            tokens_per_day: config.tokens_per_day,
            cost_per_day: config.cost_per_day,
        })
    }

    /// Whether a study's data may go to this model. `Err` says why not, for people.
    ///
    /// # Errors
    /// The study does not allow it.
    pub fn may_see(&self, study: &project::LlmConfig) -> Result<(), String> {
        let listed = || {
            study
                .allow_hosts
                .iter()
                .any(|host| host.eq_ignore_ascii_case(&self.host))
        };
        if !self.external || study.allow_external || listed() {
            return Ok(());
        }
        Err(format!(
            "本研究不允许把数据发送到外部模型 {}（项目文件 [llm] allow_external 或 allow_hosts）",
            self.host
        ))
    }

    /// What may be spent in a day.
    #[must_use]
    pub fn day_limits(&self, study: &project::LlmConfig) -> DayLimits {
        DayLimits {
            project_tokens: Some(i64::try_from(study.day_max_tokens).unwrap_or(i64::MAX / 2)),
            project_cost: study.day_max_cost.map(micro_yuan),
            all_tokens: Some(self.tokens_per_day),
            all_cost: self.cost_per_day,
        }
    }
}
