//! `iit protocol add FILE | list | remove NAME | search QUERY`: what the study has written down, for answers
//! that cite it.

use std::{
    io::IsTerminal,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use clap::Subcommand;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use regex::Regex;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::{
    exit::{CommandResult, Failure},
    output::{self, Format},
    pending::require_project,
    project::actor,
};
use crate::{
    adapters::{
        dify::DifyClient,
        documents::{self, MOST_BYTES},
    },
    boot::{
        config::Config,
        database::{Database, query_failed},
        logging, process,
    },
    engines::protocol::passages,
    store::{
        projects::{self, Project},
        protocol::{self, Added, NewDocument},
    },
    tools::search_protocol::{self, MOST},
    types::protocol::Manuscript,
};

/// Longest name of a document, in characters.
const LONGEST_NAME: usize = 100;

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// 入库一份文件；同名文件成为新版本 · store a document; one of the same name becomes a new version.
    Add {
        /// .md、.txt、.pdf 或 .docx · Markdown, text, PDF or DOCX.
        file: PathBuf,
        /// 项目编号；只有一个项目时可省略 · project id; may be left out when there is only one.
        #[arg(long)]
        project: Option<String>,
        /// 名称，引用时用；默认取文件名（去掉版本号）· what answers call it; by default the file's name without its version.
        #[arg(long)]
        name: Option<String>,
        /// 文件自己的版本号，如 V2.0；默认取自文件名 · the document's own version; by default from the file's name.
        #[arg(long)]
        label: Option<String>,
        /// 输出格式 · output format.
        #[arg(long, value_enum, default_value_t = Format::Table)]
        format: Format,
    },
    /// 列出文件 · list documents.
    List {
        /// 项目编号 · project id.
        #[arg(long)]
        project: Option<String>,
        /// 输出格式 · output format.
        #[arg(long, value_enum, default_value_t = Format::Table)]
        format: Format,
    },
    /// 不再检索一份文件；各版本仍保留 · take a document out of the search; its versions are kept.
    Remove {
        /// 名称 · its name.
        name: String,
        /// 项目编号 · project id.
        #[arg(long)]
        project: Option<String>,
    },
    /// 检索，与回答问题时所用的相同 · search as answers do.
    Search {
        /// 要查的内容 · what to look for.
        query: String,
        /// 项目编号 · project id.
        #[arg(long)]
        project: Option<String>,
        /// 最多几段 · passages at most.
        #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..=i64::try_from(MOST).unwrap_or(8)))]
        limit: u8,
        /// 输出格式 · output format.
        #[arg(long, value_enum, default_value_t = Format::Table)]
        format: Format,
    },
}

/// `iit protocol …`.
///
/// # Errors
/// See [`Failure`].
pub fn run(args: Args) -> CommandResult {
    logging::one_shot();
    // Before the database is looked for: most mistakes are about the file.
    let prepared = match &args.command {
        Command::Add {
            file, name, label, ..
        } => Some(Prepared::read(file, name.as_deref(), label.as_deref())?),
        _ => None,
    };
    process::block_on(async move {
        let database = Database::open("protocol", 2).await?;
        let outcome = match (args.command, prepared) {
            (
                Command::Add {
                    project, format, ..
                },
                Some(prepared),
            ) => add(&database, project.as_deref(), &prepared, format).await,
            (Command::List { project, format }, _) => {
                list(&database, project.as_deref(), format).await
            }
            (Command::Remove { name, project }, _) => {
                remove(&database, project.as_deref(), &name).await
            }
            (
                Command::Search {
                    query,
                    project,
                    limit,
                    format,
                },
                _,
            ) => search(&database, project.as_deref(), &query, limit, format).await,
            (Command::Add { .. }, None) => Ok(ExitCode::SUCCESS),
        };
        database.close().await?;
        outcome
    })
}

