//! `iit outbox list | resend`: messages to WeCom that did not surely arrive.

use std::process::ExitCode;

use clap::{Subcommand, ValueEnum};
use serde::Serialize;
use sqlx::PgConnection;

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
    jobs::deliver::{self, Resend},
    queue::Wake,
    store::{
        outbox::{self, Listed},
        wecom_gate::{self, ClosedGate},
    },
    types::{ids::OutboxId, text::ellipsis},
};

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// 未确认送达的消息 · messages that did not surely arrive, with the reason.
    List {
        /// 只看此状态，可重复；默认 unknown 与 failed · only these states; default unknown and failed.
        #[arg(long, value_enum)]
        state: Vec<State>,
        /// 输出格式 · output format.
        #[arg(long, value_enum, default_value_t = Format::Table)]
        format: Format,
    },
    /// 确认后重发一条；对方可能收到两次 · send one again on purpose; the person may then have it twice.
    Resend {
        /// 消息编号 · the message's id.
        id: String,
        /// 理由 · why.
        #[arg(long)]
        reason: Option<String>,
    },
}

/// States of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum State {
    /// 等待发送 · waits.
    Queued,
    /// 已送达企业微信 · WeCom has it.
    Sent,
    /// 不知是否送达 · may have arrived.
    Unknown,
    /// 未送达 · did not arrive.
    Failed,
}

impl State {
    fn stored(self) -> String {
        match self {
            Self::Queued => "queued",
            Self::Sent => "sent",
            Self::Unknown => "unknown",
            Self::Failed => "failed",
        }
        .to_owned()
    }
}

/// A message as a line of CSV.
#[derive(Serialize)]
struct Line {
    id: String,
    kind: String,
    project: Option<String>,
    recipient: String,
    state: String,
    error: Option<String>,
    parts: i64,
    parts_sent: i64,
    part_states: String,
    resends: i32,
    created_at: String,
    text: String,
}

/// Runs the command.
///
/// # Errors
/// See [`Failure`].
pub fn run(args: Args) -> CommandResult {
    logging::one_shot();
    process::block_on(async move {
        let database = Database::open("outbox", 2).await?;
        let outcome = match args.command {
            Command::List { state, format } => list(&database, &state, format).await,
            Command::Resend { id, reason } => resend(&database, &id, reason.as_deref()).await,
        };
        database.close().await?;
        outcome
    })
}

async fn list(database: &Database, states: &[State], format: Format) -> CommandResult {
    let states: Vec<String> = match states {
        [] => vec![State::Unknown.stored(), State::Failed.stored()],
        given => given.iter().map(|state| state.stored()).collect(),
    };
    let mut conn = database.pool.acquire().await.map_err(query_failed)?;
    let rows = outbox::list(&mut conn, &states, i64::MAX)
        .await
        .map_err(query_failed)?;
    match format {
        Format::Json => output::json(&rows)?,
        Format::Csv => output::csv(&rows.into_iter().map(line).collect::<Vec<_>>())?,
        Format::Table => {
            let mut table = output::table(&[
                "状态 state",
                "收件人 to",
                "时间 at (UTC)",
                "送达 parts",
                "内容 text",
                "原因 reason",
                "编号 id",
            ]);
            let count = rows.len();
            for row in rows {
                table.add_row([
                    row.state,
                    row.recipient,
                    row.created_at.format("%Y-%m-%d %H:%M:%S").to_string(),
                    format!(
                        "{}/{}\n{}",
                        row.parts_sent,
                        row.parts,
                        row.part_states.join("\n")
                    ),
                    ellipsis(&row.text.replace('\n', " "), 30),
                    ellipsis(&row.error.unwrap_or_default(), 80),
                    row.id.to_string(),
                ]);
            }
            output::say(format_args!("{table}\n共 {count} 条 · {count} rows"))?;
            say_closed(&mut conn).await?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn line(row: Listed) -> Line {
    Line {
        id: row.id.to_string(),
        kind: row.kind,
        project: row.project,
        recipient: row.recipient,
        state: row.state,
        error: row.error,
        parts: row.parts,
        parts_sent: row.parts_sent,
        part_states: row.part_states.join("; "),
        resends: row.resends,
        created_at: row.created_at.to_rfc3339(),
        text: row.text,
    }
}

async fn resend(database: &Database, id: &str, reason: Option<&str>) -> CommandResult {
    let outbox: OutboxId = id.parse().map_err(|_| {
        Failure::Usage(format!(
            "`{id}` 不是消息编号；见 `iit outbox list` (not a message's id)"
        ))
    })?;
    let done = async {
        let mut tx = database.pool.begin().await?;
        let done = deliver::resend(&mut tx, outbox, &actor(), reason).await?;
        tx.commit().await?;
        Ok::<_, anyhow::Error>(done)
    };
    match done
        .await
        .map_err(|error| query_failed(format!("{error:#}")))?
    {
        Resend::Queued { queue } => Wake::notify_once(&database.pool, &[queue]).await,
        Resend::NoSuch => {
            return Err(Failure::Usage(format!(
                "没有消息 {outbox}；编号见 `iit outbox list` (there is no such message)"
            )));
        }
        Resend::Not { state } => {
            return Err(Failure::Found(format!(
                "消息 {outbox} 的状态是 {state}，只有 unknown 和 failed 可以重发 (it is {state}; only unknown and failed messages can be sent again)"
            )));
        }
    }
    output::say(format_args!("消息 {outbox}：已重新排队 (queued again)"))?;
    Ok(ExitCode::SUCCESS)
}

/// One line for each app that WeCom refuses for now.
///
/// # Errors
/// The database failed, or nothing can be printed.
pub async fn say_closed(conn: &mut PgConnection) -> Result<(), Failure> {
    for gate in wecom_gate::closed(conn).await.map_err(query_failed)? {
        output::say(describe(&gate))?;
    }
    Ok(())
}

/// Why nothing is sent, since when, and when it is tried again.
#[must_use]
pub fn describe(gate: &ClosedGate) -> String {
    format!(
        "企业微信暂停发送 sending to WeCom is paused: {}；自 since {}，第 {} 次，再试 next try {} (UTC)",
        gate.reason,
        gate.closed_at.format("%Y-%m-%d %H:%M:%S"),
        gate.failures,
        gate.closed_until.format("%H:%M:%S"),
    )
}
