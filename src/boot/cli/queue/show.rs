//! `iit queue depth | dead`.

use super::{
    super::{
        exit::Failure,
        output::{self, Format},
    },
    Shown, settings,
};
use crate::{
    boot::database::{Database, query_failed},
    queue::{control, depth},
};

/// Jobs by queue and state; for people, also what is paused or limited.
pub(super) async fn depths(database: &Database, shown: Shown) -> Result<(), Failure> {
    let mut conn = database.pool.acquire().await.map_err(query_failed)?;
    let mut depths = depth::depth(&mut conn).await.map_err(query_failed)?;
    depths.retain(|depth| {
        shown
            .queue
            .as_ref()
            .is_none_or(|queue| *queue == depth.queue)
    });
    match shown.format {
        Format::Json => output::json(&depths),
        Format::Csv => output::csv(&depths),
        Format::Table => {
            let mut table =
                output::table(&["队列 queue", "状态 state", "任务 jobs", "最久 oldest (s)"]);
            for depth in depths {
                let age = depth
                    .oldest_age_s
                    .map(|s| format!("{s:.1}"))
                    .unwrap_or_default();
                table.add_row([depth.queue, depth.state, depth.jobs.to_string(), age]);
            }
            output::say(table)?;
            super::super::outbox::say_closed(&mut conn).await?;
            let set = control::settings(&mut conn).await.map_err(query_failed)?;
            for queue in set {
                output::say(settings::sentence(&queue))?;
            }
            super::super::outbox::say_closed(&mut conn).await
        }
    }
}

/// Jobs that were given up.
pub(super) async fn dead(database: &Database, shown: Shown) -> Result<(), Failure> {
    let mut conn = database.pool.acquire().await.map_err(query_failed)?;
    let dead = depth::dead(&mut conn, shown.queue.as_deref(), None, 1000)
        .await
        .map_err(query_failed)?;
    match shown.format {
        Format::Json => output::json(&dead),
        Format::Csv => output::csv(&dead),
        Format::Table => {
            let mut table = output::table(&[
                "编号 id",
                "队列 queue",
                "类型 kind",
                "次数 attempts",
                "时间 at (UTC)",
                "原因 reason",
            ]);
            for job in dead {
                let at = job
                    .finished_at
                    .map(|at| at.format("%Y-%m-%d %H:%M:%S").to_string());
                table.add_row([
                    job.id.to_string(),
                    job.queue,
                    job.kind,
                    job.attempt.to_string(),
                    at.unwrap_or_default(),
                    job.reason.unwrap_or_default(),
                ]);
            }
            output::say(table)
        }
    }
}
