//! What a server knows and wants to be told: data (`profiles.toml`), so that no code asks who it talks to.

use reqwest::Url;
use serde::Deserialize;
use serde_json::{Map, Value};

/// The table, as it is compiled in.
const TABLE: &str = include_str!("profiles.toml");
/// The profile of a server nothing is known of.
const GENERIC: &str = "generic";

/// One server's ways. The fields are explained in `profiles.toml`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// How `LLM_PROFILE` calls it.
    pub name: String,
    #[serde(default)]
    hosts: Vec<String>,
    #[serde(default)]
    ports: Vec<u16>,
    #[serde(default)]
    models: Vec<String>,
    /// What the limit of the answer is called.
    #[serde(default)]
    pub max_tokens: MaxTokens,
    /// Whether a temperature is sent.
    #[serde(default = "yes")]
    pub temperature: bool,
    /// Whether it knows `json_object`.
    #[serde(default = "yes")]
    pub json_object: bool,
    /// Whether it knows `json_schema`.
    #[serde(default = "yes")]
    pub json_schema: bool,
    /// Whether it knows tools. Which tool to call is never dictated (`tool_choice`): servers ignore that,
    /// refuse it while the model thinks, or have it call a tool with invented arguments.
    #[serde(default = "yes")]
    pub tools: bool,
    /// Whether it reads pictures.
    #[serde(default = "yes")]
    pub images: bool,
    /// Whether it knows the role `system`.
    #[serde(default = "yes")]
    pub system_role: bool,
    /// Whether it wants an assistant's thinking back.
    #[serde(default)]
    pub thinking_back: ThinkingBack,
    /// The header of its answers that names the request in its own logs.
    #[serde(default = "usual_request_id")]
    pub request_id: String,
    /// Further fields of every request.
    #[serde(default)]
    pub always: Map<String, Value>,
    /// Further fields of a request that wants JSON.
    #[serde(default)]
    pub json: Map<String, Value>,
}

/// What the limit of the answer is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MaxTokens {
    /// `max_tokens`
    #[default]
    MaxTokens,
    /// `max_completion_tokens`
    MaxCompletionTokens,
}

impl MaxTokens {
    /// The field's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::MaxTokens => "max_tokens",
            Self::MaxCompletionTokens => "max_completion_tokens",
        }
    }
}

/// Whether an assistant's thinking goes back to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThinkingBack {
    /// With every message that has some.
    Always,
    /// With messages that call tools.
    WithTools,
    /// Not at all.
    #[default]
    Never,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    profile: Vec<Profile>,
}

fn yes() -> bool {
    true
}

fn usual_request_id() -> String {
    "x-request-id".to_owned()
}

impl Profile {
    /// The profile `name`.
    ///
    /// # Errors
    /// There is none of that name; one sentence that lists the names there are.
    pub fn named(name: &str) -> Result<Self, String> {
        let table = table()?;
        let names: Vec<String> = table.iter().map(|profile| profile.name.clone()).collect();
        table
            .into_iter()
            .find(|profile| profile.name == name)
            .ok_or_else(|| {
                let names = names.join(", ");
                format!("应为下列之一 (expected one of): {names}")
            })
    }

    /// The profile of the server at `base` with `model`; `generic` when nobody is recognised.
    ///
    /// # Errors
    /// The compiled-in table is faulty, which a test rules out.
    pub fn recognised(base: &Url, model: &str) -> Result<Self, String> {
        let fits = |profile: &Profile| profile.is_at(base) && profile.is_for(model);
        match table()?.into_iter().find(fits) {
            Some(profile) => Ok(profile),
            None => Self::named(GENERIC),
        }
    }

    fn is_at(&self, base: &Url) -> bool {
        let host = base.host_str().unwrap_or_default();
        let below = |known: &String| {
            host.strip_suffix(known.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        self.hosts.iter().any(below) || base.port().is_some_and(|port| self.ports.contains(&port))
    }

    fn is_for(&self, model: &str) -> bool {
        self.models.is_empty() || self.models.iter().any(|start| model.starts_with(start))
    }
}

fn table() -> Result<Vec<Profile>, String> {
    let table: Table = toml::from_str(TABLE)
        .map_err(|error| format!("内置的服务商配置有误 (profiles.toml is faulty): {error}"))?;
    Ok(table.profile)
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        reason = "a failed expectation is the test's verdict"
    )]
    use super::*;

    #[test]
    fn a_server_is_recognised_by_its_host_its_port_and_its_model() {
        for (base, model, wanted) in [
            (
                "https://api.deepseek.com/v1",
                "deepseek-v4-flash",
                "deepseek",
            ),
            ("https://deepseek.com", "x", "deepseek"),
            ("https://notdeepseek.com/v1", "x", "generic"),
            ("https://deepseek.com.example.org/v1", "x", "generic"),
            (
                "https://dashscope.aliyuncs.com/compatible-mode/v1",
                "qwen-plus",
                "qwen",
            ),
            (
                "https://ws1.cn-beijing.maas.aliyuncs.com/compatible-mode/v1",
                "qwen-plus",
                "qwen",
            ),
            ("https://my.pai-eas.aliyuncs.com/v1", "qwen", "generic"),
            ("https://api.openai.com/v1", "gpt-4.1", "openai"),
            (
                "https://api.openai.com/v1",
                "gpt-5-mini",
                "openai-reasoning",
            ),
            ("https://api.openai.com/v1", "o3", "openai-reasoning"),
            ("http://gpu-box:11434/v1", "qwen3:8b", "ollama"),
            ("http://127.0.0.1:8000/v1", "qwen3", "generic"),
        ] {
            let profile = Profile::recognised(&Url::parse(base).unwrap(), model).unwrap();
            assert_eq!(profile.name, wanted, "{base} {model}");
        }
    }

    #[test]
    fn every_profile_has_a_name_of_its_own_and_an_unknown_one_is_answered_with_the_list() {
        let mut names: Vec<String> = table().unwrap().into_iter().map(|p| p.name).collect();
        insta::assert_snapshot!(Profile::named("gpt").unwrap_err(), @"应为下列之一 (expected one of): deepseek, qwen, openai-reasoning, openai, ollama, vllm, llamacpp, minimal, generic");
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn no_profile_overrides_what_the_request_itself_says() {
        for profile in table().unwrap() {
            for field in profile.always.keys().chain(profile.json.keys()) {
                assert!(
                    ![
                        "model",
                        "messages",
                        "tools",
                        "tool_choice",
                        "response_format",
                        "stream",
                        "temperature",
                        "max_tokens",
                        "max_completion_tokens",
                    ]
                    .contains(&field.as_str()),
                    "{}: {field}",
                    profile.name
                );
            }
        }
    }
}
