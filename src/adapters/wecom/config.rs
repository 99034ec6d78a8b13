//! What one self-built WeCom app needs to be reached and to reach us.

use std::time::Duration;

use reqwest::Url;
use secrecy::SecretString;

use super::crypto::AesKey;

/// Settings of one self-built app, checked.
#[derive(Debug)]
pub struct WecomConfig {
    /// `WECOM_CORP_ID`: the company.
    pub corp_id: String,
    /// `WECOM_AGENT_ID`: the app.
    pub agent_id: i64,
    /// `WECOM_SECRET`: for `gettoken`.
    pub secret: SecretString,
    /// `WECOM_TOKEN`: for callback signatures.
    pub token: SecretString,
    /// `WECOM_ENCODING_AES_KEY`: for callback contents.
    pub aes_key: AesKey,
    /// `WECOM_RECEIVE_ID`: who callbacks must be encrypted for; default the CorpID.
    pub receive_id: String,
    /// `WECOM_API_BASE` without a trailing slash; default <https://qyapi.weixin.qq.com>.
    pub api_base: Url,
    /// `WECOM_REPLAY_WINDOW_S`: how far a callback's timestamp may be from our clock; default 300 s.
    pub replay_window: Duration,
    /// `WECOM_CARDS`: choices go out as cards with buttons, beside the numbered text; default yes. A card
    /// repeats what the text says, so it costs those who can't see cards nothing.
    pub cards: bool,
}

/// A setting that is missing or wrong; one sentence with the variable's name, never its value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Some are set, these are not.
    #[error(
        "企业微信配置不完整，缺少 {0}：请补全，或删去全部 WECOM_* 以停用 (WeCom is half configured, {0} missing: set them or remove every WECOM_* variable)"
    )]
    Missing(String),
    /// Set, but unusable.
    #[error(
        "{variable} 无效：{why}；请对照企业微信管理后台的应用页修改 (fix it from the app's page in the WeCom admin console)"
    )]
    Invalid {
        /// The environment variable.
        variable: &'static str,
        /// What is wrong with it.
        why: String,
    },
}

const REQUIRED: [&str; 5] = [
    "WECOM_CORP_ID",
    "WECOM_AGENT_ID",
    "WECOM_SECRET",
    "WECOM_TOKEN",
    "WECOM_ENCODING_AES_KEY",
];
const DEFAULT_API_BASE: &str = "https://qyapi.weixin.qq.com";
const DEFAULT_WINDOW_S: u64 = 300;
/// WeCom re-sends within about 15 s; a window of that size would refuse its own repeats.
const SMALLEST_WINDOW_S: u64 = 20;
const LARGEST_WINDOW_S: u64 = 86_400;

impl WecomConfig {
    /// Names the app in what all its processes share: token, gate, counts.
    #[must_use]
    pub fn app(&self) -> String {
        format!("{}|{}", self.corp_id, self.agent_id)
    }

    /// Reads the `WECOM_*` settings through `lookup` (the environment, or a map in tests). Blank counts as absent.
    ///
    /// `None` when none of the five required ones is set: WeCom is then off.
    ///
    /// # Errors
    /// [`ConfigError`] when only some are set or one is unusable.
    pub fn from_lookup(
        lookup: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, ConfigError> {
        let get = |name| {
            lookup(name)
                .map(|value| value.trim().to_owned())
                .filter(|value| !value.is_empty())
        };
        let missing: Vec<_> = REQUIRED
            .into_iter()
            .filter(|name| get(name).is_none())
            .collect();
        if missing.len() == REQUIRED.len() {
            return Ok(None);
        }
        let (Some(corp_id), Some(agent_id), Some(secret), Some(token), Some(aes_key)) = (
            get("WECOM_CORP_ID"),
            get("WECOM_AGENT_ID"),
            get("WECOM_SECRET"),
            get("WECOM_TOKEN"),
            get("WECOM_ENCODING_AES_KEY"),
        ) else {
            return Err(ConfigError::Missing(missing.join(", ")));
        };
        let agent_id = agent_id.parse().ok().filter(|id| *id > 0).ok_or_else(|| {
            invalid(
                "WECOM_AGENT_ID",
                "应为正整数，如 1000002 (expected a positive whole number)",
            )
        })?;
        let aes_key =
            AesKey::parse(&aes_key).map_err(|why| invalid("WECOM_ENCODING_AES_KEY", &why))?;
        let api_base = parse_base(get("WECOM_API_BASE").as_deref().unwrap_or(DEFAULT_API_BASE))?;
        let replay_window = match get("WECOM_REPLAY_WINDOW_S") {
            None => DEFAULT_WINDOW_S,
            Some(text) => text
                .parse()
                .ok()
                .filter(|seconds| (SMALLEST_WINDOW_S..=LARGEST_WINDOW_S).contains(seconds))
                .ok_or_else(|| {
                    invalid(
                        "WECOM_REPLAY_WINDOW_S",
                        "应为 20 到 86400 的整数秒 (expected whole seconds, 20 to 86400)",
                    )
                })?,
        };
        let cards = match get("WECOM_CARDS").as_deref() {
            None | Some("on") => true,
            Some("off") => false,
            Some(_) => {
                return Err(invalid(
                    "WECOM_CARDS",
                    "应为 on 或 off (expected on or off)",
                ));
            }
        };
        Ok(Some(Self {
            receive_id: get("WECOM_RECEIVE_ID").unwrap_or_else(|| corp_id.clone()),
            corp_id,
            agent_id,
            secret: secret.into(),
            token: token.into(),
            aes_key,
            api_base,
            replay_window: Duration::from_secs(replay_window),
            cards,
        }))
    }
}

fn parse_base(text: &str) -> Result<Url, ConfigError> {
    let url = Url::parse(text.trim_end_matches('/'))
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
        .filter(|url| {
            url.query().is_none() && url.fragment().is_none() && url.username().is_empty()
        });
    url.ok_or_else(|| {
        invalid(
            "WECOM_API_BASE",
            "应为 http(s):// 地址，不带参数 (expected a plain http(s) address)",
        )
    })
}

fn invalid(variable: &'static str, why: &str) -> ConfigError {
    ConfigError::Invalid {
        variable,
        why: why.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::expect_used,
        reason = "a failed expectation is the test's verdict"
    )]

