//! `iit llm check`: what the configured endpoint can do, and what that means for a study.

use std::process::ExitCode;

use serde::Serialize;

use crate::{
    adapters::llm::{
        LlmClient, LlmConfig,
        probe::{self, Finding, Outcome, Skill},
    },
    boot::cli::{
        exit::{CommandResult, Failure, found_something},
        output::{self, Format},
    },
};

/// Arguments.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// 输出格式 · output format.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// 同 --format json · the same as --format json.
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

#[derive(Serialize)]
struct Report<'a> {
    provider: String,
    model: &'a str,
    profile: &'a str,
    checks: &'a [Finding],
}

/// Tries the endpoint of the environment. Exit code 1 when not even plain text works.
///
/// # Errors
/// No model is configured, or a setting is wrong.
pub(super) async fn run(args: Args) -> CommandResult {
    let config = LlmConfig::from_lookup(|name| std::env::var(name).ok())
        .map_err(|error| Failure::Usage(error.to_string()))?
        .ok_or_else(|| {
            Failure::Usage(
                "未配置大模型：请设置 LLM_BASE_URL 与 LLM_MODEL (no model is configured: set LLM_BASE_URL and LLM_MODEL)"
                    .to_owned(),
            )
        })?;
    let client = LlmClient::new(&config).map_err(|error| {
        Failure::Usage(format!(
            "大模型客户端无法建立 the model client can't be built: {error:#}"
        ))
    })?;
    let findings = probe::probe(&client).await;
    let report = Report {
        provider: config.provider(),
        model: client.model(),
        profile: &client.profile().name,
        checks: &findings,
    };
    let format = if args.json { Format::Json } else { args.format };
    match format {
        Format::Json => output::json(&report)?,
        Format::Csv => output::csv(&findings)?,
        Format::Table => print(&report)?,
    }
    let text = findings.iter().find(|finding| finding.skill == Skill::Text);
    Ok(match text.map(|finding| finding.outcome) {
        Some(Outcome::Works) => ExitCode::SUCCESS,
        _ => found_something(),
    })
}

fn print(report: &Report<'_>) -> Result<(), Failure> {
    output::say(format!(
        "{} · 模型 model: {} · 配置 profile: {}",
        report.provider, report.model, report.profile
    ))?;
    let mut table = output::table(&["项目 what", "结果 result", "ms", "含义 meaning"]);
    for finding in report.checks {
        let meaning = meaning(finding.skill, finding.outcome);
        let meaning = match &finding.detail {
            Some(detail) if meaning.is_empty() => detail.clone(),
            Some(detail) => format!("{meaning}\n{detail}"),
            None => meaning.to_owned(),
        };
        let ms = match finding.outcome {
            Outcome::Skipped => String::new(),
            _ => format!("{:>6}", finding.ms),
        };
        table.add_row([
            skill(finding.skill).to_owned(),
            outcome(finding.outcome).to_owned(),
            ms,
            meaning,
        ]);
    }
    output::say(table)
}

fn skill(skill: Skill) -> &'static str {
    match skill {
        Skill::Text => "纯文本 text",
        Skill::Json => "JSON 模式 JSON mode",
        Skill::JsonSchema => "JSON schema",
        Skill::ToolCall => "工具调用 tool call",
        Skill::ToolAnswer => "工具结果 tool answer",
        Skill::Image => "图片 image",
    }
}

fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Works => "可用 works",
        Outcome::Wrong => "不符 wrong",
        Outcome::Refused => "拒绝 refused",
        Outcome::Failed => "失败 failed",
        Outcome::Skipped => "未试 not tried",
    }
}

/// What it means for the work of the agent.
fn meaning(skill: Skill, outcome: Outcome) -> &'static str {
    match (skill, outcome) {
        (_, Outcome::Skipped) => "",
        (Skill::Text, Outcome::Works) => "可以使用 (usable)",
        (Skill::Text, _) => {
            "不可使用，软规则与问答将转人工 (not usable: what needs a model goes to people)"
        }
        (Skill::Json, Outcome::Works) => {
            "软规则与意图识别可用 (soft rules and intents can be asked)"
        }
        (Skill::Json, Outcome::Wrong) => {
            "不是纯 JSON，答复会被退回更正 (an answer of the wrong form is told so and asked for again)"
        }
        (Skill::Json, _) => {
            "改以普通文本提问，答复照样校验 (asked as plain text instead, and checked all the same)"
        }
        (Skill::JsonSchema, Outcome::Works) => "答复受格式约束 (answers are held to the schema)",
        (Skill::JsonSchema, Outcome::Wrong) => {
            "格式约束未起作用，答复照样校验 (the schema is ignored; answers are checked all the same)"
        }
        (Skill::JsonSchema, _) => {
            "改以普通文本提问，答复照样校验 (asked as plain text instead, and checked all the same)"
        }
        (Skill::ToolCall, Outcome::Works) => "会调用工具 (it calls tools)",
        (Skill::ToolCall, _) => {
            "不会正确调用工具，问答不可靠 (it does not call tools rightly: don't rely on it for questions about data)"
        }
        (Skill::ToolAnswer, Outcome::Works) => "能使用工具结果 (it goes on from what tools say)",
        (Skill::ToolAnswer, _) => {
            "不会使用工具结果，问答不可靠 (it can't go on from what tools say: don't rely on it for questions about data)"
        }
        (Skill::Image, Outcome::Works) => "能看图 (it sees pictures)",
        (Skill::Image, _) => {
            "看不了图，勿用于识别化验单 (it does not see pictures: not for lab sheets)"
        }
    }
}
