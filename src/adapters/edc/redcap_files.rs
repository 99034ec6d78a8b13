//! A study as a folder of exported files, read again whenever one of them changes.

use std::{
    collections::HashSet,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use futures::{FutureExt, future::BoxFuture};
use sha2::{Digest, Sha256};
use tokio::sync::Mutex;

use crate::types::{dictionary::Dictionary, record::Record};

use super::{
    Edc, Extract,
    error::{EdcError, Warning},
    export::{self, Study, Table, Tables, metadata, structure::ProjectInfo},
};

/// The parts of an export and the names they may have, the first that exists is read.
const METADATA: &[&str] = &["metadata.csv", "dictionary.csv"];
const RECORDS: &[&str] = &["records.csv", "data.csv"];
const EVENTS: &[&str] = &["events.csv", "event.csv"];
const MAPPING: &[&str] = &["form_event_mapping.csv"];
const REPEATING: &[&str] = &["repeating.csv"];
const PROJECT: &[&str] = &["project.json"];
const PARTS: [&[&str]; 6] = [METADATA, RECORDS, EVENTS, MAPPING, REPEATING, PROJECT];
/// How often a folder may change under our hands before we give up for now.
const ATTEMPTS: usize = 3;

/// A folder of REDCap exports: metadata.csv (or dictionary.csv) and records.csv (or data.csv), and
/// where the project has them events.csv, form_event_mapping.csv, repeating.csv, project.json.
///
/// The parsed study is shared until a file's time, length or identity changes. Hazard: a file system
/// that keeps times coarser than two writes of equal length apart hides the second.
#[derive(Debug)]
pub struct RedcapFiles {
    dir: PathBuf,
    /// Held while loading, so that many workers asking at once load once.
    loaded: Mutex<Option<Arc<Loaded>>>,
}

#[derive(Debug)]
struct Loaded {
    stamps: Vec<Stamp>,
    fingerprint: String,
    study: Study,
}

/// What tells a changed file from an unchanged one without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    path: PathBuf,
    modified: Option<SystemTime>,
    length: u64,
    #[cfg(unix)]
    identity: (u64, i64, i64),
}

impl RedcapFiles {
    /// The study in `dir`. Nothing is read until somebody asks.
    #[must_use]
    pub fn new(dir: PathBuf) -> Self {
        Self {
            dir,
            loaded: Mutex::new(None),
        }
    }

    async fn current(&self) -> Result<Arc<Loaded>, EdcError> {
        let mut loaded = self.loaded.lock().await;
        let dir = self.dir.clone();
        let known = loaded.clone();
        let fresh = tokio::task::spawn_blocking(move || load_if_changed(&dir, known))
            .await
            .map_err(|e| EdcError::Unavailable {
                place: self.dir.display().to_string(),
                what: format!("the reading was broken off ({e})"),
            })??;
        *loaded = Some(Arc::clone(&fresh));
        Ok(fresh)
    }
}

impl Edc for RedcapFiles {
    fn version(&self) -> BoxFuture<'_, Result<String, EdcError>> {
        async { Ok("redcap_files".to_owned()) }.boxed()
    }

    fn dictionary(&self) -> BoxFuture<'_, Result<Arc<Dictionary>, EdcError>> {
        async { Ok(Arc::clone(&self.current().await?.study.dictionary)) }.boxed()
    }

    fn record_ids(&self) -> BoxFuture<'_, Result<Vec<String>, EdcError>> {
        async { Ok(self.current().await?.study.ids.clone()) }.boxed()
    }

    fn records<'a>(&'a self, ids: &'a [String]) -> BoxFuture<'a, Result<Extract, EdcError>> {
        async move {
            let loaded = self.current().await?;
            let mut records: Vec<Arc<Record>> = Vec::with_capacity(ids.len());
            let mut absent = Vec::new();
            let mut asked = HashSet::with_capacity(ids.len());
            for id in ids {
                if !asked.insert(id) {
                    continue;
                }
                match loaded.study.records.get(id) {
                    Some(record) => records.push(Arc::clone(record)),
                    None => absent.push(id.clone()),
                }
            }
            if !absent.is_empty() {
                return Err(EdcError::NotFound { records: absent });
            }
            Ok(Extract {
                records,
                dictionary: Arc::clone(&loaded.study.dictionary),
                fingerprint: loaded.fingerprint.clone(),
            })
        }
        .boxed()
    }

    fn warnings(&self) -> BoxFuture<'_, Result<Vec<Warning>, EdcError>> {
        async { Ok(self.current().await?.study.warnings.clone()) }.boxed()
    }
}

