//! Where Dify is.

use reqwest::Url;
use secrecy::SecretString;

use crate::adapters::http_client::is_loopback;

/// Settings of the Dify adapter.
#[derive(Debug, Clone)]
pub struct DifyConfig {
    /// The server, without `/v1`.
    pub base_url: Url,
    /// The key of its knowledge API (`dataset-…`).
    pub api_key: SecretString,
    /// The dataset of projects that name none.
    pub dataset_id: Option<String>,
}

/// A setting that can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{variable} {why}")]
pub struct ConfigError {
    /// Which.
    pub variable: &'static str,
    /// What is wrong and what to do.
    pub why: &'static str,
}

impl DifyConfig {
    /// Reads `DIFY_BASE_URL`, `DIFY_API_KEY`, `DIFY_DATASET_ID`. Without an address there is no Dify.
    ///
    /// # Errors
    /// One sentence naming the variable that is missing or unusable; its value is not repeated.
    pub fn from_lookup(
        lookup: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, ConfigError> {
        let get = |name| {
            lookup(name)
                .map(|value| value.trim().to_owned())
                .filter(|value| !value.is_empty())
        };
        let (base, key) = match (get("DIFY_BASE_URL"), get("DIFY_API_KEY")) {
            (None, None) => return Ok(None),
            (Some(base), Some(key)) => (base, key),
            (None, Some(_)) => return Err(missing("DIFY_BASE_URL")),
            (Some(_), None) => return Err(missing("DIFY_API_KEY")),
        };
        let dataset_id = get("DIFY_DATASET_ID");
        if dataset_id.as_deref().is_some_and(|id| !is_dataset_id(id)) {
            return Err(ConfigError {
                variable: "DIFY_DATASET_ID",
                why: "只能含字母、数字和 -，见 Dify 知识库页面的地址 (letters, digits and - only)",
            });
        }
        Ok(Some(Self {
            base_url: parse_base(&base)?,
            api_key: SecretString::from(key),
            dataset_id,
        }))
    }

    /// The host a question goes to.
    #[must_use]
    pub fn host(&self) -> &str {
        self.base_url.host_str().unwrap_or_default()
    }

    /// Whether a question would leave this machine.
    #[must_use]
    pub fn is_external(&self) -> bool {
        !is_loopback(&self.base_url)
    }
}

/// Whether `id` may be part of an address.
#[must_use]
pub fn is_dataset_id(id: &str) -> bool {
    (1..=64).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

fn parse_base(text: &str) -> Result<Url, ConfigError> {
    let text = text.trim_end_matches('/');
    let text = text.strip_suffix("/v1").unwrap_or(text);
    let url = Url::parse(text).ok().filter(|url| {
        ["http", "https"].contains(&url.scheme())
            && url.host().is_some()
            && url.query().is_none()
            && url.fragment().is_none()
    });
    url.ok_or(ConfigError {
        variable: "DIFY_BASE_URL",
        why: "应为 http(s) 地址，如 https://api.dify.ai (expected an http or https address)",
    })
}

fn missing(variable: &'static str) -> ConfigError {
    ConfigError {
        variable,
        why: "未设置：请补全，或删去全部 DIFY_* 以使用内置检索 (not set: set it, or remove every DIFY_* variable)",
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        reason = "a failed expectation is the test's verdict"
    )]
    use super::*;

    fn config(pairs: &[(&str, &str)]) -> Result<Option<DifyConfig>, ConfigError> {
        DifyConfig::from_lookup(|name| {
            let found = pairs.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn without_an_address_there_is_no_dify_and_half_of_it_is_refused_by_name() {
        assert!(config(&[("DIFY_DATASET_ID", "x")]).unwrap().is_none());
        let half = config(&[("DIFY_BASE_URL", "https://dify.example.org")]).unwrap_err();
        assert_eq!(half.variable, "DIFY_API_KEY");
        let half = config(&[("DIFY_API_KEY", "dataset-secret")]).unwrap_err();
        assert_eq!(half.variable, "DIFY_BASE_URL");
        assert!(!half.to_string().contains("secret"));
    }

    #[test]
    fn an_address_is_taken_with_and_without_v1_and_a_wrong_one_is_refused() {
        for base in [
            "https://dify.example.org",
            "https://dify.example.org/v1",
            "https://dify.example.org/v1/",
        ] {
            let config = config(&[("DIFY_BASE_URL", base), ("DIFY_API_KEY", "k")])
                .unwrap()
                .unwrap();
            assert_eq!(config.base_url.as_str(), "https://dify.example.org/");
            assert!(config.is_external());
        }
        for (base, dataset) in [
            ("dify.example.org", "a"),
            ("ftp://x", "a"),
            ("http://x", "../../admin"),
        ] {
            let pairs = [
                ("DIFY_BASE_URL", base),
                ("DIFY_API_KEY", "k"),
                ("DIFY_DATASET_ID", dataset),
            ];
            assert!(config(&pairs).is_err(), "{base} {dataset}");
        }
    }
}
