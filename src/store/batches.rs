//! QC requests over one record, some, or a whole project. Records are counted down in the settlements
//! of the jobs that work on them; nobody waits.

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, types::Json};

use crate::types::ids::{BatchId, MessageId, RunId};

/// A request to be.
#[derive(Debug, Clone)]
pub struct NewBatch<'a> {
    /// The study.
    pub project: &'a str,
    /// One skill only; `None` = every active skill.
    pub skill: Option<&'a str>,
    /// These records; `None` = the whole project.
    pub records: Option<&'a [String]>,
    /// The message that asked, and the part of the reply that waits for it.
    pub reply_to: Option<(MessageId, i32)>,
    /// Who asked.
    pub requested_by: &'a str,
}

/// A request as stored.
#[derive(Debug, Clone)]
pub struct Batch {
    /// Its id.
    pub id: BatchId,
    /// The study.
    pub project: String,
    /// One skill only; `None` = every active skill.
    pub skill: Option<String>,
    /// These records; `None` = the whole project.
    pub records: Option<Vec<String>>,
    /// `planning`, `running`, `done`, `failed`, `cancelled`.
    pub state: String,
    /// Records.
    pub total: i32,
    /// Records none of whose runs is running any more.
    pub done: i32,
    /// Records with a run that failed.
    pub failed: i32,
    /// Findings so far.
    pub findings: i32,
    /// The message that asked, and the part of the reply that waits for it.
    pub reply_to: Option<(MessageId, i32)>,
    /// The skills and versions it checks with; empty until it starts.
    pub skills: Vec<(String, i32)>,
    /// What people are told beside the result.
    pub note: Option<String>,
    /// One sentence for operators, when something failed.
    pub error: Option<String>,
    /// When the first page could start.
    pub started_at: Option<DateTime<Utc>>,
    /// Seconds since then (database clock).
    pub running_s: Option<f64>,
}

impl Batch {
    /// Seconds left at the rate so far; `None` before anything is done.
    #[must_use]
    pub fn eta_s(&self) -> Option<f64> {
        let settled = f64::from(self.done + self.failed);
        if self.state == "done" || self.state == "failed" {
            return Some(0.0);
        }
        self.running_s
            .filter(|_| settled > 0.0)
            .map(|s| s / settled * (f64::from(self.total) - settled))
    }
}

/// Writes a request; its planning job is the caller's to enqueue.
///
/// # Errors
/// The database failed.
pub async fn create(conn: &mut PgConnection, batch: &NewBatch<'_>) -> Result<BatchId, sqlx::Error> {
    let id = BatchId::generate();
    sqlx::query!(
        r#"INSERT INTO iit_batches (id, project_id, skill_type, records, message_id, message_part, requested_by)
           VALUES ($1, $2, $3, $4, $5, $6, $7)"#,
        id as BatchId,
        batch.project,
        batch.skill,
        batch.records.map(Json) as _,
        batch.reply_to.map(|(message, _)| message) as Option<MessageId>,
        batch.reply_to.map(|(_, part)| part),
        batch.requested_by,
    )
    .execute(conn)
    .await?;
    Ok(id)
}

/// The request of that id.
///
/// # Errors
/// The database failed.
pub async fn get(conn: &mut PgConnection, id: BatchId) -> Result<Option<Batch>, sqlx::Error> {
    let row = sqlx::query!(
        r#"SELECT project_id, skill_type, records AS "records: Json<Vec<String>>", state, total, done, failed, findings,
                  message_id AS "message_id: MessageId", message_part, note, error, started_at,
                  skills AS "skills: Json<Vec<(String, i32)>>",
                  EXTRACT(EPOCH FROM COALESCE(finished_at, now()) - started_at)::float8 AS running_s
           FROM iit_batches WHERE id = $1"#,
        id as BatchId
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map(|row| Batch {
        id,
        project: row.project_id,
        skill: row.skill_type,
        records: row.records.map(|json| json.0),
        state: row.state,
        total: row.total,
        done: row.done,
        failed: row.failed,
        findings: row.findings,
        reply_to: row.message_id.zip(row.message_part),
        skills: row.skills.0,
        note: row.note,
        error: row.error,
        started_at: row.started_at,
        running_s: row.running_s,
    }))
}