/// A document that was read and waits to be stored.
pub struct Prepared {
    name: String,
    label: Option<String>,
    file_name: String,
    sha256: String,
    bytes: u64,
    manuscript: Manuscript,
    passages: Vec<crate::types::protocol::Passage>,
}

impl Prepared {
    /// Reads a file, with a progress bar when a person looks on.
    ///
    /// # Errors
    /// Exit code 2, naming the file and what is wrong with it.
    pub fn read(file: &Path, name: Option<&str>, label: Option<&str>) -> Result<Self, Failure> {
        let refused = |why: String| Failure::Usage(format!("{}：{why}", file.display()));
        let unreadable = |error: std::io::Error| {
            refused(format!(
                "读不了文件 can't read the file: {error}；请检查路径 (check the path)"
            ))
        };
        let size = std::fs::metadata(file).map_err(unreadable)?;
        if !size.is_file() {
            return Err(refused("不是文件 (not a file)".to_owned()));
        }
        if size.len() > MOST_BYTES {
            return Err(refused(
                documents::DocumentError::TooLarge("64 MB").to_string(),
            ));
        }
        let content = std::fs::read(file).map_err(unreadable)?;
        let bytes = content.len() as u64;
        let sha256 = Sha256::digest(&content)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let bar = progress_bar();
        let shown = bar.clone();
        let told = Box::new(move |done: u32, all: u32| {
            shown.set_length(u64::from(all));
            shown.set_position(u64::from(done));
        });
        let read = documents::read(file, content, told);
        bar.finish_and_clear();
        let mut manuscript = read.map_err(|error| refused(error.to_string()))?;
        // Postgres takes no NUL, whatever it came from.
        for block in &mut manuscript.blocks {
            if block.text.contains('\0') {
                block.text = block.text.replace('\0', "\u{fffd}");
            }
        }
        let passages = passages(&manuscript);
        if passages.is_empty() {
            return Err(refused(documents::DocumentError::Empty.to_string()));
        }
        let (stem, stem_label) = name_and_label(file);
        let name = name.map_or(stem, |name| name.trim().to_owned());
        if name.is_empty()
            || name.chars().count() > LONGEST_NAME
            || name.chars().any(char::is_control)
        {
            return Err(refused(format!(
                "名称应为 1 到 {LONGEST_NAME} 个字符；用 --name 指定 (give a name of at most {LONGEST_NAME} characters)"
            )));
        }
        let label = label
            .map(|label| label.trim().to_owned())
            .filter(|label| !label.is_empty());
        Ok(Self {
            name,
            label: label.or(stem_label),
            file_name: file
                .file_name()
                .map(|name| name.to_string_lossy().into_owned())
                .unwrap_or_default(),
            sha256,
            bytes,
            manuscript,
            passages,
        })
    }

    /// Stores it.
    ///
    /// # Errors
    /// The database failed.
    pub async fn store(&self, pool: &sqlx::PgPool, project: &str) -> Result<(Added, i32), Failure> {
        let stored = async {
            let mut tx = pool.begin().await?;
            let document = NewDocument {
                name: &self.name,
                label: self.label.as_deref(),
                media: self.manuscript.media,
                file_name: &self.file_name,
                sha256: &self.sha256,
                bytes: self.bytes,
                pages: self.manuscript.pages,
                passages: &self.passages,
            };
            let stored = protocol::add(&mut tx, project, &document, &actor()).await?;
            tx.commit().await?;
            Ok::<_, sqlx::Error>(stored)
        };
        stored.await.map_err(query_failed)
    }
}

