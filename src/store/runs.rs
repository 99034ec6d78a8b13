//! Runs of a skill over a record, and their committed steps. The step number is the fence: an advance
//! happens on the number it started from, or not at all.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::{PgConnection, types::Json};

use crate::types::{
    finding::Finding,
    ids::{BatchId, RunId},
};

/// A run to be.
#[derive(Debug, Clone)]
pub struct NewRun {
    /// Its id.
    pub id: RunId,
    /// The skill it runs.
    pub skill_type: String,
    /// The version it stays with.
    pub skill_version: i32,
    /// Over which record.
    pub record: String,
    /// Where it stands.
    pub state: RunState,
    /// Steps already committed (with this row).
    pub step_no: i32,
    /// Findings of those steps.
    pub findings: i32,
    /// Which data it saw.
    pub data_version: Option<String>,
    /// The record's site, where the study has sites.
    pub site: Option<String>,
}

/// Where a run stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunState {
    /// Before its first step, with a job to do it.
    Begin {
        /// Node it starts at.
        node: String,
    },
    /// At a node, with a job to carry it on.
    At {
        /// Node id.
        node: String,
        /// The engine's own account of where the run stands.
        walk: Value,
    },
    /// At a node, waiting for a person.
    Waiting {
        /// Node id.
        node: String,
        /// The engine's own account of where the run stands.
        walk: Value,
    },
    /// At its end.
    Ended {
        /// Final state, e.g. `end_success`.
        final_state: String,
        /// `clean`, `incomplete`, `review`, `violation`.
        standing: String,
    },
    /// Given up.
    Failed {
        /// Final state, e.g. `record_not_found`.
        final_state: String,
        /// One sentence.
        error: String,
    },
}

impl RunState {
    fn status(&self) -> &'static str {
        match self {
            Self::Begin { .. } | Self::At { .. } => "running",
            Self::Waiting { .. } => "waiting",
            Self::Ended { .. } => "done",
            Self::Failed { .. } => "failed",
        }
    }

    fn node(&self) -> Option<&str> {
        match self {
            Self::Begin { node } | Self::At { node, .. } | Self::Waiting { node, .. } => Some(node),
            Self::Ended { .. } | Self::Failed { .. } => None,
        }
    }

    fn walk(&self) -> Option<&Value> {
        match self {
            Self::At { walk, .. } | Self::Waiting { walk, .. } => Some(walk),
            Self::Begin { .. } | Self::Ended { .. } | Self::Failed { .. } => None,
        }
    }

    fn standing(&self) -> Option<&str> {
        match self {
            Self::Ended { standing, .. } => Some(standing),
            _ => None,
        }
    }

    /// Whether a job carries it on by itself.
    #[must_use]
    pub fn is_running(&self) -> bool {
        matches!(self, Self::Begin { .. } | Self::At { .. })
    }

    fn final_state(&self) -> Option<&str> {
        match self {
            Self::Ended { final_state, .. } | Self::Failed { final_state, .. } => Some(final_state),
            Self::Begin { .. } | Self::At { .. } | Self::Waiting { .. } => None,
        }
    }

    fn error(&self) -> Option<&str> {
        match self {
            Self::Failed { error, .. } => Some(error),
            _ => None,
        }
    }
}

/// A committed step.
#[derive(Debug, Clone)]
pub struct Step {
    /// Its run.
    pub run: RunId,
    /// Number, from 0.
    pub no: i32,
    /// Node it ran.
    pub node: String,
    /// `pass`, `fail`, `not_evaluable`, `incomplete`, `error`, `waiting`, `confirmed`, `dismissed`, `sent`.
    pub outcome: String,
    /// One sentence, when there is something to say.
    pub note: Option<String>,
    /// What it found.
    pub findings: Vec<Finding>,
    /// Attempt of the job that committed it.
    pub attempt: i32,
    /// That job.
    pub job: Option<i64>,
    /// When the work began.
    pub started_at: DateTime<Utc>,
    /// When it was committed (database clock).
    pub committed_at: Option<DateTime<Utc>>,
    /// Model calls it took.
    pub llm_calls: i32,
}

