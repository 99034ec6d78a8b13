//! `iit queue retry | cancel`.

use serde::Serialize;

use super::{
    super::{
        exit::Failure,
        output::{self, Format},
        project::actor,
    },
    Which,
};
use crate::{
    boot::{
        config::Config,
        database::{Database, query_failed},
        wiring::Wiring,
    },
    jobs::{
        self, Jobs,
        common::cancel::{self, Ended},
    },
    queue::{
        Wake,
        cancel::{Filter, unfinished},
        depth,
    },
    store::audit,
    types::clock::Clock,
};

/// Tries dead jobs again.
pub(super) async fn retry(database: &Database, ids: &[i64], which: Which) -> Result<(), Failure> {
    let retried = revive_and_retry(database, ids, &which).await?;
    match which.format {
        Format::Table => {
            let count = retried.len();
            output::say(format_args!("已重试 {count} 个任务 · {count} jobs retried"))?;
        }
        _ => output::json(&retried)?,
    }
    let missed = missing(ids, |id| retried.contains(id));
    if missed.is_empty() {
        return Ok(());
    }
    Err(Failure::Found(format!(
        "任务 {missed} 不是可重试的死任务 (not dead, or its run, batch or message has already gone on without it)"
    )))
}

fn missing(ids: &[i64], done: impl Fn(&i64) -> bool) -> String {
    let missed: Vec<String> = ids
        .iter()
        .filter(|id| !done(id))
        .map(ToString::to_string)
        .collect();
    missed.join(", ")
}

async fn revive_and_retry(
    database: &Database,
    ids: &[i64],
    which: &Which,
) -> Result<Vec<i64>, Failure> {
    let retried = async {
        let mut tx = database.pool.begin().await?;
        let ids = (!ids.is_empty()).then_some(ids);
        let mut wanted = Vec::new();
        for job in depth::dead(&mut tx, which.queue.as_deref(), ids, i64::MAX).await? {
            if which.kind.as_ref().is_none_or(|kind| *kind == job.kind)
                && jobs::revive(&mut tx, &job.kind, &job.payload).await?
            {
                wanted.push(job.id);
            }
        }
        let retried = depth::retry(&mut tx, &wanted).await?;
        for (queue, id) in &retried {
            audit::record(
                &mut tx,
                audit::Entry {
                    project: None,
                    actor: &actor(),
                    action: "job.retried",
                    entity: "job",
                    entity_id: &id.to_string(),
                    old: None,
                    new: Some(serde_json::json!({ "queue": queue })),
                    reason: None,
                },
            )
            .await?;
        }
        tx.commit().await?;
        Ok::<_, sqlx::Error>(retried)
    };
    let retried = retried.await.map_err(query_failed)?;
    let queues: Vec<String> = retried.iter().map(|(queue, _)| queue.clone()).collect();
    Wake::notify_once(&database.pool, &queues).await;
    Ok(retried.into_iter().map(|(_, id)| id).collect())
}

/// A job as `cancel` lists it.
#[derive(Debug, Serialize)]
struct CancelledJob {
    id: i64,
    /// `cancelled`, or `cancelling` while its process has yet to drop it.
    state: &'static str,
}

/// Cancels jobs, each in a transaction of its own.
pub(super) async fn cancel(
    database: &Database,
    ids: Vec<i64>,
    which: Which,
    dead: bool,
    reason: Option<&str>,
) -> Result<(), Failure> {
    let wiring = Wiring::new(
        Config::from_env()?,
        database.pool.clone(),
        Clock::system(),
        None,
    )?;
    let handler = Jobs::register(wiring.services().clone());
    let wanted = match ids.is_empty() {
        false => ids.clone(),
        true => selected(database, &which, dead)
            .await
            .map_err(query_failed)?,
    };
    let actor = actor();
    let mut why = format!("由 {actor} 取消 cancelled");
    if let Some(reason) = reason.map(str::trim).filter(|reason| !reason.is_empty()) {
        why.push_str(&format!(": {reason}"));
    }
    let mut cancelled = Vec::new();
    let mut outcome = Ok(());
    for id in wanted {
        let ended = cancel::cancel(&*handler, &database.pool, wiring.wake(), id, &actor, &why);
        let state = match ended.await {
            Ok(Ended::Cancelled) => "cancelled",
            Ok(Ended::Cancelling) => "cancelling",
            Ok(Ended::Nothing) => continue,
            // What is done is done and listed; the rest is as it was.
            Err(error) => {
                outcome = Err(Failure::Outside(format!(
                    "任务 {id} 未能取消：{error}；请重试 (job {id} is as it was, try again)"
                )));
                break;
            }
        };
        cancelled.push(CancelledJob { id, state });
    }
    wiring.wake().notify_pending(&database.pool).await;
    match which.format {
        Format::Json => output::json(&cancelled)?,
        Format::Csv => output::csv(&cancelled)?,
        Format::Table => {
            let running = cancelled
                .iter()
                .filter(|job| job.state == "cancelling")
                .count();
            let count = cancelled.len();
            output::say(format_args!(
                "已取消 {count} 个任务，其中 {running} 个正在停止 · {count} jobs cancelled, {running} of them still stopping"
            ))?;
        }
    }
    outcome?;
    let missed = missing(&ids, |id| cancelled.iter().any(|job| job.id == *id));
    if missed.is_empty() {
        return Ok(());
    }
    Err(Failure::Found(format!(
        "任务 {missed} 已经结束或不存在 (finished already, or unknown)"
    )))
}

async fn selected(database: &Database, which: &Which, dead: bool) -> Result<Vec<i64>, sqlx::Error> {
    let mut conn = database.pool.acquire().await?;
    let (queue, kind) = (which.queue.as_deref(), which.kind.as_deref());
    if !dead {
        return unfinished(&mut conn, Filter { queue, kind }).await;
    }
    let dead = depth::dead(&mut conn, queue, None, i64::MAX).await?;
    let of_kind = dead
        .into_iter()
        .filter(|job| kind.is_none_or(|kind| kind == job.kind));
    Ok(of_kind.map(|job| job.id).collect())
}