fn progress_bar() -> ProgressBar {
    let target = if std::io::stderr().is_terminal() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let style = ProgressStyle::with_template("{bar:32} {pos}/{len} 页 pages  {elapsed}");
    ProgressBar::with_draw_target(Some(0), target)
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// `研究方案V2.0.docx` is 研究方案, version V2.0: the next version must replace it, not stand beside it.
fn name_and_label(file: &Path) -> (String, Option<String>) {
    let stem = file
        .file_stem()
        .map(|stem| stem.to_string_lossy().trim().to_owned())
        .unwrap_or_default();
    let version = Regex::new(
        r"(?i)[\s_.\-（(]*(?:v|ver\.?|version|版本号?)[\s_.:：]*(\d+(?:\.\d+)*)\s*[)）]?$",
    );
    let found = version.ok().and_then(|version| {
        let found = version.captures(&stem)?;
        let whole = found.get(0)?;
        let name = stem.get(..whole.start())?.trim().to_owned();
        (!name.is_empty()).then(|| {
            (
                name,
                format!("V{}", found.get(1).map_or("", |n| n.as_str())),
            )
        })
    });
    match found {
        Some((name, label)) => (name, Some(label)),
        None => (stem, None),
    }
}

/// The project that is meant: the one named, or the only one there is.
async fn project_of(database: &Database, named: Option<&str>) -> Result<Project, Failure> {
    let mut conn = database.pool.acquire().await.map_err(query_failed)?;
    if let Some(named) = named {
        return require_project(&mut conn, named).await;
    }
    let all = projects::list(&mut conn).await.map_err(query_failed)?;
    match all.as_slice() {
        [only] => require_project(&mut conn, &only.id).await,
        [] => Err(Failure::Usage(
            "还没有项目；先用 `iit project apply FILE` 新建 (there is no project yet)".to_owned(),
        )),
        several => {
            let ids: Vec<&str> = several.iter().map(|project| project.id.as_str()).collect();
            Err(Failure::Usage(format!(
                "有多个项目（{}）；用 --project 指明 (say which project)",
                ids.join("、")
            )))
        }
    }
}

#[derive(Serialize)]
struct AddedLine<'a> {
    project: &'a str,
    name: &'a str,
    version: i32,
    label: Option<&'a str>,
    result: Added,
    pages: Option<u32>,
    passages: usize,
    gaps: &'a str,
}

