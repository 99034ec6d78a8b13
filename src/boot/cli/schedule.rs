//! `iit schedule list | firings`: when skills run by themselves, and what became of it.

use std::process::ExitCode;

use chrono::{DateTime, Utc};
use clap::Subcommand;
use serde::Serialize;
use sqlx::PgPool;

use super::{
    exit::{CommandResult, Failure},
    output::{self, Format},
    pending::require_project,
};
use crate::{
    boot::{
        database::{Database, query_failed},
        logging, process,
    },
    store::schedules::{
        Disabled,
        listing::{self, FiringLine, Line},
    },
    types::{
        catch_up::{CatchUp, Policy},
        near_miss::nearest,
    },
};

/// Firings have these states.
const STATES: [&str; 6] = [
    "queued",
    "started",
    "skipped",
    "missed",
    "cancelled",
    "failed",
];

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// 定时技能：下一次、上一次、错过次数 · scheduled skills: next, last and missed times.
    List {
        /// 项目编号 · project id.
        #[arg(long)]
        project: String,
        /// 输出格式 · output format.
        #[arg(long, value_enum, default_value_t = Format::Table)]
        format: Format,
    },
    /// 每一次到时的结果，最新在前 · what became of each time, newest first.
    Firings {
        /// 项目编号 · project id.
        #[arg(long)]
        project: String,
        /// 只看这个技能 · only this skill.
        #[arg(long)]
        skill: Option<String>,
        /// 只看这种结果 · only: queued, started, skipped, missed, cancelled, failed.
        #[arg(long)]
        state: Option<String>,
        /// 最多多少条 · at most so many.
        #[arg(long, default_value_t = 50)]
        limit: u32,
        /// 输出格式 · output format.
        #[arg(long, value_enum, default_value_t = Format::Table)]
        format: Format,
    },
}

/// Runs the command.
///
/// # Errors
/// See [`Failure`].
pub fn run(args: Args) -> CommandResult {
    logging::one_shot();
    process::block_on(async move {
        let database = Database::open("schedule", 2).await?;
        let outcome = execute(&database, args.command).await;
        database.close().await?;
        outcome
    })
}

/// All schedules of a study.
///
/// # Errors
/// The database failed.
pub async fn of_project(pool: &PgPool, project: &str) -> Result<Vec<Line>, Failure> {
    let mut conn = pool.acquire().await.map_err(query_failed)?;
    listing::schedules(&mut conn, project)
        .await
        .map_err(query_failed)
}

/// One schedule in a line: when it comes next, or why it does not.
#[must_use]
pub fn in_words(line: &Line) -> String {
    let what = match (&line.disabled_by, line.next_fire_at) {
        (Some(reason), _) => format!("未启用：{} (disabled)", Disabled::label(reason)),
        (None, Some(next)) => format!("下次 next {}", local(next, &line.timezone)),
        (None, None) => "未启用 (disabled)".to_owned(),
    };
    format!("定时 schedule `{}`：{what}", line.cron)
}

