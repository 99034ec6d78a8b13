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

/// Runs begun in each turn.
const TOGETHER: usize = 64;
/// Turns of each side. They alternate, so that what else the machine does falls on both; the last half
/// counts: the dead rows are most by then.
const TURNS: usize = 8;

pub async fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let turn = Duration::from_secs(bench.amount(15, 1));
    let (free, held) = (base(bench, "free").await?, base(bench, "held").await?);
    let mut holder = snapshot(&held).await?;
    let begin = Instant::now();
    let (mut free_rates, mut held_rates) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        free_rates.push(steps_per_s(&free, turn).await?);
        held_rates.push(steps_per_s(&held, turn).await?);
    }
    let seconds = begin.elapsed().as_secs();
    // A snapshot that was lost on the way would make the figure a lie.
    sqlx::query("COMMIT").execute(&mut holder).await?;
    holder.close().await?;
    let dead = (dead(&free).await?, dead(&held).await?);
    free.drop().await?;
    held.drop().await?;
    let last = |rates: &[f64]| rates.iter().skip(TURNS / 2).sum::<f64>();
    Ok(vec![
        Figure::new(
            "durable steps while a snapshot is held, of those without",
            Target::AtLeast(0.8),
            last(&held_rates) / last(&free_rates),
            "×",
        )
        .detail(format!(
            "{} steps/s; {} without",
            listed(&held_rates),
            listed(&free_rates)
        ))
        .note(format!(
            "runs of {STEPS} steps without end, {TOGETHER} more under way each turn, {SLOTS} slots; {TURNS} turns of {} s on \
             each of two databases, the last half compared; on one of them another connection holds a REPEATABLE READ \
             snapshot for all of the {seconds} s. Dead rows in the queue and the runs at the end: {} held, {} without",
            turn.as_secs(),
            dead.1,
            dead.0
        )),
    ])
}

async fn base(bench: &Bench, name: &str) -> Result<Base> {
    let base = bench.place.database(name).await?;
    place::demo(&base, &[]).await?;
    Ok(base)
}

/// Steps a second over one turn.
async fn steps_per_s(base: &Base, turn: Duration) -> Result<f64> {
    let chains = Chains::endless(base, TOGETHER).await?;
    let begin = Instant::now();
    tokio::time::sleep(turn).await;
    let (done, seconds) = (chains.committed(), begin.elapsed().as_secs_f64());
    chains.end().await;
    ensure!(done > 0, "no step was committed in {seconds:.0} s");
    Ok(rate(done, seconds))
}

async fn dead(base: &Base) -> Result<i64> {
    base.count(
        "SELECT coalesce(sum(n_dead_tup), 0)::int8 FROM pg_stat_user_tables
         WHERE relname IN ('iit_jobs', 'iit_task_run')",
    )
    .await
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
