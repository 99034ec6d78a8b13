//! The command line: one file a command.

pub mod eval;
pub mod exit;
pub mod rules;
pub mod skills;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use exit::CommandResult;

/// 临床研究智能助手 · an agent for investigator-initiated clinical trials.
#[derive(Debug, Parser)]
#[command(name = "iit", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// 硬规则 · hard rules over plain files, without a database.
    Rules(rules::Args),
    /// 技能 · check and apply skill files.
    Skills(skills::Args),
    /// 评估 · how well the router and the verdicts do on labelled sets.
    Eval(eval::Args),
}

/// Parses the command line, runs the command, and prints its failure as one sentence on stderr.
#[must_use]
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    match dispatch(cli.command) {
        Ok(code) => code,
        Err(failure) => {
            eprintln!("iit: {failure}");
            ExitCode::from(failure.code())
        }
    }
}

fn dispatch(command: Command) -> CommandResult {
    match command {
        Command::Rules(args) => rules::run(args),
        Command::Skills(args) => skills::run(args),
        Command::Eval(args) => eval::run(args),
    }
}
