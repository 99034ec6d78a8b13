//! `iit queue pause | resume | limit`: what holds for a queue in all processes.

use serde_json::{Value, json};
use sqlx::PgConnection;

use super::{
    super::{
        exit::Failure,
        output::{self, Format},
        project::actor,
    },
    Shown, known_queue,
};
use crate::{
    boot::database::{Database, query_failed},
    jobs::QUEUES,
    queue::{
        Wake,
        control::{self, QueueSettings},
    },
    store::audit,
};

/// Pauses a queue, or all.
pub(super) async fn pause(database: &Database, shown: Shown) -> Result<(), Failure> {
    let changed = async {
        let mut tx = database.pool.begin().await?;
        let paused = control::pause(&mut tx, &named(&shown), &actor()).await?;
        for queue in &paused {
            leave_trace(&mut tx, "queue.paused", queue, None, None).await?;
        }
        tx.commit().await
    };
    changed.await.map_err(query_failed)?;
    report(database, &named(&shown), shown.format).await
}

/// Lets a queue go on, or all.
pub(super) async fn resume(database: &Database, shown: Shown) -> Result<(), Failure> {
    let changed = async {
        let mut tx = database.pool.begin().await?;
        let resumed = control::resume(&mut tx, &named(&shown)).await?;
        for queue in &resumed {
            leave_trace(&mut tx, "queue.resumed", queue, None, None).await?;
        }
        tx.commit().await
    };
    changed.await.map_err(query_failed)?;
    report(database, &named(&shown), shown.format).await
}

/// Sets or lifts a limit.
pub(super) async fn limit(
    database: &Database,
    queue: &str,
    max: &str,
    format: Format,
) -> Result<(), Failure> {
    let queue = known_queue(queue)?;
    let max = match max.trim() {
        "none" => None,
        number => Some(number.parse().ok().filter(|max: &i32| *max > 0).ok_or_else(|| {
            Failure::Usage(format!(
                "上限应为正整数或 none，现为 `{number}`；要停止队列请用 `iit queue pause` (a positive number or none)"
            ))
        })?),
    };
    let changed = async {
        let mut tx = database.pool.begin().await?;
        let before = control::limit(&mut tx, queue, max).await?;
        let (old, new) = (json!({ "max": before }), json!({ "max": max }));
        leave_trace(&mut tx, "queue.limited", queue, Some(old), Some(new)).await?;
        tx.commit().await
    };
    changed.await.map_err(query_failed)?;
    report(database, &[queue.to_owned()], format).await
}

fn named(shown: &Shown) -> Vec<String> {
    match &shown.queue {
        Some(queue) => vec![queue.trim().to_owned()],
        None => QUEUES.map(str::to_owned).to_vec(),
    }
}

async fn leave_trace(
    conn: &mut PgConnection,
    action: &str,
    queue: &str,
    old: Option<Value>,
    new: Option<Value>,
) -> Result<(), sqlx::Error> {
    let entry = audit::Entry {
        project: None,
        actor: &actor(),
        action,
        entity: "queue",
        entity_id: queue,
        old,
        new,
        reason: None,
    };
    audit::record(conn, entry).await
}

/// Wakes the workers and says how these queues stand now.
async fn report(database: &Database, queues: &[String], format: Format) -> Result<(), Failure> {
    Wake::notify_once(&database.pool, queues).await;
    let set = async { control::settings(&mut *database.pool.acquire().await?).await };
    let mut set = set.await.map_err(query_failed)?;
    let stand = |queue: &String| match set.iter().position(|set| set.queue == *queue) {
        Some(at) => set.swap_remove(at),
        None => QueueSettings {
            queue: queue.clone(),
            paused_at: None,
            paused_by: None,
            max_running: None,
        },
    };
    let queues: Vec<QueueSettings> = queues.iter().map(stand).collect();
    match format {
        Format::Json => output::json(&queues),
        Format::Csv => output::csv(&queues),
        Format::Table => queues
            .iter()
            .try_for_each(|queue| output::say(sentence(queue))),
    }
}

/// How a queue stands, for people.
pub(super) fn sentence(set: &QueueSettings) -> String {
    let queue = &set.queue;
    let mut sentence = match (&set.paused_at, &set.paused_by) {
        (Some(at), by) => format!(
            "{queue}: 已暂停 paused, {} UTC, {}",
            at.format("%Y-%m-%d %H:%M:%S"),
            by.as_deref().unwrap_or("?")
        ),
        (None, _) => format!("{queue}: 运行中 open"),
    };
    if let Some(max) = set.max_running {
        sentence.push_str(&format!("; 最多同时 {max} 个 at most {max} at once"));
    }
    sentence
}
