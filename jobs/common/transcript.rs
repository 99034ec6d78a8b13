//! A thread of a run's transcript, between the rows as they are stored and what was said as the engines know it.

use sqlx::PgConnection;

use crate::{
    engines::react::Said,
    queue::JobError,
    store::trace::{self, Entry},
    types::ids::RunId,
};

/// What was said in a thread, oldest first.
///
/// # Errors
/// The database failed; another version wrote the thread.
pub async fn read(
    conn: &mut PgConnection,
    run: RunId,
    thread: &str,
) -> Result<Vec<Said>, JobError> {
    let mut said = Vec::new();
    for row in trace::thread(conn, run, thread).await? {
        said.extend(Said::read(&row.kind, &row.content).map_err(JobError::dead)?);
    }
    Ok(said)
}

/// A row as it is stored.
#[must_use]
pub fn entry(said: &Said) -> Entry {
    let (kind, content) = said.row();
    Entry::new(kind, content)
}
