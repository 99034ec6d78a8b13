//! What one run may see. The project, and the record of a run about one, come from the run's own row: no
//! argument of the model's can widen them.

use chrono::NaiveDate;
use sqlx::PgPool;

use super::snapshot::Snapshot;
use crate::store::projects::Project;

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
