//! `iit eval`: how well the router and the verdicts do on labelled sets. Needs no database.

use std::{path::PathBuf, process::ExitCode};

use clap::{Subcommand, ValueEnum};

use super::{
    exit::{CommandResult, Failure},
    output,
};

mod labelled;
mod score;
mod verdict_score;
mod verdicts;

#[cfg(test)]
mod tests;

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// 意图识别 · one line per message: what the router makes of it; with labels, how often it is right.
    Intents(IntentsArgs),
    /// 判定 · one line per instruction and text: the language model's verdict.
    Verdicts(verdicts::Args),
}

#[derive(Debug, clap::Args)]
struct IntentsArgs {
    /// JSON lines: {"id","text","history":[{"role","text"}],"memory":{"last_patient"},"expect"?}
    file: PathBuf,
    /// Which router.
    #[arg(long, value_enum, default_value_t = RouterChoice::Llm)]
    router: RouterChoice,
    /// Where the answers go; stdout when absent (the summary then goes to stderr).
    #[arg(long)]
    out: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum RouterChoice {
    /// The configured language model.
    Llm,
    /// The keyword rules that stand in for it.
    Keyword,
}

/// Runs the command.
///
/// # Errors
/// [`Failure::Usage`] for a file that can't be read or written, a bad line (named as `file:line`), or a
/// router that needs a language model when none is configured.
pub fn run(args: Args) -> CommandResult {
    match args.what {
        What::Intents(args) if args.router == RouterChoice::Llm => Err(no_model(
            "iit eval intents --router llm",
            "或改用 --router keyword · or use --router keyword",
        )),
        What::Intents(args) => intents(&args),
        What::Verdicts(args) => verdicts::run(args),
    }
}

fn no_model(command: &str, otherwise: &str) -> Failure {
    Failure::Usage(format!(
        "`{command}` 需要语言模型，但尚未接通；请配置 LLM_BASE_URL 与 LLM_MODEL，{otherwise} \
         (no language model is connected)"
    ))
}

fn intents(args: &IntentsArgs) -> CommandResult {
    let lines = labelled::read(&args.file)?;
    let mut answers = String::new();
    let mut score = score::Score::default();
    for line in &lines {
        let answer = score::answer(line);
        let json = serde_json::to_string(&answer).map_err(|error| {
            Failure::Usage(format!("{}: 无法写出结果 · {error}", args.file.display()))
        })?;
        answers.push_str(&json);
        answers.push('\n');
        if let Some(expect) = &line.expect {
            score.count(line, expect, &answer);
        }
    }
    let summary = score.summary(lines.len());
    match &args.out {
        Some(path) => {
            std::fs::write(path, answers).map_err(|error| {
                Failure::Usage(format!(
                    "{}: 无法写入，请检查路径和权限 · cannot write: {error}",
                    path.display()
                ))
            })?;
            output::say(summary.trim_end())?;
        }
        None => {
            output::print(answers.as_bytes())?;
            output::warn(summary.trim_end());
        }
    }
    Ok(ExitCode::SUCCESS)
}
