//! The command line: one file a command.
#![warn(clippy::print_stdout, clippy::print_stderr)] // `output` prints, and knows what to do when it can't.

pub mod batch;
pub mod demo;
pub mod doctor;
pub mod eval;
pub mod exit;
pub mod llm;
pub mod migrate;
pub mod outbox;
pub mod output;
pub mod pending;
pub mod project;
pub mod qc;
pub mod queue;
pub mod rules;
pub mod runs;
pub mod schedule;
pub mod serve;
pub mod skills;
pub mod summary;

use std::{path::Path, process::ExitCode};

use clap::{Parser, Subcommand, error::ErrorKind};

use exit::CommandResult;

use super::dotenv;
use crate::jobs::QUEUES;

/// 临床研究智能助手 · an agent for investigator-initiated clinical trials.
#[derive(Debug, Parser)]
#[command(name = "iit", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// 示例：私有数据库、示例研究、全套服务 · private Postgres, sample study, web + worker + scheduler.
    Demo(demo::Args),
    /// 一个进程运行全部 · web, worker and scheduler in one process.
    All,
    /// 只运行 HTTP · the HTTP side only.
    Web,
    /// 只处理任务 · jobs only.
    Worker(serve::WorkerArgs),
    /// 只做定时与清理 · schedules and housekeeping only.
    Scheduler,
    /// 更新数据库结构 · bring the database schema up to date.
    Migrate,
    /// 项目 · create, update and list projects.
    Project(project::Args),
    /// 技能 · check and apply skill files.
    Skills(skills::Args),
    /// 质控 · check a record or a whole project.
    Qc(qc::Args),
    /// 任务队列 · depth, dead jobs, retry.
    Queue(queue::Args),
    /// 发出的消息 · messages that did not surely arrive; send one again.
    Outbox(outbox::Args),
    /// 定时 · when skills run by themselves, and what became of it.
    Schedule(schedule::Args),
    /// 大模型 · what the language model costs, and whether it is asked.
    Llm(llm::Args),
    /// 运行 · what a run said, called, saw and cost.
    Runs(runs::Args),
    /// 待处理清单 · the ledger of findings.
    Pending(pending::Args),
    /// 硬规则 · hard rules over plain files, without a database.
    Rules(rules::Args),
    /// 评估 · how well the router and the verdicts do on labelled sets.
    Eval(eval::Args),
    /// 体检 · what was found, and what is missing.
    Doctor,
}

/// Parses the command line, reads the `.env` file, runs the command, and prints its failure as one
/// sentence on stderr.
#[must_use]
pub fn main() -> ExitCode {
    let ran = match Cli::try_parse() {
        Ok(cli) => dotenv::load().and_then(|env_file| dispatch(cli.command, env_file.as_deref())),
        Err(error) => explain(&error),
    };
    match ran {
        Ok(code) => code,
        Err(failure) => {
            output::warn(format_args!("iit: {failure}"));
            ExitCode::from(failure.code())
        }
    }
}

/// Help and version go to stdout. A fault of the command line is said in one sentence, and the usage
/// follows.
fn explain(error: &clap::Error) -> CommandResult {
    let text = error.render().to_string();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            output::say(text.trim_end())?;
            return Ok(ExitCode::SUCCESS);
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            output::warn(format_args!(
                "iit: 缺少命令或参数，可用的如下 (a command or argument is missing)\n\n{}",
                text.trim_end()
            ));
        }
        _ => {
            let text = text.strip_prefix("error: ").unwrap_or(&text);
            let (fault, usage) = text.split_once("\n\n").unwrap_or((text, ""));
            let fault: Vec<&str> = fault.split_whitespace().collect();
            output::warn(format_args!(
                "iit: 命令行有误 wrong use: {}\n\n{}",
                fault.join(" "),
                usage.trim_end()
            ));
        }
    }
    Ok(ExitCode::from(2))
}

fn dispatch(command: Command, env_file: Option<&Path>) -> CommandResult {
    match command {
        Command::Demo(args) => demo::run(args),
        Command::All => serve::run(serve::Role::All, QUEUES.to_vec()),
        Command::Web => serve::run(serve::Role::Web, Vec::new()),
        Command::Worker(args) => serve::worker(args),
        Command::Scheduler => serve::run(serve::Role::Scheduler, Vec::new()),
        Command::Migrate => migrate::run(),
        Command::Project(args) => project::run(args),
        Command::Skills(args) => skills::run(args),
        Command::Qc(args) => qc::run(args),
        Command::Queue(args) => queue::run(args),
        Command::Outbox(args) => outbox::run(args),
        Command::Schedule(args) => schedule::run(args),
        Command::Llm(args) => llm::run(args),
        Command::Runs(args) => runs::run(args),
        Command::Pending(args) => pending::run(args),
        Command::Rules(args) => rules::run(args),
        Command::Eval(args) => eval::run(args),
        Command::Doctor => doctor::run(env_file),
    }
}
