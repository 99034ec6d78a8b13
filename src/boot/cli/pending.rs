//! `iit pending list | decide`.

use std::process::ExitCode;

use clap::Subcommand;
use serde::Serialize;

use super::{
    exit::{CommandResult, Failure},
    output::{self, Format},
    project::actor,
};
use crate::{
    boot::{
        database::{Database, query_failed},
        logging, process,
    },
    jobs::review,
    queue::Wake,
    store::{
        ledger::{self, DecideError, Filter, PendingAction},
        projects,
    },
    types::{ids::PendingActionId, text::ellipsis},
};

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// 待处理清单 · the ledger of findings.
    List {
        /// 项目编号 · project id.
        #[arg(long)]
        project: String,
        /// open、answered、close_proposed、closed、dismissed
        #[arg(long)]
        status: Option<String>,
        /// 受试者编号 · record id.
        #[arg(long)]
        record: Option<String>,
        /// 规则编号 · rule.
        #[arg(long)]
        rule: Option<String>,
        /// 输出格式 · output format.
        #[arg(long, value_enum, default_value_t = Format::Table)]
        format: Format,
    },
    /// 作出决定，须写理由 · decide on one finding, with a reason.
    Decide {
        /// 待办编号 · the finding's id.
        id: String,
        /// confirm、dismiss、answer、close
        #[arg(long)]
        decision: String,
        /// 理由 · why.
        #[arg(long)]
        reason: String,
    },
}

/// A ledger row as a line of CSV.
#[derive(Serialize)]
struct Line {
    id: String,
    status: String,
    record: String,
    event: Option<String>,
    instance: Option<i32>,
    rule: String,
    field: String,
    outcome: String,
    severity: String,
    message: String,
    values: String,
    fingerprint: String,
    assignee: Option<String>,
    due: Option<String>,
    created_at: String,
    updated_at: String,
}

/// Runs the command.
///
/// # Errors
/// See [`Failure`].
pub fn run(args: Args) -> CommandResult {
    logging::start("warn");
    process::block_on(async move {
        let database = Database::open("pending", 2).await?;
        let outcome = match args.command {
            Command::List {
                project,
                status,
                record,
                rule,
                format,
            } => {
                let filter = Filter {
                    status: status.as_deref(),
                    record: record.as_deref(),
                    rule: rule.as_deref(),
                    after: None,
                    limit: i64::MAX,
                };
                list(&database, &project, &filter, format).await
            }
            Command::Decide {
                id,
                decision,
                reason,
            } => decide(&database, &id, &decision, &reason).await,
        };
        database.close().await?;
        outcome
    })
}

/// Exit code 2 unless the project exists.
///
/// # Errors
/// It does not, or the database failed.
pub async fn require_project(
    conn: &mut sqlx::PgConnection,
    project: &str,
) -> Result<projects::Project, Failure> {
    projects::get(conn, project)
        .await
        .map_err(query_failed)?
        .ok_or_else(|| {
            Failure::Usage(format!(
                "没有项目 `{project}`；用 `iit project apply FILE` 新建，`iit project list` 查看 (no such project)"
            ))
        })
}

async fn list(
    database: &Database,
    project: &str,
    filter: &Filter<'_>,
    format: Format,
) -> CommandResult {
    if let Some(status) = filter.status
        && !ledger::STATUSES.contains(&status)
    {
        return Err(Failure::Usage(format!(
            "没有状态 `{status}`；可用 {} (no such status)",
            ledger::STATUSES.join(", ")
        )));
    }
    let mut conn = database.pool.acquire().await.map_err(query_failed)?;
    require_project(&mut conn, project).await?;
    let rows = ledger::list(&mut conn, project, filter)
        .await
        .map_err(query_failed)?;
    match format {
        Format::Json => output::json(&rows)?,
        Format::Csv => output::csv(&rows.into_iter().map(line).collect::<Vec<_>>())?,
        Format::Table => {
            let mut table = output::table(&[
                "状态 status",
                "受试者 record",
                "规则 rule",
                "级别 severity",
                "问题 message",
                "编号 id",
            ]);
            let count = rows.len();
            for row in rows {
                table.add_row([
                    row.status,
                    place(&row.record, row.event.as_deref(), row.instance),
                    row.rule,
                    row.severity,
                    ellipsis(&row.message, 60),
                    row.id.to_string(),
                ]);
            }
            println!("{table}\n共 {count} 条 · {count} rows");
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// `01-701-1015 baseline #3`
fn place(record: &str, event: Option<&str>, instance: Option<i32>) -> String {
    let mut place = record.to_owned();
    if let Some(event) = event {
        place.push(' ');
        place.push_str(event);
    }
    if let Some(instance) = instance {
        place.push_str(&format!(" #{instance}"));
    }
    place
}

fn line(row: PendingAction) -> Line {
    Line {
        id: row.id.to_string(),
        status: row.status,
        record: row.record,
        event: row.event,
        instance: row.instance,
        rule: row.rule,
        field: row.field,
        outcome: row.outcome,
        severity: row.severity,
        message: row.message,
        values: serde_json::to_string(&row.values).unwrap_or_default(),
        fingerprint: row.fingerprint,
        assignee: row.assignee,
        due: row.due.map(|at| at.to_rfc3339()),
        created_at: row.created_at.to_rfc3339(),
        updated_at: row.updated_at.to_rfc3339(),
    }
}

async fn decide(database: &Database, id: &str, decision: &str, reason: &str) -> CommandResult {
    let action: PendingActionId = id.parse().map_err(|_| {
        Failure::Usage(format!(
            "`{id}` 不是待办编号；见 `iit pending list` (not a finding's id)"
        ))
    })?;
    let verdict = review::parse(decision).ok_or_else(|| {
        Failure::Usage(format!(
            "没有决定 `{decision}`；可用 confirm, dismiss, answer, close (no such decision)"
        ))
    })?;
    if reason.trim().is_empty() {
        return Err(Failure::Usage(
            "--reason 为空：每个决定都要写明理由 (every decision needs a reason)".to_owned(),
        ));
    }
    let decided = async {
        let mut tx = database.pool.begin().await?;
        let decided = review::decide(&mut tx, action, verdict, &actor(), reason.trim()).await?;
        tx.commit().await?;
        Ok::<_, anyhow::Error>(decided)
    };
    let decided = decided
        .await
        .map_err(|error| match error.downcast::<DecideError>() {
            Ok(error @ DecideError::Database(_)) => query_failed(error),
            Ok(error) => Failure::Found(error.to_string()),
            Err(error) => query_failed(format!("{error:#}")),
        })?;
    Wake::notify_once(&database.pool, decided.queue.as_slice()).await;
    println!("待办 {action}：{}", decided.status);
    Ok(ExitCode::SUCCESS)
}
