//! A study at hand: its settings, its data source, and its skills compiled for its dictionary.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::anyhow;
use chrono::NaiveDate;
use sqlx::PgConnection;

use super::services::Services;
use crate::{
    adapters::edc::{Edc, EdcError},
    engines::{rules, sop::CompiledSkill},
    queue::JobError,
    skills,
    store::{
        projects::{self, Project},
        skills::StoredSkill,
    },
    types::{dictionary::Dictionary, record::Record},
};

/// Compiled skills kept at most; a process works on few studies at a time.
const CACHE_SIZE: usize = 256;

/// A study a job works on.
pub struct Study {
    /// Settings and aliases.
    pub project: Project,
    /// Where its data comes from.
    pub edc: Arc<dyn Edc>,
    /// Today in the project's time zone.
    pub today: NaiveDate,
}

impl Study {
    /// Loads the study of that id. Opens its data source without reading it.
    ///
    /// # Errors
    /// Permanent when there is no such study or its data source can't be read by this version.
    pub async fn load(
        services: &Services,
        conn: &mut PgConnection,
        id: &str,
    ) -> Result<Self, JobError> {
        let project = projects::get(conn, id).await?.ok_or_else(|| {
            JobError::dead(anyhow!(
                "there is no project `{id}`; apply its file with `iit project apply FILE`"
            ))
        })?;
        let edc = services.edc.open(&project.file.edc).map_err(edc_error)?;
        let zone: chrono_tz::Tz = project.file.timezone.parse().unwrap_or(chrono_tz::UTC);
        let today = services.clock.now().with_timezone(&zone).date_naive();
        Ok(Self {
            project,
            edc,
            today,
        })
    }

    /// The project's id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.project.file.id
    }

    /// The project's time zone.
    #[must_use]
    pub fn zone(&self) -> chrono_tz::Tz {
        self.project.file.timezone.parse().unwrap_or(chrono_tz::UTC)
    }

    /// What the rules may know of this study.
    #[must_use]
    pub fn names<'a>(&'a self, dictionary: Option<&'a Dictionary>) -> rules::Study<'a> {
        rules::Study {
            dictionary,
            aliases: &self.project.aliases,
            roles: &self.project.file.fields,
            visits: &self.project.file.visits,
        }
    }

    /// The site a record belongs to, where the study has sites.
    #[must_use]
    pub fn site_of(&self, record: &Record) -> Option<String> {
        let field = self.project.file.field_for("site")?;
        record
            .rows
            .iter()
            .filter_map(|row| row.get(field))
            .map(str::trim)
            .find(|site| !site.is_empty())
            .map(str::to_owned)
    }
}

/// How an EDC's refusal ends a job: what may pass is retried, what must be mended is not.
#[must_use]
pub fn edc_error(error: EdcError) -> JobError {
    if error.is_retryable() {
        JobError::retry(error)
    } else {
        JobError::dead(error)
    }
}

/// Skills compiled once per version, dictionary and project settings.
#[derive(Default)]
pub struct SkillCache {
    kept: Mutex<HashMap<Key, Kept>>,
}

#[derive(PartialEq, Eq, Hash)]
struct Key {
    project: String,
    skill_type: String,
    version: i32,
    /// Hash of the project's names; 0 stands for no dictionary, its address otherwise.
    names: u64,
    dictionary: usize,
}

struct Kept {
    compiled: Result<Arc<CompiledSkill>, String>,
    /// Keeps the dictionary's address from being used again.
    _dictionary: Option<Arc<Dictionary>>,
}

impl SkillCache {
    /// The skill compiled for `study`; without a dictionary only its graph is of use.
    ///
    /// # Errors
    /// One sentence naming the first fault and how many there are.
    pub fn compiled(
        &self,
        study: &Study,
        stored: &StoredSkill,
        dictionary: Option<&Arc<Dictionary>>,
    ) -> Result<Arc<CompiledSkill>, String> {
        let key = Key {
            project: study.id().to_owned(),
            skill_type: stored.skill_type.clone(),
            version: stored.version,
            names: names_hash(&study.project),
            dictionary: dictionary.map_or(0, |d| Arc::as_ptr(d).addr()),
        };
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = kept.get(&key) {
            return found.compiled.clone();
        }
        let compiled = compile(study, stored, dictionary.map(AsRef::as_ref)).map(Arc::new);
        if kept.len() >= CACHE_SIZE {
            kept.clear();
        }
        kept.insert(
            key,
            Kept {
                compiled: compiled.clone(),
                _dictionary: dictionary.cloned(),
            },
        );
        compiled
    }
}

fn compile(
    study: &Study,
    stored: &StoredSkill,
    dictionary: Option<&Dictionary>,
) -> Result<CompiledSkill, String> {
    let faulty = |faults: Vec<skills::Fault>| {
        let first = faults.first().map(ToString::to_string).unwrap_or_default();
        format!(
            "技能 {} 第 {} 版有误（共 {} 处）：{first}；用 `iit skills check` 查看并修正 (faulty skill)",
            stored.skill_type,
            stored.version,
            faults.len()
        )
    };
    let skill = skills::from_config(&stored.skill_type, &stored.name, None, &stored.config)
        .map_err(faulty)?;
    CompiledSkill::compile(&skill, &study.names(dictionary)).map_err(faulty)
}

fn names_hash(project: &Project) -> u64 {
    let mut hash = DefaultHasher::new();
    project.aliases.hash(&mut hash);
    project.file.fields.hash(&mut hash);
    for visit in &project.file.visits {
        format!("{visit:?}").hash(&mut hash);
    }
    hash.finish()
}
