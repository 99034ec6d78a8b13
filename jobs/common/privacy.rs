//! What of a study is personal, known before anything about it is sent. Where that can't be found out,
//! nothing is sent.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::anyhow;

use super::{
    services::Services,
    study::{Study, edc_error},
};
use crate::{
    adapters::edc::{EdcError, Extract},
    engines::redaction::{self, Hidden, Kind, Placeholder, Redactor},
    queue::JobError,
    store::placeholders::Stored,
    types::project::ProjectFile,
};

/// Times a study is read anew because records came or went meanwhile.
const READINGS: usize = 3;
/// Redactors kept at most; a process works on few studies at a time.
const KEPT: usize = 16;

/// Redactors of this process, one a study, as long as neither its data nor its settings change.
#[derive(Debug, Default)]
pub struct Redactors {
    kept: Mutex<HashMap<String, (State, Arc<Redactor>)>>,
}

/// The data's fingerprint and the settings' hash.
type State = (String, u64);

impl Services {
    /// The redactor of a study, by its data as it stands.
    ///
    /// # Errors
    /// The study's data or settings can't be read: nothing about it may be sent. Retried where that may
    /// pass.
    pub async fn redactor(&self, study: &Study) -> Result<Arc<Redactor>, JobError> {
        // No record asked for: the state of the data alone.
        let now = study.edc.records(&[]).await.map_err(edc_error)?;
        let settings = settings_hash(&study.project.file);
        if let Some(found) = self.redactors.get(study.id(), &(now.fingerprint, settings)) {
            return Ok(found);
        }
        let extract = everything(study).await?;
        let state = (extract.fingerprint.clone(), settings);
        let file = study.project.file.clone();
        let made = tokio::task::spawn_blocking(move || {
            let people: Vec<String> = file.members.iter().map(|m| m.name.clone()).collect();
            Redactor::new(&redaction::Study {
                dictionary: &extract.dictionary,
                records: &extract.records,
                people: &people,
                patterns: &file.privacy.patterns,
            })
        });
        let made = made
            .await
            .map_err(|_| JobError::retry(anyhow!("the redactor was not made; nothing is sent")))?
            .map_err(JobError::dead)?;
        let made = Arc::new(made);
        self.redactors.keep(study.id(), state, &made);
        Ok(made)
    }
}

impl Redactors {
    fn get(&self, project: &str, state: &State) -> Option<Arc<Redactor>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let (of, redactor) = kept.get(project)?;
        (of == state).then(|| Arc::clone(redactor))
    }

    fn keep(&self, project: &str, state: State, redactor: &Arc<Redactor>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT && !kept.contains_key(project) {
            kept.clear();
        }
        kept.insert(project.to_owned(), (state, Arc::clone(redactor)));
    }
}

/// All records of a study.
async fn everything(study: &Study) -> Result<Extract, JobError> {
    for _ in 0..READINGS {
        let ids = study.edc.record_ids().await.map_err(edc_error)?;
        match study.edc.records(&ids).await {
            // Deleted between the two questions.
            Err(EdcError::NotFound { .. }) => {}
            other => return other.map_err(edc_error),
        }
    }
    Err(JobError::retry(anyhow!(
        "the study's records keep changing; nothing is sent"
    )))
}

fn settings_hash(file: &ProjectFile) -> u64 {
    let mut hash = DefaultHasher::new();
    file.privacy.hash(&mut hash);
    for member in &file.members {
        member.name.hash(&mut hash);
    }
    hash.finish()
}

/// A run's placeholders as stored.
///
/// # Errors
/// One is of a kind this version does not know: nothing may be sent.
pub fn hidden(stored: Vec<Stored>) -> Result<Hidden, JobError> {
    let read = stored.into_iter().map(|one| {
        Some(Placeholder {
            kind: Kind::of_label(&one.kind)?,
            placeholder: one.placeholder,
            value: one.value,
        })
    });
    read.collect::<Option<Vec<Placeholder>>>()
        .map(Hidden::of)
        .ok_or_else(|| JobError::dead(anyhow!("a placeholder of this run is of an unknown kind")))
}

/// What of a run's placeholders is to be stored.
#[must_use]
pub fn fresh(hidden: &Hidden) -> Vec<Stored> {
    let stored = hidden.fresh().iter().map(|one| Stored {
        placeholder: one.placeholder.clone(),
        kind: one.kind.label().to_owned(),
        value: one.value.clone(),
    });
    stored.collect()
}
