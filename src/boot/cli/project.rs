//! `iit project apply FILE | list | unmapped | map`.

mod names;

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
    jobs::common::cron,
    skills::schedule,
    store::{projects, skills},
    types::{
        dictionary::{Dictionary, Field, ValueType},
        near_miss::nearest,
        project::{EdcConfig, ProjectFault, ProjectFile},
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
    /// 无法对应到字段的名称 · names people used that no field answers to.
    Unmapped(names::Unmapped),
    /// 让一个名称代表一个字段 · make a name stand for a field.
    Map(names::Map),
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
    logging::one_shot();
    match args.command {
        Command::Apply { file } => {
            let project = read(&file)?;
            process::block_on(async move {
                let database = Database::open("project", 2).await?;
                let applied = async {
                    let changed = apply(&database.pool, &project).await?;
                    warn_of_missing_skills(&database.pool, &project).await?;
                    Ok::<_, Failure>(changed)
                };
                let applied = applied.await;
                database.close().await?;
                let changed = applied?;
                let word = if changed {
                    "已更新 applied"
                } else {
                    "没有变化 unchanged"
                };
                output::say(format_args!(
                    "项目 {}（{}）：{word}",
                    project.id, project.name
                ))?;
                Ok(ExitCode::SUCCESS)
            })
        }
        Command::Unmapped(args) => names::unmapped(&args),
        Command::Map(args) => names::map(&args),
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
                    output::say(table)?;
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
            error.utf8_error().valid_up_to() + 1
        ))
    })?;
    let mut project = ProjectFile::parse(&text).map_err(|fault| {
        // `file:line:column` is a place that editors open.
        let colon = match fault {
            ProjectFault::Toml { .. } => ":",
            _ => "：",
        };
        Failure::Usage(format!("{}{colon}{fault}", path.display()))
    })?;
    for (key, cron) in [
        ("weekly", &project.report.weekly),
        ("chronicle", &project.report.chronicle),
    ] {
        if let Some(Err(what)) = cron.as_deref().map(schedule::check) {
            return Err(Failure::Usage(format!(
                "{}：report.{key}: {what}；写作 分 时 日 月 周，如 \"0 9 * * 1\" (not a five-field cron expression that fires)",
                path.display()
            )));
        }
    }
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
        output::warn(format_args!("注意 warning: {warning}"));
    }
    for oddity in project.oddities() {
        output::warn(format_args!("注意 warning: {oddity}"));
    }
    check_names(project, &dictionary)?;
    let applied = async {
        let mut tx = pool.begin().await?;
        let changed = projects::apply(&mut tx, project, &actor()).await?;
        tx.commit().await?;
        Ok::<_, sqlx::Error>(changed)
    };
    let changed = applied.await.map_err(query_failed)?;
    if changed {
        cron::wake_schedulers(pool).await;
    }
    Ok(changed)
}

/// Every field that the project file names is one the study has, of a type that fits.
fn check_names(project: &ProjectFile, dictionary: &Dictionary) -> Result<(), Failure> {
    let refused =
        |key: &str, what: String| Err(Failure::Usage(format!("项目 {}：{key} {what}", project.id)));
    for (role, field) in &project.fields {
        if !field.is_empty() && !stands_for_something(field, dictionary) {
            let what = format!(
                "= \"{field}\" 不在数据字典中；改成字典里的字段名 (not in the data dictionary){}",
                hint(field, dictionary)
            );
            return refused(&format!("fields.{role}"), what);
        }
    }
    for (alias, field) in &project.aliases {
        if !stands_for_something(field, dictionary) {
            let what = format!(
                "= \"{field}\" 不在数据字典中；改成字典里的字段名 (not in the data dictionary){}",
                hint(field, dictionary)
            );
            return refused(&format!("aliases.\"{alias}\""), what);
        }
    }
    for visit in &project.visits {
        for (key, name) in [
            ("date_field", &visit.date_field),
            ("anchor_field", &visit.anchor_field),
        ] {
            let key = format!("访视 {} 的 {key}", visit.id);
            match dictionary.field(name).map(Field::value_type) {
                None => {
                    let what = format!(
                        "= \"{name}\" 不在数据字典中；改成字典里的字段名 (not in the data dictionary){}",
                        hint(name, dictionary)
                    );
                    return refused(&key, what);
                }
                Some(ValueType::Date | ValueType::DateTime) => {}
                Some(_) => {
                    let what = format!(
                        "= \"{name}\" 不是日期字段；改成有日期校验的字段 (no date field, name one with a date validation)"
                    );
                    return refused(&key, what);
                }
            }
        }
    }
    Ok(())
}

/// Whether `name` is a field, a form or its status, one column of a checkbox, or one of REDCap's own
/// pseudo-fields, which no dictionary lists.
fn stands_for_something(name: &str, dictionary: &Dictionary) -> bool {
    let is_form = |name: &str| dictionary.forms.iter().any(|form| form == name);
    let is_choice = || {
        let field = name
            .split_once("___")
            .and_then(|(field, _)| dictionary.field(field));
        field.is_some_and(|field| {
            field
                .choices
                .iter()
                .any(|choice| field.checkbox_column(&choice.code) == name)
        })
    };
    dictionary.field(name).is_some()
        || is_form(name)
        || name.strip_suffix("_complete").is_some_and(is_form)
        || PSEUDO_FIELDS.contains(&name)
        || is_choice()
}

/// Columns of REDCap's export that are no fields of the dictionary.
const PSEUDO_FIELDS: [&str; 4] = [
    "redcap_event_name",
    "redcap_repeat_instrument",
    "redcap_repeat_instance",
    "redcap_data_access_group",
];

fn hint(name: &str, dictionary: &Dictionary) -> String {
    let names = dictionary.fields().iter().map(|field| field.name.as_str());
    nearest(name, names.chain(PSEUDO_FIELDS)).map_or_else(String::new, |near| {
        format!("；是否想写 did you mean `{near}`?")
    })
}

/// Deviations are counted from the findings of skills; those may be applied after the project.
async fn warn_of_missing_skills(pool: &sqlx::PgPool, project: &ProjectFile) -> Result<(), Failure> {
    if project.report.deviation_skills.is_empty() {
        return Ok(());
    }
    let mut conn = pool.acquire().await.map_err(query_failed)?;
    let active = skills::active(&mut conn, &project.id, None)
        .await
        .map_err(query_failed)?;
    for wanted in &project.report.deviation_skills {
        if !active.iter().any(|skill| skill.skill_type == *wanted) {
            output::warn(format_args!(
                "注意 warning: report.deviation_skills 中的 `{wanted}` 还不是项目启用的技能；用 `iit skills apply --project {} PATH` 启用 (not an active skill yet)",
                project.id
            ));
        }
    }
    Ok(())
}
