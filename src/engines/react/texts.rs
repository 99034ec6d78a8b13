//! What people read: polite ends, and what an answer rests on.

use std::collections::HashSet;

use chrono_tz::Tz;

use super::thread::{self, Said};

/// Records and documents named under an answer.
const NAMED: usize = 10;

/// Why a question is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Its tokens are used up.
    OverBudget,
    /// Its turns are.
    OutOfTurns,
    /// Two tool calls in a row failed: a person takes over.
    ToolsFail,
}

impl End {
    /// The stored form.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OverBudget => "over_budget",
            Self::OutOfTurns => "out_of_turns",
            Self::ToolsFail => "tools_failed",
        }
    }

    /// What the person is told.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::OverBudget => "抱歉，这个问题比较复杂，请尝试更具体的描述。",
            Self::OutOfTurns => "抱歉，我无法在有限步骤内完成这个查询。请尝试更具体的问题。",
            Self::ToolsFail => {
                "抱歉，我遇到了一些技术问题，无法获取相关信息。问题已转给项目协调员，请稍后重试或联系管理员。"
            }
        }
    }
}

/// The run broke in a way of ours.
pub const BROKEN: &str = "抱歉，遇到了一些技术问题，这个问题没有查完。请稍后重试或联系管理员。";

/// What a person sees while a reply is worked for.
pub const IN_PROGRESS: &str = "正在查询，请稍候…";

/// No model answers, and why.
#[must_use]
pub fn no_model(why: &str) -> String {
    format!("抱歉，现在无法回答这个问题，请稍后再问，或联系管理员。\n原因：{why}。")
}

/// What a person is told in whose name the model asked for a change. `seen`: it had read data by then, and a
/// wish that stands in data is nobody's wish.
#[must_use]
pub fn change(led: &str, seen: bool) -> String {
    let mut text = led.to_owned();
    if seen {
        text.push_str(
            "\n（这一修改要求是在读取数据之后提出的，可能来自数据中的文字；如果您没有要求修改，请忽略。）",
        );
    }
    text.push_str("\n目前没有做任何改动。");
    text
}

/// The answer as it is sent: what could not be found in the results is marked, what it rests on is named.
/// `zone`: the study's, for the time of the data.
#[must_use]
pub fn answer(text: &str, unverified: &[String], said: &[Said], zone: Tz) -> String {
    let mut lines = vec![text.trim().to_owned()];
    if !unverified.is_empty() {
        lines.push(format!("（以下数字未能核实：{}）", unverified.join("、")));
    }
    lines.push(basis(said, zone));
    lines.join("\n")
}

/// What an answer rests on.
fn basis(said: &[Said], zone: Tz) -> String {
    let given = || thread::results(said).filter(|given| given.ok);
    if given().next().is_none() {
        return "（这条回答没有查询研究数据。）".to_owned();
    }
    let mut parts = Vec::new();
    let records = distinct(given().flat_map(|given| &given.records));
    let most = given().map(|given| given.record_count).max().unwrap_or(0);
    if !records.is_empty() {
        let named = first(&records).join("、");
        let total = most.max(records.len());
        parts.push(match total > NAMED {
            true => format!("受试者 {named} 等 {total} 例"),
            false => format!("受试者 {named}"),
        });
    }
    let sources = distinct(given().flat_map(|given| &given.sources));
    if !sources.is_empty() {
        parts.push(first(&sources).join("；"));
    }
    if parts.is_empty() {
        parts.push("本研究的汇总数据".to_owned());
    }
    let mut text = format!("依据：{}", parts.join("；"));
    let taken = given().filter_map(|given| given.taken_at).max();
    if let Some(taken) = taken {
        let at = taken.with_timezone(&zone).format("%Y-%m-%d %H:%M");
        text.push_str(&format!("（数据读取于 {at}）"));
    }
    if distinct(given().filter_map(|given| given.data.as_ref())).len() > 1 {
        text.push_str("\n（查询期间研究数据有更新，前后读取的数据可能不同。）");
    }
    text
}

fn first<'a>(names: &[&'a str]) -> Vec<&'a str> {
    names.iter().take(NAMED).copied().collect()
}

fn distinct<'a>(names: impl Iterator<Item = &'a String>) -> Vec<&'a str> {
    let mut seen = HashSet::new();
    names
        .map(String::as_str)
        .filter(|name| seen.insert(*name))
        .collect()
}