/// A run as stored.
#[derive(Debug, Clone)]
pub struct Run {
    /// Its id.
    pub id: RunId,
    /// The study.
    pub project: String,
    /// `sop`, …
    pub kind: String,
    /// The skill it runs.
    pub skill_type: String,
    /// The version it stays with.
    pub skill_version: i32,
    /// Over which record.
    pub record: String,
    /// `running`, `waiting`, `done`, `failed`, `cancelled`.
    pub status: String,
    /// Where it stands.
    pub node: Option<String>,
    /// Steps committed; the number the next step will have.
    pub step_no: i32,
    /// The engine's own account of where the run stands.
    pub walk: Option<Value>,
    /// How it ended.
    pub final_state: Option<String>,
    /// What the end amounts to.
    pub standing: Option<String>,
    /// Findings of all its steps.
    pub findings: i32,
    /// Tokens spent.
    pub tokens: i64,
    /// The request it belongs to.
    pub batch: Option<BatchId>,
    /// One sentence, when it failed.
    pub error: Option<String>,
}

/// Writes runs, in one statement.
///
/// # Errors
/// The database failed.
pub async fn insert(
    conn: &mut PgConnection,
    project: &str,
    batch: BatchId,
    runs: &[NewRun],
) -> Result<(), sqlx::Error> {
    let ids: Vec<uuid::Uuid> = runs.iter().map(|r| r.id.0).collect();
    let types: Vec<String> = runs.iter().map(|r| r.skill_type.clone()).collect();
    let versions: Vec<i32> = runs.iter().map(|r| r.skill_version).collect();
    let records: Vec<String> = runs.iter().map(|r| r.record.clone()).collect();
    let statuses: Vec<String> = runs.iter().map(|r| r.state.status().to_owned()).collect();
    let nodes: Vec<Option<String>> = runs
        .iter()
        .map(|r| r.state.node().map(str::to_owned))
        .collect();
    let steps: Vec<i32> = runs.iter().map(|r| r.step_no).collect();
    let walks: Vec<Option<Value>> = runs.iter().map(|r| r.state.walk().cloned()).collect();
    let standings: Vec<Option<String>> = runs
        .iter()
        .map(|r| r.state.standing().map(str::to_owned))
        .collect();
    let sites: Vec<Option<String>> = runs.iter().map(|r| r.site.clone()).collect();
    let finals: Vec<Option<String>> = runs
        .iter()
        .map(|r| r.state.final_state().map(str::to_owned))
        .collect();
    let findings: Vec<i32> = runs.iter().map(|r| r.findings).collect();
    let errors: Vec<Option<String>> = runs
        .iter()
        .map(|r| r.state.error().map(str::to_owned))
        .collect();
    let versions_of_data: Vec<Option<String>> =
        runs.iter().map(|r| r.data_version.clone()).collect();
    sqlx::query!(
        r#"INSERT INTO iit_task_run (id, project_id, kind, skill_type, skill_version, record, status, node, step_no,
                                     walk, final_state, standing, findings, error, data_version, site, batch_id,
                                     in_batch, finished_at)
           SELECT t.id, $15, 'sop', t.skill_type, t.skill_version, t.record, t.status, t.node, t.step_no,
                  t.walk, t.final_state, t.standing, t.findings, t.error, t.data_version, t.site, $16,
                  t.status = 'running', CASE WHEN t.status IN ('done', 'failed') THEN now() END
           FROM UNNEST($1::uuid[], $2::text[], $3::int4[], $4::text[], $5::text[], $6::text[], $7::int4[],
                       $8::jsonb[], $9::text[], $10::text[], $11::int4[], $12::text[], $13::text[], $14::text[])
                AS t(id, skill_type, skill_version, record, status, node, step_no, walk, final_state, standing,
                     findings, error, data_version, site)"#,
        &ids,
        &types,
        &versions,
        &records,
        &statuses,
        &nodes as &[Option<String>],
        &steps,
        &walks as &[Option<Value>],
        &finals as &[Option<String>],
        &standings as &[Option<String>],
        &findings,
        &errors as &[Option<String>],
        &versions_of_data as &[Option<String>],
        &sites as &[Option<String>],
        project,
        batch as BatchId,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Appends steps, in one statement. The primary key refuses a step number committed before.
///
/// # Errors
/// The database failed.
pub async fn append_steps(conn: &mut PgConnection, steps: &[Step]) -> Result<(), sqlx::Error> {
    let runs: Vec<uuid::Uuid> = steps.iter().map(|s| s.run.0).collect();
    let numbers: Vec<i32> = steps.iter().map(|s| s.no).collect();
    let nodes: Vec<String> = steps.iter().map(|s| s.node.clone()).collect();
    let outcomes: Vec<String> = steps.iter().map(|s| s.outcome.clone()).collect();
    let notes: Vec<Option<String>> = steps.iter().map(|s| s.note.clone()).collect();
    let findings: Vec<Value> = steps
        .iter()
        .map(|s| serde_json::to_value(&s.findings).unwrap_or_default())
        .collect();
    let attempts: Vec<i32> = steps.iter().map(|s| s.attempt).collect();
    let jobs: Vec<Option<i64>> = steps.iter().map(|s| s.job).collect();
    let started: Vec<DateTime<Utc>> = steps.iter().map(|s| s.started_at).collect();
    let llm_calls: Vec<i32> = steps.iter().map(|s| s.llm_calls).collect();
    sqlx::query!(
        r#"INSERT INTO iit_task_step (run_id, no, node, outcome, note, findings, attempt, job_id, started_at, llm_calls)
           SELECT * FROM UNNEST($1::uuid[], $2::int4[], $3::text[], $4::text[], $5::text[], $6::jsonb[], $7::int4[],
                                $8::int8[], $9::timestamptz[], $10::int4[])"#,
        &runs,
        &numbers,
        &nodes,
        &outcomes,
        &notes as &[Option<String>],
        &findings,
        &attempts,
        &jobs as &[Option<i64>],
        &started,
        &llm_calls,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// The run of a skill of that id.
///
/// # Errors
/// The database failed.
pub async fn get(conn: &mut PgConnection, id: RunId) -> Result<Option<Run>, sqlx::Error> {
    sqlx::query!(
        r#"SELECT id AS "id: RunId", project_id, kind, skill_type AS "skill_type!", skill_version AS "skill_version!",
                  record AS "record!", status, node, step_no, walk, final_state, standing, findings, tokens, batch_id AS "batch_id: BatchId", error
           FROM iit_task_run WHERE id = $1 AND kind = 'sop'"#,
        id as RunId
    )
    .fetch_optional(conn)
    .await
    .map(|row| {
        row.map(|row| Run {
            id: row.id,
            project: row.project_id,
            kind: row.kind,
            skill_type: row.skill_type,
            skill_version: row.skill_version,
            record: row.record,
            status: row.status,
            node: row.node,
            step_no: row.step_no,
            walk: row.walk,
            final_state: row.final_state,
            standing: row.standing,
            findings: row.findings,
            tokens: row.tokens,
            batch: row.batch_id,
            error: row.error,
        })
    })
}

/// The steps of a run, in order.
///
/// # Errors
/// The database failed.
pub async fn steps(conn: &mut PgConnection, id: RunId) -> Result<Vec<Step>, sqlx::Error> {
    let rows = sqlx::query!(
        r#"SELECT no, node, outcome, note, findings AS "findings: Json<Vec<Finding>>", llm_calls, attempt, job_id,
                  started_at, committed_at
           FROM iit_task_step WHERE run_id = $1 ORDER BY no"#,
        id as RunId
    )
    .fetch_all(conn)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| Step {
            run: id,
            no: row.no,
            node: row.node,
            outcome: row.outcome,
            note: row.note,
            findings: row.findings.0,
            attempt: row.attempt,
            job: row.job_id,
            started_at: row.started_at,
            committed_at: Some(row.committed_at),
            llm_calls: row.llm_calls,
        })
        .collect())
}

/// What a step saw and used; what it saw of the data is kept from earlier steps when not given.
#[derive(Debug, Clone, Copy, Default)]
pub struct Seen<'a> {
    /// Fingerprint of the data.
    pub data_version: Option<&'a str>,
    /// The record's site.
    pub site: Option<&'a str>,
    /// Tokens the step used.
    pub tokens: i64,
}

/// Moves a run on by one step, if it still stands at `from_step` and is `running` (or `waiting`, when
/// a person's decision carries it on). Returns whether it did: `false` means somebody committed this
/// step before, and nothing may be written.
///
/// # Errors
/// The database failed.
pub async fn advance(
    conn: &mut PgConnection,
    id: RunId,
    from_step: i32,
    to: &RunState,
    findings: i32,
    seen: &Seen<'_>,
) -> Result<bool, sqlx::Error> {
    let done = sqlx::query!(
        r#"UPDATE iit_task_run
           SET step_no = step_no + 1, status = $3, node = $4, walk = $5, final_state = $6, standing = $7, error = $8,
               findings = findings + $9, data_version = COALESCE($10, data_version), site = COALESCE($11, site),
               tokens = tokens + $12, updated_at = now(),
               finished_at = CASE WHEN $3 IN ('done', 'failed') THEN now() END
           WHERE id = $1 AND step_no = $2 AND status IN ('running', 'waiting')"#,
        id as RunId,
        from_step,
        to.status(),
        to.node(),
        to.walk(),
        to.final_state(),
        to.standing(),
        to.error(),
        findings,
        seen.data_version,
        seen.site,
        seen.tokens,
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}
