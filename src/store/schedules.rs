//! Schedules of skills: they follow the skill and its project's time zone, and know when they are due
//! next. What became of each time is in [`firings`].
//!
//! Due times are the database clock's: `now` comes from [`now`], so that a scheduler whose own clock is
//! wrong fires nothing early or late.

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use sqlx::PgConnection;

use crate::types::{
    catch_up::{CatchUp, Policy, Window},
    cron::Expression,
};

pub mod firings;
pub mod listing;

/// The database's clock.
///
/// # Errors
/// The database failed.
pub async fn now(conn: &mut PgConnection) -> Result<DateTime<Utc>, sqlx::Error> {
    sqlx::query_scalar!(r#"SELECT clock_timestamp() AS "now!""#)
        .fetch_one(conn)
        .await
}

/// Why a schedule does not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disabled {
    /// The skill is switched off or gone.
    Inactive,
    /// The skill has no schedule any more.
    Unscheduled,
    /// The skill is a report, which this version can't write.
    Report,
    /// The expression or the time zone can't be read.
    Unreadable,
}

impl Disabled {
    /// The stored name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Inactive => "inactive",
            Self::Unscheduled => "unscheduled",
            Self::Report => "report",
            Self::Unreadable => "unreadable",
        }
    }

    /// What people read for a stored name.
    #[must_use]
    pub fn label(stored: &str) -> &'static str {
        match stored {
            "inactive" => "技能未启用 the skill is not active",
            "unscheduled" => "技能不再写有 schedule · the skill has no schedule any more",
            "report" => "报告类技能在后续版本中运行，目前不触发 reports come with a later release",
            _ => "定时表达式或时区读不懂 the expression or time zone can't be read",
        }
    }
}

/// Makes the schedule of a skill what the skill's row says, in the same transaction. A schedule that
/// changed is due from `now` on, never for the past; one that did not change stays due as it was.
///
/// `catch_up`: what the skill's file says; `None` keeps what stands.
///
/// # Errors
/// The database failed.
pub async fn follow(
    conn: &mut PgConnection,
    project: &str,
    skill_type: &str,
    catch_up: Option<CatchUp>,
    now: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    let Some(skill) = sqlx::query!(
        r#"SELECT k.schedule, k.is_active, k.config ? 'nodes' AS "is_sop!", p.timezone
           FROM iit_skills k JOIN iit_projects p ON p.id = k.project_id
           WHERE k.project_id = $1 AND k.skill_type = $2"#,
        project,
        skill_type,
    )
    .fetch_optional(&mut *conn)
    .await?
    else {
        return Ok(());
    };
    // Without one, the trigger on iit_skills has stopped whatever ran.
    let Some(cron) = skill.schedule.filter(|_| skill.is_active) else {
        return Ok(());
    };
    let next = next_fire(&cron, &skill.timezone, now);
    let disabled = match (skill.is_sop, next) {
        (false, _) => Some(Disabled::Report),
        (true, None) => Some(Disabled::Unreadable),
        (true, Some(_)) => None,
    };
    let next = next.filter(|_| disabled.is_none());
    let wanted = catch_up.unwrap_or_default();
    sqlx::query!(
        r#"INSERT INTO iit_schedules AS s (project_id, skill_type, cron, timezone, catchup, catchup_window_s,
                                           enabled, disabled_by, next_fire_at)
           VALUES ($1, $2, $3, $4, $5, $6, $7::text IS NULL, $7, $8)
           ON CONFLICT (project_id, skill_type) DO UPDATE
           SET cron = excluded.cron, timezone = excluded.timezone,
               catchup = CASE WHEN $9 THEN excluded.catchup ELSE s.catchup END,
               catchup_window_s = CASE WHEN $9 THEN excluded.catchup_window_s ELSE s.catchup_window_s END,
               enabled = excluded.enabled, disabled_by = excluded.disabled_by,
               next_fire_at = CASE WHEN s.enabled AND excluded.enabled
                                    AND s.cron = excluded.cron AND s.timezone = excluded.timezone
                                   THEN s.next_fire_at ELSE excluded.next_fire_at END,
               updated_at = now()"#,
        project,
        skill_type,
        cron,
        skill.timezone,
        wanted.policy.as_str(),
        wanted.window.seconds(),
        disabled.map(Disabled::as_str),
        next,
        catch_up.is_some(),
    )
    .execute(conn)
    .await?;
    Ok(())
}

fn next_fire(cron: &str, zone: &str, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    Expression::parse(cron)
        .ok()?
        .next_after(now, zone.parse().ok()?)
}

