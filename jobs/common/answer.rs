//! The words of a QC answer: pure text out of what the runs came to.

use std::collections::{BTreeMap, HashSet};

use super::steps::standing_label;
use crate::{
    store::{
        batches::Batch,
        results::{RunResult, Tally},
    },
    types::finding::Finding,
};

/// Up to this many records are answered one by one, more as a summary.
pub const DETAILED_RECORDS: i32 = 3;
/// Findings listed per record and skill.
const LISTED_FINDINGS: usize = 10;
/// Lines of a summary table.
const LISTED_GROUPS: usize = 12;

/// What a request came to, in as much detail as its answer shows.
pub enum Outcome {
    /// Every run, and the fingerprints of what people dismissed.
    Detailed(Vec<RunResult>, HashSet<String>),
    /// Counts.
    Counted(Tally),
}

/// The answer to a QC request.
#[must_use]
pub fn qc_answer(study: &str, batch: &Batch, outcome: &Outcome) -> String {
    if batch.state == "failed" {
        let why = batch.note.as_deref().unwrap_or("详情见批次记录");
        return format!("【质控】{study}：{why}。");
    }
    let mut text = match outcome {
        Outcome::Counted(tally) => summary(study, batch, tally),
        Outcome::Detailed(runs, _) if runs.is_empty() && batch.total == 0 => {
            format!("【质控】{study}：没有可以质控的受试者。")
        }
        Outcome::Detailed(runs, _) if runs.is_empty() => {
            format!("【质控】{study}：{} 例都未能检查。", batch.total)
        }
        Outcome::Detailed(runs, dismissed) => {
            let is_dismissed =
                |finding: &Finding| dismissed.contains(&finding.fingerprint(&batch.project));
            let mut records: Vec<&str> = runs.iter().map(|run| run.record.as_str()).collect();
            records.dedup();
            records
                .iter()
                .map(|record| one_record(study, record, runs, &is_dismissed))
                .collect::<Vec<_>>()
                .join("\n\n")
        }
    };
    if let Some(note) = &batch.note {
        text.push_str("\n注意：");
        text.push_str(note);
    }
    text
}

fn one_record(
    study: &str,
    record: &str,
    results: &[RunResult],
    is_dismissed: &impl Fn(&Finding) -> bool,
) -> String {
    let runs: Vec<&RunResult> = results.iter().filter(|run| run.record == record).collect();
    let mut lines = vec![format!("【质控】{study} · 受试者 {record}")];
    for run in &runs {
        lines.push(format!(
            "{} {}：{}",
            mark(run),
            run.skill_name,
            verdict(run)
        ));
        for (no, finding) in run.findings.iter().take(LISTED_FINDINGS).enumerate() {
            let mark = if is_dismissed(finding) {
                "（已由人工排除）"
            } else {
                ""
            };
            lines.push(format!(
                "  {}. {}{mark}",
                no + 1,
                place_and_message(finding)
            ));
        }
        if run.findings.len() > LISTED_FINDINGS {
            lines.push(format!(
                "  …另有 {} 条",
                run.findings.len() - LISTED_FINDINGS
            ));
        }
    }
    let all = || runs.iter().flat_map(|run| &run.findings);
    let dismissed = all().filter(|finding| is_dismissed(finding)).count();
    lines.push(match all().count() {
        0 if runs.iter().all(|run| is_clean(run)) => "未发现问题。".to_owned(),
        0 => "检查尚未全部完成，不代表没有问题。".to_owned(),
        found if dismissed == 0 => format!("共 {found} 条，已记入待处理清单。"),
        found => {
            format!("共 {found} 条，其中 {dismissed} 条此前已由人工排除；其余在待处理清单中。")
        }
    });
    lines.join("\n")
}

/// Every check of the run was made, and nothing came of it.
fn is_clean(run: &RunResult) -> bool {
    run.status == "done" && run.standing.as_deref() == Some("clean")
}

fn mark(run: &RunResult) -> &'static str {
    match (run.status.as_str(), run.standing.as_deref()) {
        ("done", Some("clean")) => "✓",
        ("done", Some("incomplete")) => "…",
        ("done", Some("violation")) | ("failed", _) => "✗",
        _ => "?",
    }
}

fn verdict(run: &RunResult) -> String {
    let count = match run.findings.len() {
        0 => String::new(),
        n => format!("（{n} 条）"),
    };
    match run.status.as_str() {
        "waiting" => format!("等待人工复核{count}"),
        "failed" => format!(
            "未能检查。{}",
            run.error.as_deref().unwrap_or("原因见运行记录")
        ),
        "cancelled" => "已取消".to_owned(),
        "running" => "进行中".to_owned(),
        _ => format!(
            "{}{count}",
            standing_label(run.standing.as_deref().unwrap_or_default())
        ),
    }
}

/// `[IE-002] 访视 2 · 年龄>75岁（age=81）`
fn place_and_message(finding: &Finding) -> String {
    let mut place = String::new();
    if let Some(event) = &finding.event {
        place.push_str(event);
        place.push(' ');
    }
    if let Some(instance) = finding.instance {
        place.push_str(&format!("第 {instance} 条 "));
    }
    format!("[{}] {place}{}", finding.rule, finding.message)
}

fn summary(study: &str, batch: &Batch, tally: &Tally) -> String {
    let mut lines = vec![
        match &batch.records {
            None => format!("【全项目质控】{study}"),
            Some(_) => format!("【质控】{study}"),
        },
        format!(
            "受试者 {} 例：完成 {}，未能检查 {}；发现 {} 条。",
            batch.total, batch.done, batch.failed, batch.findings
        ),
    ];
    let mut by_skill: BTreeMap<&str, Vec<(usize, String)>> = BTreeMap::new();
    for (skill, status, standing, count) in &tally.runs {
        let state = match status.as_str() {
            "done" => standing_label(standing),
            "waiting" => "等待人工复核",
            "failed" => "未能检查",
            "cancelled" => "已取消",
            _ => "进行中",
        };
        by_skill
            .entry(skill)
            .or_default()
            .push((rank(state), format!("{state} {count}")));
    }
    for (skill, mut states) in by_skill {
        states.sort();
        let states: Vec<String> = states.into_iter().map(|(_, state)| state).collect();
        lines.push(format!("· {skill}：{}", states.join("，")));
    }
    lines.extend(table("按规则", &tally.rules));
    lines.extend(table("按中心", &tally.sites));
    if batch.findings > 0 {
        lines.push("明细已记入待处理清单。".to_owned());
    }
    lines.join("\n")
}

/// What needs somebody stands first.
fn rank(state: &str) -> usize {
    [
        "违规",
        "未能检查",
        "需人工复核",
        "等待人工复核",
        "数据未录入完",
        "通过",
    ]
    .iter()
    .position(|known| *known == state)
    .unwrap_or(usize::MAX)
}

fn table(title: &str, counts: &[(String, i64)]) -> Option<String> {
    let shown: Vec<String> = counts
        .iter()
        .take(LISTED_GROUPS)
        .map(|(key, count)| format!("{key} {count}"))
        .collect();
    let tail = match counts.len().saturating_sub(shown.len()) {
        0 => String::new(),
        more => format!("，另 {more} 项"),
    };
    (!shown.is_empty()).then(|| format!("{title}：{}{tail}", shown.join("，")))
}
