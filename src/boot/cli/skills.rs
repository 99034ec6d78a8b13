//! `iit skills`: check and apply skill files.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Subcommand;
use serde_json::Value;

use super::{
    exit::{CommandResult, Failure, found_something},
    output,
    pending::require_project,
    project::{self, actor},
    schedule,
};
use crate::{
    adapters::edc::{EdcError, EdcPool},
    boot::{
        database::{Database, query_failed},
        logging, process,
    },
    engines::{rules::Study, sop::CompiledSkill},
    jobs::common::cron,
    skills::{Body, Fault, FaultKind, Skill, Work, from_config, load_document, text},
    store::skills::{self as skill_store, NewSkill, StoredSkill},
    types::{
        dictionary::Dictionary,
        project::{ProjectFile, Visit},
        rule::RuleSpec,
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
    /// 检查技能文件，列出全部错误 · check skill files and list every fault; needs no database.
    Check {
        /// 文件，或含 *.json / *.jsonc 的文件夹 · a file, or a folder with *.json and *.jsonc.
        path: PathBuf,
        /// 项目文件，提供别名与访视窗 · project file, for aliases and visit windows.
        #[arg(long, value_name = "FILE")]
        project: Option<PathBuf>,
    },
    /// 把技能写入项目 · put skills into a project.
    Apply {
        /// 项目编号 · project id.
        #[arg(long)]
        project: String,
        /// 裸技能的类型，默认取自文件名 · type of a bare skill, by default the file's stem.
        #[arg(long = "type", value_name = "TYPE")]
        skill_type: Option<String>,
        /// 文件或文件夹 · a file or a folder.
        path: PathBuf,
    },
}

/// Runs the command.
///
/// # Errors
/// See [`Failure`].
pub fn run(args: Args) -> CommandResult {
    match args.command {
        Command::Check { path, project } => check(&path, project.as_deref()),
        Command::Apply {
            project,
            skill_type,
            path,
        } => apply(&project, skill_type.as_deref(), &path),
    }
}

fn apply(project: &str, skill_type: Option<&str>, path: &Path) -> CommandResult {
    logging::one_shot();
    process::block_on(async move {
        let database = Database::open("skills", 2).await?;
        let applied = async {
            let mut conn = database.pool.acquire().await.map_err(query_failed)?;
            let known = require_project(&mut conn, project).await?;
            drop(conn);
            let mut file = known.file;
            file.aliases = known.aliases;
            let applied = apply_to(&database.pool, &file, skill_type, path).await?;
            let schedules = schedule::of_project(&database.pool, &file.id).await?;
            Ok::<_, Failure>((applied, schedules))
        };
        let applied = applied.await;
        database.close().await?;
        let (applied, schedules) = applied?;
        for (skill, version) in applied {
            output::say(format_args!(
                "技能 {skill}：第 {version} 版 · version {version}"
            ))?;
            if let Some(line) = schedules.iter().find(|line| line.skill_type == skill) {
                output::say(format_args!("  {}", schedule::in_words(line)))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// Checks the skills against the project's dictionary and stores all of them, or, when one is faulty,
/// none. Returns each skill's type and version.
///
/// # Errors
/// Exit code 1 with every fault on stderr; 2 for data that can't be read; 3 when the database fails.
pub async fn apply_to(
    pool: &sqlx::PgPool,
    project: &ProjectFile,
    skill_type: Option<&str>,
    path: &Path,
) -> Result<Vec<(String, i32)>, Failure> {
    let edc_failed = |error: EdcError| {
        let text = format!(
            "项目 {} 的数据字典读不了 (its dictionary can't be read): {error}",
            project.id
        );
        if error.is_retryable() {
            Failure::Outside(text)
        } else {
            Failure::Usage(text)
        }
    };
    let source = EdcPool::default().open(&project.edc).map_err(edc_failed)?;
    let dictionary = source.dictionary().await.map_err(edc_failed)?;
    let loaded = Loaded::from(path, skill_type, Some(project), Some(&dictionary))?;
    if loaded.faults > 0 {
        loaded.sum_up();
        return Err(Failure::Found(format!(
            "技能有误，没有写入任何技能；按上面的提示修正后重试 (faulty skills, none was stored in `{}`)",
            project.id
        )));
    }
    let mut conn = pool.acquire().await.map_err(query_failed)?;
    let active = skill_store::active(&mut conn, &project.id, None)
        .await
        .map_err(query_failed)?;
    drop(conn);
    refuse_taken_rule_ids(&loaded, &active)?;
    let stored = async {
        let mut tx = pool.begin().await?;
        let mut versions = Vec::new();
        for (_, skill) in &loaded.skills {
            let new = NewSkill {
                skill_type: &skill.skill_type,
                name: &skill.name,
                schedule: skill.schedule.as_deref(),
                catch_up: skill.catch_up,
                config: &skill.config,
            };
            let version = skill_store::apply(&mut tx, &project.id, &new, &actor()).await?;
            versions.push((skill.skill_type.clone(), version));
        }
        tx.commit().await?;
        Ok::<_, sqlx::Error>(versions)
    };
    let versions = stored.await.map_err(query_failed)?;
    cron::wake_schedulers(pool).await;
    Ok(versions)
}

fn check(path: &Path, project: Option<&Path>) -> CommandResult {
    let project = project.map(project::read).transpose()?;
    let loaded = Loaded::from(path, None, project.as_ref(), None)?;
    if loaded.faults > 0 {
        loaded.sum_up();
        return Ok(found_something());
    }
    let count = loaded.skills.len();
    output::say(format_args!(
        "{count} 个技能，没有错误 · {count} skills, no fault"
    ))?;
    if project.is_none()
        && loaded
            .skills
            .iter()
            .any(|(_, skill)| !visits_of(skill).is_empty())
    {
        output::say(
            "访视编号未核对，请加 --project 项目文件 · visits not checked, give --project FILE",
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A rule's id stands in the ledger for the rule: two different rules of one project can't share one.
fn refuse_taken_rule_ids(loaded: &Loaded, active: &[StoredSkill]) -> Result<(), Failure> {
    let replaced: BTreeSet<&str> = loaded
        .skills
        .iter()
        .map(|(_, skill)| skill.skill_type.as_str())
        .collect();
    let mut taken: BTreeMap<String, (RuleSpec, &str)> = BTreeMap::new();
    for stored in active {
        if replaced.contains(stored.skill_type.as_str()) {
            continue;
        }
        let Ok(skill) = from_config(&stored.skill_type, &stored.name, None, &stored.config) else {
            continue;
        };
        for rule in rules_of(&skill) {
            if let Some(id) = &rule.id {
                taken.insert(id.clone(), (rule.clone(), &stored.skill_type));
            }
        }
    }
    for (file, skill) in &loaded.skills {
        for rule in rules_of(skill) {
            let other = rule.id.as_ref().and_then(|id| taken.get(id));
            if let Some((spec, owner)) = other
                && spec != rule
            {
                return Err(Failure::Found(format!(
                    "{}：规则编号 `{}` 已是技能 {owner} 中另一条规则；换一个编号 (the rule id is taken by another rule)",
                    file.display(),
                    rule.id.as_deref().unwrap_or_default()
                )));
            }
        }
    }
    Ok(())
}

/// The skills of a file or folder.
struct Loaded {
    /// Those without a fault, with their files.
    skills: Vec<(PathBuf, Skill)>,
    files: usize,
    faulty: usize,
    faults: usize,
}

impl Loaded {
    /// Reads every skill and writes each fault to stderr as a line of its own.
    fn from(
        path: &Path,
        given_type: Option<&str>,
        project: Option<&ProjectFile>,
        dictionary: Option<&Dictionary>,
    ) -> Result<Self, Failure> {
        let files = skill_files(path)?;
        if given_type.is_some() && files.len() > 1 {
            return Err(Failure::Usage(format!(
                "{} 里有 {} 个技能，--type 只能用于一个文件 · --type goes with one file",
                path.display(),
                files.len()
            )));
        }
        let mut loaded = Self {
            skills: Vec::new(),
            files: files.len(),
            faulty: 0,
            faults: 0,
        };
        let mut neighbours = Neighbours::default();
        for file in files {
            let skill = read_skill(&file, given_type, project, dictionary).and_then(|skill| {
                neighbours.admit(&file, &skill)?;
                Ok(skill)
            });
            match skill {
                Ok(skill) => loaded.skills.push((file, skill)),
                Err(faults) => loaded.report(&file, &faults),
            }
        }
        Ok(loaded)
    }

    fn report(&mut self, file: &Path, faults: &[Fault]) {
        for fault in faults {
            let colon = if fault.place.is_some() { ":" } else { ": " };
            output::warn(format_args!("{}{colon}{fault}", file.display()));
        }
        self.faulty += 1;
        self.faults += faults.len();
    }

    fn sum_up(&self) {
        let Self {
            files,
            faulty,
            faults,
            ..
        } = self;
        output::warn(format_args!(
            "{files} 个文件中有 {faulty} 个共 {faults} 处错误 · {faults} faults in {faulty} of {files} files"
        ));
    }
}

/// Reads one file, checks its graph and compiles its rules.
fn read_skill(
    file: &Path,
    given_type: Option<&str>,
    project: Option<&ProjectFile>,
    dictionary: Option<&Dictionary>,
) -> Result<Skill, Vec<Fault>> {
    let bytes = fs::read(file)
        .map_err(|error| vec![Fault::new(FaultKind::Unreadable, "", error.to_string())])?;
    let document = text::parse(&bytes)?;
    let stem = stem(file);
    let skill = load_document(&document, given_type.unwrap_or(&stem))?;
    if skill.sop().is_some() {
        let assumed = visits_of(&skill);
        let study = match project {
            Some(project) => Study::of(project, dictionary),
            None => Study {
                visits: &assumed,
                ..Study::default()
            },
        };
        CompiledSkill::compile(&skill, &study).map_err(|faults| {
            let place = |fault: Fault| {
                let place = document.place(&fault.path);
                fault.at(place)
            };
            faults.into_iter().map(place).collect::<Vec<_>>()
        })?;
    }
    Ok(skill)
}

/// What may not collide between the skills of one folder, which are meant for one project.
#[derive(Default)]
struct Neighbours {
    types: BTreeMap<(PathBuf, String), PathBuf>,
    rules: BTreeMap<(PathBuf, String), (PathBuf, RuleSpec)>,
}

impl Neighbours {
    /// Notes the types and rule ids of `skill`, and the faults of those already taken.
    fn admit(&mut self, file: &Path, skill: &Skill) -> Result<(), Vec<Fault>> {
        let folder = file.parent().unwrap_or(Path::new("")).to_owned();
        let mut faults = Vec::new();
        let type_key = (folder.clone(), skill.skill_type.clone());
        if let Some(earlier) = self.types.get(&type_key) {
            let what = format!("类型 `{}` 已用于 {}", skill.skill_type, earlier.display());
            let fault = Fault::new(FaultKind::BadValue, "skillType", what);
            faults.push(fault.hint("一个项目里类型不能重复 a type is unique in a project"));
        } else {
            self.types.insert(type_key, file.to_owned());
        }
        for rule in rules_of(skill) {
            let Some(id) = &rule.id else { continue };
            let key = (folder.clone(), id.clone());
            match self.rules.get(&key) {
                Some((_, earlier))
                    if earlier.field == rule.field && earlier.logic == rule.logic => {}
                Some((earlier, _)) => {
                    let what = format!("规则编号 `{id}` 在 {} 里是另一条规则", earlier.display());
                    faults.push(Fault::new(FaultKind::DuplicateRule, "", what));
                }
                None => {
                    self.rules.insert(key, (file.to_owned(), rule.clone()));
                }
            }
        }
        if faults.is_empty() {
            Ok(())
        } else {
            Err(faults)
        }
    }
}

fn rules_of(skill: &Skill) -> impl Iterator<Item = &RuleSpec> {
    let sop = match &skill.body {
        Body::Sop(sop) => Some(sop),
        Body::Report(_) => None,
    };
    sop.into_iter()
        .flat_map(|sop| sop.nodes.values())
        .filter_map(|node| match &node.work {
            Work::HardRule { rules } => Some(rules),
            _ => None,
        })
        .flatten()
}

/// The visits the rules of `skill` name, for a check that knows no project and takes them on trust.
fn visits_of(skill: &Skill) -> Vec<Visit> {
    let mut named: BTreeMap<String, BTreeSet<Option<String>>> = BTreeMap::new();
    for rule in rules_of(skill) {
        collect_visits(&rule.logic, &mut named);
    }
    let mut visits = Vec::new();
    for (id, events) in named {
        // Where one rule names the event and another does not, they mean the same visit.
        let some_named = events.iter().any(Option::is_some);
        for event in events.into_iter().filter(|e| e.is_some() || !some_named) {
            visits.push(Visit {
                id: id.clone(),
                date_field: "visit_date".to_owned(),
                anchor_field: "anchor_date".to_owned(),
                day: 1,
                minus: 0,
                plus: 0,
                anchor_is_day_one: false,
                event,
            });
        }
    }
    visits
}

fn collect_visits(logic: &Value, named: &mut BTreeMap<String, BTreeSet<Option<String>>>) {
    match logic {
        Value::Array(items) => items.iter().for_each(|item| collect_visits(item, named)),
        Value::Object(map) => {
            let text = |key: &str| map.get("args")?.get(key)?.as_str().map(ToOwned::to_owned);
            let function = map.get("function_name").and_then(Value::as_str);
            if let (Some("visit_window"), Some(visit)) = (function, text("visit")) {
                named.entry(visit).or_default().insert(text("event"));
            }
            map.values().for_each(|item| collect_visits(item, named));
        }
        _ => {}
    }
}

fn stem(file: &Path) -> String {
    file.file_stem()
        .map(|stem| stem.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// The file itself, or every skill file below the folder, in a fixed order.
fn skill_files(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    let usage = |what: String| Failure::Usage(format!("{}: {what}", path.display()));
    let about = fs::metadata(path).map_err(|error| {
        usage(format!(
            "无法读取 cannot be read ({error})；请检查路径 check the path"
        ))
    })?;
    if about.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    collect(path, &mut files).map_err(|error| usage(error.to_string()))?;
    files.sort();
    if files.is_empty() {
        return Err(usage(
            "没有 *.json 或 *.jsonc 文件 · holds no *.json or *.jsonc file".to_owned(),
        ));
    }
    Ok(files)
}

/// Walks a folder without following links to folders (they may lead in a circle) and without hidden ones.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with('.') || name.ends_with(".schema.json") {
            continue;
        }
        if entry.file_type()?.is_dir() {
            collect(&path, files)?;
        } else if matches!(
            path.extension().and_then(|e| e.to_str()),
            Some("json" | "jsonc")
        ) && path.is_file()
        {
            files.push(path);
        }
    }
    Ok(())
}
