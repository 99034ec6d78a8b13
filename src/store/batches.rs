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
    /// One sentence, when it failed.
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
                  message_id AS "message_id: MessageId", message_part, error, started_at,
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
        error: row.error,
        started_at: row.started_at,
        running_s: row.running_s,
    }))
}

/// Starts a planned request: how many records it has, in which pages (none when runs were made at once).
///
/// # Errors
/// The database failed.
pub async fn start(
    conn: &mut PgConnection,
    id: BatchId,
    total: i32,
    pages: &[Vec<String>],
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        r#"UPDATE iit_batches SET state = 'running', total = $2, started_at = now() WHERE id = $1 AND state = 'planning'"#,
        id as BatchId,
        total,
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
           WHERE r.id = $1 AND r.in_batch FOR UPDATE OF b"#,
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

/// Gives a request up.
///
/// # Errors
/// The database failed.
pub async fn fail(conn: &mut PgConnection, id: BatchId, error: &str) -> Result<bool, sqlx::Error> {
    let done = sqlx::query!(
        r#"UPDATE iit_batches SET state = 'failed', error = $2, finished_at = now()
           WHERE id = $1 AND state IN ('planning', 'running')"#,
        id as BatchId,
        error,
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Notes what went wrong with a page; the first such sentence stays.
///
/// # Errors
/// The database failed.
pub async fn note_error(
    conn: &mut PgConnection,
    id: BatchId,
    error: &str,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        r#"UPDATE iit_batches SET error = COALESCE(error, $2) WHERE id = $1"#,
        id as BatchId,
        error,
    )
    .execute(conn)
    .await?;
    Ok(())
}
