//! What a study says about personal data: its own patterns, and who may see what no model is shown.

use regex::Regex;
use serde::{Deserialize, Serialize};

use super::{ProjectFault, ProjectFile, Role, fault};

/// Longest pattern taken.
const LONGEST_PATTERN: usize = 1_000;

/// `[privacy]`
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PrivacyConfig {
    /// What else identifies a person here: regular expressions; of one with a group the group is the value.
    pub patterns: Vec<String>,
    /// Roles that are answered with the values themselves; all others see `〔姓名〕`.
    pub see_identifiers: Vec<Role>,
}

impl Default for PrivacyConfig {
    fn default() -> Self {
        Self {
            patterns: Vec::new(),
            see_identifiers: vec![Role::Admin, Role::Pi, Role::Crc],
        }
    }
}

impl ProjectFile {
    /// A pattern that can't work would be personal data sent out.
    pub(super) fn check_privacy(&self) -> Result<(), ProjectFault> {
        for (at, source) in self.privacy.patterns.iter().enumerate() {
            let key = format!("privacy.patterns[{at}]");
            if source.len() > LONGEST_PATTERN {
                return Err(fault(
                    &key,
                    format!("超过 {LONGEST_PATTERN} 字节；拆成几条 (is too long, make it several)"),
                ));
            }
            let pattern = Regex::new(source).map_err(|_| {
                fault(
                    &key,
                    "不是正确的正则表达式；改正后重试 (is no regular expression, correct it)"
                        .to_owned(),
                )
            })?;
            if pattern.is_match("") {
                return Err(fault(
                    &key,
                    "能匹配空文本，会遮住一切；写得更具体 (matches the empty text, which would hide everything)".to_owned(),
                ));
            }
        }
        Ok(())
    }

    /// What `user` is in this study; letter case does not count.
    #[must_use]
    pub fn role_of(&self, user: &str) -> Option<Role> {
        let user = user.to_lowercase();
        self.members
            .iter()
            .find(|member| member.wecom_user.to_lowercase() == user)
            .map(|member| member.role)
    }

    /// Whether all of `readers` may see what identifies a subject. Who is no member may not, and nobody at
    /// all is nobody who may.
    #[must_use]
    pub fn may_see_identifiers<'a>(&self, readers: impl IntoIterator<Item = &'a str>) -> bool {
        let mut readers = readers.into_iter().peekable();
        readers.peek().is_some()
            && readers.all(|reader| {
                self.role_of(reader)
                    .is_some_and(|role| self.privacy.see_identifiers.contains(&role))
            })
    }
}
