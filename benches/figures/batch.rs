//! Batch QC, whole path: `iit qc --all --wait` from start to the last finding in the ledger.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use iit_manager::boot::cli::{project, skills};
use serde_json::{Value, json};

use crate::Bench;
use crate::place::{self, Base};
use crate::program::{self, Finished};
use crate::report::{Figure, Target};
use crate::samples::median;
use crate::study::{self, Check};

const RULES: usize = 50;
/// Runs of each size, in turn, so that what else the machine does falls on both.
const RUNS: usize = 3;

pub async fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let mut figures = vec![demo(bench).await?];
    let full = bench.amount(10_000, 1_000);
    let (mut halves, mut wholes) = (Vec::new(), Vec::new());
    let (half, whole) = loop {
        let half = generated(bench, full / 2).await?;
        let whole = generated(bench, full).await?;
        halves.push(half.first.seconds);
        wholes.push(whole.first.seconds);
        if wholes.len() == RUNS {
            break (half, whole);
        }
    };
    let all: Vec<String> = wholes
        .iter()
        .map(|seconds| format!("{seconds:.1}"))
        .collect();
    let (half_s, whole_s) = (median(halves), median(wholes));
    #[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    let rate = full as f64 / whole_s;
    let found = whole.findings;
    figures.push(
        Figure::new(
            format!("batch QC, {full} records × {RULES} rules"),
            Target::Below(60.0),
            whole_s,
            "s",
        )
        .detail(format!("{rate:.0} records/s, {found} findings; runs: {} s", all.join(", ")))
        .note(format!(
            "`iit qc --all --wait --format json` from start to exit, empty ledger; the same again on the full ledger {:.1} s",
            whole.again.seconds
        )),
    );
    figures.push(
        Figure::new(
            "  its peak memory",
            Target::Below(250.0),
            whole.first.peak_mb,
            "MB RSS",
        )
        .detail(format!(
            "{} records {:.0} MB; again on the full ledger {:.0} MB",
            full / 2,
            half.first.peak_mb,
            whole.again.peak_mb
        ))
        .note("VmHWM of the iit process, which reads the files, works, and prints all findings"),
    );
    figures.push(
        Figure::new(
            "  time for twice the records",
            Target::Below(2.2),
            whole_s / half_s,
            "×",
        )
        .detail(format!("{} records {half_s:.1} s", full / 2)),
    );
    Ok(figures)
}

async fn demo(bench: &Bench) -> Result<Figure> {
    let base = bench.place.database("batch_demo").await?;
    place::demo(&base, &[]).await?;
    let done = qc(bench, &base, "demo").await?;
    let expected: Value =
        serde_json::from_str(include_str!("../../tests/data/demo_expected.json"))?;
    let findings = findings(&done)?;
    ensure!(
        Some(findings as u64) == expected["findings"].as_u64(),
        "{findings} findings in the sample study"
    );
    in_ledger(&base, findings).await?;
    base.drop().await?;
    Ok(Figure::new(
        "batch QC of the sample study",
        Target::None,
        done.seconds,
        "s",
    )
    .detail(format!(
        "306 subjects × 4 skills, {findings} findings, {:.0} MB RSS",
        done.peak_mb
    ))
    .note("`iit qc --all --wait` from start to exit"))
}

struct Generated {
    first: Finished,
    again: Finished,
    findings: usize,
}

async fn generated(bench: &Bench, count: usize) -> Result<Generated> {
    let folder = bench.place.folder().join(format!("batch-{count}"));
    let subjects = study::subjects(count);
    let checks = study::checks(RULES);
    study::write(&folder.join("study"), &subjects)?;
    let skill = json!({
        "skillType": "plausibility",
        "name": "合理性核查",
        "config": {
            "name": "合理性核查",
            "start_node": "all_rules",
            "nodes": { "all_rules": {
                "type": "hard_rule",
                "rules": study::rules(&checks, Check::logic),
                "on_pass": "end_success",
                "on_fail": "end_with_violation",
                "on_not_evaluable": "end_review_required",
            }},
        },
    });
    std::fs::write(folder.join("skill.json"), skill.to_string())?;
    std::fs::write(folder.join("project.toml"), PROJECT)?;
    let (fail, open) = study::expected(&checks, &subjects);
    drop(subjects);

    let base = bench.place.database(&format!("batch_{count}")).await?;
    apply(&base, &folder).await?;
    let first = qc(bench, &base, "generated").await?;
    ensure!(
        findings(&first)? == fail + open,
        "{} findings instead of {fail} failed and {open} not evaluable",
        findings(&first)?
    );
    in_ledger(&base, fail + open).await?;
    let again = qc(bench, &base, "generated").await?;
    ensure!(
        findings(&again)? == fail + open,
        "the second QC found something else"
    );
    in_ledger(&base, fail + open).await?;
    base.drop().await?;
    Ok(Generated {
        first,
        again,
        findings: fail + open,
    })
}

const PROJECT: &str = r#"
id = "generated"
name = "生成的研究"
[edc]
kind = "redcap_files"
dir = "study"
"#;

async fn apply(base: &Base, folder: &Path) -> Result<()> {
    let file = project::read(&folder.join("project.toml"))?;
    project::apply(&base.database.pool, &file).await?;
    skills::apply_to(&base.database.pool, &file, None, &folder.join("skill.json")).await?;
    Ok(())
}

async fn qc(bench: &Bench, base: &Base, project: &str) -> Result<Finished> {
    let args = [
        "qc",
        "--project",
        project,
        "--all",
        "--wait",
        "--format",
        "json",
    ];
    program::finish(program::iit(&bench.place, base, &args)).await
}

fn findings(done: &Finished) -> Result<usize> {
    let found: Vec<serde::de::IgnoredAny> =
        serde_json::from_slice(&done.stdout).context("reading the findings")?;
    Ok(found.len())
}

/// Rows that only ask for a decision apart, every finding is an open row.
async fn in_ledger(base: &Base, findings: usize) -> Result<()> {
    let open = base
        .count(
            "SELECT count(*) FROM iit_pending_actions WHERE status = 'open' AND waits_for IS NULL",
        )
        .await?;
    ensure!(
        usize::try_from(open)? == findings,
        "{open} open rows in the ledger for {findings} findings"
    );
    Ok(())
}
