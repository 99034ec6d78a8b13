//! The journal of calls (`iit_llm_calls`): asked, then answered or failed, each committed on its own.
//!
//! An answer is stored before anything uses it, so after a crash it is used and never asked for again. A
//! row that stays `asked` was sent, or was about to be, by somebody who died: it may have been billed.

use sqlx::PgConnection;

use crate::types::ids::RunId;

/// A question about to leave.
#[derive(Debug, Clone)]
pub struct NewCall<'a> {
    /// The study that pays.
    pub project: &'a str,
    /// The run that asks.
    pub run: RunId,
    /// Its step.
    pub step: i32,
    /// Which question of this step it is, from 1.
    pub ask: i32,
    /// SHA-256 of the request.
    pub request_hash: &'a str,
    /// Which prompts it was made with.
    pub prompt_version: &'a str,
    /// Where it goes.
    pub provider: &'a str,
    /// The model.
    pub model: &'a str,
    /// Most tokens it can use.
    pub tokens: i64,
    /// Most it can cost, in millionths of a yuan.
    pub cost: i64,
    /// The job that asks.
    pub job: i64,
    /// Its attempt.
    pub attempt: i32,
}

/// A call as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Its number.
    pub id: i64,
    /// Which question of its step it is.
    pub ask: i32,
    /// `asked`, `answered`, `failed`.
    pub state: String,
    /// The body of the answer as it came.
    pub reply: Option<String>,
    /// Tokens of the prompt, as the server counted.
    pub prompt_tokens: Option<i32>,
    /// Tokens of the answer.
    pub completion_tokens: Option<i32>,
    /// Whether its reservation was resolved.
    pub settled: bool,
    /// Whether the provider may have charged for it without an answer.
    pub maybe_billed: bool,
    /// Whether the server took offence at the request itself.
    pub refused: bool,
}

impl Call {
    /// Whether it may have cost anything. A call that was turned away for nothing is no question asked.
    #[must_use]
    pub fn counts(&self) -> bool {
        self.state != "failed" || self.maybe_billed
    }

    /// Tokens it used, as far as the server said.
    #[must_use]
    pub fn tokens(&self) -> i64 {
        i64::from(self.prompt_tokens.unwrap_or(0)) + i64::from(self.completion_tokens.unwrap_or(0))
    }
}

/// The questions of a step so far, oldest first.
///
/// # Errors
/// The database failed.
pub async fn of_step(
    conn: &mut PgConnection,
    run: RunId,
    step: i32,
) -> Result<Vec<Call>, sqlx::Error> {
    sqlx::query_as!(
        Call,
        r#"SELECT id, ask, state, reply, prompt_tokens, completion_tokens, settled, maybe_billed, refused
           FROM iit_llm_calls WHERE run_id = $1 AND step_no = $2 ORDER BY ask"#,
        run as RunId,
        step,
    )
    .fetch_all(conn)
    .await
}

/// What a run has asked and used so far: calls that may have cost anything, and tokens (of a call that has
/// no count, what was reserved for it).
///
/// # Errors
/// The database failed.
pub async fn of_run(conn: &mut PgConnection, run: RunId) -> Result<(i64, i64), sqlx::Error> {
    let row = sqlx::query!(
        r#"SELECT count(*) FILTER (WHERE state <> 'failed' OR maybe_billed) AS "calls!",
                  COALESCE(sum(CASE WHEN prompt_tokens IS NOT NULL THEN prompt_tokens + completion_tokens
                                    WHEN state = 'failed' AND NOT maybe_billed THEN 0
                                    ELSE reserved_tokens END), 0)::bigint AS "tokens!"
           FROM iit_llm_calls WHERE run_id = $1"#,
        run as RunId,
    )
    .fetch_one(conn)
    .await?;
    Ok((row.calls, row.tokens))
}

