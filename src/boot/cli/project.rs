//! `iit project apply FILE | list`.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Subcommand;

use super::{
    exit::{CommandResult, Failure},
    output::{self, Format},
};
use crate::{
    adapters::edc::EdcPool,
    boot::{
        database::{Database, query_failed},
        logging, process,
    },
    store::projects,
    types::project::{EdcConfig, ProjectFile},
};

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// 新建或更新项目，可重复执行 · create or update a project from its TOML file; idempotent.
    Apply {
        /// 项目文件 · the project file.
        file: PathBuf,
    },
    /// 列出项目 · list projects.
    List {
        /// 输出格式 · output format.
        #[arg(long, value_enum, default_value_t = Format::Table)]
        format: Format,
    },
}

/// Who acts from the command line, for the audit log.
#[must_use]
pub fn actor() -> String {
    let user = std::env::var("USER").unwrap_or_else(|_| "unknown".to_owned());
    format!("cli:{user}")
}

/// Runs the command.
///
/// # Errors
/// See [`Failure`].
pub fn run(args: Args) -> CommandResult {
    logging::start("warn");
    match args.command {
        Command::Apply { file } => {
            let project = read(&file)?;
            process::block_on(async move {
                let database = Database::open("project", 2).await?;
                let applied = apply(&database.pool, &project).await;
                database.close().await?;
                let changed = applied?;
                let word = if changed {
                    "已更新 applied"
                } else {
                    "没有变化 unchanged"
                };
                println!("项目 {}（{}）：{word}", project.id, project.name);
                Ok(ExitCode::SUCCESS)
            })
        }
        Command::List { format } => process::block_on(async move {
            let database = Database::open("project", 2).await?;
            let listed = async { projects::list(&mut *database.pool.acquire().await?).await }.await;
            database.close().await?;
            let projects = listed.map_err(query_failed)?;
            match format {
                Format::Json => output::json(&projects)?,
                Format::Csv => output::csv(&projects)?,
                Format::Table => {
                    let mut table = output::table(&[
                        "编号 id",
                        "名称 name",
                        "时区 zone",
                        "技能 skills",
                        "成员 members",
                    ]);
                    for p in projects {
                        table.add_row([
                            p.id,
                            p.name,
                            p.timezone,
                            p.skills.to_string(),
                            p.members.to_string(),
                        ]);
                    }
                    println!("{table}");
                }
            }
            Ok(ExitCode::SUCCESS)
        }),
    }
}

/// Reads a project file and makes its folder absolute.
///
/// # Errors
/// Exit code 2, naming the file, the key or line, and what to write.
pub fn read(path: &Path) -> Result<ProjectFile, Failure> {
    let bytes = std::fs::read(path).map_err(|error| {
        Failure::Usage(format!(
            "读不了项目文件 {}：{error} (can't read the project file)",
            path.display()
        ))
    })?;
    let text = String::from_utf8(bytes).map_err(|error| {
        Failure::Usage(format!(
            "{}：第 {} 字节起不是 UTF-8，请另存为 UTF-8 (not UTF-8, save it as UTF-8)",
            path.display(),
            error.utf8_error().valid_up_to()
        ))
    })?;
    let mut project = ProjectFile::parse(&text)
        .map_err(|fault| Failure::Usage(format!("{}：{fault}", path.display())))?;
    if let EdcConfig::RedcapFiles { dir } = &mut project.edc {
        let base = path.parent().unwrap_or(Path::new("."));
        let joined = base.join(&dir);
        *dir = std::path::absolute(&joined).unwrap_or(joined);
    }
    Ok(project)
}

/// Checks that the data source can be read, says what is odd about it on stderr, and stores the
/// project. Returns whether anything changed.
///
/// # Errors
/// Exit code 2 for data that can't be read, 3 for a source or database that does not answer.
pub async fn apply(pool: &sqlx::PgPool, project: &ProjectFile) -> Result<bool, Failure> {
    let faulty = |error: crate::adapters::edc::EdcError| {
        let text = format!(
            "项目 {} 的数据读不了 (its data can't be read): {error}",
            project.id
        );
        if error.is_retryable() {
            Failure::Outside(text)
        } else {
            Failure::Usage(text)
        }
    };
    let edc = EdcPool::default().open(&project.edc).map_err(faulty)?;
    let dictionary = edc.dictionary().await.map_err(faulty)?;
    for warning in edc.warnings().await.map_err(faulty)? {
        eprintln!("注意 warning: {warning}");
    }
    for (role, field) in &project.fields {
        // The site may be REDCap's own pseudo-field, which no dictionary lists.
        let known = field.is_empty()
            || dictionary.field(field).is_some()
            || dictionary.forms.contains(field)
            || field.starts_with("redcap_");
        if !known {
            return Err(Failure::Usage(format!(
                "项目 {}：fields.{role} = \"{field}\" 不在数据字典中；改成字典里的字段名 (not in the data dictionary)",
                project.id
            )));
        }
    }
    for visit in &project.visits {
        for field in [&visit.date_field, &visit.anchor_field] {
            if dictionary.field(field).is_none() {
                return Err(Failure::Usage(format!(
                    "项目 {}：访视 {} 的 `{field}` 不在数据字典中 (a visit's field is not in the data dictionary)",
                    project.id, visit.id
                )));
            }
        }
    }
    let applied = async {
        let mut tx = pool.begin().await?;
        let changed = projects::apply(&mut tx, project, &actor()).await?;
        tx.commit().await?;
        Ok::<_, sqlx::Error>(changed)
    };
    applied.await.map_err(query_failed)
}
