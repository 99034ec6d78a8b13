//! graphile_worker under the same load as our queue: one process, one measurement, one line of JSON on
//! stdout. The benchmark starts it on a database that is fresh and empty.

mod drain;
mod start;
mod steps;
mod worker;

// The arrivals and the reading of ranks are those of our own figures.
#[path = "../../../figures/dice.rs"]
#[allow(dead_code, reason = "shared with the figures, which use all of it")]
mod dice;
#[path = "../../../figures/load.rs"]
mod load;
#[path = "../../../figures/samples.rs"]
#[allow(dead_code, reason = "shared with the figures, which use all of it")]
mod samples;

use anyhow::Result;
use clap::{Parser, Subcommand};

use worker::Settings;

#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    measure: Measure,
}

#[derive(Subcommand)]
enum Measure {
    /// Jobs that do nothing, all there before the worker starts.
    Drain {
        #[arg(long)]
        jobs: usize,
        #[command(flatten)]
        settings: Settings,
    },
    /// From the due time of an enqueue to the handler.
    Start {
        #[arg(long)]
        jobs: usize,
        #[command(flatten)]
        settings: Settings,
    },
    /// Runs of durable steps, one job a step.
    Steps {
        #[arg(long)]
        runs: usize,
        #[arg(long)]
        steps: i32,
        #[command(flatten)]
        settings: Settings,
    },
}

#[tokio::main]
async fn main() -> Result<()> {
    let told = match Args::parse().measure {
        Measure::Drain { jobs, settings } => drain::measure(&settings, jobs).await?,
        Measure::Start { jobs, settings } => start::measure(&settings, jobs).await?,
        Measure::Steps {
            runs,
            steps,
            settings,
        } => steps::measure(&settings, runs, steps).await?,
    };
    println!("{told}");
    Ok(())
}
