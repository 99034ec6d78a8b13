//! The summary of a finished QC: tables by skill, by rule and by site.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{batch::Finished, output};
use crate::{jobs::common::steps::standing_label, types::finding::FindingOutcome};

/// Tables by skill, by rule and by site; the findings themselves when there are few records.
#[must_use]
pub fn summary(done: &Finished) -> String {
    let batch = &done.batch;
    let mut text = String::new();
    if batch.total <= 3 {
        for finding in done.findings() {
            let instance = finding
                .instance
                .map(|n| format!(" #{n}"))
                .unwrap_or_default();
            text.push_str(&format!(
                "{}{instance} [{}] {} {}\n",
                finding.record,
                finding.rule,
                finding.severity.as_str(),
                finding.message
            ));
        }
    }
    text.push_str(&by_skill(done));
    text.push('\n');
    text.push_str(&by_rule(done));
    let sites = by_site(done);
    if !sites.is_empty() {
        text.push('\n');
        text.push_str(&sites);
    }
    text.push_str(&format!(
        "\n受试者 {} 例：完成 {}，未能检查 {}；发现 {} 条 · {} records: {} checked, {} not; {} findings",
        batch.total,
        batch.done,
        batch.failed,
        batch.findings,
        batch.total,
        batch.done,
        batch.failed,
        batch.findings
    ));
    for note in [&batch.note, &batch.error].into_iter().flatten() {
        text.push_str(&format!("\n注意 note: {note}"));
    }
    text
}

fn by_skill(done: &Finished) -> String {
    const STATES: [&str; 5] = ["通过", "违规", "需人工复核", "等待人工复核", "数据未录入完"];
    let mut skills: BTreeMap<&str, HashMap<&str, usize>> = BTreeMap::new();
    for run in &done.results {
        let state = match run.status.as_str() {
            "done" => standing_label(run.standing.as_deref().unwrap_or_default()),
            "waiting" => "等待人工复核",
            _ => "未能检查",
        };
        *skills
            .entry(&run.skill_name)
            .or_default()
            .entry(state)
            .or_default() += 1;
    }
    let mut headings = vec!["技能 skill"];
    headings.extend(STATES);
    headings.push("未能检查");
    let mut table = output::table(&headings);
    for (skill, states) in skills {
        let mut row = vec![skill.to_owned()];
        for heading in headings.iter().skip(1) {
            row.push(states.get(heading).copied().unwrap_or(0).to_string());
        }
        table.add_row(row);
    }
    table.to_string()
}

fn by_rule(done: &Finished) -> String {
    let mut rules: BTreeMap<(&str, &str), (usize, usize, usize)> = BTreeMap::new();
    let mut records: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for run in &done.results {
        for finding in &run.findings {
            let row = rules.entry((&run.skill_name, &finding.rule)).or_default();
            match finding.outcome {
                FindingOutcome::Fail => row.0 += 1,
                FindingOutcome::NotEvaluable => row.1 += 1,
            }
            records
                .entry(&finding.rule)
                .or_default()
                .insert(&finding.record);
            row.2 = records.get(finding.rule.as_str()).map_or(0, BTreeSet::len);
        }
    }
    let mut table = output::table(&[
        "规则 rule",
        "技能 skill",
        "违规 fail",
        "无法判定 not evaluable",
        "受试者 records",
    ]);
    for ((skill, rule), (fail, undecided, records)) in rules {
        table.add_row([
            rule.to_owned(),
            skill.to_owned(),
            fail.to_string(),
            undecided.to_string(),
            records.to_string(),
        ]);
    }
    table.to_string()
}

fn by_site(done: &Finished) -> String {
    let mut sites: BTreeMap<&str, (BTreeSet<&str>, usize)> = BTreeMap::new();
    for run in &done.results {
        let Some(site) = &run.site else { continue };
        let row = sites.entry(site).or_default();
        row.0.insert(&run.record);
        row.1 += run.findings.len();
    }
    if sites.is_empty() {
        return String::new();
    }
    let mut table = output::table(&[
        "中心 site",
        "受试者 records",
        "发现 findings",
        "每例 per record",
    ]);
    for (site, (records, findings)) in sites {
        #[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
        let rate = findings as f64 / records.len().max(1) as f64;
        table.add_row([
            site.to_owned(),
            records.len().to_string(),
            findings.to_string(),
            format!("{rate:.2}"),
        ]);
    }
    table.to_string()
}
