//! The project file: what the agent needs to know about one study.

use std::{collections::BTreeMap, path::PathBuf};

use serde::{Deserialize, Serialize};

use super::{causality::Scale, near_miss::nearest};

mod privacy;
#[cfg(test)]
mod tests;

pub use privacy::PrivacyConfig;

/// What a field may be to the agent: the keys of `[fields]`.
pub const FIELD_ROLES: [&str; 14] = [
    "record_id",
    "enrollment_date",
    "consent_date",
    "sex",
    "site",
    "age",
    "guardian_consent_date",
    "vulnerable_population",
    "exposure_start",
    "ae_form",
    "ae_term",
    "ae_start",
    "ae_serious",
    "ae_severity",
];

/// What a weekly report may consist of: the values of `report.sections`.
pub const REPORT_SECTIONS: [&str; 5] = [
    "enrollment",
    "data_quality",
    "ae_summary",
    "upcoming_visits",
    "deviations",
];

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
    /// Where the study's documents are searched.
    #[serde(default, skip_serializing_if = "ProtocolConfig::is_default")]
    pub protocol: ProtocolConfig,
    /// Personal data.
    #[serde(default)]
    pub privacy: PrivacyConfig,
    /// Safety assessments.
    #[serde(default)]
    pub safety: SafetyConfig,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
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

/// Safety assessments.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SafetyConfig {
    /// The words in which causality is assessed.
    pub causality_scale: Scale,
}

/// Limits of model calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    /// Most questions one run may ask.
    pub run_max_calls: u32,
    /// Most tokens one run may use.
    pub run_max_tokens: u32,
    /// Most tokens the project may use in a day (UTC).
    pub day_max_tokens: u64,
    /// Most the project may spend in a day, in yuan; absent = no limit of its own.
    pub day_max_cost: Option<f64>,
}

impl Default for LlmConfig {
    fn default() -> Self {
        Self {
            allow_external: false,
            allow_hosts: Vec::new(),
            react_max_iterations: 5,
            react_max_tokens: 4000,
            run_max_calls: 60,
            run_max_tokens: 300_000,
            day_max_tokens: 5_000_000,
            day_max_cost: None,
        }
    }
}

impl LlmConfig {
    /// Whether what belongs to the study may go to `host`, which is not this machine.
    #[must_use]
    pub fn allows(&self, host: &str) -> bool {
        self.allow_external
            || self
                .allow_hosts
                .iter()
                .any(|allowed| allowed.eq_ignore_ascii_case(host))
    }
}

/// Where the study's documents are searched.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProtocolConfig {
    /// Absent: Dify where it is set up for every project and the study allows its host, else ours.
    pub kind: Option<ProtocolKind>,
    /// Dify's dataset of this study, instead of `DIFY_DATASET_ID`.
    pub dataset_id: Option<String>,
}

impl ProtocolConfig {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Who searches a study's documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProtocolKind {
    /// Our own search on Postgres.
    Builtin,
    /// A Dify dataset.
    Dify,
}