/// Follows every skill whose schedule is not what its row and its project say: another time zone was
/// applied, or somebody wrote the row past this program. Returns how many there were.
///
/// # Errors
/// The database failed.
pub async fn follow_changes(
    conn: &mut PgConnection,
    project: Option<&str>,
    now: DateTime<Utc>,
) -> Result<usize, sqlx::Error> {
    let changed = sqlx::query!(
        r#"SELECT k.project_id, k.skill_type
           FROM iit_skills k JOIN iit_projects p ON p.id = k.project_id
           LEFT JOIN iit_schedules s ON s.project_id = k.project_id AND s.skill_type = k.skill_type
           WHERE k.is_active AND k.schedule IS NOT NULL AND ($1::text IS NULL OR k.project_id = $1)
             AND (s.id IS NULL OR s.cron <> k.schedule OR s.timezone <> p.timezone
                  OR s.disabled_by IN ('inactive', 'unscheduled')
                  OR COALESCE(s.disabled_by = 'report', false) = (k.config ? 'nodes'))"#,
        project,
    )
    .fetch_all(&mut *conn)
    .await?;
    for row in &changed {
        follow(&mut *conn, &row.project_id, &row.skill_type, None, now).await?;
    }
    Ok(changed.len())
}

/// A schedule that is due.
#[derive(Debug, Clone)]
pub struct Due {
    /// Its id.
    pub id: i64,
    /// The study.
    pub project: String,
    /// The skill.
    pub skill_type: String,
    /// Five-field cron.
    pub cron: String,
    /// IANA time zone.
    pub timezone: String,
    /// What becomes of late times.
    pub catch_up: CatchUp,
    /// The time it is due since.
    pub next_fire_at: DateTime<Utc>,
}

impl Due {
    /// Its expression and zone; `None` when one can't be read.
    #[must_use]
    pub fn timing(&self) -> Option<(Expression, Tz)> {
        Some((
            Expression::parse(&self.cron).ok()?,
            self.timezone.parse().ok()?,
        ))
    }
}

/// Schedules that are due at `now`, longest due first.
///
/// # Errors
/// The database failed.
pub async fn due(conn: &mut PgConnection, now: DateTime<Utc>) -> Result<Vec<i64>, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT id FROM iit_schedules WHERE enabled AND next_fire_at <= $1 ORDER BY next_fire_at, id"#,
        now,
    )
    .fetch_all(conn)
    .await
}

/// Locks a schedule until the end of the transaction, if it is (still) due at `now`. A second scheduler
/// waits here, and then finds that it is not.
///
/// # Errors
/// The database failed.
pub async fn lock_due(
    conn: &mut PgConnection,
    id: i64,
    now: DateTime<Utc>,
) -> Result<Option<Due>, sqlx::Error> {
    // A scheduler that freezes in here must not keep the others from this schedule for ever.
    sqlx::query_scalar!(r#"SELECT set_config('idle_in_transaction_session_timeout', '30s', true)"#)
        .fetch_one(&mut *conn)
        .await?;
    let row = sqlx::query!(
        r#"SELECT project_id, skill_type, cron, timezone, catchup, catchup_window_s,
                  next_fire_at AS "next_fire_at!"
           FROM iit_schedules WHERE id = $1 AND enabled AND next_fire_at <= $2 FOR UPDATE"#,
        id,
        now,
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map(|row| Due {
        id,
        project: row.project_id,
        skill_type: row.skill_type,
        cron: row.cron,
        timezone: row.timezone,
        catch_up: stored_catch_up(&row.catchup, row.catchup_window_s),
        next_fire_at: row.next_fire_at,
    }))
}

/// What stands in the table, or the defaults for what this version can't read.
pub(super) fn stored_catch_up(policy: &str, window_s: i32) -> CatchUp {
    let seconds = u64::try_from(window_s).unwrap_or(0);
    CatchUp {
        policy: Policy::parse(policy).unwrap_or_default(),
        window: Window::new(std::time::Duration::from_secs(seconds)).unwrap_or_default(),
    }
}

/// Moves a schedule on: when it is due next (`None`: it can't be told, and the schedule stops), when it
/// fired last, and how many more times were missed.
///
/// # Errors
/// The database failed.
pub async fn advance(
    conn: &mut PgConnection,
    id: i64,
    next: Option<DateTime<Utc>>,
    fired: Option<DateTime<Utc>>,
    missed: i64,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        r#"UPDATE iit_schedules
           SET next_fire_at = $2, last_fire_at = COALESCE($3, last_fire_at), missed = missed + $4,
               enabled = $2::timestamptz IS NOT NULL,
               disabled_by = CASE WHEN $2::timestamptz IS NULL THEN 'unreadable' END, updated_at = now()
           WHERE id = $1"#,
        id,
        next,
        fired,
        missed,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// How long until the next schedule is due, in seconds by the database clock; negative when one is
/// overdue, `None` when there is none.
///
/// # Errors
/// The database failed.
pub async fn next_due(conn: &mut PgConnection) -> Result<Option<f64>, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT EXTRACT(EPOCH FROM min(next_fire_at) - clock_timestamp())::float8
           FROM iit_schedules WHERE enabled"#
    )
    .fetch_one(conn)
    .await
}
