//! `iit qc`: check a record, or a whole project, and wait for the findings if asked to.

use std::{
    collections::{BTreeMap, HashMap},
    io::IsTerminal,
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

use super::{
    exit::{CommandResult, Failure, found_something},
    output::{self, Format},
    pending::require_project,
    project::actor,
};
use crate::{
    adapters::edc::EdcPool,
    boot::{
        config::Config,
        database::{Database, query_failed},
        logging, process,
        wiring::{Parts, Wiring, common_parts},
    },
    jobs::{QUEUES, batch_qc, common::steps::standing_label},
    queue::Wake,
    store::{
        batches::{self, Batch, NewBatch},
        runs::{self, RunResult},
        skills,
    },
    types::{
        clock::Clock,
        finding::{Finding, Severity},
        ids::BatchId,
    },
};

/// How often a waiting command looks at the counts.
const LOOK_EVERY: Duration = Duration::from_millis(150);

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// 项目编号 · project id.
    #[arg(long)]
    project: String,
    /// 受试者编号 · one record.
    #[arg(long, required_unless_present = "all", conflicts_with = "all")]
    record: Option<String>,
    /// 全部受试者 · every record of the project.
    #[arg(long)]
    all: bool,
    /// 只用这个技能 · only this skill.
    #[arg(long, value_name = "TYPE")]
    skill: Option<String>,
    /// 等待完成并输出结果；本进程也参与处理 · wait for the result; this process works too.
    #[arg(long)]
    wait: bool,
    /// 有此级别及以上的问题时退出码为 1 · exit 1 when a finding is at least this severe.
    #[arg(long, value_enum, value_name = "SEVERITY", requires = "wait")]
    fail_on: Option<FailOn>,
    /// 输出格式 · output format.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

/// Severities of `--fail-on`.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum FailOn {
    Error,
    Warning,
    Query,
}

impl FailOn {
    fn least(self) -> Severity {
        match self {
            Self::Error => Severity::Error,
            Self::Warning => Severity::Warning,
            Self::Query => Severity::Query,
        }
    }
}

/// Runs the command.
///
/// # Errors
/// See [`Failure`].
pub fn run(args: Args) -> CommandResult {
    logging::start("warn");
    let config = Config::from_env()?;
    process::block_on(async move {
        let stop = process::stop_on_signals()?;
        let database = Arc::new(Database::open("qc", 20).await?);
        let outcome = execute(&args, config, &database, &stop).await;
        stop.cancel();
        if let Ok(database) = Arc::try_unwrap(database) {
            database.close().await?;
        }
        outcome
    })
}

async fn execute(
    args: &Args,
    config: Config,
    database: &Arc<Database>,
    stop: &CancellationToken,
) -> CommandResult {
    let records = args.record.clone().map(|record| vec![record]);
    check(&database.pool, args).await?;
    let id = request(
        &database.pool,
        &args.project,
        args.skill.as_deref(),
        records.as_deref(),
    )
    .await?;
    if !args.wait {
        match args.format {
            Format::Table => println!(
                "已提交批次 {id}；由运行中的 worker 处理，加 --wait 可等待结果 (queued for a running worker)"
            ),
            _ => output::json(&serde_json::json!([{ "batch_id": id }]))?,
        }
        return Ok(ExitCode::SUCCESS);
    }
    let done = work_and_wait(config, database, id, stop).await?;
    print(args.format, &done)?;
    verdict(args, &done)
}

/// What is wrong with the request is said before anything is queued.
async fn check(pool: &PgPool, args: &Args) -> Result<(), Failure> {
    let mut conn = pool.acquire().await.map_err(query_failed)?;
    let project = require_project(&mut conn, &args.project).await?;
    let active = skills::active(&mut conn, &args.project, args.skill.as_deref())
        .await
        .map_err(query_failed)?;
    drop(conn);
    if active.is_empty() {
        let which = args
            .skill
            .as_deref()
            .map_or_else(String::new, |s| format!(" `{s}`"));
        return Err(Failure::Usage(format!(
            "项目 {} 没有启用的技能{which}；用 `iit skills apply --project {} PATH` 启用 (no such active skill)",
            args.project, args.project
        )));
    }
    if let Some(record) = &args.record {
        let ids = EdcPool::default()
            .open(&project.file.edc)
            .map_err(|error| Failure::Usage(error.to_string()))?
            .record_ids()
            .await
            .map_err(|error| Failure::Outside(error.to_string()))?;
        if !ids.contains(record) {
            return Err(Failure::Usage(format!(
                "项目 {} 中没有受试者 `{record}`；编号须与 EDC 中完全一致 (no such record)",
                args.project
            )));
        }
    }
    Ok(())
}

/// Queues a QC request and wakes the workers.
///
/// # Errors
/// The database failed.
pub async fn request(
    pool: &PgPool,
    project: &str,
    skill: Option<&str>,
    records: Option<&[String]>,
) -> Result<BatchId, Failure> {
    let requested = async {
        let mut tx = pool.begin().await?;
        let new = NewBatch {
            project,
            skill,
            records,
            reply_to: None,
            requested_by: &actor(),
        };
        let id = batch_qc::request(&mut tx, &new).await?;
        tx.commit().await?;
        Ok::<_, anyhow::Error>(id)
    };
    let id = requested
        .await
        .map_err(|error| query_failed(format!("{error:#}")))?;
    Wake::notify_once(pool, &[batch_qc::queue_of_requests()]).await;
    Ok(id)
}

/// A finished batch.
pub struct Finished {
    /// Counts.
    pub batch: Batch,
    /// What its runs came to.
    pub results: Vec<RunResult>,
}

