//! `iit queue depth | dead | retry | pause | resume | limit | cancel`.

mod change;
mod settings;
mod show;

use std::process::ExitCode;

use clap::Subcommand;

use super::{
    exit::{CommandResult, Failure},
    output::Format,
};
use crate::{
    boot::{database::Database, logging, process},
    jobs,
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
    Depth(Shown),
    /// 已放弃的任务 · jobs that were given up, with the reason.
    Dead(Shown),
    /// 重试已放弃的任务 · try dead jobs again: the given ids, or all.
    Retry {
        /// 任务编号 · job ids; all dead jobs when none is given.
        #[arg(conflicts_with = "all")]
        ids: Vec<i64>,
        #[command(flatten)]
        which: Which,
    },
    /// 取消任务 · cancel jobs: the given ids, or by --queue, --kind or --all. What waits for them is told.
    Cancel {
        /// 任务编号 · job ids.
        #[arg(
            conflicts_with = "all",
            required_unless_present_any = ["queue", "kind", "all"]
        )]
        ids: Vec<i64>,
        #[command(flatten)]
        which: Which,
        /// 取消已放弃的任务，而不是未完成的 · cancel dead jobs instead of unfinished ones.
        #[arg(long, conflicts_with = "ids")]
        dead: bool,
        /// 原因，记入审计 · why; goes to the audit log.
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// 暂停队列 · begin no more jobs of a queue, or of all; what runs goes on.
    Pause(Shown),
    /// 恢复队列 · let a paused queue go on, or all.
    Resume(Shown),
    /// 限制并发 · how many jobs of a queue may run at once, over all processes.
    Limit {
        /// 队列 · the queue.
        #[arg(long)]
        queue: String,
        /// 上限，或 none · a number, or `none`.
        max: String,
        /// 输出格式 · output format.
        #[arg(long, value_enum, default_value_t = Format::Table)]
        format: Format,
    },
}

/// Of one queue or of all.
#[derive(Debug, clap::Args)]
struct Shown {
    /// 只看或只改这个队列 · only this queue.
    #[arg(long)]
    queue: Option<String>,
    /// 输出格式 · output format.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

/// Which jobs a bulk change is about.
#[derive(Debug, clap::Args)]
struct Which {
    /// 只限这个队列 · only of this queue.
    #[arg(long)]
    queue: Option<String>,
    /// 只限这种任务 · only of this kind, e.g. sop_step.
    #[arg(long)]
    kind: Option<String>,
    /// 全部 · all of them.
    #[arg(long)]
    all: bool,
    /// 输出格式 · output format.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

/// Runs the command.
///
/// # Errors
/// See [`Failure`].
pub fn run(args: Args) -> CommandResult {
    logging::one_shot();
    let queue = match &args.command {
        Command::Depth(shown)
        | Command::Dead(shown)
        | Command::Pause(shown)
        | Command::Resume(shown) => shown.queue.as_deref(),
        Command::Retry { which, .. } | Command::Cancel { which, .. } => which.queue.as_deref(),
        Command::Limit { queue, .. } => Some(queue.as_str()),
    };
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
    match command {
        Command::Depth(shown) => show::depths(database, shown).await?,
        Command::Dead(shown) => show::dead(database, shown).await?,
        Command::Retry { ids, which } => change::retry(database, &ids, which).await?,
        Command::Cancel {
            ids,
            which,
            dead,
            reason,
        } => change::cancel(database, ids, which, dead, reason.as_deref()).await?,
        Command::Pause(shown) => settings::pause(database, shown).await?,
        Command::Resume(shown) => settings::resume(database, shown).await?,
        Command::Limit { queue, max, format } => {
            settings::limit(database, &queue, &max, format).await?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
