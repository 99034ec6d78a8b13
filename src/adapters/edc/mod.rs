//! Electronic data capture: where a study's dictionary and records come from.

pub mod error;
pub mod export;
pub mod redcap_files;

use std::{
    collections::HashMap,
    fmt::Debug,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use futures::future::BoxFuture;

use crate::types::{dictionary::Dictionary, project::EdcConfig, record::Record};

pub use self::{
    error::{EdcError, Warning},
    redcap_files::RedcapFiles,
};

/// What was read together: records, the dictionary they obey, and the state of the data they show.
#[derive(Debug, Clone)]
pub struct Extract {
    /// The records asked for, in the order asked.
    pub records: Vec<Arc<Record>>,
    /// The dictionary at that moment.
    pub dictionary: Arc<Dictionary>,
    /// Names the state of the study's data; equal fingerprints mean equal data.
    pub fingerprint: String,
}

/// A study's data source, read-only. One value serves all workers of a process.
pub trait Edc: Debug + Send + Sync {
    /// What the source is and its version, for people: `redcap_files`, `REDCap 14.5.0`.
    fn version(&self) -> BoxFuture<'_, Result<String, EdcError>>;

    /// The data dictionary. The same `Arc` as long as nothing changed.
    fn dictionary(&self) -> BoxFuture<'_, Result<Arc<Dictionary>, EdcError>>;

    /// Every record id once, in export order, as written in the EDC.
    fn record_ids(&self) -> BoxFuture<'_, Result<Vec<String>, EdcError>>;

    /// All rows of these records, ids compared exactly; a repeated id is returned once.
    ///
    /// All or nothing: [`EdcError::NotFound`] names every id that does not exist, so no record is
    /// silently missing from a result.
    fn records<'a>(&'a self, ids: &'a [String]) -> BoxFuture<'a, Result<Extract, EdcError>>;

    /// What was odd about the data as it stands now; empty when nothing was.
    fn warnings(&self) -> BoxFuture<'_, Result<Vec<Warning>, EdcError>>;
}

/// The open data sources of a process: one per place, however many jobs and projects use it.
#[derive(Debug, Default)]
pub struct EdcPool {
    files: Mutex<HashMap<PathBuf, Arc<RedcapFiles>>>,
}

impl EdcPool {
    /// The source a project file names. Nothing is read yet.
    ///
    /// # Errors
    /// [`EdcError::Faulty`] for a kind this build cannot read.
    pub fn open(&self, config: &EdcConfig) -> Result<Arc<dyn Edc>, EdcError> {
        match config {
            EdcConfig::RedcapFiles { dir } => {
                // The map is never left half-written, so a poisoned lock still guards good data.
                let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
                let source = files
                    .entry(dir.clone())
                    .or_insert_with(|| Arc::new(RedcapFiles::new(dir.clone())));
                Ok(Arc::clone(source) as Arc<dyn Edc>)
            }
            EdcConfig::Redcap { url, .. } => Err(EdcError::Faulty {
                place: url.clone(),
                line: None,
                what: "REDCap's API cannot be read by this version".to_owned(),
                remedy: "export the project to a folder and write edc kind = \"redcap_files\""
                    .to_owned(),
            }),
        }
    }
}