async fn execute(database: &Database, command: Command) -> CommandResult {
    match command {
        Command::List { project, format } => {
            known(database, &project).await?;
            let lines = of_project(&database.pool, &project).await?;
            let rows: Vec<Row> = lines.iter().map(Row::of).collect();
            match format {
                Format::Json => output::json(&rows)?,
                Format::Csv => output::csv(&rows.into_iter().map(Flat::of).collect::<Vec<_>>())?,
                Format::Table => output::say(table(&lines))?,
            }
        }
        Command::Firings {
            project,
            skill,
            state,
            limit,
            format,
        } => {
            if let Some(state) = &state {
                known_state(state)?;
            }
            known(database, &project).await?;
            let mut conn = database.pool.acquire().await.map_err(query_failed)?;
            let (skill, state) = (skill.as_deref(), state.as_deref());
            let lines = listing::firings(&mut conn, &project, skill, state, i64::from(limit))
                .await
                .map_err(query_failed)?;
            let rows: Vec<FiringRow> = lines.iter().map(FiringRow::of).collect();
            match format {
                Format::Json => output::json(&rows)?,
                Format::Csv => output::csv(&rows)?,
                Format::Table => output::say(firings_table(&lines))?,
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn known(database: &Database, project: &str) -> Result<(), Failure> {
    let mut conn = database.pool.acquire().await.map_err(query_failed)?;
    require_project(&mut conn, project).await.map(|_| ())
}

fn known_state(state: &str) -> Result<(), Failure> {
    if STATES.contains(&state) {
        return Ok(());
    }
    let hint = nearest(state, STATES).map_or_else(
        || format!("可用 {}", STATES.join(", ")),
        |near| format!("是否想写 did you mean `{near}`?"),
    );
    Err(Failure::Usage(format!(
        "没有 `{state}` 这种结果；{hint} (no such state of a firing)"
    )))
}

/// A time as clocks of the study show it, with its zone.
fn local(time: DateTime<Utc>, zone: &str) -> String {
    let tz: chrono_tz::Tz = zone.parse().unwrap_or(chrono_tz::UTC);
    let offset = time.with_timezone(&tz).format("%Y-%m-%d %H:%M %:z");
    format!("{offset} {}", tz.name())
}

fn policy(catch_up: CatchUp) -> String {
    match catch_up.policy {
        Policy::None => "none".to_owned(),
        policy => format!("{} / {}", policy.as_str(), catch_up.window),
    }
}

fn state_label(state: &str) -> &'static str {
    match state {
        "queued" => "待启动 queued",
        "started" => "已启动 started",
        "skipped" => "已跳过 skipped",
        "missed" => "已错过 missed",
        "cancelled" => "已取消 cancelled",
        _ => "失败 failed",
    }
}

/// `已启动 started（补跑 late）→ 批次 done`
fn outcome(firing: &FiringLine) -> String {
    let mut text = state_label(&firing.state).to_owned();
    if firing.late {
        text.push_str("（补跑 late）");
    }
    if let Some(state) = &firing.batch_state {
        text.push_str(&format!(" → 批次 batch {state}"));
    }
    text
}

fn table(lines: &[Line]) -> comfy_table::Table {
    let mut table = output::table(&[
        "技能 skill",
        "定时 schedule",
        "补跑 catch-up",
        "下一次 next",
        "上一次 last",
        "结果 outcome",
        "错过 missed",
    ]);
    for line in lines {
        let next = match (&line.disabled_by, line.next_fire_at) {
            (None, Some(next)) => local(next, &line.timezone),
            (reason, _) => Disabled::label(reason.as_deref().unwrap_or_default()).to_owned(),
        };
        let last = line.last.as_ref();
        table.add_row([
            line.skill_type.clone(),
            line.cron.clone(),
            policy(line.catch_up),
            next,
            last.map(|last| local(last.fire_time, &last.timezone))
                .unwrap_or_default(),
            last.map(outcome).unwrap_or_default(),
            line.missed.to_string(),
        ]);
    }
    table
}

fn firings_table(lines: &[FiringLine]) -> comfy_table::Table {
    let mut table = output::table(&[
        "技能 skill",
        "时间 due",
        "结果 outcome",
        "任务 job",
        "批次 batch",
        "说明 note",
    ]);
    for line in lines {
        table.add_row([
            line.skill_type.clone(),
            local(line.fire_time, &line.timezone),
            outcome(line),
            line.job.map(|job| job.to_string()).unwrap_or_default(),
            line.batch
                .map(|batch| batch.to_string())
                .unwrap_or_default(),
            line.note.clone().unwrap_or_default(),
        ]);
    }
    table
}

/// A schedule for programs.
#[derive(Debug, Serialize)]
struct Row {
    skill: String,
    name: Option<String>,
    schedule: String,
    timezone: String,
    catchup: Policy,
    catchup_window: String,
    enabled: bool,
    disabled_by: Option<String>,
    next: Option<DateTime<Utc>>,
    next_local: Option<String>,
    last: Option<FiringRow>,
    missed: i64,
}

impl Row {
    fn of(line: &Line) -> Self {
        Self {
            skill: line.skill_type.clone(),
            name: line.name.clone(),
            schedule: line.cron.clone(),
            timezone: line.timezone.clone(),
            catchup: line.catch_up.policy,
            catchup_window: line.catch_up.window.to_string(),
            enabled: line.disabled_by.is_none(),
            disabled_by: line.disabled_by.clone(),
            next: line.next_fire_at,
            next_local: line.next_fire_at.map(|next| local(next, &line.timezone)),
            last: line.last.as_ref().map(FiringRow::of),
            missed: line.missed,
        }
    }
}

/// A firing for programs.
#[derive(Debug, Serialize)]
struct FiringRow {
    skill: String,
    due: DateTime<Utc>,
    due_local: String,
    state: String,
    late: bool,
    job: Option<i64>,
    batch: Option<String>,
    batch_state: Option<String>,
    note: Option<String>,
}

impl FiringRow {
    fn of(line: &FiringLine) -> Self {
        Self {
            skill: line.skill_type.clone(),
            due: line.fire_time,
            due_local: local(line.fire_time, &line.timezone),
            state: line.state.clone(),
            late: line.late,
            job: line.job,
            batch: line.batch.map(|batch| batch.to_string()),
            batch_state: line.batch_state.clone(),
            note: line.note.clone(),
        }
    }
}

/// A schedule for a spreadsheet, which has no rows within rows.
#[derive(Debug, Serialize)]
struct Flat {
    skill: String,
    name: Option<String>,
    schedule: String,
    timezone: String,
    catchup: Policy,
    catchup_window: String,
    enabled: bool,
    disabled_by: Option<String>,
    next: Option<DateTime<Utc>>,
    last: Option<DateTime<Utc>>,
    last_state: Option<String>,
    missed: i64,
}

impl Flat {
    fn of(row: Row) -> Self {
        let (last, last_state) = row.last.map(|last| (last.due, last.state)).unzip();
        Self {
            skill: row.skill,
            name: row.name,
            schedule: row.schedule,
            timezone: row.timezone,
            catchup: row.catchup,
            catchup_window: row.catchup_window,
            enabled: row.enabled,
            disabled_by: row.disabled_by,
            next: row.next,
            last,
            last_state,
            missed: row.missed,
        }
    }
}