/// Tokens the model's answers to a run took, in the steps before `step`. Of an answer whose server counted
/// nothing, a guess by its length.
///
/// # Errors
/// The database failed.
pub async fn completion_before(
    conn: &mut PgConnection,
    run: RunId,
    step: i32,
) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT COALESCE(sum(COALESCE(completion_tokens, char_length(reply) / 4)), 0)::bigint AS "tokens!"
           FROM iit_llm_calls WHERE run_id = $1 AND step_no < $2 AND state = 'answered'"#,
        run as RunId,
        step,
    )
    .fetch_one(conn)
    .await
}

/// Notes that a question is about to leave. Must be committed before it does. `None`: the step was answered
/// since the caller looked, and is not asked again.
///
/// # Errors
/// The database failed; a unique violation means that another attempt asks the same at this moment.
pub async fn asked(
    conn: &mut PgConnection,
    call: &NewCall<'_>,
) -> Result<Option<i64>, sqlx::Error> {
    sqlx::query_scalar!(
        r#"INSERT INTO iit_llm_calls (project_id, run_id, step_no, ask, request_hash, prompt_version, provider, model,
                                      reserved_tokens, reserved_cost, job_id, attempt)
           SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12
           WHERE NOT EXISTS (SELECT 1 FROM iit_llm_calls
                             WHERE run_id = $2 AND step_no = $3 AND state = 'answered')
           RETURNING id"#,
        call.project,
        call.run as RunId,
        call.step,
        call.ask,
        call.request_hash,
        call.prompt_version,
        call.provider,
        call.model,
        call.tokens,
        call.cost,
        call.job,
        call.attempt,
    )
    .fetch_optional(conn)
    .await
}

/// What an answer used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Used {
    /// Tokens of the prompt.
    pub prompt: i32,
    /// Tokens of the answer.
    pub completion: i32,
    /// In millionths of a yuan.
    pub cost: i64,
}

/// Stores an answer as it came. Nothing may use it before this is committed. An answer that comes late is
/// stored as well: it was paid for.
///
/// # Errors
/// The database failed.
pub async fn answered(
    conn: &mut PgConnection,
    call: i64,
    reply: &str,
    used: Option<Used>,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        r#"UPDATE iit_llm_calls
           SET state = 'answered', reply = $2, prompt_tokens = $3, completion_tokens = $4, cost = $5,
               maybe_billed = false, ended_at = clock_timestamp()
           WHERE id = $1 AND state = 'asked'"#,
        call,
        reply,
        used.map(|used| used.prompt),
        used.map(|used| used.completion),
        used.map(|used| used.cost),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Why no answer will come.
#[derive(Debug, Clone, Copy)]
pub struct Failure<'a> {
    /// One sentence; nothing of what was said.
    pub error: &'a str,
    /// See [`Call::maybe_billed`].
    pub maybe_billed: bool,
    /// See [`Call::refused`].
    pub refused: bool,
}

/// Notes that no answer will come.
///
/// # Errors
/// The database failed.
pub async fn failed(
    conn: &mut PgConnection,
    call: i64,
    failure: Failure<'_>,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        r#"UPDATE iit_llm_calls
           SET state = 'failed', error = $2, maybe_billed = $3, refused = $4, ended_at = clock_timestamp()
           WHERE id = $1 AND state = 'asked'"#,
        call,
        failure.error,
        failure.maybe_billed,
        failure.refused,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Marks questions whose asker is gone as maybe billed. They stay `asked`: the answer may still come.
///
/// # Errors
/// The database failed.
pub async fn lost(conn: &mut PgConnection, calls: &[i64]) -> Result<(), sqlx::Error> {
    sqlx::query!(
        r#"UPDATE iit_llm_calls SET maybe_billed = true WHERE id = ANY($1) AND state = 'asked'"#,
        calls,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Questions older than an hour whose reservation nobody resolved: their run ended another way.
///
/// # Errors
/// The database failed.
pub async fn abandoned(conn: &mut PgConnection) -> Result<Vec<i64>, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT id FROM iit_llm_calls
           WHERE NOT settled AND asked_at < now() - interval '1 hour' ORDER BY asked_at LIMIT 1000"#,
    )
    .fetch_all(conn)
    .await
}
