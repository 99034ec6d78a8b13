//! Ours beside graphile_worker, DBOS and LangGraph: same machine, same Postgres, same server settings, a
//! fresh database for each measurement.
//!
//! Every setting of a peer is tried once; the best then goes through the rounds, in which all contenders
//! take turns, and the median over try and rounds is shown.

mod contenders;
mod programs;
mod table;

use anyhow::{Context, Result};

use crate::Bench;
use crate::cost::Cost;
use crate::place;
use crate::queue_side::SLOTS;
use crate::report::{Figure, Target};
use crate::samples::{median, rate};
use crate::{chain, drain, machine, start, steps};
use contenders::{Contender, DRAIN_JOBS, START_JOBS, STEP_RUNS, Setting, Task};
use programs::{Kind, Program, Took};
pub use table::Comparison;
use table::{Best, Row, Start, Tried};

/// Beside the try.
const ROUNDS: usize = 2;

/// Measures one contender at a time, each on a database of its own.
struct Runner<'a> {
    bench: &'a Bench,
    number: usize,
    tried: Vec<Tried>,
}

/// A rate over try and rounds.
struct Rated {
    setting: &'static Setting,
    rates: Vec<f64>,
    cost: Option<Cost>,
}

#[derive(Default)]
struct Ours {
    drain: Vec<f64>,
    steps: Vec<f64>,
    cost: Option<Cost>,
}

struct Theirs {
    contender: &'static Contender,
    drain: Option<Rated>,
    steps: Option<Rated>,
    start: Option<Best<Start>>,
}

pub async fn measure(bench: &Bench) -> Result<(Vec<Figure>, Comparison)> {
    let load_before = machine::load_average();
    let (ready, left_out) = prepared().await;
    let mut runner = Runner {
        bench,
        number: 0,
        tried: Vec::new(),
    };
    let mut theirs = Vec::new();
    for contender in ready {
        theirs.push(Theirs {
            contender,
            drain: runner
                .best_rate(contender, Kind::Drain, contender.drain)
                .await,
            steps: runner
                .best_rate(contender, Kind::Steps, contender.steps)
                .await,
            start: runner.best_start(contender).await,
        });
    }
    let mut ours = Ours::default();
    let start = runner.our_start().await?;
    runner.ours(&mut ours).await?;
    for round in 1..=ROUNDS {
        eprintln!("  round {round} of {ROUNDS}");
        runner.ours(&mut ours).await?;
        for theirs in &mut theirs {
            runner.again(theirs).await;
        }
    }
    let rows: Vec<Row> = std::iter::once(ours.row(start))
        .chain(theirs.into_iter().map(Theirs::row))
        .collect();
    let comparison = Comparison {
        tried: runner.tried,
        left_out,
        load_before,
        rows,
    };
    Ok((against(&comparison.rows), comparison))
}

impl Ours {
    fn row(self, start: Start) -> Row {
        let best = |value| Best {
            setting: format!("{SLOTS} slots"),
            value,
        };
        Row {
            name: "iit".to_owned(),
            settles: "each, fenced by its lease".to_owned(),
            drain_per_s: Some(best(median(self.drain))),
            start_ms: Some(Best {
                setting: format!("{SLOTS} slots"),
                value: start,
            }),
            steps_per_s: Some(best(median(self.steps))),
            cost: self.cost,
        }
    }
}

impl Theirs {
    fn row(self) -> Row {
        let reached = |rated: Rated| Best {
            setting: rated.setting.name.to_owned(),
            value: median(rated.rates),
        };
        Row {
            name: self.contender.name.to_owned(),
            settles: self.contender.settles.to_owned(),
            cost: self.steps.as_ref().and_then(|rated| rated.cost),
            drain_per_s: self.drain.map(reached),
            start_ms: self.start,
            steps_per_s: self.steps.map(reached),
        }
    }
}

/// The contenders whose programs could be made, and why the others could not.
async fn prepared() -> (Vec<&'static Contender>, Vec<String>) {
    let (mut ready, mut left_out) = (Vec::new(), Vec::new());
    for program in [Program::Graphile, Program::Dbos, Program::LangGraph] {
        eprintln!("  making ready {program:?} …");
        let its = contenders::ALL
            .iter()
            .filter(|contender| contender.program == program);
        match programs::prepare(program).await {
            Ok(()) => ready.extend(its),
            Err(error) => {
                left_out.extend(its.map(|contender| format!("{}: {error:#}", contender.name)))
            }
        }
    }
    (ready, left_out)
}

