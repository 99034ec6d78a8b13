//! `iit doctor`: what was found, and what is missing.

use std::{path::Path, process::ExitCode, time::Instant};

use super::{
    exit::{CommandResult, Failure, found_something},
    output,
};
use crate::{
    adapters::edc::{EdcError, EdcPool},
    boot::{
        config::Config,
        database::{Database, query_failed},
        logging, process,
    },
    queue::depth,
    store::{outbox as store_outbox, projects, reader, wecom_gate},
};

/// Runs the command: exit code 1 when something needs a person. `env_file`: the `.env` file that was read.
///
/// # Errors
/// See [`Failure`].
pub fn run(env_file: Option<&Path>) -> CommandResult {
    logging::one_shot();
    let config = Config::from_env()?;
    let mut rows = settings(&config, env_file);
    process::block_on(async move {
        let begun = Instant::now();
        let database = Database::open("doctor", 2).await?;
        let took = begun.elapsed().as_millis();
        rows.push(Row::new(
            "数据库 database",
            Mark::Fine,
            format!("{}，{took} ms", database.server.describe()),
        ));
        let found = stored(&database).await;
        database.close().await?;
        rows.extend(found?);
        let mut table = output::table(&["检查 check", "结果 result", "说明 detail"]);
        let sound = rows.iter().all(|row| row.mark != Mark::Fault);
        for row in rows {
            table.add_row([row.check, row.mark.sign().to_owned(), row.detail]);
        }
        output::say(table)?;
        Ok(if sound {
            ExitCode::SUCCESS
        } else {
            found_something()
        })
    })
}

/// How a check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    /// As it should be.
    Fine,
    /// Not set up, which is allowed; the detail says what does not work for it.
    Absent,
    /// Works, but is odd.
    Odd,
    /// Needs a person; the only one that makes the exit code 1.
    Fault,
}

impl Mark {
    fn sign(self) -> &'static str {
        match self {
            Self::Fine => "✓",
            Self::Absent => "–",
            Self::Odd => "!",
            Self::Fault => "✗",
        }
    }
}

struct Row {
    check: String,
    mark: Mark,
    detail: String,
}

impl Row {
    fn new(check: impl Into<String>, mark: Mark, detail: impl Into<String>) -> Self {
        Self {
            check: check.into(),
            mark,
            detail: detail.into(),
        }
    }
}

/// What is set, and what does not work because it is not.
fn settings(config: &Config, env_file: Option<&Path>) -> Vec<Row> {
    let row = |check: &str, set: bool, with: &str, without: &str| match set {
        true => Row::new(check, Mark::Fine, with),
        false => Row::new(check, Mark::Absent, format!("未配置 not set：{without}")),
    };
    vec![
        match env_file {
            Some(path) => Row::new(
                "配置文件 .env",
                Mark::Fine,
                format!("已读取 read: {}", path.display()),
            ),
            None => Row::new(
                "配置文件 .env",
                Mark::Absent,
                "没有；只用环境变量 (none, settings come from the environment only)",
            ),
        },
        row(
            "接口令牌 IIT_API_TOKEN",
            config.api_token.is_some(),
            "已配置 set",
            "REST 接口拒绝所有调用 (the API refuses every call)",
        ),
        row(
            "企业微信 WECOM_*",
            config.wecom.is_some(),
            "已配置 set",
            "不能从企业微信发消息，也不会向其发送 (nobody can write from WeCom, nothing is sent to it)",
        ),
        row(
            "语言模型 LLM_*",
            config.llm.is_some(),
            "已配置 set",
            "软规则不执行，交人工复核 (soft rules are not run, they go to a person)",
        ),
    ]
}

/// What stands in the database and behind its projects.
async fn stored(database: &Database) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    let mut conn = database.pool.acquire().await.map_err(query_failed)?;
    let dead: i64 = depth::depth(&mut conn)
        .await
        .map_err(query_failed)?
        .iter()
        .filter(|depth| depth.state == "dead")
        .map(|depth| depth.jobs)
        .sum();
    rows.push(match dead {
        0 => Row::new("死任务 dead jobs", Mark::Fine, "0"),
        _ => Row::new(
            "死任务 dead jobs",
            Mark::Fault,
            format!(
                "{dead}；原因见 `iit queue dead`，重试用 `iit queue retry` (see why, try again)"
            ),
        ),
    });
    rows.extend(sending(&mut conn).await?);
    rows.push(reading(&database.pool).await);
    let edc = EdcPool::default();
    let projects = projects::list(&mut conn).await.map_err(query_failed)?;
    if projects.is_empty() {
        rows.push(Row::new(
            "项目 projects",
            Mark::Absent,
            "没有；用 `iit project apply FILE` 新建 (none yet)",
        ));
    }
    for line in projects {
        let Some(project) = projects::get(&mut conn, &line.id)
            .await
            .map_err(query_failed)?
        else {
            continue;
        };
        let name = format!("项目 project {}", line.id);
        let read = async {
            let source = edc.open(&project.file.edc)?;
            let ids = source.record_ids().await?;
            Ok::<_, EdcError>((ids.len(), source.warnings().await?))
        };
        match read.await {
            Ok((records, warnings)) => {
                rows.push(Row::new(
                    name.clone(),
                    Mark::Fine,
                    format!("{records} 例 records，{} 个技能 skills", line.skills),
                ));
                for warning in warnings {
                    rows.push(Row::new(name.clone(), Mark::Odd, warning.to_string()));
                }
            }
            Err(error) => rows.push(Row::new(name, Mark::Fault, error.to_string())),
        }
    }
    Ok(rows)
}

/// Whether the tools can read our tables without being able to write.
async fn reading(pool: &sqlx::PgPool) -> Row {
    const CHECK: &str = "只读角色 iit_reader";
    let reader = reader::pool(pool);
    let fault = reader::fault(&reader).await;
    reader.close().await;
    match fault {
        None => Row::new(CHECK, Mark::Fine, "可用 tools read with SELECT alone"),
        Some(why) => Row::new(
            CHECK,
            Mark::Fault,
            format!(
                "不可用，需要读台账的工具停用：{why}；请数据库管理员执行 CREATE ROLE iit_reader NOLOGIN; GRANT iit_reader TO 本程序的用户; 再以本程序的用户执行 SELECT iit_schema.iit_grant_reader(); (tools that read our tables are off until then)"
            ),
        ),
    }
}

/// Whether messages leave, and what became of those that did not surely arrive.
async fn sending(conn: &mut sqlx::PgConnection) -> Result<Vec<Row>, Failure> {
    const CHECK: &str = "消息发送 messages out";
    let mut rows: Vec<Row> = wecom_gate::closed(conn)
        .await
        .map_err(query_failed)?
        .iter()
        .map(|gate| {
            let mark = match gate.needs_person {
                true => Mark::Fault,
                false => Mark::Odd,
            };
            Row::new(CHECK, mark, super::outbox::describe(gate))
        })
        .collect();
    for (state, messages) in store_outbox::unsent(conn).await.map_err(query_failed)? {
        let said = match state.as_str() {
            "unknown" => "条不知是否送达 may have arrived",
            "failed" => "条未送达 did not arrive",
            _ => continue,
        };
        rows.push(Row::new(
            CHECK,
            Mark::Odd,
            format!("{messages} {said}；见 `iit outbox list`，重发用 `iit outbox resend` (see which, send again)"),
        ));
    }
    if rows.is_empty() {
        rows.push(Row::new(
            CHECK,
            Mark::Fine,
            "无异常 nothing held back or lost",
        ));
    }
    Ok(rows)
}
