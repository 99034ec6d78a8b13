//! `iit project unmapped | map`: names that people use and no field answers to.

use std::process::ExitCode;

use clap::Args;

use super::{actor, hint, stands_for_something};
use crate::{
    adapters::edc::EdcPool,
    boot::{
        cli::{
            exit::{CommandResult, Failure},
            output::{self, Format},
        },
        database::{Database, query_failed},
        process,
    },
    store::{
        projects,
        unmapped_names::{self, UnmappedName},
    },
    types::dictionary::Dictionary,
};

/// `iit project unmapped`
#[derive(Debug, Args)]
pub struct Unmapped {
    /// 只看这个项目 · only this project.
    #[arg(long)]
    project: Option<String>,
    /// 输出格式 · output format.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

/// `iit project map`
#[derive(Debug, Args)]
pub struct Map {
    /// 项目 · the project.
    #[arg(long)]
    project: String,
    /// 人们使用的名称 · the name people use.
    alias: String,
    /// 数据字典中的字段名 · the field it stands for.
    field: String,
}

/// Lists the names nobody could map.
///
/// # Errors
/// See [`Failure`].
pub fn unmapped(args: &Unmapped) -> CommandResult {
    process::block_on(async {
        let database = Database::open("project", 2).await?;
        let listed = async {
            unmapped_names::list(
                &mut *database.pool.acquire().await?,
                args.project.as_deref(),
            )
            .await
        };
        let listed = listed.await;
        database.close().await?;
        show(listed.map_err(query_failed)?, args.format)?;
        Ok(ExitCode::SUCCESS)
    })
}

fn show(names: Vec<UnmappedName>, format: Format) -> Result<(), Failure> {
    match format {
        Format::Json => output::json(&names),
        Format::Csv => output::csv(&names),
        Format::Table => {
            let mut table = output::table(&[
                "项目 project",
                "名称 name",
                "次数 count",
                "最早 first",
                "最近 last",
            ]);
            for name in names {
                table.add_row([
                    name.project,
                    name.name,
                    name.count.to_string(),
                    name.first_seen.format("%Y-%m-%d %H:%M").to_string(),
                    name.last_seen.format("%Y-%m-%d %H:%M").to_string(),
                ]);
            }
            output::say(table)
        }
    }
}

/// Makes a name stand for a field.
///
/// # Errors
/// See [`Failure`].
pub fn map(args: &Map) -> CommandResult {
    process::block_on(async {
        let database = Database::open("project", 2).await?;
        let mapped = map_in(&database, args).await;
        database.close().await?;
        let word = if mapped? {
            "已更新 mapped"
        } else {
            "没有变化 unchanged"
        };
        output::say(format_args!(
            "项目 {}：{} = {}，{word}",
            args.project,
            args.alias.trim(),
            args.field
        ))?;
        Ok(ExitCode::SUCCESS)
    })
}

async fn map_in(database: &Database, args: &Map) -> Result<bool, Failure> {
    let mut conn = database.pool.acquire().await.map_err(query_failed)?;
    let project = projects::get(&mut conn, &args.project)
        .await
        .map_err(query_failed)?
        .ok_or_else(|| {
            Failure::Usage(format!(
                "没有项目 {}；用 `iit project list` 查看 (no such project)",
                args.project
            ))
        })?;
    let faulty = |error: crate::adapters::edc::EdcError| {
        Failure::Outside(format!(
            "项目 {} 的数据字典读不了 (its dictionary can't be read): {error}",
            args.project
        ))
    };
    let edc = EdcPool::default().open(&project.file.edc).map_err(faulty)?;
    let dictionary = edc.dictionary().await.map_err(faulty)?;
    let alias = checked(args, &dictionary)?;
    let written = async {
        let mut tx = database.pool.begin().await?;
        let changed =
            unmapped_names::map(&mut tx, &args.project, alias, &args.field, &actor()).await?;
        tx.commit().await?;
        Ok::<_, sqlx::Error>(changed)
    };
    written.await.map_err(query_failed)
}

fn checked<'a>(args: &'a Map, dictionary: &Dictionary) -> Result<&'a str, Failure> {
    let alias = args.alias.trim();
    if alias.is_empty() || alias.contains('\0') {
        return Err(Failure::Usage(
            "名称为空；写上人们使用的名称 (the name is empty)".to_owned(),
        ));
    }
    if stands_for_something(alias, dictionary) {
        return Err(Failure::Usage(format!(
            "“{alias}”本身就是数据字典中的名称，别名不会生效；换一个名称 (a field of that name exists and comes first)"
        )));
    }
    if !stands_for_something(&args.field, dictionary) {
        return Err(Failure::Usage(format!(
            "“{}”不在数据字典中；改成字典里的字段名 (not in the data dictionary){}",
            args.field,
            hint(&args.field, dictionary)
        )));
    }
    Ok(alias)
}