impl Runner<'_> {
    /// A name for the next database.
    fn name(&mut self) -> String {
        self.number += 1;
        format!("peer_{}", self.number)
    }

    async fn ours(&mut self, ours: &mut Ours) -> Result<()> {
        eprintln!("  iit, drain and steps …");
        let jobs = self.bench.amount(DRAIN_JOBS, DRAIN_JOBS / 10);
        let name = self.name();
        ours.drain.push(drain::once(self.bench, &name, jobs).await?);
        let runs = self.bench.amount(STEP_RUNS, STEP_RUNS / 10);
        let name = self.name();
        let (rate, cost) = steps::once(self.bench, &name, runs).await?;
        ours.steps.push(rate);
        ours.cost = Some(cost);
        Ok(())
    }

    /// A round of a peer with the settings that were best.
    async fn again(&mut self, theirs: &mut Theirs) {
        let contender = theirs.contender;
        for (kind, task, rated) in [
            (Kind::Drain, contender.drain, &mut theirs.drain),
            (Kind::Steps, contender.steps, &mut theirs.steps),
        ] {
            let Some(rated) = rated else { continue };
            let measured = self.rate(contender, kind, task, rated.setting).await;
            let noted = self.note(contender, kind, rated.setting, measured, |taken| taken.0);
            if let Some((rate, cost)) = noted {
                rated.rates.push(rate);
                rated.cost = Some(cost);
            }
        }
    }

    async fn our_start(&mut self) -> Result<Start> {
        let name = self.name();
        let base = self.bench.place.database(&name).await?;
        let jobs = self.bench.amount(START_JOBS, START_JOBS / 10);
        let (times, _) = start::once(&base, true, jobs).await?;
        base.drop().await?;
        Ok(Start {
            p50: times.ms(50),
            p95: times.ms(95),
            p99: times.ms(99),
            max: times.ms(100),
        })
    }

    /// Tries every setting; the best one's rate, with room for the rounds.
    async fn best_rate(&mut self, contender: &Contender, kind: Kind, task: Task) -> Option<Rated> {
        let mut best: Option<Rated> = None;
        for setting in task.settings {
            let measured = self.rate(contender, kind, task, setting).await;
            let Some((rate, cost)) = self.note(contender, kind, setting, measured, |taken| taken.0)
            else {
                continue;
            };
            if best
                .as_ref()
                .is_none_or(|best| best.rates.iter().all(|known| *known < rate))
            {
                best = Some(Rated {
                    setting,
                    rates: vec![rate],
                    cost: Some(cost),
                });
            }
        }
        best
    }

    /// Writes down what a setting gave. One that fails (a peer that stands still, say) is told in the
    /// report and does not end the run.
    fn note<T>(
        &mut self,
        contender: &Contender,
        kind: Kind,
        setting: &Setting,
        measured: Result<T>,
        value: impl Fn(&T) -> f64,
    ) -> Option<T> {
        let task = match kind {
            Kind::Drain => "drain, jobs/s",
            Kind::Start => "start, p95 ms",
            Kind::Steps => "steps/s",
        };
        if let Err(error) = &measured {
            eprintln!("    failed: {error:#}");
        }
        self.tried.push(Tried {
            name: contender.name.to_owned(),
            task,
            setting: setting.name.to_owned(),
            value: measured.as_ref().ok().map(value),
            failed: measured.as_ref().err().map(|error| format!("{error:#}")),
        });
        measured.ok()
    }

    async fn rate(
        &mut self,
        contender: &Contender,
        kind: Kind,
        task: Task,
        setting: &Setting,
    ) -> Result<(f64, Cost)> {
        let amount = self.bench.amount(task.amount, task.amount / 10);
        let units = match kind {
            Kind::Steps => amount * usize::try_from(chain::STEPS)?,
            Kind::Drain | Kind::Start => amount,
        };
        let (took, cost): (Took, Cost) = self.peer(contender, kind, amount, units, setting).await?;
        Ok((rate(units, took.seconds), cost))
    }

    async fn best_start(&mut self, contender: &Contender) -> Option<Best<Start>> {
        let mut best: Option<Best<Start>> = None;
        let full = contender.start.amount;
        let amount = self.bench.amount(full, full / 10);
        for setting in contender.start.settings {
            let measured = self
                .peer::<Start>(contender, Kind::Start, amount, amount, setting)
                .await;
            let Some((value, _)) = self.note(contender, Kind::Start, setting, measured, |taken| {
                taken.0.p95
            }) else {
                continue;
            };
            if best.as_ref().is_none_or(|best| value.p95 < best.value.p95) {
                best = Some(Best {
                    setting: setting.name.to_owned(),
                    value,
                });
            }
        }
        best
    }

    async fn peer<T: serde::de::DeserializeOwned>(
        &mut self,
        contender: &Contender,
        kind: Kind,
        amount: usize,
        units: usize,
        setting: &Setting,
    ) -> Result<(T, Cost)> {
        eprintln!("  {}, {kind:?}: {} …", contender.name, setting.name);
        let url = self.bench.place.empty(&self.name()).await?;
        let command = programs::command(contender.program, kind, &url, amount, setting.args);
        let measured = programs::run(command, &url, units).await;
        place::remove(&url).await?;
        measured.with_context(|| format!("{}, {kind:?}, {}", contender.name, setting.name))
    }
}

/// The figures with targets: ours over theirs.
fn against(rows: &[Row]) -> Vec<Figure> {
    let Some((ours, theirs)) = rows.split_first() else {
        return Vec::new();
    };
    let mut figures = Vec::new();
    for (task, of, targets) in [
        (
            "drain",
            (|row: &Row| row.drain_per_s.as_ref().map(|best| best.value))
                as fn(&Row) -> Option<f64>,
            [
                Target::AtLeast(1.5),
                Target::None,
                Target::None,
                Target::None,
            ],
        ),
        (
            "durable steps",
            |row: &Row| row.steps_per_s.as_ref().map(|best| best.value),
            [
                Target::None,
                Target::None,
                Target::AtLeast(4.0),
                Target::AtLeast(4.0),
            ],
        ),
    ] {
        for row in theirs {
            let place = contenders::ALL
                .iter()
                .position(|c| c.name == row.name && c.settles == row.settles);
            let target = place
                .and_then(|place| targets.get(place))
                .copied()
                .unwrap_or(Target::None);
            if let (Some(our), Some(their)) = (of(ours), of(row)) {
                figures.push(
                    Figure::new(
                        format!("{task}, over {} ({})", row.name, row.settles),
                        target,
                        our / their,
                        "×",
                    )
                    .detail(format!("{our:.0} and {their:.0} a second")),
                );
            }
        }
    }
    figures
}
