//! The study's data as it stood at one moment, kept until it changes: a tool answers from memory.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use chrono::{DateTime, Utc};

use crate::{
    adapters::edc::{Edc, EdcError},
    types::{clock::Clock, dictionary::Dictionary, record::Record},
};

/// Studies kept at most. Their records are shared with the data source, so a kept one costs its index.
const KEPT: usize = 16;

/// The study's data as it stood at one moment: what a tool call reads all its answers from. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// Every record, in export order.
    pub records: Arc<[Arc<Record>]>,
    /// The dictionary they obey.
    pub dictionary: Arc<Dictionary>,
    /// Names this state of the data.
    pub fingerprint: String,
    /// When the data was last known to stand like this.
    pub taken_at: DateTime<Utc>,
    by_id: Arc<HashMap<String, usize>>,
}

impl Snapshot {
    /// A snapshot of these records.
    #[must_use]
    pub fn new(
        records: Vec<Arc<Record>>,
        dictionary: Arc<Dictionary>,
        fingerprint: String,
        taken_at: DateTime<Utc>,
    ) -> Self {
        let by_id = records
            .iter()
            .enumerate()
            .map(|(at, record)| (record.id.clone(), at))
            .collect();
        Self {
            records: records.into(),
            dictionary,
            fingerprint,
            taken_at,
            by_id: Arc::new(by_id),
        }
    }

    /// The record of exactly that id.
    #[must_use]
    pub fn record(&self, id: &str) -> Option<&Arc<Record>> {
        self.by_id.get(id).and_then(|&at| self.records.get(at))
    }

    /// Reads all of a study. What changes while it is read is read again.
    ///
    /// # Errors
    /// The source can't be read, or keeps changing.
    pub async fn read(edc: &dyn Edc, clock: &Clock) -> Result<Self, EdcError> {
        let mut tries = 0;
        loop {
            tries += 1;
            let ids = edc.record_ids().await?;
            match edc.records(&ids).await {
                // A record was deleted between the two questions.
                Err(EdcError::NotFound { .. }) if tries < 3 => {}
                Err(error) => return Err(error),
                Ok(extract) => {
                    // One that was added between them would be missing without a word.
                    if edc.record_ids().await? == ids || tries >= 3 {
                        return Ok(Self::new(
                            extract.records,
                            extract.dictionary,
                            extract.fingerprint,
                            clock.now(),
                        ));
                    }
                }
            }
        }
    }
}

/// The newest snapshot of each study of a process.
#[derive(Debug, Default)]
pub struct Snapshots {
    kept: Mutex<HashMap<String, Snapshot>>,
}

impl Snapshots {
    /// The data of `project` as it stands now: the kept snapshot as long as nothing changed.
    ///
    /// # Errors
    /// The source can't be read.
    pub async fn current(
        &self,
        project: &str,
        edc: &dyn Edc,
        clock: &Clock,
    ) -> Result<Snapshot, EdcError> {
        // No records: what comes is the dictionary and the state of the data.
        let now = edc.records(&[]).await?;
        if let Some(mut known) = self.known(project, &now.fingerprint) {
            known.taken_at = clock.now();
            return Ok(known);
        }
        let fresh = Snapshot::read(edc, clock).await?;
        let mut kept = self.lock();
        if kept.len() >= KEPT && !kept.contains_key(project) {
            kept.clear();
        }
        kept.insert(project.to_owned(), fresh.clone());
        Ok(fresh)
    }

    fn known(&self, project: &str, fingerprint: &str) -> Option<Snapshot> {
        self.lock()
            .get(project)
            .filter(|kept| kept.fingerprint == fingerprint)
            .cloned()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Snapshot>> {
        // The map is never left half-written, so a poisoned lock still guards good data.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
