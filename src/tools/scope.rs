//! What one run may see. The project, and the record of a run about one, come from the run's own row: no
//! argument of the model's can widen them.

use std::sync::Arc;

use chrono::{DateTime, NaiveDate, Utc};
use sqlx::PgPool;

use crate::{
    store::projects::Project,
    types::{dictionary::Dictionary, record::Record},
};

/// The study's data as it stood at one moment: what a run reads all its answers from.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// Every record, in export order.
    pub records: Arc<[Arc<Record>]>,
    /// The dictionary they obey.
    pub dictionary: Arc<Dictionary>,
    /// Names this state of the data.
    pub fingerprint: String,
    /// When it was read.
    pub taken_at: DateTime<Utc>,
}

/// What one run may see.
pub struct Scope<'a> {
    /// The study.
    pub project: &'a Project,
    /// Its data.
    pub data: &'a Snapshot,
    /// The only record a run about one subject may read; `None`: all of the study's.
    pub record: Option<&'a str>,
    /// Today in the project's time zone.
    pub today: NaiveDate,
    /// Connections that can't write, see [`crate::store::reader`].
    pub reader: &'a PgPool,
}
