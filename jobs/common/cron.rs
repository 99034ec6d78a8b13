//! The scheduler: from a time that has come to a firing and its job.
//!
//! A tick is one transaction: the firing's row, its job, and the schedule moved on commit together or
//! not at all. Any number of schedulers may run: they meet at the schedule's row lock, and should two ever
//! get past it, at the unique (schedule, time) of the firings. Nobody is a leader.
//!
//! What is due is decided by the database clock. A scheduler that was away, or whose database was, finds
//! the times that passed meanwhile in its next round and settles them by the schedule's catch-up policy.

use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

use crate::{
    jobs::cron_skill::CronSkill,
    queue::{self, Job, NewJob, Wake, job::backoff},
    store::{
        db,
        schedules::{self, firings},
    },
    types::catch_up,
};

/// What schedulers are woken by, beside the names of queues.
const SCHEDULES: &str = "schedules";
/// The longest sleep: the safety net for lost wake-ups and for a clock that was set.
pub const POLL: Duration = Duration::from_secs(30);
/// The shortest: our sleep may end a little before the database's clock is there.
const SHORTEST_SLEEP: Duration = Duration::from_millis(20);

/// What a tick came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ticked {
    /// Times that fired.
    pub fired: usize,
    /// Times that were missed.
    pub missed: i64,
}

/// Settles what is due of one schedule at `now`, the database clock's time. Nothing when it is not (or no
/// longer) due.
///
/// # Errors
/// The database failed or the job can't be enqueued: then nothing is written.
pub async fn tick(
    pool: &PgPool,
    wake: &Wake,
    schedule: i64,
    now: DateTime<Utc>,
) -> anyhow::Result<Ticked> {
    let mut ticked = Ticked::default();
    // After a very long silence there is more than one transaction should hold.
    loop {
        let mut tx = db::begin(pool).await?;
        let Some(due) = schedules::lock_due(&mut tx, schedule, now).await? else {
            return Ok(ticked);
        };
        let Some((expression, zone)) = due.timing() else {
            tracing::error!(schedule.id = schedule, "cron.schedule.unreadable");
            schedules::advance(&mut tx, schedule, None, None, 0).await?;
            tx.commit().await?;
            return Ok(ticked);
        };
        let plan = catch_up::plan(&expression, zone, due.next_fire_at, now, due.catch_up);
        let missed = firings::miss(&mut tx, schedule, &plan.missed).await?;
        let fired = firings::fire(&mut tx, schedule, &plan.fire).await?;
        for (firing, _) in &fired {
            let job = CronSkill {
                firing: *firing,
                schedule,
            };
            let job = queue::enqueue(&mut tx, NewJob::of(&job)?).await?;
            firings::done_by(&mut tx, *firing, job.id()).await?;
        }
        let last = fired.last().map(|(_, time)| *time);
        schedules::advance(&mut tx, schedule, plan.next, last, missed).await?;
        tx.commit().await?;
        if missed > 0 {
            tracing::warn!(schedule.id = schedule, missed, "cron.missed");
        }
        for (firing, time) in &fired {
            tracing::info!(schedule.id = schedule, firing.id = firing, %time, "cron.fired");
        }
        if !fired.is_empty() {
            wake.queues([CronSkill::QUEUE.to_owned()]);
        }
        ticked.missed += missed;
        ticked.fired += fired.len();
    }
}

/// Settles every schedule that is due at `now`, and follows skills that were changed past this program.
/// One schedule that can't be settled does not keep the others.
///
/// # Errors
/// The first failure, after all were tried.
pub async fn round(pool: &PgPool, wake: &Wake, now: DateTime<Utc>) -> anyhow::Result<Ticked> {
    let due = {
        let mut tx = db::begin(pool).await?;
        schedules::follow_changes(&mut tx, None, now).await?;
        let due = schedules::due(&mut tx, now).await?;
        tx.commit().await?;
        due
    };
    let mut all = Ticked::default();
    let mut outcome = Ok(());
    for schedule in due {
        match tick(pool, wake, schedule, now).await {
            Ok(ticked) => {
                all.fired += ticked.fired;
                all.missed += ticked.missed;
            }
            Err(error) => {
                tracing::warn!(
                    schedule.id = schedule,
                    error = format!("{error:#}"),
                    "cron.tick.failed"
                );
                outcome = outcome.and(Err(error));
            }
        }
    }
    outcome.map(|()| all)
}

/// Runs rounds until `stop`: sleeps until the next schedule is due, at most `poll`, and wakes when
/// schedules change.
pub async fn run(pool: PgPool, wake: Wake, poll: Duration, stop: CancellationToken) {
    let mut trouble = 0;
    loop {
        let rounded = async {
            let now = schedules::now(&mut *pool.acquire().await?).await?;
            round(&pool, &wake, now).await?;
            let next = schedules::next_due(&mut *pool.acquire().await?).await?;
            Ok::<_, anyhow::Error>(next.map(|s| Duration::try_from_secs_f64(s.max(0.0))))
        };
        let Some(rounded) = stop.run_until_cancelled(rounded).await else {
            return;
        };
        let pause = match rounded {
            Ok(next) => {
                trouble = 0;
                let next = next.and_then(Result::ok).unwrap_or(poll);
                next.min(poll).max(SHORTEST_SLEEP)
            }
            Err(error) => {
                trouble += 1;
                tracing::warn!(error = format!("{error:#}"), "cron.round.failed");
                backoff(trouble).min(POLL)
            }
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = wake.wait(SCHEDULES) => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// Tells the schedulers of all processes that schedules changed; call it after the commit.
pub async fn wake_schedulers(pool: &PgPool) {
    Wake::notify_once(pool, &[SCHEDULES.to_owned()]).await;
}
