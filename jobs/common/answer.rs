//! The words of a QC answer: pure text out of what the runs came to.

use std::collections::BTreeMap;

use super::steps::standing_label;
use crate::{
    store::{batches::Batch, runs::RunResult},
    types::finding::Finding,
};

/// Up to this many records are answered one by one, more as a summary.
const DETAILED_RECORDS: usize = 3;
/// Findings listed per record and skill.
const LISTED_FINDINGS: usize = 10;
/// Lines of a summary table.
const LISTED_GROUPS: usize = 12;

/// The answer to a QC request.
#[must_use]
pub fn qc_answer(study: &str, batch: &Batch, results: &[RunResult]) -> String {
    if batch.state == "failed" {
        let why = batch.error.as_deref().unwrap_or("原因未知");
        return format!("【质控】{study}：未能完成。{why}");
    }
    let mut records: Vec<&str> = results.iter().map(|run| run.record.as_str()).collect();
    records.dedup();
    let mut text = if records.is_empty() && batch.failed > 0 {
        format!("【质控】{study}：{} 例均未能检查。", batch.failed)
    } else if records.is_empty() {
        format!("【质控】{study}：没有可以质控的受试者。")
    } else if records.len() <= DETAILED_RECORDS {
        records
            .iter()
            .map(|record| one_record(study, record, results))
            .collect::<Vec<_>>()
            .join("\n\n")
    } else {
        summary(study, batch, results)
    };
    if let Some(error) = &batch.error {
        text.push_str("\n注意：");
        text.push_str(error);
    }
    text
}

fn one_record(study: &str, record: &str, results: &[RunResult]) -> String {
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
            lines.push(format!("  {}. {}", no + 1, place_and_message(finding)));
        }
        if run.findings.len() > LISTED_FINDINGS {
            lines.push(format!(
                "  …另有 {} 条",
                run.findings.len() - LISTED_FINDINGS
            ));
        }
    }
    let found: usize = runs.iter().map(|run| run.findings.len()).sum();
    lines.push(match found {
        0 if runs.iter().all(|run| is_clean(run)) => "未发现问题。".to_owned(),
        0 => "检查尚未全部完成，不代表没有问题。".to_owned(),
        _ => format!("共 {found} 条，已记入待处理清单。"),
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

fn summary(study: &str, batch: &Batch, results: &[RunResult]) -> String {
    let mut lines = vec![
        format!("【全项目质控】{study}"),
        format!(
            "受试者 {} 例：完成 {}，未能检查 {}；发现 {} 条。",
            batch.total, batch.done, batch.failed, batch.findings
        ),
    ];
    let mut by_skill: BTreeMap<&str, BTreeMap<String, usize>> = BTreeMap::new();
    for run in results {
        let state = match run.status.as_str() {
            "done" => standing_label(run.standing.as_deref().unwrap_or_default()).to_owned(),
            "waiting" => "等待人工复核".to_owned(),
            "failed" => "未能检查".to_owned(),
            other => other.to_owned(),
        };
        *by_skill
            .entry(&run.skill_name)
            .or_default()
            .entry(state)
            .or_default() += 1;
    }
    for (skill, states) in by_skill {
        let states: Vec<String> = states.iter().map(|(s, n)| format!("{s} {n}")).collect();
        lines.push(format!("· {skill}：{}", states.join("，")));
    }
    let findings = || {
        results
            .iter()
            .flat_map(|run| run.findings.iter().map(move |f| (run, f)))
    };
    lines.extend(table("按规则", findings().map(|(_, f)| f.rule.clone())));
    lines.extend(table(
        "按中心",
        findings().filter_map(|(run, _)| run.site.clone()),
    ));
    if batch.findings > 0 {
        lines.push("明细已记入待处理清单。".to_owned());
    }
    lines.join("\n")
}

fn table(title: &str, keys: impl Iterator<Item = String>) -> Vec<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for key in keys {
        *counts.entry(key).or_default() += 1;
    }
    let mut counts: Vec<(String, usize)> = counts.into_iter().collect();
    counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    if counts.is_empty() {
        return Vec::new();
    }
    let shown: Vec<String> = counts
        .iter()
        .take(LISTED_GROUPS)
        .map(|(key, n)| format!("{key} {n}"))
        .collect();
    let more = counts.len().saturating_sub(shown.len());
    let tail = if more > 0 {
        format!("，另 {more} 项")
    } else {
        String::new()
    };
    vec![format!("{title}：{}{tail}", shown.join("，"))]
}
