//! `iit runs show ID`: what a run did, as people read it: thoughts, calls, what they gave, tokens and cost.

use std::process::ExitCode;

use clap::Subcommand;
use serde_json::{Value, json};

use super::{
    exit::{CommandResult, Failure},
    output::{self, Format},
};
use crate::{
    boot::{
        database::{Database, query_failed},
        logging, process,
    },
    store::{
        run_view::{self, CallView, Line, RunView},
        runs::{self, Step},
    },
    types::{ids::RunId, text::ellipsis},
};

/// Longest row of the transcript in the table form; JSON has them whole.
const LONGEST: usize = 1200;

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// 一次运行的经过 · what a run said, called, saw and cost.
    Show {
        /// 运行编号 · the run's id.
        id: String,
        /// 输出格式 · output format.
        #[arg(long, value_enum, default_value_t = Format::Table)]
        format: Format,
    },
}

/// `iit runs …`.
///
/// # Errors
/// See [`super::exit::Failure`].
pub fn run(args: Args) -> CommandResult {
    let Command::Show { id, format } = args.command;
    let id: RunId = id.parse().map_err(|_| {
        Failure::Usage(format!(
            "`{id}` 不是运行编号；编号见接口 /api/v1/messages/… 的 runs 或待处理清单 (no run id)"
        ))
    })?;
    logging::one_shot();
    process::block_on(async move {
        let database = Database::open("runs", 1).await?;
        let outcome = show(&database, id, format).await;
        database.close().await?;
        outcome
    })
}

async fn show(database: &Database, id: RunId, format: Format) -> CommandResult {
    let mut conn = database.pool.acquire().await.map_err(query_failed)?;
    let run = run_view::get(&mut conn, id).await.map_err(query_failed)?;
    let Some(run) = run else {
        return Err(Failure::Usage(format!("没有运行 {id} (no such run)")));
    };
    let steps = runs::steps(&mut conn, id).await.map_err(query_failed)?;
    let said = run_view::transcript(&mut conn, id)
        .await
        .map_err(query_failed)?;
    let calls = run_view::calls(&mut conn, id).await.map_err(query_failed)?;
    drop(conn);
    match format {
        Format::Json => {
            output::json(&json!({ "run": run, "said": said, "calls": calls }))?;
        }
        Format::Csv => output::csv(&said)?,
        Format::Table => output::say(told(&run, &steps, &said, &calls))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The run as people read it.
fn told(run: &RunView, steps: &[Step], said: &[Line], calls: &[CallView]) -> String {
    let mut lines = vec![format!(
        "运行 {}  {}  项目 {}  状态 {}  结果 {}",
        run.id,
        run.kind,
        run.project,
        run.status,
        run.final_state.as_deref().unwrap_or("—"),
    )];
    lines.push(format!(
        "步数 {}  tokens {}  费用 {} 元{}",
        run.step_no,
        run.tokens,
        yuan(run.cost),
        run.error
            .as_deref()
            .map_or_else(String::new, |error| format!("  错误 {error}")),
    ));
    let last = said.iter().map(|line| line.step_no).max().unwrap_or(0);
    for no in 0..=last.max(run.step_no - 1) {
        let step = steps.iter().find(|step| step.no == no);
        let outcome = step.map_or("（未提交）", |step| step.outcome.as_str());
        let note = step.and_then(|step| step.note.as_deref()).unwrap_or("");
        lines.push(format!("\n── 第 {no} 步 · {outcome} {note}"));
        for call in calls.iter().filter(|call| call.step_no == no) {
            lines.push(spent(call));
        }
        for line in said.iter().filter(|line| line.step_no == no) {
            lines.extend(spoken(line));
        }
    }
    lines.join("\n")
}

fn spent(call: &CallView) -> String {
    let count = |tokens: Option<i32>| tokens.map_or_else(|| "?".to_owned(), |n| n.to_string());
    format!(
        "   [模型 {} 第 {} 次 {}] tokens {}+{}  费用 {} 元{}{}",
        call.model,
        call.ask,
        call.state,
        count(call.prompt_tokens),
        count(call.completion_tokens),
        call.cost.map_or_else(|| "?".to_owned(), yuan),
        if call.maybe_billed {
            "  可能已计费"
        } else {
            ""
        },
        call.error
            .as_deref()
            .map_or_else(String::new, |error| format!("  {error}")),
    )
}

/// One row, in the words of people.
fn spoken(line: &Line) -> Vec<String> {
    let short = |text: &str| ellipsis(text.trim(), LONGEST).replace('\n', "\n     ");
    let parsed: Value = serde_json::from_str(&line.content).unwrap_or_default();
    let text = |name: &str| parsed.get(name).and_then(Value::as_str).unwrap_or("");
    match line.kind.as_str() {
        "calls" => {
            let mut lines = Vec::new();
            for (label, name) in [("思考", "thinking"), ("说明", "text")] {
                if !text(name).trim().is_empty() {
                    lines.push(format!("   {label}：{}", short(text(name))));
                }
            }
            let calls = parsed.get("calls").and_then(Value::as_array);
            for call in calls.into_iter().flatten() {
                let part = |name: &str| call.get(name).and_then(Value::as_str).unwrap_or("");
                lines.push(format!(
                    "   调用：{} {}",
                    part("name"),
                    short(part("arguments"))
                ));
            }
            lines
        }
        "result" => {
            let ok = parsed.get("ok").and_then(Value::as_bool).unwrap_or(false);
            let mark = if ok { "结果" } else { "失败" };
            vec![format!(
                "   {mark}：{} {}",
                text("name"),
                short(text("content"))
            )]
        }
        "question" => vec![format!("   问题：{}", short(text("text")))],
        kind => {
            let label = match kind {
                "system" => "系统",
                "history" => "此前对话",
                "instruction" => "核查要求",
                "data" => "数据",
                "reply" => "回答",
                "correction" => "更正",
                "note" => "发出",
                other => other,
            };
            vec![format!("   {label}：{}", short(&line.content))]
        }
    }
}

fn yuan(micro: i64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "costs are far below 2^52")]
    let yuan = micro as f64 / 1e6;
    format!("{yuan:.4}")
}
