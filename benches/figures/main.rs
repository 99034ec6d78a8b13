//! Every figure the project promises, measured on this machine: `cargo bench`, or `cargo bench -- rules
//! webhook` for some, `--json` for programs, `--quick` for a short look. `cargo bench -- peers` sets the
//! queue and its durable steps beside other people's; it fetches and builds them, so it is only done when
//! it is named.
//!
//! The program under test is the `iit` binary itself wherever a figure is about a whole process; the
//! database is the program's own private Postgres, with fsync on. Nothing leaves loopback. A figure that
//! did not do its work (a reply missing, a job left) is told as failed, and the run ends with an error.

mod agent;
mod batch;
mod chain;
mod cost;
mod dice;
mod drain;
mod growth;
mod held;
mod intent;
mod load;
mod machine;
mod peers;
mod place;
mod program;
mod question;
mod queue_side;
mod reply;
mod report;
mod rest;
mod rules;
mod samples;
mod start;
mod steps;
mod study;
mod tools;
mod webhook;

#[path = "../../tests/it/support/fake_llm.rs"]
#[allow(dead_code, reason = "shared with the tests, which use all of it")]
mod fake_llm;
#[path = "../../tests/it/support/fake_wecom.rs"]
#[allow(dead_code, reason = "shared with the tests, which use all of it")]
mod fake_wecom;
#[path = "../../tests/it/support/postgres.rs"]
#[allow(
    dead_code,
    clippy::unwrap_used,
    reason = "shared with the tests, which use all of it"
)]
mod test_postgres;

use anyhow::{Context, Result};
use clap::{Parser, ValueEnum};

use machine::Machine;
use peers::Comparison;
use place::Place;
use report::{Figure, Report};

/// Measures the figures of BENCHMARKS.md.
#[derive(Parser)]
struct Args {
    /// Only these; all but `peers` by default.
    #[arg(value_enum)]
    figures: Vec<Name>,
    /// JSON on stdout instead of a table.
    #[arg(long)]
    json: bool,
    /// About a tenth of the work: shows that everything runs, its numbers count for nothing.
    #[arg(long)]
    quick: bool,
    /// What cargo adds.
    #[arg(long, hide = true)]
    bench: bool,
}

/// One file each.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
enum Name {
    Rules,
    Tools,
    Webhook,
    Start,
    Reply,
    Intent,
    Question,
    Batch,
    Drain,
    Steps,
    Agent,
    Growth,
    Held,
    Rest,
    Peers,
}

/// What a figure works with.
pub struct Bench {
    place: Place,
    quick: bool,
}

impl Bench {
    /// The full amount of work, or the amount of a short look.
    fn amount<T>(&self, full: T, quick: T) -> T {
        if self.quick { quick } else { full }
    }
}

fn main() -> Result<()> {
    let args = Args::parse();
    // As the program's own main does, before a client can be built.
    let _ = rustls::crypto::ring::default_provider().install_default();
    if std::env::var_os("RUST_LOG").is_some() {
        iit_manager::boot::logging::start("error");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("starting the runtime")?;
    runtime.block_on(run(&args))
}

async fn run(args: &Args) -> Result<()> {
    let bench = Bench {
        place: Place::make().await?,
        quick: args.quick,
    };
    let mut report = Report::new(Machine::look(&bench.place).await?, args.quick);
    let chosen = |name: &Name| {
        args.figures.contains(name) || (args.figures.is_empty() && *name != Name::Peers)
    };
    for name in Name::value_variants().iter().filter(|name| chosen(name)) {
        let load = machine::load_average();
        eprintln!("measuring {name:?} (load average {load:.2}) …");
        match measure(*name, &bench).await {
            Ok((figures, comparison)) => {
                report.add(load, figures);
                report.compare(comparison);
            }
            // What was measured before it, and what comes after, is still worth having.
            Err(error) => report.failed(&format!("{name:?}"), &error),
        }
    }
    bench.place.end().await?;
    report.print(args.json)
}

async fn measure(name: Name, bench: &Bench) -> Result<(Vec<Figure>, Option<Comparison>)> {
    let figures = match name {
        Name::Rules => rules::measure(bench).await?,
        Name::Tools => tools::measure(bench).await?,
        Name::Webhook => webhook::measure(bench).await?,
        Name::Start => start::measure(bench).await?,
        Name::Reply => reply::measure(bench).await?,
        Name::Intent => intent::measure(bench).await?,
        Name::Question => question::measure(bench).await?,
        Name::Batch => batch::measure(bench).await?,
        Name::Drain => drain::measure(bench).await?,
        Name::Steps => steps::measure(bench).await?,
        Name::Agent => agent::measure(bench).await?,
        Name::Growth => growth::measure(bench).await?,
        Name::Held => held::measure(bench).await?,
        Name::Rest => rest::measure(bench).await?,
        Name::Peers => {
            let (figures, comparison) = peers::measure(bench).await?;
            return Ok((figures, Some(comparison)));
        }
    };
    Ok((figures, None))
}