async fn add(
    database: &Database,
    project: Option<&str>,
    prepared: &Prepared,
    format: Format,
) -> CommandResult {
    let project = project_of(database, project).await?;
    let (result, version) = prepared.store(&database.pool, &project.file.id).await?;
    for gap in &prepared.manuscript.gaps {
        output::warn(format_args!("注意 warning: {gap}"));
    }
    let gaps = prepared.manuscript.gaps.join("；");
    let line = AddedLine {
        project: &project.file.id,
        name: &prepared.name,
        version,
        label: prepared.label.as_deref(),
        result,
        pages: prepared.manuscript.pages,
        passages: prepared.passages.len(),
        gaps: &gaps,
    };
    match format {
        Format::Json => output::json(&[line])?,
        Format::Csv => output::csv(&[line])?,
        Format::Table => {
            let word = match result {
                Added::New => "已入库 stored",
                Added::Replaced => "已换成新版本 replaced",
                Added::Unchanged => "没有变化 unchanged",
            };
            let label = line
                .label
                .map(|label| format!(" {label}"))
                .unwrap_or_default();
            let pages = line
                .pages
                .map(|pages| format!("{pages} 页 pages，"))
                .unwrap_or_default();
            output::say(format_args!(
                "《{}》{label} 第 {version} 次入库 · version {version}，{pages}{} 段 passages：{word}",
                line.name, line.passages
            ))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn list(database: &Database, project: Option<&str>, format: Format) -> CommandResult {
    let project = project_of(database, project).await?;
    let listed =
        async { protocol::list(&mut *database.pool.acquire().await?, &project.file.id).await };
    let lines = listed.await.map_err(query_failed)?;
    match format {
        Format::Json => output::json(&lines)?,
        Format::Csv => output::csv(&lines)?,
        Format::Table if lines.is_empty() => {
            output::say("还没有文件；用 `iit protocol add FILE` 入库 (no documents yet)")?;
        }
        Format::Table => {
            let mut table = output::table(&[
                "名称 name",
                "版本 label",
                "入库 version",
                "格式 format",
                "页 pages",
                "段 passages",
                "文件 file",
                "入库人 by",
            ]);
            for line in lines {
                table.add_row([
                    line.name,
                    line.label.unwrap_or_default(),
                    line.version.to_string(),
                    line.media,
                    line.pages
                        .map(|pages| pages.to_string())
                        .unwrap_or_default(),
                    line.passages.to_string(),
                    line.file,
                    line.added_by,
                ]);
            }
            output::say(table)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn remove(database: &Database, project: Option<&str>, name: &str) -> CommandResult {
    let project = project_of(database, project).await?;
    let removed = async {
        let mut tx = database.pool.begin().await?;
        let removed = protocol::remove(&mut tx, &project.file.id, name, &actor()).await?;
        tx.commit().await?;
        Ok::<_, sqlx::Error>(removed)
    };
    if !removed.await.map_err(query_failed)? {
        return Err(Failure::Usage(format!(
            "项目 {} 没有文件 `{name}`；用 `iit protocol list` 查看 (no such document)",
            project.file.id
        )));
    }
    output::say(format_args!(
        "《{name}》不再检索，各版本仍保留 (no longer searched; its versions are kept)"
    ))?;
    Ok(ExitCode::SUCCESS)
}

#[derive(Serialize)]
struct FoundLine {
    source: String,
    document: String,
    section: String,
    page: Option<u32>,
    text: String,
}

async fn search(
    database: &Database,
    project: Option<&str>,
    query: &str,
    limit: u8,
    format: Format,
) -> CommandResult {
    let project = project_of(database, project).await?;
    let dify = Config::from_env()?.dify.map(DifyClient::new).transpose();
    let dify = dify.map(|dify| dify.map(Arc::new)).map_err(|error| {
        Failure::Usage(format!(
            "Dify 客户端无法建立 the Dify client can't be built: {error:#}"
        ))
    })?;
    // The operator reads with his own rights.
    let found = search_protocol::find(
        &project,
        &database.pool,
        dify.as_deref(),
        query,
        usize::from(limit),
    )
    .await;
    let findings = found.map_err(|error| match error {
        crate::tools::ToolError::Unavailable(why) => Failure::Outside(why),
        other => Failure::Usage(other.to_string()),
    })?;
    if findings.no_documents {
        output::warn(format_args!(
            "注意 warning: {}",
            search_protocol::NO_DOCUMENTS
        ));
    }
    let lines: Vec<FoundLine> = findings
        .passages
        .into_iter()
        .map(|found| FoundLine {
            source: found.citation().to_string(),
            document: found.document,
            section: found.section,
            page: found.page,
            text: found.text,
        })
        .collect();
    match format {
        Format::Json => output::json(&lines)?,
        Format::Csv => output::csv(&lines)?,
        Format::Table if lines.is_empty() => output::say("没有找到 (nothing found)")?,
        Format::Table => {
            for line in lines {
                // Without a section the page is the place already.
                let page = match line.page {
                    Some(page) if !line.section.is_empty() => format!("（第 {page} 页）"),
                    _ => String::new(),
                };
                output::say(format_args!(
                    "{}{page} {}\n{}\n",
                    line.source, line.section, line.text
                ))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_in_a_files_name_is_its_label_and_not_part_of_its_name() {
        for (file, name, label) in [
            ("研究方案V2.0.docx", "研究方案", Some("V2.0")),
            ("研究方案 v3.pdf", "研究方案", Some("V3")),
            ("Protocol_version 1.2.pdf", "Protocol", Some("V1.2")),
            ("方案（版本号：2.1）.md", "方案", Some("V2.1")),
            ("操作手册.md", "操作手册", None),
            ("ICF 2024.txt", "ICF 2024", None),
            ("V2.0.txt", "V2.0", None),
        ] {
            let told = name_and_label(Path::new(file));
            assert_eq!(told, (name.to_owned(), label.map(str::to_owned)), "{file}");
        }
    }
}