fn load_if_changed(dir: &Path, known: Option<Arc<Loaded>>) -> Result<Arc<Loaded>, EdcError> {
    let mut stamps = stamps(dir)?;
    if let Some(known) = known.filter(|known| known.stamps == stamps) {
        return Ok(known);
    }
    for _ in 0..ATTEMPTS {
        let outcome = load(dir);
        let after = self::stamps(dir)?;
        // A fault seen in a folder somebody is just writing is no fault yet.
        if after == stamps {
            let (fingerprint, study) = outcome?;
            return Ok(Arc::new(Loaded {
                stamps,
                fingerprint,
                study,
            }));
        }
        stamps = after;
    }
    Err(EdcError::Unavailable {
        place: dir.display().to_string(),
        what: "the files keep changing while they are read".to_owned(),
    })
}

/// The first name of each part that exists.
fn paths(dir: &Path) -> Result<[Option<PathBuf>; 6], EdcError> {
    let mut found = [const { None }; 6];
    for (slot, names) in found.iter_mut().zip(PARTS) {
        for name in names {
            let path = dir.join(name);
            if path.try_exists().map_err(|e| unreadable(&path, &e))? {
                *slot = Some(path);
                break;
            }
        }
    }
    Ok(found)
}

fn stamps(dir: &Path) -> Result<Vec<Stamp>, EdcError> {
    let mut stamps = Vec::with_capacity(PARTS.len());
    for path in paths(dir)?.into_iter().flatten() {
        let meta = match fs::metadata(&path) {
            Ok(meta) => meta,
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue, // replaced just now
            Err(e) => return Err(unreadable(&path, &e)),
        };
        stamps.push(Stamp {
            modified: meta.modified().ok(),
            length: meta.len(),
            #[cfg(unix)]
            identity: {
                use std::os::unix::fs::MetadataExt;
                (meta.ino(), meta.ctime(), meta.ctime_nsec())
            },
            path,
        });
    }
    Ok(stamps)
}

fn load(dir: &Path) -> Result<(String, Study), EdcError> {
    let mut hash = Sha256::new();
    let [metadata, records, events, mapping, repeating, project] = paths(dir)?;
    let mut table = |path: Option<PathBuf>, rename: fn(&str) -> String| {
        path.map(|path| Table::read(&path, &bytes(&path, &mut hash)?, rename))
            .transpose()
    };
    let metadata = table(metadata, metadata::column)?;
    let records = table(records, str::to_owned)?;
    let events = table(events, str::to_owned)?;
    let mapping = table(mapping, str::to_owned)?;
    let repeating = table(repeating, str::to_owned)?;
    let project = match project {
        Some(path) => project_info(&path, &bytes(&path, &mut hash)?)?,
        None => ProjectInfo::default(),
    };
    let study = export::study(Tables {
        metadata: metadata.ok_or_else(|| missing(dir, METADATA))?,
        records: records.ok_or_else(|| missing(dir, RECORDS))?,
        events,
        mapping,
        repeating,
        project,
    })?;
    let fingerprint = hash
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    Ok((fingerprint, study))
}

/// A file's bytes, with name and length entered into the fingerprint so that no two folders meet.
fn bytes(path: &Path, hash: &mut Sha256) -> Result<Vec<u8>, EdcError> {
    let bytes = fs::read(path).map_err(|e| unreadable(path, &e))?;
    hash.update(path.file_name().unwrap_or_default().as_encoded_bytes());
    hash.update([0]);
    hash.update((bytes.len() as u64).to_be_bytes());
    hash.update(&bytes);
    Ok(bytes)
}

fn project_info(path: &Path, bytes: &[u8]) -> Result<ProjectInfo, EdcError> {
    let fault = |line, what| EdcError::Faulty {
        place: path.display().to_string(),
        line,
        what,
        remedy: "write REDCap's project information as exported by its API, in UTF-8".to_owned(),
    };
    let text = std::str::from_utf8(bytes).map_err(|_| fault(None, "is not UTF-8".to_owned()))?;
    ProjectInfo::parse(text).map_err(|e| {
        let line = u64::try_from(e.line()).ok().filter(|&line| line > 0);
        fault(line, "is no project information".to_owned())
    })
}

fn missing(dir: &Path, names: &[&str]) -> EdcError {
    EdcError::Faulty {
        place: dir.display().to_string(),
        line: None,
        what: if dir.is_dir() {
            format!("the folder holds no {}", names.join(" and no "))
        } else {
            "there is no such folder".to_owned()
        },
        remedy: "export it from REDCap into this folder, or correct edc.dir in the project file"
            .to_owned(),
    }
}

fn unreadable(path: &Path, error: &io::Error) -> EdcError {
    let place = path.display().to_string();
    match error.kind() {
        io::ErrorKind::NotFound
        | io::ErrorKind::PermissionDenied
        | io::ErrorKind::NotADirectory
        | io::ErrorKind::IsADirectory => EdcError::Faulty {
            place,
            line: None,
            what: format!("cannot be opened ({error})"),
            remedy: "check the path and the rights of the user the program runs as".to_owned(),
        },
        _ => EdcError::Unavailable {
            place,
            what: format!("cannot be read ({error})"),
        },
    }
}
