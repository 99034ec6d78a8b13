//! `iit doctor`: what was found, and what is missing.

use std::{process::ExitCode, time::Instant};

use super::{
    exit::{CommandResult, found_something},
    output,
};
use crate::{
    adapters::edc::EdcPool,
    boot::{
        config::Config,
        database::{Database, query_failed},
        logging, process,
    },
    queue::depth,
    store::projects,
};

/// Runs the command: exit code 1 when something needs a person.
///
/// # Errors
/// See [`super::exit::Failure`].
pub fn run() -> CommandResult {
    logging::start("warn");
    let config = Config::from_env()?;
    process::block_on(async move {
        let begun = Instant::now();
        let database = Database::open("doctor", 2).await?;
        let took = begun.elapsed();
        let checked = check(&config, &database, took.as_millis()).await;
        database.close().await?;
        let (rows, sound) = checked?;
        let mut table = output::table(&["检查 check", "结果 result", "说明 detail"]);
        for (name, fine, detail) in rows {
            table.add_row([name, if fine { "✓" } else { "✗" }.to_owned(), detail]);
        }
        println!("{table}");
        Ok(if sound {
            ExitCode::SUCCESS
        } else {
            found_something()
        })
    })
}

type Rows = Vec<(String, bool, String)>;

async fn check(
    config: &Config,
    database: &Database,
    ms: u128,
) -> Result<(Rows, bool), super::exit::Failure> {
    let mut rows: Rows = Vec::new();
    rows.push((
        "数据库 database".to_owned(),
        true,
        format!("{}，{ms} ms", database.server.describe()),
    ));
    let on_off = |set: bool| {
        if set {
            "已配置 set"
        } else {
            "未配置 not set"
        }
    };
    rows.push((
        "接口令牌 IIT_API_TOKEN".to_owned(),
        true,
        on_off(config.api_token.is_some()).to_owned(),
    ));
    rows.push((
        "企业微信 WECOM_*".to_owned(),
        true,
        on_off(config.wecom.is_some()).to_owned(),
    ));
    let mut conn = database.pool.acquire().await.map_err(query_failed)?;
    let dead: i64 = depth::depth(&mut conn)
        .await
        .map_err(query_failed)?
        .iter()
        .filter(|depth| depth.state == "dead")
        .map(|depth| depth.jobs)
        .sum();
    rows.push((
        "死任务 dead jobs".to_owned(),
        dead == 0,
        format!("{dead}（`iit queue dead`）"),
    ));
    let edc = EdcPool::default();
    for line in projects::list(&mut conn).await.map_err(query_failed)? {
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
            Ok::<_, crate::adapters::edc::EdcError>((ids.len(), source.warnings().await?))
        };
        match read.await {
            Ok((records, warnings)) => {
                rows.push((
                    name.clone(),
                    true,
                    format!("{records} 例，{} 个技能", line.skills),
                ));
                for warning in warnings {
                    rows.push((name.clone(), true, format!("注意：{warning}")));
                }
            }
            Err(error) => rows.push((name, false, error.to_string())),
        }
    }
    let sound = rows.iter().all(|(_, fine, _)| *fine);
    Ok((rows, sound))
}
