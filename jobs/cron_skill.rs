//! One firing of a scheduled skill: a QC of the whole project with that skill.
//!
//! The batch, its plan and the firing's end commit in the settlement, so a firing starts one batch however
//! often its job is tried. While the schedule's last batch is still going on, the firing is skipped: the
//! check that runs sees the same data, and a queue of checks that never empties helps nobody. Only times
//! that are caught up with under `all` wait their turn.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{
    Handle,
    batch_qc::BatchQc,
    common::{notice, services::Services, steps},
};
use crate::{
    queue::{Job, JobError, Lease, NewJob, Outcome, Settled, Settlement},
    store::{
        batches::{self, Batch, NewBatch},
        projects,
        schedules::firings::{self, Firing},
    },
};

/// Who asked for a QC that a schedule started.
pub const REQUESTED_BY: &str = "cron";
/// How often a firing that waits its turn looks again.
const LOOK_AGAIN: Duration = Duration::from_secs(15);

/// Do one firing (`iit_firings`).
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CronSkill {
    /// The firing.
    pub firing: i64,
    /// Its schedule; firings of one schedule run in order.
    pub schedule: i64,
}

impl Job for CronSkill {
    const KIND: &'static str = "cron_skill";
    const QUEUE: &'static str = steps::EDC_QUEUE;
    // It only writes to the database: with the backoff, about half an hour of that being in trouble.
    const MAX_ATTEMPTS: i32 = 12;

    fn key(&self) -> Option<String> {
        Some(self.firing.to_string())
    }

    fn group(&self) -> Option<String> {
        Some(format!("cron:{}", self.schedule))
    }
}

impl Handle for CronSkill {
    async fn run(self, services: &Services, lease: &Lease) -> Result<Settled, JobError> {
        let firing = firings::get(&mut *services.pool.acquire().await?, self.firing).await?;
        let Some(firing) = firing else {
            return Err(JobError::Cancel("the firing is gone".to_owned()));
        };
        let mut settlement = lease
            .settle(&services.pool, &services.wake, &Outcome::Done)
            .await?;
        let is_busy = firings::lock_busy(settlement.conn(), firing.schedule).await?;
        let ended = if !firing.skill_is_active {
            let note = "技能已停用或不再可运行 (the skill is not active any more)";
            firings::end(settlement.conn(), firing.id, "cancelled", None, Some(note)).await?
        } else if is_busy && firing.may_wait {
            // Dropping the settlement rolls it back.
            return Err(JobError::Snooze(LOOK_AGAIN));
        } else if is_busy {
            skip(services, &mut settlement, &firing).await?
        } else {
            start(&mut settlement, &firing).await?
        };
        if !ended {
            drop(settlement);
            return Ok(lease
                .settle_only(&services.pool, &services.wake, &Outcome::Done)
                .await?);
        }
        Ok(settlement.commit().await?)
    }

    async fn bury(
        self,
        services: &Services,
        lease: &Lease,
        settlement: &mut Settlement,
        why: &str,
    ) -> Result<(), JobError> {
        let Some(firing) = firings::get(settlement.conn(), self.firing).await? else {
            return Ok(());
        };
        if firings::end(settlement.conn(), firing.id, "failed", None, Some(why)).await? {
            let what = format!(
                "没有启动成功，本次未检查。请联系管理员（任务 {}，原因见 iit queue dead）。",
                lease.job
            );
            tell(services, settlement, &firing, &what, When::Said).await?;
        }
        Ok(())
    }
}

/// Opens the firing of a dead job again. Returns whether it was failed.
///
/// # Errors
/// The database failed.
pub async fn revive(conn: &mut sqlx::PgConnection, job: &CronSkill) -> Result<bool, sqlx::Error> {
    firings::reopen(conn, job.firing).await
}

/// A batch that nobody waits for has ended: when a schedule started it and something could not be
/// checked, the study's coordinators are told.
///
/// # Errors
/// The database failed.
pub async fn batch_ended(
    services: &Services,
    settlement: &mut Settlement,
    batch: &Batch,
) -> Result<(), JobError> {
    if batch.state != "failed" && batch.failed == 0 {
        return Ok(());
    }
    let Some(firing) = firings::of_batch(settlement.conn(), batch.id).await? else {
        return Ok(());
    };
    let note = batch.note.as_deref().unwrap_or("详情见批次记录");
    let what = if batch.state == "failed" {
        format!("{note}。本次未检查（批次 {}）。", batch.id)
    } else {
        format!(
            "受试者 {} 例中 {} 例未能检查：{note}（批次 {}）。",
            batch.total, batch.failed, batch.id
        )
    };
    tell(services, settlement, &firing, &what, When::Said).await
}

async fn start(settlement: &mut Settlement, firing: &Firing) -> Result<bool, JobError> {
    let new = NewBatch {
        project: &firing.project,
        skill: Some(&firing.skill_type),
        records: None,
        reply_to: None,
        requested_by: REQUESTED_BY,
    };
    let batch = batches::create(settlement.conn(), &new).await?;
    let plan = BatchQc { batch, page: None };
    settlement.enqueue(NewJob::of(&plan)?).await?;
    Ok(firings::end(settlement.conn(), firing.id, "started", Some(batch), None).await?)
}

/// Leaves a firing out because the check before it is not finished. Twice in a row is told: the schedule
/// is too tight, or something is stuck.
async fn skip(
    services: &Services,
    settlement: &mut Settlement,
    firing: &Firing,
) -> Result<bool, JobError> {
    let note = "上一次检查尚未结束 (the check before it was still running)";
    let ended = firings::end(settlement.conn(), firing.id, "skipped", None, Some(note)).await?;
    tracing::warn!(
        firing.id = firing.id,
        schedule.id = firing.schedule,
        "cron.skipped"
    );
    let before = firings::state_before(settlement.conn(), firing).await?;
    if ended && before.as_deref() == Some("skipped") {
        let what = "上一次检查一直没有结束，已连续跳过。请联系管理员查看，或放宽定时。";
        tell(services, settlement, firing, what, When::Unsaid).await?;
    }
    Ok(ended)
}

/// Whether a notice names the time of its firing: without it, the same notice goes out once a week.
#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    Said,
    Unsaid,
}

/// Tells the study's coordinators about a firing. A study that is gone has nobody to tell.
async fn tell(
    services: &Services,
    settlement: &mut Settlement,
    firing: &Firing,
    what: &str,
    when: When,
) -> Result<(), JobError> {
    let Some(project) = projects::get(settlement.conn(), &firing.project).await? else {
        return Ok(());
    };
    let file = &project.file;
    let zone: chrono_tz::Tz = file.timezone.parse().unwrap_or(chrono_tz::UTC);
    let time = match when {
        When::Said => firing
            .fire_time
            .with_timezone(&zone)
            .format("%Y-%m-%d %H:%M ")
            .to_string(),
        When::Unsaid => String::new(),
    };
    let text = format!(
        "【定时质控】{} · {}：{time}{what}",
        file.name, firing.skill_name
    );
    notice::tell(services, settlement, file, &[], &text).await
}
