//! Throughput while another connection holds a snapshot for minutes: nothing that dies after it can be
//! vacuumed away, and every claim has to find its way past what died.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use sqlx::{Connection, PgConnection};

use crate::Bench;
use crate::chain::{Chains, STEPS};
use crate::place::{self, Base};
use crate::queue_side::SLOTS;
use crate::report::{Figure, Target};
use crate::samples::rate;

/// Runs under way at a time.
const TOGETHER: usize = 64;
/// The end of the time is what counts: the dead rows are most by then.
const PARTS: u32 = 4;

pub async fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let time = Duration::from_secs(bench.amount(120, 8));
    let free = once(bench, "free", time, false).await?;
    let held = once(bench, "held", time, true).await?;
    let last = |rates: &[f64]| rates.last().copied().unwrap_or(f64::NAN);
    Ok(vec![
        Figure::new(
            "durable steps while a snapshot is held, of those without",
            Target::AtLeast(0.8),
            last(&held.rates) / last(&free.rates),
            "×",
        )
        .detail(format!(
            "quarters: {} steps/s, {} without",
            listed(&held.rates),
            listed(&free.rates)
        ))
        .note(format!(
            "runs of {STEPS} steps without end, {TOGETHER} under way, {SLOTS} slots, {} s each, the last quarters compared; \
             another connection holds a REPEATABLE READ snapshot from the start. Dead rows at the end: {} held, {} without",
            time.as_secs(),
            held.dead,
            free.dead
        )),
    ])
}

struct Quarters {
    rates: Vec<f64>,
    /// In the queue and the runs.
    dead: i64,
}

async fn once(bench: &Bench, name: &str, time: Duration, hold: bool) -> Result<Quarters> {
    let base = bench.place.database(name).await?;
    place::demo(&base, &[]).await?;
    let holder = if hold {
        Some(snapshot(&base).await?)
    } else {
        None
    };
    let chains = Chains::endless(&base, TOGETHER).await?;
    tokio::time::sleep(time / 20).await;
    let mut rates = Vec::new();
    for _ in 0..PARTS {
        let (begin, before) = (Instant::now(), chains.committed());
        tokio::time::sleep(time / PARTS).await;
        let done = chains.committed() - before;
        ensure!(
            done > 0,
            "no step was committed in {} s",
            (time / PARTS).as_secs()
        );
        rates.push(rate(done, begin.elapsed().as_secs_f64()));
    }
    chains.end().await;
    if let Some(mut holder) = holder {
        // A snapshot that was lost on the way would make the figure a lie.
        sqlx::query("COMMIT").execute(&mut holder).await?;
        holder.close().await?;
    }
    let dead = base
        .count(
            "SELECT coalesce(sum(n_dead_tup), 0)::int8 FROM pg_stat_user_tables
             WHERE relname IN ('iit_jobs', 'iit_task_run')",
        )
        .await?;
    base.drop().await?;
    Ok(Quarters { rates, dead })
}

/// A transaction that has read the queue once and now only stays open.
async fn snapshot(base: &Base) -> Result<PgConnection> {
    let mut conn = PgConnection::connect(&base.url).await?;
    sqlx::query("BEGIN ISOLATION LEVEL REPEATABLE READ")
        .execute(&mut conn)
        .await?;
    sqlx::query("SELECT count(*) FROM iit_schema.iit_jobs")
        .execute(&mut conn)
        .await?;
    Ok(conn)
}

fn listed(rates: &[f64]) -> String {
    let all: Vec<String> = rates.iter().map(|rate| format!("{rate:.0}")).collect();
    all.join(", ")
}