/// Starts a planned request: how many records it has, in which pages (none when runs were made at once),
/// and with which versions of which skills it is checked from now on.
///
/// # Errors
/// The database failed.
pub async fn start(
    conn: &mut PgConnection,
    id: BatchId,
    total: i32,
    pages: &[Vec<String>],
    skills: &[(String, i32)],
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        r#"UPDATE iit_batches SET state = 'running', total = $2, skills = $3, started_at = now()
           WHERE id = $1 AND state = 'planning'"#,
        id as BatchId,
        total,
        Json(skills) as _,
    )
    .execute(&mut *conn)
    .await?;
    let numbers: Vec<i32> = (0..).take(pages.len()).collect();
    let records: Vec<serde_json::Value> =
        pages.iter().map(|page| serde_json::json!(page)).collect();
    sqlx::query!(
        r#"INSERT INTO iit_batch_pages (batch_id, no, records)
           SELECT $1, t.no, t.records FROM UNNEST($2::int4[], $3::jsonb[]) AS t(no, records)"#,
        id as BatchId,
        &numbers,
        &records,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// The records of a page that is still to be done; `None` when it was done before.
///
/// # Errors
/// The database failed.
pub async fn page(
    conn: &mut PgConnection,
    id: BatchId,
    no: i32,
) -> Result<Option<Vec<String>>, sqlx::Error> {
    let row = sqlx::query_scalar!(
        r#"SELECT records AS "records: Json<Vec<String>>" FROM iit_batch_pages
           WHERE batch_id = $1 AND no = $2 AND state = 'queued'"#,
        id as BatchId,
        no
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map(|json| json.0))
}

/// Ends a page. Returns whether it was still open.
///
/// # Errors
/// The database failed.
pub async fn end_page(
    conn: &mut PgConnection,
    id: BatchId,
    no: i32,
    state: &str,
) -> Result<bool, sqlx::Error> {
    let done = sqlx::query!(
        r#"UPDATE iit_batch_pages SET state = $3 WHERE batch_id = $1 AND no = $2 AND state = 'queued'"#,
        id as BatchId,
        no,
        state
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Counts records and findings. Returns whether this was the last of the request: then, and only then,
/// the caller finishes it.
///
/// # Errors
/// The database failed.
pub async fn count(
    conn: &mut PgConnection,
    id: BatchId,
    done: i32,
    failed: i32,
    findings: i32,
) -> Result<bool, sqlx::Error> {
    let complete = sqlx::query_scalar!(
        r#"UPDATE iit_batches
           SET done = done + $2::int4, failed = failed + $3::int4, findings = findings + $4,
               state = CASE WHEN done + failed + $2::int4 + $3::int4 >= total AND state = 'running' THEN 'done' ELSE state END,
               finished_at = CASE WHEN done + failed + $2::int4 + $3::int4 >= total AND state = 'running' THEN now() ELSE finished_at END
           WHERE id = $1
           RETURNING ($2::int4 + $3::int4 > 0 AND done + failed >= total AND state = 'done') AS "complete!""#,
        id as BatchId,
        done,
        failed,
        findings,
    )
    .fetch_optional(conn)
    .await?;
    Ok(complete.unwrap_or(false))
}

/// Ends a request that turned out to have no records.
///
/// # Errors
/// The database failed.
pub async fn complete_empty(conn: &mut PgConnection, id: BatchId) -> Result<(), sqlx::Error> {
    sqlx::query!(
        r#"UPDATE iit_batches SET state = 'done', finished_at = now() WHERE id = $1 AND state = 'running' AND total = 0"#,
        id as BatchId
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Takes a run out of its batch's count when it stops running for the first time, and counts its record
/// when it was the record's last. Returns the batch that is complete by it, if any.
///
/// # Errors
/// The database failed.
pub async fn run_stopped(
    conn: &mut PgConnection,
    run: RunId,
) -> Result<Option<BatchId>, sqlx::Error> {
    let Some(batch) = sqlx::query_scalar!(
        r#"SELECT b.id AS "id: BatchId" FROM iit_batches b JOIN iit_task_run r ON r.batch_id = b.id
           WHERE r.id = $1 AND r.in_batch FOR NO KEY UPDATE OF b"#,
        run as RunId
    )
    .fetch_optional(&mut *conn)
    .await?
    else {
        return Ok(None);
    };
    let Some(row) = sqlx::query!(
        r#"UPDATE iit_task_run SET in_batch = false WHERE id = $1 AND in_batch RETURNING record, findings"#,
        run as RunId
    )
    .fetch_optional(&mut *conn)
    .await?
    else {
        return Ok(None);
    };
    let left = sqlx::query!(
        r#"SELECT count(*) FILTER (WHERE in_batch) AS "running!", count(*) FILTER (WHERE status = 'failed') AS "failed!"
           FROM iit_task_run WHERE batch_id = $1 AND record = $2"#,
        batch as BatchId,
        row.record,
    )
    .fetch_one(&mut *conn)
    .await?;
    let (done, failed) = match (left.running, left.failed) {
        (0, 0) => (1, 0),
        (0, _) => (0, 1),
        _ => (0, 0),
    };
    let complete = count(conn, batch, done, failed, row.findings).await?;
    Ok(complete.then_some(batch))
}

/// Gives a request up; `note` is what people are told, `error` what operators read.
///
/// # Errors
/// The database failed.
pub async fn fail(
    conn: &mut PgConnection,
    id: BatchId,
    note: &str,
    error: &str,
) -> Result<bool, sqlx::Error> {
    let done = sqlx::query!(
        r#"UPDATE iit_batches SET state = 'failed', note = $2, error = $3, finished_at = now()
           WHERE id = $1 AND state IN ('planning', 'running')"#,
        id as BatchId,
        note,
        error,
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Notes that not everything was checked: for people, and, when something failed, for operators. The
/// first such sentences stay.
///
/// # Errors
/// The database failed.
pub async fn note(
    conn: &mut PgConnection,
    id: BatchId,
    note: &str,
    error: Option<&str>,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        r#"UPDATE iit_batches SET note = COALESCE(note, $2), error = COALESCE(error, $3) WHERE id = $1"#,
        id as BatchId,
        note,
        error,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Opens a failed page again, so that its job can do it. Returns whether it was failed.
///
/// # Errors
/// The database failed.
pub async fn reopen_page(
    conn: &mut PgConnection,
    id: BatchId,
    no: i32,
) -> Result<bool, sqlx::Error> {
    let records = sqlx::query_scalar!(
        r#"UPDATE iit_batch_pages SET state = 'queued' WHERE batch_id = $1 AND no = $2 AND state = 'failed'
           RETURNING jsonb_array_length(records) AS "records!""#,
        id as BatchId,
        no,
    )
    .fetch_optional(&mut *conn)
    .await?;
    let Some(records) = records else {
        return Ok(false);
    };
    sqlx::query!(
        r#"UPDATE iit_batches SET failed = failed - $2, state = 'running', finished_at = NULL, note = NULL, error = NULL
           WHERE id = $1"#,
        id as BatchId,
        records,
    )
    .execute(conn)
    .await?;
    Ok(true)
}

/// Opens a request again that failed before it started. Returns whether it had.
///
/// # Errors
/// The database failed.
pub async fn reopen(conn: &mut PgConnection, id: BatchId) -> Result<bool, sqlx::Error> {
    let done = sqlx::query!(
        r#"UPDATE iit_batches SET state = 'planning', finished_at = NULL, note = NULL, error = NULL
           WHERE id = $1 AND state = 'failed' AND started_at IS NULL"#,
        id as BatchId
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}