/// What is wrong with a project file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProjectFault {
    /// Not TOML, an unknown key, a missing key, a wrong type.
    #[error("{line}:{column}: {what}")]
    Toml {
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// One sentence.
        what: String,
    },
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
    /// Parses and checks a project file. What only the study's dictionary can tell is left to whoever
    /// has it.
    ///
    /// # Errors
    /// Names the key, and the line for syntax, of the first fault.
    pub fn parse(text: &str) -> Result<Self, ProjectFault> {
        let text = text.trim_start_matches('\u{feff}');
        let file: Self = toml::from_str(text).map_err(|error| toml_fault(text, &error))?;
        if !is_slug(&file.id) {
            return Err(fault(
                "id",
                format!(
                    "`{}` 只能含字母、数字、`.`、`_`、`-`，最多 64 个字符 (may hold only letters, digits, `.`, `_` and `-`, at most 64)",
                    file.id
                ),
            ));
        }
        if file.timezone.parse::<chrono_tz::Tz>().is_err() {
            return Err(fault(
                "timezone",
                format!(
                    "`{}` 不是 IANA 时区，应如 Asia/Shanghai (no IANA time zone)",
                    file.timezone
                ),
            ));
        }
        file.check_fields()?;
        file.check_members()?;
        file.check_visits()?;
        file.check_report()?;
        file.check_protocol()?;
        file.check_privacy()?;
        Ok(file)
    }

    /// An unknown role would be a check that quietly never happens.
    fn check_fields(&self) -> Result<(), ProjectFault> {
        match self
            .fields
            .keys()
            .find(|role| !FIELD_ROLES.contains(&role.as_str()))
        {
            None => Ok(()),
            Some(role) => Err(fault(
                &format!("fields.{role}"),
                format!(
                    "没有这个键 (no such key){}",
                    did_you_mean(role, &FIELD_ROLES)
                ),
            )),
        }
    }

    fn check_members(&self) -> Result<(), ProjectFault> {
        for (at, member) in self.members.iter().enumerate() {
            let key = format!("members[{at}].wecom_user");
            let user = &member.wecom_user;
            if user.trim().is_empty() {
                return Err(fault(
                    &key,
                    "为空；写上成员的企业微信账号 (is empty, write the member's WeCom user id)"
                        .to_owned(),
                ));
            }
            let same = |other: &&Member| other.wecom_user.to_lowercase() == user.to_lowercase();
            if let Some(earlier) = self.members.iter().take(at).find(same) {
                return Err(fault(
                    &key,
                    format!(
                        "`{user}` 与前面的 `{}` 是同一个账号（不分大小写）；只留一个 (the same account twice, letter case does not count)",
                        earlier.wecom_user
                    ),
                ));
            }
        }
        Ok(())
    }

    fn check_visits(&self) -> Result<(), ProjectFault> {
        for (at, visit) in self.visits.iter().enumerate() {
            let same = |other: &Visit| other.id == visit.id && other.event == visit.event;
            if self.visits.iter().take(at).any(same) {
                return Err(fault(
                    &format!("visits[{at}].id"),
                    format!(
                        "访视 `{}` 出现两次；只留一个 (the visit is listed twice)",
                        visit.id
                    ),
                ));
            }
        }
        Ok(())
    }

    fn check_report(&self) -> Result<(), ProjectFault> {
        for section in &self.report.sections {
            if !REPORT_SECTIONS.contains(&section.as_str()) {
                return Err(fault(
                    "report.sections",
                    format!(
                        "没有 `{section}` 这一节 (no such section){}",
                        did_you_mean(section, &REPORT_SECTIONS)
                    ),
                ));
            }
        }
        for name in &self.report.recipients {
            if !self.groups.contains_key(name) && !self.is_member(name) {
                let known: Vec<&str> = self
                    .groups
                    .keys()
                    .map(String::as_str)
                    .chain(self.members.iter().map(|member| member.wecom_user.as_str()))
                    .collect();
                return Err(fault(
                    "report.recipients",
                    format!(
                        "`{name}` 既不是成员也不是 [groups] 中的组 (neither a member nor a group){}",
                        did_you_mean(name, &known)
                    ),
                ));
            }
        }
        Ok(())
    }

    /// The dataset becomes part of an address.
    fn check_protocol(&self) -> Result<(), ProjectFault> {
        let Some(id) = &self.protocol.dataset_id else {
            return Ok(());
        };
        if self.protocol.kind == Some(ProtocolKind::Builtin) {
            return Err(fault(
                "protocol.dataset_id",
                "只用于 kind = \"dify\"；删去其中之一 (belongs to kind = \"dify\", remove one of them)"
                    .to_owned(),
            ));
        }
        let fits = (1..=64).contains(&id.len())
            && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        if fits {
            return Ok(());
        }
        Err(fault(
            "protocol.dataset_id",
            format!(
                "`{id}` 只能含字母、数字和 `-`，见 Dify 知识库页面的地址 (may hold only letters, digits and `-`)"
            ),
        ))
    }

    /// Whether somebody is a member; letter case does not count.
    fn is_member(&self, user: &str) -> bool {
        self.members
            .iter()
            .any(|member| member.wecom_user.to_lowercase() == user.to_lowercase())
    }

    /// What is odd about the file but may be meant, one sentence each.
    #[must_use]
    pub fn oddities(&self) -> Vec<String> {
        let mut odd = Vec::new();
        for (name, people) in &self.groups {
            if people.is_empty() {
                odd.push(format!(
                    "groups.{name} 是空的，发给它的消息无人收到 (the group is empty)"
                ));
            }
            for person in people.iter().filter(|person| !self.is_member(person)) {
                odd.push(format!(
                    "groups.{name} 中的 `{person}` 不是项目成员，收得到消息但不能提问；需要时加到 [[members]] (not a member of the project)"
                ));
            }
        }
        odd
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

fn fault(key: &str, what: String) -> ProjectFault {
    ProjectFault::Value {
        key: key.to_owned(),
        what,
    }
}

/// The nearest known name, or, with nothing near, all of them.
fn did_you_mean(written: &str, known: &[&str]) -> String {
    match nearest(written, known.iter().copied()) {
        Some(near) => format!("；是否想写 did you mean `{near}`?"),
        None if known.is_empty() => String::new(),
        None => format!("；可用 known: {}", known.join(", ")),
    }
}

/// The parser's report, which draws the line with an arrow below it, as one sentence with a place.
fn toml_fault(text: &str, error: &toml::de::Error) -> ProjectFault {
    let at = error.span().map_or(0, |span| span.start);
    let before = text.get(..at).unwrap_or(text);
    let what: Vec<&str> = error.message().split_whitespace().collect();
    ProjectFault::Toml {
        line: before.matches('\n').count() + 1,
        column: before
            .rsplit('\n')
            .next()
            .unwrap_or_default()
            .chars()
            .count()
            + 1,
        what: format!("{}；改正后重试 (correct it and run again)", what.join(" ")),
    }
}

fn is_slug(id: &str) -> bool {
    !id.is_empty()
        && id.len() <= 64
        && id
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}
