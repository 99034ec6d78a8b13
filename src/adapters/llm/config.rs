//! Where the model is, what it costs, and how much may be spent in a day.

use std::time::Duration;

use reqwest::Url;
use secrecy::SecretString;

use super::profile::Profile;
use crate::adapters::http_client::{Deadlines, is_loopback};

/// How long an answer may take, when nothing else is said.
const DEFAULT_TIMEOUT_S: u64 = 60;
/// A `sop_step` attempt may last a quarter of an hour; the call has to end well before.
const LONGEST_TIMEOUT_S: u64 = 600;
/// How long the body of an answer may stand still. Not shorter: some servers send the head at once and the
/// whole body when the model is done.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// Tokens of all projects in one day, when nothing else is said: a run-away ends here.
const DEFAULT_TOKENS_PER_DAY: i64 = 20_000_000;

/// The model's settings, checked.
#[derive(Debug, Clone)]
pub struct LlmConfig {
    /// `LLM_BASE_URL`, without a trailing slash; `/chat/completions` follows.
    pub base_url: Url,
    /// `LLM_API_KEY`; local servers need none.
    pub api_key: Option<SecretString>,
    /// `LLM_MODEL`
    pub model: String,
    /// `LLM_INTENT_MODEL`: reads messages, when it is another than `model`.
    pub intent_model: Option<String>,
    /// `LLM_TIMEOUT_S`: from the question to the last byte of the answer.
    pub timeout: Duration,
    /// Until the connection stands.
    pub connect_timeout: Duration,
    /// How long the body of an answer may stand still.
    pub idle_timeout: Duration,
    /// How the server wants to be asked: `LLM_PROFILE`, else recognised by its address.
    pub profile: Profile,
    /// `LLM_PRICE_INPUT`, `LLM_PRICE_OUTPUT`
    pub price: Price,
    /// `LLM_MAX_TOKENS_PER_DAY`: of all projects together.
    pub tokens_per_day: i64,
    /// `LLM_MAX_COST_PER_DAY`, in millionths of a yuan; `None` = no limit.
    pub cost_per_day: Option<i64>,
}

/// What tokens cost, in yuan a million tokens, which is millionths of a yuan a token.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Price {
    /// Of what is sent.
    pub input: f64,
    /// Of what comes back.
    pub output: f64,
}

impl Price {
    /// The price of one call, in millionths of a yuan, rounded up.
    #[must_use]
    pub fn of(&self, prompt_tokens: i64, completion_tokens: i64) -> i64 {
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            reason = "token counts are far below 2^52, and so is their price"
        )]
        let cost = (prompt_tokens as f64 * self.input + completion_tokens as f64 * self.output)
            .ceil() as i64;
        cost
    }
}

/// Yuan in millionths, rounded down; less than nothing is nothing.
#[must_use]
pub fn micro_yuan(yuan: f64) -> i64 {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a float that is too large becomes the largest integer"
    )]
    let micro = (yuan.max(0.0) * 1e6).floor() as i64;
    micro
}

/// A setting that is missing or wrong; one sentence with the variable's name, never its value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{variable} {why}")]
pub struct ConfigError {
    variable: &'static str,
    why: String,
}

