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
use crate::drain::Ending;
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
    drain_alone: Vec<f64>,
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
    let ours = ours.rows(start);
    let theirs: Vec<Row> = theirs.into_iter().map(Theirs::row).collect();
    let figures = against(&ours[0], &theirs);
    let comparison = Comparison {
        tried: runner.tried,
        left_out,
        load_before,
        rows: ours.into_iter().chain(theirs).collect(),
    };
    Ok((figures, comparison))
}

impl Ours {
    fn rows(self, start: Start) -> [Row; 2] {
        let setting = format!("{SLOTS} slots");
        let best = |rates| Best {
            setting: setting.clone(),
            value: median(rates),
        };
        let whole = Row {
            name: "iit".to_owned(),
            settles: "each by a fenced transaction".to_owned(),
            beaten_by: (None, None),
            drain_per_s: Some(best(self.drain)),
            start_ms: Some(Best {
                setting: setting.clone(),
                value: start,
            }),
            steps_per_s: Some(best(self.steps)),
            cost: self.cost,
        };
        let alone = Row {
            name: "iit".to_owned(),
            settles: "each by a fenced statement, nothing else to write".to_owned(),
            beaten_by: (None, None),
            drain_per_s: Some(best(self.drain_alone)),
            start_ms: None,
            steps_per_s: None,
            cost: None,
        };
        [whole, alone]
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
            beaten_by: self.contender.beaten_by,
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
        for (ending, rates) in [
            (Ending::Transaction, &mut ours.drain),
            (Ending::Alone, &mut ours.drain_alone),
        ] {
            let name = self.name();
            rates.push(drain::once(self.bench, &name, jobs, ending).await?);
        }
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
fn against(ours: &Row, theirs: &[Row]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for row in theirs {
        let (drain, steps) = row.beaten_by;
        for (task, our, their, wanted) in [
            ("drain", &ours.drain_per_s, &row.drain_per_s, drain),
            ("durable steps", &ours.steps_per_s, &row.steps_per_s, steps),
        ] {
            if let (Some(our), Some(their)) = (our, their) {
                let name = format!("{task}, over {} ({})", row.name, row.settles);
                let target = wanted.map_or(Target::None, Target::AtLeast);
                figures.push(
                    Figure::new(name, target, our.value / their.value, "×")
                        .detail(format!("{:.0} and {:.0} a second", our.value, their.value)),
                );
            }
        }
    }
    figures
}
