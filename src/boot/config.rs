//! Settings from the environment (and `.env`, which has been read into it by then). Each is explained in
//! `.env.example`.

use std::{net::SocketAddr, str::FromStr, time::Duration};

use secrecy::SecretString;

use super::cli::exit::Failure;
use crate::{
    adapters::{llm::LlmConfig, wecom::config::WecomConfig},
    queue::worker::WorkerSettings,
};

/// What the environment says. An empty variable counts as absent.
#[derive(Debug)]
pub struct Config {
    /// `IIT_BIND`
    pub bind: SocketAddr,
    /// `IIT_PUBLIC_URL`
    pub public_url: Option<String>,
    /// `IIT_API_TOKEN`
    pub api_token: Option<SecretString>,
    /// `WECOM_*`; `None` when none is set.
    pub wecom: Option<WecomConfig>,
    /// `LLM_*`; `None` when none is set.
    pub llm: Option<LlmConfig>,
    /// `IIT_WORKER_CONCURRENCY`, `IIT_LEASE_S`
    pub worker: WorkerSettings,
    /// `IIT_PROGRESS_AFTER_S`
    pub progress_after: Duration,
    /// `IIT_JOB_HISTORY_DAYS`
    pub job_history: Duration,
    /// `IIT_METRICS_BIND`
    pub metrics_bind: Option<SocketAddr>,
}

impl Config {
    /// Reads the process's environment.
    ///
    /// # Errors
    /// One sentence that names the variable.
    pub fn from_env() -> Result<Self, Failure> {
        Self::from_lookup(|name| std::env::var(name).ok())
    }

    /// Reads settings through `lookup`.
    ///
    /// # Errors
    /// One sentence that names the variable.
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, Failure> {
        let get = |name: &str| lookup(name).filter(|value| !value.trim().is_empty());
        let defaults = WorkerSettings::default();
        let lease_s: u64 = number(&get, "IIT_LEASE_S", 1, 3600)?.unwrap_or(30);
        let llm = LlmConfig::from_lookup(get).map_err(|e| Failure::Usage(e.to_string()))?;
        // A call that is cut off is paid for, and paid for again.
        let drain = llm.as_ref().map_or(defaults.drain, |llm| {
            defaults.drain.max(llm.timeout + Duration::from_secs(5))
        });
        Ok(Self {
            bind: parsed(&get, "IIT_BIND", "an address such as 127.0.0.1:8080")?
                .unwrap_or(SocketAddr::from(([127, 0, 0, 1], 8080))),
            public_url: get("IIT_PUBLIC_URL").map(|url| url.trim_end_matches('/').to_owned()),
            api_token: get("IIT_API_TOKEN").map(SecretString::from),
            wecom: WecomConfig::from_lookup(get).map_err(|e| Failure::Usage(e.to_string()))?,
            llm,
            worker: WorkerSettings {
                concurrency: number(&get, "IIT_WORKER_CONCURRENCY", 1, 256)?
                    .unwrap_or(defaults.concurrency),
                lease: Duration::from_secs(lease_s),
                drain,
                ..defaults
            },
            progress_after: Duration::from_secs(
                number(&get, "IIT_PROGRESS_AFTER_S", 0, 600)?.unwrap_or(5),
            ),
            job_history: Duration::from_secs(
                86_400 * number::<u64>(&get, "IIT_JOB_HISTORY_DAYS", 0, 3650)?.unwrap_or(14),
            ),
            metrics_bind: parsed(
                &get,
                "IIT_METRICS_BIND",
                "an address such as 127.0.0.1:9090",
            )?,
        })
    }
}

fn parsed<T: FromStr>(
    get: &impl Fn(&str) -> Option<String>,
    name: &str,
    wanted: &str,
) -> Result<Option<T>, Failure> {
    get(name)
        .map(|value| {
            value.trim().parse().map_err(|_| {
                Failure::Usage(format!(
                    "{name} 应为 {wanted}，现为 `{value}` ({name} must be {wanted})"
                ))
            })
        })
        .transpose()
}

fn number<T: FromStr + PartialOrd + std::fmt::Display + Copy>(
    get: &impl Fn(&str) -> Option<String>,
    name: &str,
    least: T,
    most: T,
) -> Result<Option<T>, Failure> {
    let wanted = format!("a whole number from {least} to {most}");
    match parsed::<T>(get, name, &wanted)? {
        Some(value) if value < least || value > most => Err(Failure::Usage(format!(
            "{name} 应在 {least} 到 {most} 之间，现为 {value} ({name} must be {wanted})"
        ))),
        other => Ok(other),
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        reason = "a failed expectation is the test's verdict"
    )]
    use super::*;

    fn config(pairs: &[(&str, &str)]) -> Result<Config, Failure> {
        let pairs: Vec<(String, String)> = pairs
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect();
        Config::from_lookup(|name| {
            pairs
                .iter()
                .find(|(key, _)| key == name)
                .map(|(_, value)| value.clone())
        })
    }

    #[test]
    fn an_empty_environment_is_a_working_configuration() {
        let config = config(&[("IIT_BIND", " ")]).unwrap();
        assert_eq!(config.bind.to_string(), "127.0.0.1:8080");
        assert_eq!(config.worker.concurrency, 8);
        assert!(config.wecom.is_none() && config.api_token.is_none());
    }

    #[test]
    fn a_wrong_value_is_named_with_its_variable() {
        for (name, value) in [
            ("IIT_BIND", "8080"),
            ("IIT_WORKER_CONCURRENCY", "0"),
            ("IIT_WORKER_CONCURRENCY", "many"),
            ("IIT_LEASE_S", "-3"),
            ("IIT_JOB_HISTORY_DAYS", "forever"),
            ("IIT_METRICS_BIND", "9090"),
            ("WECOM_CORP_ID", "ww1"),
        ] {
            let failure = config(&[(name, value)]).unwrap_err();
            assert_eq!(failure.code(), 2);
            assert!(
                failure
                    .to_string()
                    .contains(name.split('_').next().unwrap()),
                "{failure}"
            );
        }
    }
}