    use std::collections::BTreeMap;

    use super::*;

    fn good() -> BTreeMap<&'static str, String> {
        [
            ("WECOM_CORP_ID", "ww5823bf96d3bd56c7"),
            ("WECOM_AGENT_ID", "1000002"),
            ("WECOM_SECRET", "the-secret"),
            ("WECOM_TOKEN", "the-token"),
            (
                "WECOM_ENCODING_AES_KEY",
                "jWmYm7qr5nMoAUwZRjGtBxmz3KA1tkAj3ykkR6q2B2C",
            ),
        ]
        .map(|(name, value)| (name, value.to_owned()))
        .into()
    }

    fn read(vars: &BTreeMap<&'static str, String>) -> Result<Option<WecomConfig>, ConfigError> {
        WecomConfig::from_lookup(|name| vars.get(name).cloned())
    }

    #[test]
    fn the_five_suffice_and_the_rest_has_defaults() {
        let config = read(&good()).unwrap().unwrap();
        assert_eq!(config.receive_id, "ww5823bf96d3bd56c7");
        assert_eq!(config.api_base.as_str(), "https://qyapi.weixin.qq.com/");
        assert_eq!(config.replay_window, Duration::from_secs(300));
        assert!(config.cards);
        let shown = format!("{config:?}");
        assert!(
            !shown.contains("the-secret")
                && !shown.contains("the-token")
                && !shown.contains("jWmY"),
            "{shown}"
        );
    }

    #[test]
    fn none_set_means_off_and_some_set_names_what_is_missing() {
        assert!(read(&BTreeMap::new()).unwrap().is_none());
        let mut vars = good();
        vars.remove("WECOM_TOKEN");
        vars.insert("WECOM_SECRET", "  ".to_owned());
        insta::assert_snapshot!(read(&vars).unwrap_err(), @"企业微信配置不完整，缺少 WECOM_SECRET, WECOM_TOKEN：请补全，或删去全部 WECOM_* 以停用 (WeCom is half configured, WECOM_SECRET, WECOM_TOKEN missing: set them or remove every WECOM_* variable)");
    }

    #[test]
    fn each_faulty_value_is_named_and_not_repeated() {
        for (variable, value) in [
            ("WECOM_AGENT_ID", "app-7"),
            ("WECOM_AGENT_ID", "-1"),
            ("WECOM_ENCODING_AES_KEY", "tooshortkeyvalue"),
            ("WECOM_API_BASE", "qyapi.weixin.qq.com"),
            ("WECOM_API_BASE", "ftp://qyapi.weixin.qq.com"),
            ("WECOM_API_BASE", "https://u:p@qyapi.weixin.qq.com"),
            ("WECOM_REPLAY_WINDOW_S", "five"),
            ("WECOM_REPLAY_WINDOW_S", "0"),
            ("WECOM_REPLAY_WINDOW_S", "999999"),
            ("WECOM_CARDS", "maybe"),
            ("WECOM_CARDS", "1"),
        ] {
            let mut vars = good();
            vars.insert(variable, value.to_owned());
            let error = read(&vars).unwrap_err();
            assert!(
                matches!(error, ConfigError::Invalid { variable: named, .. } if named == variable),
                "{error}"
            );
            assert!(
                value.len() < 5 || !error.to_string().contains(value),
                "{error}"
            );
        }
    }

    #[test]
    fn cards_can_be_switched_off() {
        for (value, cards) in [("off", false), ("on", true), (" ", true)] {
            let mut vars = good();
            vars.insert("WECOM_CARDS", value.to_owned());
            assert_eq!(read(&vars).unwrap().unwrap().cards, cards, "{value}");
        }
    }

    #[test]
    fn a_wrong_key_reads_as_one_sentence() {
        let mut vars = good();
        vars.insert("WECOM_ENCODING_AES_KEY", "short".to_owned());
        insta::assert_snapshot!(read(&vars).unwrap_err(), @"WECOM_ENCODING_AES_KEY 无效：应为 43 个字符，实为 5 个 (expected 43 characters, got 5)；请对照企业微信管理后台的应用页修改 (fix it from the app's page in the WeCom admin console)");
    }
}