impl LlmConfig {
    /// Reads the `LLM_*` settings through `lookup`. Blank counts as absent; `None` when neither the
    /// endpoint nor the model is set: the program then works without a model, and says so.
    ///
    /// # Errors
    /// One sentence naming the variable that is missing or unusable.
    pub fn from_lookup(
        lookup: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, ConfigError> {
        let get = |name| {
            lookup(name)
                .map(|value| value.trim().to_owned())
                .filter(|value| !value.is_empty())
        };
        let (base, model) = match (get("LLM_BASE_URL"), get("LLM_MODEL")) {
            (None, None) => return Ok(None),
            (Some(base), Some(model)) => (base, model),
            (None, Some(_)) => return Err(missing("LLM_BASE_URL")),
            (Some(_), None) => return Err(missing("LLM_MODEL")),
        };
        let timeout = number(&get, "LLM_TIMEOUT_S", 1, LONGEST_TIMEOUT_S)?;
        let tokens_per_day = number(&get, "LLM_MAX_TOKENS_PER_DAY", 0, i64::MAX / 2)?;
        let cost_per_day = money(&get, "LLM_MAX_COST_PER_DAY")?;
        let base_url = parse_base(&base)?;
        let profile = match get("LLM_PROFILE") {
            Some(name) => Profile::named(&name),
            None => Profile::recognised(&base_url, &model),
        };
        Ok(Some(Self {
            profile: profile.map_err(|why| invalid("LLM_PROFILE", &why))?,
            connect_timeout: Deadlines::default().connect,
            idle_timeout: IDLE_TIMEOUT,
            base_url,
            api_key: get("LLM_API_KEY").map(SecretString::from),
            model,
            intent_model: get("LLM_INTENT_MODEL"),
            timeout: Duration::from_secs(timeout.unwrap_or(DEFAULT_TIMEOUT_S)),
            price: Price {
                input: money(&get, "LLM_PRICE_INPUT")?.unwrap_or_default(),
                output: money(&get, "LLM_PRICE_OUTPUT")?.unwrap_or_default(),
            },
            tokens_per_day: tokens_per_day.unwrap_or(DEFAULT_TOKENS_PER_DAY),
            cost_per_day: cost_per_day.map(micro_yuan),
        }))
    }

    /// The settings of the model that reads messages, when it is another one.
    #[must_use]
    pub fn of_intents(&self) -> Option<Self> {
        let model = self
            .intent_model
            .clone()
            .filter(|name| *name != self.model)?;
        Some(Self {
            model,
            ..self.clone()
        })
    }

    /// The endpoint as people and the breaker know it: no user, no password, no query.
    #[must_use]
    pub fn provider(&self) -> String {
        let port = self
            .base_url
            .port()
            .map(|port| format!(":{port}"))
            .unwrap_or_default();
        format!("{}{port}{}", self.host(), self.base_url.path())
    }

    /// The host data goes to.
    #[must_use]
    pub fn host(&self) -> &str {
        self.base_url.host_str().unwrap_or_default()
    }

    /// Whether data would leave this machine.
    #[must_use]
    pub fn is_external(&self) -> bool {
        !is_loopback(&self.base_url)
    }
}

fn parse_base(text: &str) -> Result<Url, ConfigError> {
    let url = Url::parse(text.trim_end_matches('/')).ok().filter(|url| {
        ["http", "https"].contains(&url.scheme()) && url.host().is_some() && url.query().is_none()
    });
    url.ok_or_else(|| {
        invalid(
            "LLM_BASE_URL",
            "应为 http(s) 地址，如 https://api.deepseek.com/v1 (expected an http or https address without a query)",
        )
    })
}

fn missing(variable: &'static str) -> ConfigError {
    invalid(
        variable,
        "未设置：请补全，或删去全部 LLM_* 以不用大模型 (not set: set it, or remove every LLM_* variable)",
    )
}

fn invalid(variable: &'static str, why: &str) -> ConfigError {
    ConfigError {
        variable,
        why: why.to_owned(),
    }
}

fn number<T: std::str::FromStr + PartialOrd + std::fmt::Display>(
    get: &impl Fn(&'static str) -> Option<String>,
    variable: &'static str,
    least: T,
    most: T,
) -> Result<Option<T>, ConfigError> {
    let Some(text) = get(variable) else {
        return Ok(None);
    };
    text.parse()
        .ok()
        .filter(|n| *n >= least && *n <= most)
        .map(Some)
        .ok_or_else(|| {
            let why = format!(
                "应为 {least} 到 {most} 的整数 (expected a whole number, {least} to {most})"
            );
            invalid(variable, &why)
        })
}

fn money(
    get: &impl Fn(&'static str) -> Option<String>,
    variable: &'static str,
) -> Result<Option<f64>, ConfigError> {
    let Some(text) = get(variable) else {
        return Ok(None);
    };
    text.parse()
        .ok()
        .filter(|yuan: &f64| (0.0..=1e9).contains(yuan))
        .map(Some)
        .ok_or_else(|| {
            invalid(
                variable,
                "应为不小于 0 的金额（元），如 2.5 (expected an amount in yuan)",
            )
        })
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        reason = "a failed expectation is the test's verdict"
    )]
    use super::*;

    fn config(pairs: &[(&str, &str)]) -> Result<Option<LlmConfig>, ConfigError> {
        LlmConfig::from_lookup(|name| {
            pairs
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| (*value).to_owned())
        })
    }

    const PLACE: [(&str, &str); 2] = [
        ("LLM_BASE_URL", "https://user:pass@llm.example.org:8443/v1/"),
        ("LLM_MODEL", "qwen"),
    ];

    #[test]
    fn without_settings_there_is_no_model_and_half_of_them_are_refused_by_name() {
        assert!(config(&[("LLM_API_KEY", "k")]).unwrap().is_none());
        let half = config(&PLACE[..1]).unwrap_err().to_string();
        assert!(half.starts_with("LLM_MODEL"), "{half}");
        let half = config(&PLACE[1..]).unwrap_err().to_string();
        assert!(half.starts_with("LLM_BASE_URL"), "{half}");
    }

    #[test]
    fn the_provider_is_named_without_its_secrets() {
        let config = config(&PLACE).unwrap().unwrap();
        assert_eq!(config.provider(), "llm.example.org:8443/v1");
        assert!(config.is_external());
    }

    #[test]
    fn a_profile_that_is_named_beats_the_one_that_is_recognised() {
        let place = [
            ("LLM_BASE_URL", "https://api.deepseek.com"),
            ("LLM_MODEL", "deepseek-v4"),
        ];
        let profile = |more: &[(&str, &str)]| {
            let pairs = [&place[..], more].concat();
            config(&pairs).unwrap().unwrap().profile.name
        };
        assert_eq!(profile(&[]), "deepseek");
        assert_eq!(profile(&[("LLM_PROFILE", "generic")]), "generic");
    }

    #[test]
    fn a_value_that_cannot_be_is_refused_with_its_variable() {
        for (name, value) in [
            ("LLM_BASE_URL", "ftp://x"),
            ("LLM_BASE_URL", "api.deepseek.com"),
            ("LLM_PROFILE", "gpt"),
            ("LLM_TIMEOUT_S", "0"),
            ("LLM_TIMEOUT_S", "3600"),
            ("LLM_PRICE_INPUT", "-1"),
            ("LLM_PRICE_OUTPUT", "NaN"),
            ("LLM_MAX_COST_PER_DAY", "lots"),
            ("LLM_MAX_TOKENS_PER_DAY", "-5"),
        ] {
            let mut pairs = vec![(name, value)];
            pairs.extend(PLACE);
            let error = config(&pairs).unwrap_err().to_string();
            assert!(
                error.starts_with(name) && !error.contains("pass"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_price_is_rounded_up() {
        let price = Price {
            input: 0.5,
            output: 2.0,
        };
        assert_eq!(price.of(1, 0), 1);
        assert_eq!(price.of(1000, 10), 520);
    }
}
