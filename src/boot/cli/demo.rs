//! `iit demo`: a sample study on the private Postgres, checked as a whole, then open for messages. It
//! needs no key and no network.
//!
//! There is one demo project a database. A demo started from another folder points it there and says so;
//! one that still runs from the earlier folder goes on, with the new folder's data.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use secrecy::{ExposeSecret, SecretString};
use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

use super::{
    batch,
    exit::{CommandResult, Failure},
    output, project, protocol, skills, summary,
};
use crate::{
    boot::{
        config::Config,
        database::Database,
        logging, postgres, process,
        wiring::{self, Parts, Wiring, common_parts},
    },
    jobs::{QUEUES, common::cron},
    queue::history,
    store::projects,
    types::{
        clock::Clock,
        project::{EdcConfig, ProjectFile},
    },
};

/// The sample project's id.
const PROJECT: &str = "demo";

/// Its protocol.
const PROTOCOL: &str = "protocol_V1.0.md";

/// The sample study as shipped, for when the command does not run in the repository.
const FILES: [(&str, &str); 10] = [
    ("project.toml", include_str!("../../../demo/project.toml")),
    (PROTOCOL, include_str!("../../../demo/protocol_V1.0.md")),
    (
        "study/metadata.csv",
        include_str!("../../../demo/study/metadata.csv"),
    ),
    (
        "study/records.csv",
        include_str!("../../../demo/study/records.csv"),
    ),
    (
        "study/repeating.csv",
        include_str!("../../../demo/study/repeating.csv"),
    ),
    (
        "study/project.json",
        include_str!("../../../demo/study/project.json"),
    ),
    (
        "skills/ae_dates.json",
        include_str!("../../../demo/skills/ae_dates.json"),
    ),
    (
        "skills/eligibility.json",
        include_str!("../../../demo/skills/eligibility.json"),
    ),
    (
        "skills/ethics.json",
        include_str!("../../../demo/skills/ethics.json"),
    ),
    (
        "skills/visit_window.json",
        include_str!("../../../demo/skills/visit_window.json"),
    ),
];

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// 质控一遍、打印结果后退出 · check the sample study, print the summary, exit.
    #[arg(long)]
    once: bool,
    /// 监听端口，优先于 IIT_BIND · port to listen on; beats IIT_BIND.
    #[arg(long)]
    port: Option<u16>,
}

/// Runs the command.
///
/// # Errors
/// See [`Failure`].
pub fn run(args: Args) -> CommandResult {
    if args.once {
        logging::one_shot();
    } else {
        logging::start("warn");
    }
    let mut config = Config::from_env()?;
    if let Some(port) = args.port {
        config.bind = SocketAddr::new(config.bind.ip(), port);
    }
    process::block_on(async move {
        let stop = process::stop_on_signals()?;
        output::say("准备数据库… · preparing the database…")?;
        let database = Arc::new(Database::open("demo", 20).await?);
        let told = output::say(format_args!(
            "数据库 database: {}",
            database.server.describe()
        ));
        let outcome = match told {
            Ok(()) => execute(&args, config, &database, &stop).await,
            Err(failure) => Err(failure),
        };
        stop.cancel();
        if let Ok(database) = Arc::try_unwrap(database) {
            database.close().await?;
        }
        outcome
    })
}

