//! What calls cost (`iit_llm_spend`): reserved before a question leaves, resolved after it.
//!
//! The two counters of a day, the project's and everybody's, are rows that every call touches. Both
//! functions are to be committed with `synchronous_commit = off`: a lock held over a disk flush would let
//! one call through at a time. Nothing is lost by it: the row in the journal, flushed on its own, says
//! whether a reservation stands and whether it was resolved.

use chrono::NaiveDate;
use serde::Serialize;
use sqlx::PgConnection;

/// Most that may be spent in a day; `None` = no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DayLimits {
    /// Tokens of the project.
    pub project_tokens: Option<i64>,
    /// Cost of the project, in millionths of a yuan.
    pub project_cost: Option<i64>,
    /// Tokens of all projects.
    pub all_tokens: Option<i64>,
    /// Cost of all projects.
    pub all_cost: Option<i64>,
}

/// Why a call may not be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denied {
    /// The project's budget is used up.
    Project,
    /// Everybody's budget is used up.
    All,
    /// Another attempt gave this call up for lost, and asks in its place.
    GivenUp,
}

/// Reserves what a call in state `asked` may use, unless a budget does not hold it. On `Err` the caller
/// rolls back.
///
/// # Errors
/// The database failed.
pub async fn reserve(
    conn: &mut PgConnection,
    call: i64,
    limits: &DayLimits,
) -> Result<Result<(), Denied>, sqlx::Error> {
    let Some(call) = sqlx::query!(
        r#"UPDATE iit_llm_calls SET reserved = true WHERE id = $1 AND NOT reserved AND NOT settled
           RETURNING project_id, day, reserved_tokens, reserved_cost"#,
        call,
    )
    .fetch_optional(&mut *conn)
    .await?
    else {
        return Ok(Err(Denied::GivenUp));
    };
    // Always in this order: two calls can't wait for each other.
    let scopes = [
        (
            "project",
            call.project_id.as_str(),
            limits.project_tokens,
            limits.project_cost,
            Denied::Project,
        ),
        ("all", "", limits.all_tokens, limits.all_cost, Denied::All),
    ];
    for (scope, owner, tokens, cost, used_up) in scopes {
        let held = sqlx::query_scalar!(
            r#"INSERT INTO iit_llm_spend AS spend (scope, owner, day, calls, reserved_tokens, reserved_cost)
               SELECT $1, $2, $3, 1, $4::bigint, $5::bigint
               WHERE ($6::bigint IS NULL OR $4 <= $6) AND ($7::bigint IS NULL OR $5 <= $7)
               ON CONFLICT (scope, owner, day) DO UPDATE
               SET calls = spend.calls + 1,
                   reserved_tokens = spend.reserved_tokens + $4, reserved_cost = spend.reserved_cost + $5
               WHERE ($6 IS NULL OR spend.tokens + spend.reserved_tokens + $4 <= $6)
                 AND ($7 IS NULL OR spend.cost + spend.reserved_cost + $5 <= $7)
               RETURNING true AS "held!""#,
            scope,
            owner,
            call.day,
            call.reserved_tokens,
            call.reserved_cost,
            tokens,
            cost,
        )
        .fetch_optional(&mut *conn)
        .await?;
        if held.is_none() {
            return Ok(Err(used_up));
        }
    }
    Ok(Ok(()))
}

/// Resolves the reservation of a call once: what it used is spent; what may have been billed is spent as
/// it was reserved; what failed for sure is given back.
///
/// # Errors
/// The database failed.
pub async fn settle(conn: &mut PgConnection, call: i64) -> Result<(), sqlx::Error> {
    sqlx::query!(
        r#"WITH done AS (
               UPDATE iit_llm_calls SET settled = true WHERE id = $1 AND NOT settled
               RETURNING project_id, day, reserved, reserved_tokens, reserved_cost, state, maybe_billed,
                         prompt_tokens, completion_tokens, cost),
           used AS (
               SELECT project_id, day, NOT reserved AS is_new,
                      CASE WHEN reserved THEN reserved_tokens ELSE 0 END AS back_tokens,
                      CASE WHEN reserved THEN reserved_cost ELSE 0 END AS back_cost,
                      CASE WHEN prompt_tokens IS NOT NULL THEN prompt_tokens::bigint + completion_tokens
                           WHEN state = 'failed' AND NOT maybe_billed THEN 0
                           ELSE reserved_tokens END AS tokens,
                      CASE WHEN cost IS NOT NULL THEN cost
                           WHEN state = 'failed' AND NOT maybe_billed THEN 0
                           ELSE reserved_cost END AS cost
               -- A reservation may be lost with the server; what was used is spent all the same.
               FROM done WHERE reserved OR state = 'answered' OR maybe_billed),
           project AS (
               INSERT INTO iit_llm_spend AS spend (scope, owner, day, calls, tokens, cost)
               SELECT 'project', project_id, day, 1, tokens, cost FROM used
               ON CONFLICT (scope, owner, day) DO UPDATE
               SET calls = spend.calls + (SELECT is_new::int FROM used),
                   reserved_tokens = spend.reserved_tokens - (SELECT back_tokens FROM used),
                   reserved_cost = spend.reserved_cost - (SELECT back_cost FROM used),
                   tokens = spend.tokens + excluded.tokens, cost = spend.cost + excluded.cost
               RETURNING spend.day, spend.owner)
           INSERT INTO iit_llm_spend AS spend (scope, owner, day, calls, tokens, cost)
           SELECT 'all', '', used.day, 1, used.tokens, used.cost FROM used, project
           ON CONFLICT (scope, owner, day) DO UPDATE
           SET calls = spend.calls + (SELECT is_new::int FROM used),
               reserved_tokens = spend.reserved_tokens - (SELECT back_tokens FROM used),
               reserved_cost = spend.reserved_cost - (SELECT back_cost FROM used),
               tokens = spend.tokens + excluded.tokens, cost = spend.cost + excluded.cost"#,
        call,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// What one project (or all, with an empty name) used on one day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Spent {
    /// The day (UTC).
    pub day: NaiveDate,
    /// The project; empty for all together.
    pub project: String,
    /// Questions asked.
    pub calls: i64,
    /// Tokens used.
    pub tokens: i64,
    /// Tokens reserved by questions under way.
    pub reserved_tokens: i64,
    /// In millionths of a yuan.
    pub cost: i64,
    /// Questions that may have been billed without an answer.
    pub maybe_billed: i64,
}

/// What was used on the last `days` days, newest first, of one project or of each and all.
///
/// # Errors
/// The database failed.
pub async fn lately(
    conn: &mut PgConnection,
    project: Option<&str>,
    days: i32,
) -> Result<Vec<Spent>, sqlx::Error> {
    sqlx::query_as!(
        Spent,
        r#"SELECT spend.day, spend.owner AS project, spend.calls, spend.tokens, spend.reserved_tokens, spend.cost,
                  (SELECT count(*) FROM iit_llm_calls call
                   WHERE call.day = spend.day AND call.maybe_billed
                     AND (spend.scope = 'all' OR call.project_id = spend.owner)) AS "maybe_billed!"
           FROM iit_llm_spend spend
           WHERE spend.day > CURRENT_DATE - $2::int AND ($1::text IS NULL OR (spend.scope = 'project' AND spend.owner = $1))
           ORDER BY spend.day DESC, spend.scope DESC, spend.owner"#,
        project,
        days,
    )
    .fetch_all(conn)
    .await
}
