//! The project file: what the agent needs to know about one study.

use std::{collections::BTreeMap, path::PathBuf};

use serde::{Deserialize, Serialize};

/// One study, as written in its TOML file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProjectFile {
    /// Short id used in commands and paths.
    pub id: String,
    /// What people call the study.
    pub name: String,
    /// IANA time zone; weeks, days and schedules are local to it.
    #[serde(default = "shanghai")]
    pub timezone: String,
    /// Planned number of subjects.
    #[serde(default)]
    pub target_enrollment: Option<u32>,
    /// Where the data comes from.
    pub edc: EdcConfig,
    /// Which field means what.
    #[serde(default)]
    pub fields: BTreeMap<String, String>,
    /// Names people use → field names (`iit_field_mapping`).
    #[serde(default)]
    pub aliases: BTreeMap<String, String>,
    /// People of the study.
    #[serde(default)]
    pub members: Vec<Member>,
    /// Visit windows.
    #[serde(default)]
    pub visits: Vec<Visit>,
    /// Reports.
    #[serde(default)]
    pub report: ReportConfig,
    /// Named groups of WeCom users.
    #[serde(default)]
    pub groups: BTreeMap<String, Vec<String>>,
    /// Limits of model calls.
    #[serde(default)]
    pub llm: LlmConfig,
}

fn shanghai() -> String {
    "Asia/Shanghai".to_owned()
}

/// Where a study's data comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum EdcConfig {
    /// REDCap's API.
    Redcap {
        /// API address, with its trailing slash.
        url: String,
        /// Name of the environment variable that holds the token.
        token_env: String,
    },
    /// A folder of exported files.
    RedcapFiles {
        /// The folder; relative paths are resolved against the project file's own folder when applied.
        dir: PathBuf,
    },
}

/// One person of the study.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// WeCom user id; compared case-insensitively.
    pub wecom_user: String,
    /// What people call them.
    #[serde(default)]
    pub name: String,
    /// What they may do.
    pub role: Role,
}

/// Roles of L4.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Everything.
    Admin,
    /// Principal investigator.
    Pi,
    /// Clinical research coordinator.
    Crc,
    /// Clinical research associate (monitor).
    Cra,
    /// Data manager.
    Dm,
    /// Operator of this program.
    Ops,
    /// Looks only.
    Readonly,
}

/// One visit's window. Bounds are inclusive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Visit {
    /// `V3`
    pub id: String,
    /// Where the actual date stands.
    pub date_field: String,
    /// What days are counted from.
    pub anchor_field: String,
    /// Planned day.
    pub day: i32,
    /// Days it may be early.
    #[serde(default)]
    pub minus: u32,
    /// Days it may be late.
    #[serde(default)]
    pub plus: u32,
    /// The anchor counts as day 1 (studies without a day 0).
    #[serde(default)]
    pub anchor_is_day_one: bool,
    /// The event the visit's date stands at, when the same field is used at several events.
    #[serde(default)]
    pub event: Option<String>,
}

/// Weekly report and chronicle.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReportConfig {
    /// Cron of the weekly report, project time.
    pub weekly: Option<String>,
    /// Cron of the chronicle page, project time.
    pub chronicle: Option<String>,
    /// WeCom users or groups.
    pub recipients: Vec<String>,
    /// Sections of the report.
    pub sections: Vec<String>,
    /// Skills whose findings count as protocol deviations.
    pub deviation_skills: Vec<String>,
}

/// Limits of model calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LlmConfig {
    /// Whether data may go to hosts that are not on `allow_hosts`.
    pub allow_external: bool,
    /// Hosts data may go to when `allow_external` is false.
    pub allow_hosts: Vec<String>,
    /// Most turns of one ReAct run.
    pub react_max_iterations: u32,
    /// Most tokens of one ReAct run.
    pub react_max_tokens: u32,
}

impl Default for LlmConfig {
    fn default() -> Self {
        Self {
            allow_external: false,
            allow_hosts: Vec::new(),
            react_max_iterations: 5,
            react_max_tokens: 4000,
        }
    }
}

/// What is wrong with a project file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProjectFault {
    /// Not TOML, an unknown key, a missing key, a wrong type.
    #[error("{0}")]
    Toml(#[from] toml::de::Error),
    /// The value is understood but cannot be right.
    #[error("{key}: {what}")]
    Value {
        /// Where, as a dotted path.
        key: String,
        /// What is wrong and what to write instead.
        what: String,
    },
}

impl ProjectFile {
    /// Parses and checks a project file.
    ///
    /// # Errors
    /// Names the key, and the line for syntax, of the first fault.
    pub fn parse(text: &str) -> Result<Self, ProjectFault> {
        let file: Self = toml::from_str(text.trim_start_matches('\u{feff}'))?;
        let fault = |key: &str, what: String| ProjectFault::Value {
            key: key.to_owned(),
            what,
        };
        if !is_slug(&file.id) {
            return Err(fault(
                "id",
                format!(
                    "`{}` may hold only letters, digits, `.`, `_` and `-` (at most 64)",
                    file.id
                ),
            ));
        }
        if file.timezone.parse::<chrono_tz::Tz>().is_err() {
            return Err(fault(
                "timezone",
                format!(
                    "`{}` is no IANA time zone such as Asia/Shanghai",
                    file.timezone
                ),
            ));
        }
        for (at, visit) in file.visits.iter().enumerate() {
            if file.visits[..at]
                .iter()
                .any(|v| v.id == visit.id && v.event == visit.event)
            {
                return Err(fault(
                    &format!("visits[{at}].id"),
                    format!("visit `{}` is listed twice", visit.id),
                ));
            }
        }
        for (at, member) in file.members.iter().enumerate() {
            if member.wecom_user.trim().is_empty() {
                return Err(fault(
                    &format!("members[{at}].wecom_user"),
                    "is empty; write the member's WeCom user id".to_owned(),
                ));
            }
        }
        Ok(file)
    }

    /// The field that plays `role` (`consent_date`, `sex`, …); `None` when unset or set to "".
    #[must_use]
    pub fn field_for(&self, role: &str) -> Option<&str> {
        self.fields
            .get(role)
            .map(String::as_str)
            .filter(|name| !name.is_empty())
    }
}

fn is_slug(id: &str) -> bool {
    !id.is_empty()
        && id.len() <= 64
        && id
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}
