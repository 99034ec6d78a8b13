//! The proof that a run survives everything: real `iit` processes behind proxies of ours, killed in every
//! phase of the step protocol, frozen past their leases, cut off, with Postgres crashing under them; and a
//! judge that counts from outside what became of the work.
//!
//! `cargo test` runs the short form, `cargo chaos --runs 2000 --steps 5 --kill-every 2s --seed N` the long
//! one. Exit code 1: something was lost or repeated; 3: the run could not be made.

mod args;
mod fake_llm;
mod fake_wecom;
mod faults;
mod feeder;
mod fleet;
mod history;
mod oracle;
mod place;
mod proxy;
mod report;
mod run;
mod statements;
mod study;
mod traps;
mod wire;

#[path = "../it/support/postgres.rs"]
#[allow(
    dead_code,
    clippy::unwrap_used,
    reason = "shared with the tests, which use all of it"
)]
mod test_postgres;

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Parser;
use iit_manager::boot::cli::output;
use tokio::signal::unix::{SignalKind, signal};

use args::{Args, Asked, Format};

fn main() -> ExitCode {
    let args = Args::parse();
    match args.asked() {
        Asked::List(name) => {
            let listed = name
                .map(|name| format!("{name}: test\n"))
                .unwrap_or_default();
            let _ = output::print(listed.as_bytes());
            ExitCode::SUCCESS
        }
        Asked::Nothing => ExitCode::SUCCESS,
        Asked::Run => match run_once(&args) {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::from(1),
            Err(error) => {
                output::warn(format_args!("chaos: the run could not be made: {error:#}"));
                ExitCode::from(3)
            }
        },
    }
}

fn run_once(args: &Args) -> Result<bool> {
    // As the program's own main does, before a client can be built.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("starting the runtime")?;
    let report = runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        // Leaving takes all processes along.
        tokio::select! {
            report = run::run(args) => report,
            _ = tokio::signal::ctrl_c() => bail!("it was interrupted"),
            _ = terminate.recv() => bail!("it was told to stop"),
        }
    })?;
    report.print(args.format == Format::Json)?;
    Ok(report.passed)
}
