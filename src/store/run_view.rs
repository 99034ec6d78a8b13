//! Runs of every kind as people look at them: where one stands, what was said in it, what it cost.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::PgConnection;

use crate::types::ids::{MessageId, RunId};

/// A run of any kind.
#[derive(Debug, Clone, Serialize)]
pub struct RunView {
    /// Its id.
    pub id: RunId,
    /// The study.
    pub project: String,
    /// `sop`, `intent`, `react`, `judge`, …
    pub kind: String,
    /// The skill it runs, if any.
    pub skill: Option<String>,
    /// The version it stays with.
    pub skill_version: Option<i32>,
    /// The record it is about, if one.
    pub record: Option<String>,
    /// `running`, `waiting`, `done`, `failed`, `cancelled`.
    pub status: String,
    /// Where it stands.
    pub node: Option<String>,
    /// How it ended.
    pub final_state: Option<String>,
    /// What the end amounts to.
    pub standing: Option<String>,
    /// Steps committed.
    pub step_no: i32,
    /// Findings of all its steps.
    pub findings: i32,
    /// Tokens spent.
    pub tokens: i64,
    /// What they cost, in millionths of a yuan.
    pub cost: i64,
    /// The message it answers.
    pub message: Option<MessageId>,
    /// Who is answered.
    pub asked_by: Option<String>,
    /// The run that waits for it.
    pub parent: Option<RunId>,
    /// One sentence, when it failed.
    pub error: Option<String>,
    /// When it began.
    pub created_at: DateTime<Utc>,
    /// When it ended.
    pub finished_at: Option<DateTime<Utc>>,
}

/// The run of that id, whatever drives it.
///
/// # Errors
/// The database failed.
pub async fn get(conn: &mut PgConnection, id: RunId) -> Result<Option<RunView>, sqlx::Error> {
    sqlx::query_as!(
        RunView,
        r#"SELECT r.id AS "id: RunId", r.project_id AS project, r.kind, r.skill_type AS skill, r.skill_version, r.record,
                  r.status, r.node, r.final_state, r.standing, r.step_no, r.findings, r.tokens,
                  (SELECT COALESCE(sum(c.cost), 0)::bigint FROM iit_llm_calls c WHERE c.run_id = r.id) AS "cost!",
                  r.message_id AS "message: MessageId", r.asked_by, r.parent_id AS "parent: RunId", r.error,
                  r.created_at, r.finished_at
           FROM iit_task_run r WHERE r.id = $1"#,
        id as RunId,
    )
    .fetch_optional(conn)
    .await
}

/// One row of the transcript.
#[derive(Debug, Clone, Serialize)]
pub struct Line {
    /// Its place.
    pub seq: i32,
    /// The step it belongs to.
    pub step_no: i32,
    /// The thread.
    pub thread: String,
    /// `system`, `question`, `calls`, `result`, …
    pub kind: String,
    /// Text, or JSON of that kind.
    pub content: String,
    /// When it was written.
    pub at: DateTime<Utc>,
}

/// What was said in a run, in order.
///
/// # Errors
/// The database failed.
pub async fn transcript(conn: &mut PgConnection, id: RunId) -> Result<Vec<Line>, sqlx::Error> {
    sqlx::query_as!(
        Line,
        r#"SELECT seq, step_no, thread, kind, content, created_at AS at
           FROM iit_agent_trace WHERE run_id = $1 ORDER BY seq"#,
        id as RunId,
    )
    .fetch_all(conn)
    .await
}

/// One question to the model.
#[derive(Debug, Clone, Serialize)]
pub struct CallView {
    /// The step it was asked in.
    pub step_no: i32,
    /// Which question of that step.
    pub ask: i32,
    /// The model.
    pub model: String,
    /// `asked`, `answered`, `failed`.
    pub state: String,
    /// It may have been charged for without an answer.
    pub maybe_billed: bool,
    /// Tokens of the prompt.
    pub prompt_tokens: Option<i32>,
    /// Tokens of the answer.
    pub completion_tokens: Option<i32>,
    /// In millionths of a yuan.
    pub cost: Option<i64>,
    /// Why there is no answer.
    pub error: Option<String>,
    /// When it was asked.
    pub asked_at: DateTime<Utc>,
    /// When it ended.
    pub ended_at: Option<DateTime<Utc>>,
}

/// The questions a run asked, in order.
///
/// # Errors
/// The database failed.
pub async fn calls(conn: &mut PgConnection, id: RunId) -> Result<Vec<CallView>, sqlx::Error> {
    sqlx::query_as!(
        CallView,
        r#"SELECT step_no, ask, model, state, maybe_billed, prompt_tokens, completion_tokens, cost, error,
                  asked_at, ended_at
           FROM iit_llm_calls WHERE run_id = $1 ORDER BY step_no, ask"#,
        id as RunId,
    )
    .fetch_all(conn)
    .await
}
