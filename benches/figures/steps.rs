//! Durable steps: how many a second, and what each leaves in the database.

use anyhow::{Context, Result};

use crate::Bench;
use crate::chain::{self, STEPS};
use crate::cost::{Cost, Meter};
use crate::place;
use crate::queue_side::SLOTS;
use crate::report::{Figure, Target};
use crate::samples::{median, rate};

const RUNS: usize = 3;

pub async fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let runs = bench.amount(1_000, 100);
    let (mut rates, mut cost) = (Vec::new(), None);
    for turn in 0..RUNS {
        let (steps_per_s, each) = once(bench, &format!("steps_{turn}"), runs).await?;
        rates.push(steps_per_s);
        cost = Some(each);
    }
    let cost = cost.context("no run")?;
    let all: Vec<String> = rates.iter().map(|rate| format!("{rate:.0}")).collect();
    Ok(vec![
        Figure::new("durable steps", Target::AtLeast(1000.0), median(rates), "steps/s")
            .detail(format!("runs: {}; a step: {}", all.join(", "), cost.text()))
            .note(format!(
                "{runs} runs × {STEPS} steps, 1 process, {SLOTS} slots; a step reads its run and commits run state, \
                 step row, next job and settle together; rows and bytes include the runs themselves and all indexes"
            )),
    ])
}

/// Steps a second over `runs` runs, and the cost of one.
pub async fn once(bench: &Bench, name: &str, runs: usize) -> Result<(f64, Cost)> {
    let base = bench.place.database(name).await?;
    place::demo(&base, &[]).await?;
    let meter = Meter::begin(&base.url).await?;
    let steps = runs * usize::try_from(STEPS)?;
    let seconds = chain::finish(&base, runs).await?;
    base.database.pool.close().await;
    let cost = meter.end(steps).await?;
    base.drop().await?;
    Ok((rate(steps, seconds), cost))
}