impl Finished {
    /// All findings, in the order of records, rules and places.
    #[must_use]
    pub fn findings(&self) -> Vec<&Finding> {
        let mut findings: Vec<&Finding> =
            self.results.iter().flat_map(|run| &run.findings).collect();
        findings.sort_by(|a, b| {
            (&a.record, &a.rule, &a.event, a.instance, &a.field)
                .cmp(&(&b.record, &b.rule, &b.event, b.instance, &b.field))
        });
        findings
    }
}

/// Works on all queues in this process until the batch is finished.
async fn work_and_wait(
    config: Config,
    database: &Arc<Database>,
    id: BatchId,
    stop: &CancellationToken,
) -> Result<Finished, Failure> {
    let working = CancellationToken::new();
    let mut parts = Parts::default();
    let wiring = Wiring::new(config, database.pool.clone(), Clock::system(), None)?;
    common_parts(&mut parts, &wiring, database, &working);
    let worker = wiring.worker(database.claims_pool("qc").await?);
    let until = working.clone();
    parts.add_endless(async move { worker.run(&QUEUES, until).await });
    let finished = tokio::select! {
        finished = wait(&database.pool, id) => finished,
        () = stop.cancelled() => Err(Failure::Outside(format!(
            "已中断；批次 {id} 会由下一个 worker 继续 (interrupted, the batch goes on with the next worker)"
        ))),
    };
    working.cancel();
    parts.join(&working).await?;
    finished
}

/// Waits until a batch is finished, with a progress bar when a person looks on.
///
/// # Errors
/// The database failed, or the batch could not be done.
pub async fn wait(pool: &PgPool, id: BatchId) -> Result<Finished, Failure> {
    let bar = ProgressBar::with_draw_target(
        Some(0),
        if std::io::stderr().is_terminal() {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        },
    );
    let style = "{bar:32} {pos}/{len} 例  发现 {msg}  {elapsed}  剩余 {eta}";
    bar.set_style(
        ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar()),
    );
    let mut ticks = tokio::time::interval(LOOK_EVERY);
    let batch = loop {
        ticks.tick().await;
        let mut conn = pool.acquire().await.map_err(query_failed)?;
        let batch = batches::get(&mut conn, id)
            .await
            .map_err(query_failed)?
            .ok_or_else(|| query_failed(format!("batch {id} is gone")))?;
        bar.set_length(u64::try_from(batch.total).unwrap_or(0));
        bar.set_position(u64::try_from(batch.done + batch.failed).unwrap_or(0));
        bar.set_message(batch.findings.to_string());
        if !matches!(batch.state.as_str(), "planning" | "running") {
            break batch;
        }
    };
    bar.finish_and_clear();
    if batch.state != "done" {
        return Err(Failure::Outside(format!(
            "质控未能完成：{} (the batch {})",
            batch.error.as_deref().unwrap_or("原因未知"),
            batch.state
        )));
    }
    let mut conn = pool.acquire().await.map_err(query_failed)?;
    let results = runs::results(&mut conn, id).await.map_err(query_failed)?;
    Ok(Finished { batch, results })
}

#[derive(Serialize)]
struct Line<'a> {
    record: &'a str,
    event: Option<&'a str>,
    instance: Option<u32>,
    rule: &'a str,
    field: &'a str,
    outcome: String,
    severity: &'a str,
    message: &'a str,
    values: String,
}

fn print(format: Format, done: &Finished) -> Result<(), Failure> {
    match format {
        Format::Json => output::json(&done.findings()),
        Format::Csv => {
            let lines: Vec<Line<'_>> = done
                .findings()
                .into_iter()
                .map(|f| Line {
                    record: &f.record,
                    event: f.event.as_deref(),
                    instance: f.instance,
                    rule: &f.rule,
                    field: &f.field,
                    outcome: serde_json::to_value(f.outcome)
                        .ok()
                        .and_then(|v| v.as_str().map(str::to_owned))
                        .unwrap_or_default(),
                    severity: f.severity.as_str(),
                    message: &f.message,
                    values: serde_json::to_string(&f.values).unwrap_or_default(),
                })
                .collect();
            output::csv(&lines)
        }
        Format::Table => {
            println!("{}", summary(done));
            Ok(())
        }
    }
}

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
    if let Some(error) = &batch.error {
        text.push_str(&format!("\n注意 note: {error}"));
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
    let mut records: BTreeMap<&str, std::collections::BTreeSet<&str>> = BTreeMap::new();
    for run in &done.results {
        for finding in &run.findings {
            let row = rules.entry((&run.skill_name, &finding.rule)).or_default();
            match finding.outcome {
                crate::types::finding::FindingOutcome::Fail => row.0 += 1,
                crate::types::finding::FindingOutcome::NotEvaluable => row.1 += 1,
            }
            records
                .entry(&finding.rule)
                .or_default()
                .insert(&finding.record);
            row.2 = records
                .get(finding.rule.as_str())
                .map_or(0, std::collections::BTreeSet::len);
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
    let mut sites: BTreeMap<&str, (std::collections::BTreeSet<&str>, usize)> = BTreeMap::new();
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

/// Records that could not be checked are never a quiet success.
fn verdict(args: &Args, done: &Finished) -> CommandResult {
    if done.batch.failed > 0 {
        return Err(Failure::Outside(format!(
            "{} 例未能检查：{} (records could not be checked)",
            done.batch.failed,
            done.batch.error.as_deref().unwrap_or("见运行记录")
        )));
    }
    let least = args.fail_on.map(FailOn::least);
    let failing = least.is_some_and(|least| done.findings().iter().any(|f| f.severity >= least));
    if failing {
        Ok(found_something())
    } else {
        Ok(ExitCode::SUCCESS)
    }
}
