//! `iit eval`: how well the router and the verdicts do on labelled sets. Needs no database.

use std::{path::PathBuf, process::ExitCode};

use clap::{Subcommand, ValueEnum};

use serde_json::json;

use super::{
    exit::{CommandResult, Failure},
    output,
};
use crate::{
    boot::{config::Config, logging, process},
    engines::router::CONFIDENCE_THRESHOLD,
};

mod labelled;
mod model;
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
    /// JSON lines: {"id","text","history":[{"role","text"}],"memory":{"last_patient"},"expect"?}；
    /// 不给出时用随程序附带的标注集 · without it, the messages that come with the program.
    file: Option<PathBuf>,
    /// Which router.
    #[arg(long, value_enum, default_value_t = RouterChoice::Llm)]
    router: RouterChoice,
    /// 等同 --router llm · the same as --router llm.
    #[arg(long, conflicts_with = "router")]
    llm: bool,
    /// Where the answers go; stdout when absent (the summary then goes to stderr).
    #[arg(long)]
    out: Option<PathBuf>,
    /// 汇总以 JSON 输出到 stdout；逐条结果只写入 --out · the summary as JSON on stdout, the answers only to --out.
    #[arg(long)]
    json: bool,
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
/// router that needs a language model when none is configured; [`Failure::Outside`] when the model can't be
/// asked.
pub fn run(args: Args) -> CommandResult {
    match args.what {
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
    let asking = match args.router {
        RouterChoice::Keyword => None,
        RouterChoice::Llm => {
            let config = Config::from_env()?;
            let threshold = config.router_threshold.unwrap_or(CONFIDENCE_THRESHOLD);
            let model = config.llm.ok_or_else(|| {
                no_model(
                    "iit eval intents --router llm",
                    "或改用 --router keyword · or use --router keyword",
                )
            })?;
            Some((model, threshold))
        }
    };
    let lines = labelled::read(args.file.as_deref())?;
    let (answers, cost) = match &asking {
        None => (lines.iter().map(score::answer).collect(), None),
        Some((model, threshold)) => {
            logging::one_shot();
            let asked = model::answer_all(&lines, model, *threshold);
            let (answers, cost) = process::block_on(asked)?;
            (answers, Some(cost))
        }
    };
    let mut score = score::Score::default();
    let mut written = String::new();
    for (line, answer) in lines.iter().zip(&answers) {
        let json = serde_json::to_string(answer)
            .map_err(|error| Failure::Usage(format!("无法写出结果 · {error}")))?;
        written.push_str(&json);
        written.push('\n');
        score.look(line);
        if let Some(expect) = &line.expect {
            score.count(line, expect, answer);
        }
    }
    if let Some(path) = &args.out {
        std::fs::write(path, &written).map_err(|error| {
            Failure::Usage(format!(
                "{}: 无法写入，请检查路径和权限 · cannot write: {error}",
                path.display()
            ))
        })?;
    }
    if args.json {
        let mut summary = score.json(lines.len());
        summary["router"] = json!(if cost.is_some() { "llm" } else { "keyword" });
        summary["llm"] = json!(cost);
        output::json(&summary)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut summary = score.summary(lines.len());
    if let Some(cost) = &cost {
        summary = format!("{}\n{summary}", in_words(cost));
    }
    if args.out.is_some() {
        output::say(summary.trim_end())?;
    } else {
        output::print(written.as_bytes())?;
        output::warn(summary.trim_end());
    }
    Ok(ExitCode::SUCCESS)
}

/// What it took, for people.
fn in_words(cost: &model::Cost) -> String {
    let fallbacks: Vec<String> = cost
        .fallbacks
        .iter()
        .map(|(why, times)| format!("{why} {times}"))
        .collect();
    let fallbacks = match fallbacks.as_slice() {
        [] => "0".to_owned(),
        some => some.join(", "),
    };
    format!(
        "模型 model: {} · 提问 calls: {} · tokens: {} + {} · 费用 cost: {:.4} 元 · 改用关键词 fell back: {fallbacks}",
        cost.model, cost.calls, cost.prompt_tokens, cost.completion_tokens, cost.cost_cny
    )
}