async fn execute(
    args: &Args,
    mut config: Config,
    database: &Arc<Database>,
    stop: &CancellationToken,
) -> CommandResult {
    let folder = folder()?;
    let file = project::read(&folder.join("project.toml"))?;
    if file.id != PROJECT {
        return Err(Failure::Usage(format!(
            "{} 的项目编号应为 `{PROJECT}`，现为 `{}` (the sample project must be called demo)",
            folder.join("project.toml").display(),
            file.id
        )));
    }
    let before = moved_from(&database.pool, &file).await;
    project::apply(&database.pool, &file).await?;
    if let Some(before) = before {
        output::say(format_args!(
            "注意：示例项目原用 {}，现改用 {}；同一数据库上若还有别的 demo 在运行，它此后检查的也是这里 (the demo project now points to this folder, for every demo on this database)",
            before.display(),
            data_of(&file).display()
        ))?;
    }
    skills::apply_to(&database.pool, &file, None, &folder.join("skills")).await?;
    let text = folder.join(PROTOCOL);
    if text.is_file() {
        protocol::Prepared::read(&text, Some("示例研究方案"), None)?
            .store(&database.pool, PROJECT)
            .await?;
    }
    output::say(format_args!("示例研究 sample study: {}", folder.display()))?;

    let token = config
        .api_token
        .get_or_insert_with(|| SecretString::from(uuid::Uuid::new_v4().simple().to_string()))
        .clone();
    let bind = config.bind;
    let working = CancellationToken::new();
    let mut parts = Parts::default();
    let wiring = Wiring::new(
        config,
        database.pool.clone(),
        Clock::system(),
        Some(PROJECT.to_owned()),
    )?;
    common_parts(&mut parts, &wiring, database, &working);
    let worker = wiring.worker(database.claims_pool("demo").await?);
    let listener = if args.once {
        None
    } else {
        Some(wiring::bind(bind).await?)
    };
    let (this, until) = (worker.clone(), working.clone());
    let queues = wiring.servable(&QUEUES);
    parts.add_endless(async move { this.run(&queues, until).await });
    let keep = wiring.config().job_history;
    parts.add_endless(history::run(database.pool.clone(), keep, working.clone()));
    let mut address = bind;
    if let Some(listener) = listener {
        address = listener.local_addr().unwrap_or(bind);
        let app = wiring.app(wiring.readiness(Some(&worker)));
        parts.add(wiring::serve(listener, app, working.clone()));
        let (pool, wake) = (database.pool.clone(), wiring.wake().clone());
        parts.add_endless(cron::run(pool, wake, cron::POLL, working.clone()));
    }

    let shown = async {
        let id = batch::request(&database.pool, PROJECT, None, None).await?;
        let finished = tokio::select! {
            finished = batch::wait(&database.pool, id) => finished?,
            () = stop.cancelled(), if !args.once => return Ok(()),
        };
        output::say(format_args!("\n{}", summary::summary(&finished)))?;
        if finished.batch.failed > 0 {
            return Err(Failure::Outside(format!(
                "{} 例未能检查 (records could not be checked)",
                finished.batch.failed
            )));
        }
        if !args.once {
            output::say(how_to_talk(address, &token, &data_of(&file)))?;
            stop.cancelled().await;
            output::say("正在停止… · stopping…")?;
        }
        Ok(())
    };
    let outcome = tokio::select! {
        outcome = shown => outcome,
        () = stop.cancelled(), if args.once => Err(Failure::Outside("已中断 (interrupted)".to_owned())),

    };
    working.cancel();
    let joined = parts.join(&working).await;
    outcome?;
    joined?;
    Ok(ExitCode::SUCCESS)
}

fn how_to_talk(address: SocketAddr, token: &SecretString, data: &Path) -> String {
    let token = token.expose_secret();
    let records = data.join("records.csv");
    let records = records.display();
    format!(
        r#"
正在监听 listening on http://{address}
发一条消息 send a message:
  curl -s -X POST http://{address}/api/v1/projects/{PROJECT}/messages \
    -H 'Authorization: Bearer {token}' -H 'Content-Type: application/json' \
    -d '{{"user":"demo_crc","text":"质控 ID=01-701-1015"}}'
看回复 read the reply (message_id 来自上一步 from above):
  curl -s http://{address}/api/v1/messages/<message_id> -H 'Authorization: Bearer {token}'
待处理清单 the ledger:
  iit pending list --project {PROJECT} --status open
企业微信 WeCom: 设置 .env.example 中的 WECOM_*，把应用的回调地址填为 <公网地址>/wecom/callback
  (set the WECOM_* variables and point the app's callback there)
改 {records} 里的一个值再质控一次，结果会跟着变 (change a cell and check again)。
按 Ctrl-C 停止；数据会保留 · Ctrl-C stops; data is kept."#
    )
}

/// The folder of the study's data.
fn data_of(file: &ProjectFile) -> PathBuf {
    match &file.edc {
        EdcConfig::RedcapFiles { dir } => dir.clone(),
        EdcConfig::Redcap { url, .. } => url.into(),
    }
}

/// Where the demo project's data was until now, if that was somewhere else.
async fn moved_from(pool: &PgPool, file: &ProjectFile) -> Option<PathBuf> {
    let mut conn = pool.acquire().await.ok()?;
    // A project that an older version stored may not be readable; it is about to be replaced.
    let before = projects::get(&mut conn, PROJECT).await.ok()??;
    Some(data_of(&before.file)).filter(|before| *before != data_of(file))
}

/// The sample study: `./demo` in the repository, else a copy under the data folder, made once.
fn folder() -> Result<PathBuf, Failure> {
    let here = Path::new("demo");
    if here.join("project.toml").is_file() {
        return Ok(std::path::absolute(here).unwrap_or_else(|_| here.to_owned()));
    }
    let copy = postgres::data_dir().join("demo");
    for (name, content) in FILES {
        let path = copy.join(name);
        if path.exists() {
            continue;
        }
        let written = path
            .parent()
            .map_or(Ok(()), std::fs::create_dir_all)
            .and_then(|()| std::fs::write(&path, content));
        written.map_err(|error| {
            Failure::Usage(format!(
                "示例研究写不到 {}：{error}；设置 IIT_DATA_DIR 到可写的目录 (can't write the sample study)",
                path.display()
            ))
        })?;
    }
    Ok(copy)
}
