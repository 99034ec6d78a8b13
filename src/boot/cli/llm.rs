//! `iit llm check | spend | providers | close`: what the model can do, what it costs, and whether it is asked
//! at all.

mod check;

use std::process::ExitCode;

use clap::Subcommand;
use serde_json::json;

use super::{
    exit::CommandResult,
    output::{self, Format},
    pending::require_project,
    project::actor,
};
use crate::{
    boot::{
        database::{Database, query_failed},
        logging, process,
    },
    store::{
        audit::{self, Entry},
        llm::{providers, spend},
    },
};

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// 试用所配置的接口，不发送研究数据 · try what the configured endpoint can do; sends no study data.
    Check(check::Args),
    #[command(flatten)]
    Books(Books),
}

/// What the database knows of the model.
#[derive(Debug, Subcommand)]
enum Books {
    /// 每日用量 · what was used, by day and project.
    Spend {
        /// 只看这个项目 · this project only.
        #[arg(long)]
        project: Option<String>,
        /// 最近几天 · how many days back.
        #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(i32).range(1..=366))]
        days: i32,
        /// 输出格式 · output format.
        #[arg(long, value_enum, default_value_t = Format::Table)]
        format: Format,
    },
    /// 供应方与熔断状态 · providers that failed, and whether they are asked.
    Providers {
        /// 输出格式 · output format.
        #[arg(long, value_enum, default_value_t = Format::Table)]
        format: Format,
    },
    /// 问题解决后立即恢复使用 · ask again at once, after the bill is paid or the key is mended.
    Close,
}

/// `iit llm …`.
///
/// # Errors
/// See [`super::exit::Failure`].
pub fn run(args: Args) -> CommandResult {
    logging::one_shot();
    process::block_on(async move {
        match args.command {
            Command::Check(args) => check::run(args).await,
            Command::Books(books) => look_up(books).await,
        }
    })
}

async fn look_up(books: Books) -> CommandResult {
    let database = Database::open("llm", 2).await?;
    let outcome = match books {
        Books::Spend {
            project,
            days,
            format,
        } => spent(&database, project.as_deref(), days, format).await,
        Books::Providers { format } => list(&database, format).await,
        Books::Close => close(&database).await,
    };
    database.close().await?;
    outcome
}

async fn spent(
    database: &Database,
    project: Option<&str>,
    days: i32,
    format: Format,
) -> CommandResult {
    let mut conn = database.pool.acquire().await.map_err(query_failed)?;
    if let Some(project) = project {
        require_project(&mut conn, project).await?;
    }
    let rows = spend::lately(&mut conn, project, days)
        .await
        .map_err(query_failed)?;
    match format {
        Format::Json => output::json(&rows)?,
        Format::Csv => output::csv(&rows)?,
        Format::Table => {
            let mut table = output::table(&[
                "日期 day (UTC)",
                "项目 project",
                "提问 calls",
                "tokens",
                "在途 reserved",
                "费用 cost (元)",
                "可能已计费 maybe billed",
            ]);
            for row in rows {
                let project = match row.project.as_str() {
                    "" => "合计 all",
                    project => project,
                };
                table.add_row([
                    row.day.to_string(),
                    project.to_owned(),
                    row.calls.to_string(),
                    row.tokens.to_string(),
                    row.reserved_tokens.to_string(),
                    yuan(row.cost),
                    row.maybe_billed.to_string(),
                ]);
            }
            output::say(table)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Millionths of a yuan as yuan.
fn yuan(micro: i64) -> String {
    format!("{}.{:04}", micro / 1_000_000, micro % 1_000_000 / 100)
}

async fn list(database: &Database, format: Format) -> CommandResult {
    let mut conn = database.pool.acquire().await.map_err(query_failed)?;
    let rows = providers::all(&mut conn).await.map_err(query_failed)?;
    match format {
        Format::Json => output::json(&rows)?,
        Format::Csv => output::csv(&rows)?,
        Format::Table if rows.is_empty() => {
            output::say("没有失败过的供应方 (no provider has failed)")?;
        }
        Format::Table => {
            let mut table = output::table(&[
                "供应方 provider",
                "状态 state",
                "连续失败 failures",
                "下次试探 next probe",
                "原因 reason",
            ]);
            for row in rows {
                table.add_row([
                    row.provider,
                    row.state,
                    row.failures.to_string(),
                    row.open_until.map(|at| at.to_rfc3339()).unwrap_or_default(),
                    row.reason.unwrap_or_default(),
                ]);
            }
            output::say(table)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn close(database: &Database) -> CommandResult {
    let closed = async {
        let mut tx = database.pool.begin().await?;
        let closed = providers::close_all(&mut tx).await?;
        for provider in &closed {
            let entry = Entry {
                project: None,
                actor: &actor(),
                action: "llm_provider.closed",
                entity: "llm_provider",
                entity_id: provider,
                old: Some(json!({ "state": "open" })),
                new: Some(json!({ "state": "closed" })),
                reason: None,
            };
            audit::record(&mut tx, entry).await?;
        }
        tx.commit().await?;
        Ok::<_, sqlx::Error>(closed)
    };
    let closed = closed.await.map_err(query_failed)?;
    output::say(match closed.len() {
        0 => "没有停用的供应方 (no provider was held back)".to_owned(),
        _ => format!("已恢复 asked again: {}", closed.join(", ")),
    })?;
    Ok(ExitCode::SUCCESS)
}
