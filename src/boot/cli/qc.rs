//! `iit qc`: check a record, or a whole project, and wait for the findings if asked to.

use std::{process::ExitCode, sync::Arc, time::Duration};

use clap::ValueEnum;
use serde::Serialize;
use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

use super::{
    batch::{Finished, request, wait},
    exit::{CommandResult, Failure, found_something},
    output::{self, Format},
    pending::require_project,
    summary::summary,
};
use crate::{
    adapters::edc::EdcPool,
    boot::{
        config::Config,
        database::{Database, query_failed},
        logging, process,
        wiring::{Parts, Wiring, common_parts},
    },
    store::{batches, skills},
    types::{clock::Clock, finding::Severity, ids::BatchId},
};

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("which").required(true).args(["record", "all"])))]
pub struct Args {
    /// 项目编号 · project id.
    #[arg(long)]
    project: String,
    /// 受试者编号 · one record.
    #[arg(long)]
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
    logging::one_shot();
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
            Format::Table => {
                let taken = taken_up(&database.pool, id).await?;
                output::say(format_args!("已提交批次 {id}；{}", standing(taken)))?;
            }
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

/// How long a command that does not wait looks whether some worker takes its request up.
const LOOK_FOR: Duration = Duration::from_secs(2);
/// How often it looks.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Whether some worker has begun with the batch.
async fn taken_up(pool: &PgPool, id: BatchId) -> Result<bool, Failure> {
    let begun = async {
        let mut ticks = tokio::time::interval(LOOK_EVERY);
        loop {
            ticks.tick().await;
            let mut conn = pool.acquire().await?;
            match batches::get(&mut conn, id).await? {
                Some(batch) if batch.state == "planning" => {}
                _ => return Ok::<_, sqlx::Error>(()),
            }
        }
    };
    match tokio::time::timeout(LOOK_FOR, begun).await {
        Ok(begun) => begun.map(|()| true).map_err(query_failed),
        Err(_) => Ok(false),
    }
}

fn standing(taken: bool) -> &'static str {
    if taken {
        "worker 已开始处理；下次加 --wait 可等待结果 (a worker has begun)"
    } else {
        "尚无 worker 接手，它会排队等待；没有 worker 在运行时，启动 `iit worker`，或改用 --wait 由本命令处理 (no worker has taken it up yet, start one or use --wait)"
    }
}

/// Works along in this process until the batch is finished.
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
    // Only what a QC needs: chat and delivery belong to processes that are set up for them.
    parts.add_endless(async move { worker.run(&["edc", "llm"], until).await });
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
        Format::Table => output::say(summary(done)),
    }
}

/// Records that could not be checked are never a quiet success.
fn verdict(args: &Args, done: &Finished) -> CommandResult {
    if done.batch.failed > 0 {
        return Err(Failure::Outside(format!(
            "{} 例未能检查：{} (records could not be checked)",
            done.batch.failed,
            done.batch.note.as_deref().unwrap_or("见运行记录")
        )));
    }
    let least = args.fail_on.map(FailOn::least);
    let failing = least.is_some_and(|least| done.has_undismissed(least));
    if failing {
        Ok(found_something())
    } else {
        Ok(ExitCode::SUCCESS)
    }
}
