//! A study as a folder of exported files, read again whenever one of them changes.

use std::{
    collections::HashSet,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
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
const ATTEMPTS: usize = 4;
/// How long a folder must have lain still before what was read of it is believed.
const SETTLED: Duration = Duration::from_millis(500);

/// A folder of REDCap exports: metadata.csv (or dictionary.csv) and records.csv (or data.csv), and
/// where the project has them events.csv, form_event_mapping.csv, repeating.csv, project.json.
///
/// The parsed study is shared until a file's time, length or identity changes. Hazard: a file system
/// that keeps times coarser than two writes of equal length apart hides the second.
///
/// A file that is still being written may end at the end of a row, and then looks like a study with fewer
/// patients. So what was read counts only once no file has changed for half a second: files older than that
/// cost nothing, and who saves an edit and asks at once waits the rest of it. A folder that keeps changing
/// is [`EdcError::Unavailable`] after some two seconds, which is worth a retry. Hazard: a writer that pauses
/// longer in the middle of a file is not noticed; write beside the folder and rename into it.
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
    load_when_settled(dir, known, std::thread::sleep)
}

/// `wait` lets that much time pass.
fn load_when_settled(
    dir: &Path,
    known: Option<Arc<Loaded>>,
    mut wait: impl FnMut(Duration),
) -> Result<Arc<Loaded>, EdcError> {
    let mut stamps = stamps(dir)?;
    if let Some(known) = known.filter(|known| known.stamps == stamps) {
        return Ok(known);
    }
    for _ in 0..ATTEMPTS {
        let outcome = load(dir);
        if let Some(rest) = unsettled_for(&stamps, SystemTime::now()) {
            wait(rest);
        }
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
        what: "the files keep changing; the export is still being written".to_owned(),
    })
}

/// How long the youngest file has yet to lie still; `None` when all have long enough. A time in the future
/// (another machine's clock) tells nothing, so the whole span is waited for.
fn unsettled_for(stamps: &[Stamp], now: SystemTime) -> Option<Duration> {
    let age = |stamp: &Stamp| {
        stamp.modified.map_or(Duration::ZERO, |at| {
            now.duration_since(at).unwrap_or_default()
        })
    };
    let youngest = stamps.iter().map(age).min()?;
    SETTLED.checked_sub(youngest).filter(|rest| !rest.is_zero())
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

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        reason = "a failed expectation is the test's verdict"
    )]

    use std::{fs::File, io::Write};

    use super::*;

    const DICTIONARY: &str =
        "field_name,form_name,field_type,field_label\nid,base,text,Id\nage,base,text,Age\n";

    fn folder(records: &str) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("metadata.csv"), DICTIONARY).unwrap();
        fs::write(dir.path().join("records.csv"), records).unwrap();
        just_written(dir.path());
        dir
    }

    /// A clock ahead stands for a write this instant, however slow the machine of the test.
    fn just_written(dir: &Path) {
        let path = dir.join("records.csv");
        let file = File::options().append(true).open(path).unwrap();
        file.set_modified(SystemTime::now() + Duration::from_secs(3600))
            .unwrap();
    }

    fn append(dir: &Path, row: &str) {
        let path = dir.join("records.csv");
        let mut file = File::options().append(true).open(path).unwrap();
        file.write_all(row.as_bytes()).unwrap();
        just_written(dir);
    }

    fn age(dir: &Path, by: Duration) {
        for name in ["metadata.csv", "records.csv"] {
            let file = File::options().append(true).open(dir.join(name)).unwrap();
            file.set_modified(SystemTime::now() - by).unwrap();
        }
    }

    #[test]
    fn a_file_still_being_written_is_waited_for() {
        let dir = folder("id,age\n1,50\n");
        let mut rest = vec!["3,52\n", "2,51\n"];
        let mut waited = Vec::new();
        let loaded = load_when_settled(dir.path(), None, |span| {
            waited.push(span);
            if let Some(row) = rest.pop() {
                append(dir.path(), row);
            }
        })
        .unwrap();
        assert_eq!(loaded.study.ids, ["1", "2", "3"]);
        assert_eq!(waited, [SETTLED; 3]);
    }

    #[test]
    fn a_fault_in_a_file_still_being_written_is_no_fault() {
        let dir = folder("id,age\n1,\"5");
        let mut rest = Some("0\"\n");
        let loaded = load_when_settled(dir.path(), None, |_| {
            if let Some(row) = rest.take() {
                append(dir.path(), row);
            }
        })
        .unwrap();
        assert_eq!(loaded.study.ids, ["1"]);
    }

    #[test]
    fn a_file_that_keeps_growing_is_unavailable_for_now() {
        let dir = folder("id,age\n1,50\n");
        let mut next = 2;
        let error = load_when_settled(dir.path(), None, |_| {
            append(dir.path(), &format!("{next},50\n"));
            next += 1;
        })
        .unwrap_err();
        assert!(error.is_retryable(), "{error:?}");
        assert!(error.to_string().contains("still being written"), "{error}");
    }

    #[test]
    fn old_files_and_files_already_read_are_not_waited_for() {
        let dir = folder("id,age\n1,50\n");
        let never = |span| panic!("waited for {span:?}");
        age(dir.path(), SETTLED * 2);
        let loaded = load_when_settled(dir.path(), None, never).unwrap();
        assert_eq!(loaded.study.ids, ["1"]);
        append(dir.path(), "2,51\n");
        let fresh = load_when_settled(dir.path(), Some(loaded), |_| {}).unwrap();
        assert_eq!(fresh.study.ids, ["1", "2"]);
        let again = load_when_settled(dir.path(), Some(Arc::clone(&fresh)), never).unwrap();
        assert!(Arc::ptr_eq(&fresh, &again));
    }

    #[test]
    fn a_young_file_is_waited_for_the_rest_of_the_span() {
        let now = SystemTime::now();
        let stamp = |age: Duration| Stamp {
            path: PathBuf::new(),
            modified: Some(now - age),
            length: 0,
            #[cfg(unix)]
            identity: (0, 0, 0),
        };
        let fifth = SETTLED / 5;
        assert_eq!(
            unsettled_for(&[stamp(fifth), stamp(SETTLED)], now),
            Some(SETTLED - fifth)
        );
        assert_eq!(unsettled_for(&[stamp(SETTLED)], now), None);
    }

    #[test]
    fn a_time_in_the_future_is_waited_out_once() {
        let dir = folder("id,age\n1,50\n");
        let mut waited = Vec::new();
        load_when_settled(dir.path(), None, |span| waited.push(span)).unwrap();
        assert_eq!(waited, [SETTLED]);
    }
}
