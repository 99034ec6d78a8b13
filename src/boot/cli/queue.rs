//! `iit queue depth | dead | retry`.

use std::process::ExitCode;

use clap::Subcommand;

use super::{
    exit::CommandResult,
    output::{self, Format},
};
use crate::{
    boot::{
        cli::{exit::Failure, project::actor},
        database::{Database, query_failed},
        logging, process,
    },
    jobs,
    queue::{Wake, depth},
    store::audit,
};

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// 各队列积压 · jobs by queue and state, with the age of the oldest.
    Depth {
        /// 只看这个队列 · only this queue.
        #[arg(long)]
        queue: Option<String>,
        /// 输出格式 · output format.
        #[arg(long, value_enum, default_value_t = Format::Table)]
        format: Format,
    },
    /// 已放弃的任务 · jobs that were given up, with the reason.
    Dead {
        /// 只看这个队列 · only this queue.
        #[arg(long)]
        queue: Option<String>,
        /// 输出格式 · output format.
        #[arg(long, value_enum, default_value_t = Format::Table)]
        format: Format,
    },
    /// 重试已放弃的任务 · try dead jobs again: the given ids, or all.
    Retry {
        /// 任务编号 · job ids; all dead jobs when none is given.
        ids: Vec<i64>,
        /// 只重试这个队列 · only this queue.
        #[arg(long)]
        queue: Option<String>,
        /// 输出格式 · output format.
        #[arg(long, value_enum, default_value_t = Format::Table)]
        format: Format,
    },
}

/// Runs the command.
///
/// # Errors
/// See [`Failure`].
pub fn run(args: Args) -> CommandResult {
    logging::one_shot();
    let (Command::Depth { queue, .. } | Command::Dead { queue, .. } | Command::Retry { queue, .. }) =
        &args.command;
    if let Some(queue) = queue {
        known_queue(queue)?;
    }
    process::block_on(async move {
        let database = Database::open("queue", 2).await?;
        let outcome = execute(&database, args.command).await;
        database.close().await?;
        outcome
    })
}

/// The queue of that name.
///
/// # Errors
/// Exit code 2: there is none.
pub fn known_queue(name: &str) -> Result<&'static str, Failure> {
    jobs::QUEUES
        .into_iter()
        .find(|queue| *queue == name.trim())
        .ok_or_else(|| {
            Failure::Usage(format!(
                "没有队列 `{name}`；可用 {} (no such queue)",
                jobs::QUEUES.join(", ")
            ))
        })
}

async fn execute(database: &Database, command: Command) -> CommandResult {
    let mut conn = database.pool.acquire().await.map_err(query_failed)?;
    match command {
        Command::Depth { queue, format } => {
            let mut depths = depth::depth(&mut conn).await.map_err(query_failed)?;
            depths.retain(|depth| queue.as_ref().is_none_or(|queue| *queue == depth.queue));
            match format {
                Format::Json => output::json(&depths)?,
                Format::Csv => output::csv(&depths)?,
                Format::Table => {
                    let mut table = output::table(&[
                        "队列 queue",
                        "状态 state",
                        "任务 jobs",
                        "最久 oldest (s)",
                    ]);
                    for depth in depths {
                        let age = depth
                            .oldest_age_s
                            .map(|s| format!("{s:.1}"))
                            .unwrap_or_default();
                        table.add_row([depth.queue, depth.state, depth.jobs.to_string(), age]);
                    }
                    output::say(table)?;
                    super::outbox::say_closed(&mut conn).await?;
                }
            }
        }
        Command::Dead { queue, format } => {
            let dead = depth::dead(&mut conn, queue.as_deref(), None, 1000)
                .await
                .map_err(query_failed)?;
            match format {
                Format::Json => output::json(&dead)?,
                Format::Csv => output::csv(&dead)?,
                Format::Table => {
                    let mut table = output::table(&[
                        "编号 id",
                        "队列 queue",
                        "类型 kind",
                        "次数 attempts",
                        "时间 at (UTC)",
                        "原因 reason",
                    ]);
                    for job in dead {
                        let at = job
                            .finished_at
                            .map(|at| at.format("%Y-%m-%d %H:%M:%S").to_string());
                        table.add_row([
                            job.id.to_string(),
                            job.queue,
                            job.kind,
                            job.attempt.to_string(),
                            at.unwrap_or_default(),
                            job.reason.unwrap_or_default(),
                        ]);
                    }
                    output::say(table)?;
                }
            }
        }
        Command::Retry { ids, queue, format } => {
            let retried = retry(database, &ids, queue.as_deref()).await?;
            let missed: Vec<i64> = ids
                .iter()
                .filter(|id| !retried.contains(id))
                .copied()
                .collect();
            match format {
                Format::Table => {
                    let count = retried.len();
                    output::say(format_args!("已重试 {count} 个任务 · {count} jobs retried"))?;
                }
                _ => output::json(&retried)?,
            }
            if !missed.is_empty() {
                let missed: Vec<String> = missed.iter().map(ToString::to_string).collect();
                return Err(Failure::Found(format!(
                    "任务 {} 不是可重试的死任务 (not dead, or its run, batch or message has already gone on without it)",
                    missed.join(", ")
                )));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn retry(database: &Database, ids: &[i64], queue: Option<&str>) -> Result<Vec<i64>, Failure> {
    let retried = async {
        let mut tx = database.pool.begin().await?;
        let ids = (!ids.is_empty()).then_some(ids);
        let mut wanted = Vec::new();
        for job in depth::dead(&mut tx, queue, ids, i64::MAX).await? {
            if jobs::revive(&mut tx, &job.kind, &job.payload).await? {
                wanted.push(job.id);
            }
        }
        let retried = depth::retry(&mut tx, &wanted).await?;
        for (queue, id) in &retried {
            audit::record(
                &mut tx,
                audit::Entry {
                    project: None,
                    actor: &actor(),
                    action: "job.retried",
                    entity: "job",
                    entity_id: &id.to_string(),
                    old: None,
                    new: Some(serde_json::json!({ "queue": queue })),
                    reason: None,
                },
            )
            .await?;
        }
        tx.commit().await?;
        Ok::<_, sqlx::Error>(retried)
    };
    let retried = retried.await.map_err(query_failed)?;
    let queues: Vec<String> = retried.iter().map(|(queue, _)| queue.clone()).collect();
    Wake::notify_once(&database.pool, &queues).await;
    Ok(retried.into_iter().map(|(_, id)| id).collect())
}
