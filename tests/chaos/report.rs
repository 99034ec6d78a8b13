//! What a run came to, for people and for programs.

use std::path::PathBuf;

use anyhow::Result;
use iit_manager::boot::cli::output;
use serde::Serialize;

use crate::faults::{Phase, Tally, Trouble};
use crate::oracle::Check;

/// One run of the chaos.
#[derive(Debug, Serialize)]
pub struct Report {
    pub seed: u64,
    pub passed: bool,
    pub seconds: f64,
    pub counts: Counts,
    pub kills: Vec<Kills>,
    pub troubles: Vec<Troubles>,
    pub checks: Vec<Check>,
    /// Where what the processes said is kept.
    pub logs: PathBuf,
    /// Everything that was done, when the run failed.
    pub history: Vec<String>,
}

/// Numbers people ask for.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Counts {
    pub runs: usize,
    pub steps: usize,
    pub workers: usize,
    pub concurrency: usize,
    pub lease_s: u64,
    pub durable: bool,
    pub callbacks: usize,
    pub calls: usize,
    pub most_calls: usize,
    pub delivered: usize,
    pub unknown: i64,
    /// Leases that ran out.
    pub rescued: i64,
    /// Late settlements that found their lease gone.
    pub fenced_off: usize,
    /// Processes that ended unasked.
    pub fell: usize,
    /// Traps nobody came to.
    pub missed: usize,
    pub most_attempts: i32,
}

#[derive(Debug, Serialize)]
pub struct Kills {
    pub phase: &'static str,
    pub kills: usize,
    pub percent: f64,
}

#[derive(Debug, Serialize)]
pub struct Troubles {
    pub trouble: &'static str,
    pub times: usize,
}

/// Kills by phase, with their shares.
pub fn kills(tally: &Tally) -> Vec<Kills> {
    let phases = Phase::AIMED
        .into_iter()
        .chain([Phase::Receiving, Phase::Anywhere]);
    phases
        .map(|phase| {
            let kills = tally.kills.get(&phase).copied().unwrap_or(0);
            Kills {
                phase: phase.name(),
                kills,
                percent: share(kills, tally.killed()),
            }
        })
        .collect()
}

pub fn troubles(tally: &Tally) -> Vec<Troubles> {
    Trouble::ALL
        .into_iter()
        .map(|trouble| Troubles {
            trouble: trouble.name(),
            times: tally.troubles.get(&trouble).copied().unwrap_or(0),
        })
        .collect()
}

#[allow(clippy::cast_precision_loss, reason = "counts are small")]
fn share(part: usize, whole: usize) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

impl Report {
    pub fn print(&self, json: bool) -> Result<()> {
        if json {
            return Ok(output::json(self)?);
        }
        let c = &self.counts;
        output::say(format_args!(
            "chaos, seed {}: {} runs × {} steps in {:.0} s; {} workers × {} slots a queue, lease {} s, fsync {}",
            self.seed,
            c.runs,
            c.steps,
            self.seconds,
            c.workers,
            c.concurrency,
            c.lease_s,
            if c.durable { "on" } else { "off" }
        ))?;
        let mut table = output::table(&["done to the processes", "times", "of all kills"]);
        for one in &self.kills {
            table.add_row([
                format!("killed {}", one.phase),
                one.kills.to_string(),
                format!("{:.0} %", one.percent),
            ]);
        }
        for one in &self.troubles {
            table.add_row([one.trouble.to_owned(), one.times.to_string(), String::new()]);
        }
        output::say(table)?;
        output::say(format_args!(
            "{} callbacks posted; {} model calls for {} steps (at most {}); {} messages delivered, {} unknown; \
             {} leases ran out, {} late settlements fenced off; {} processes ended unasked, {} traps stayed empty; \
             a job took at most {} attempts",
            c.callbacks,
            c.calls,
            c.runs * c.steps,
            c.most_calls,
            c.delivered,
            c.unknown,
            c.rescued,
            c.fenced_off,
            c.fell,
            c.missed,
            c.most_attempts
        ))?;
        for check in &self.checks {
            if check.holds() {
                output::say(format_args!("  ✓ {}", check.what))?;
                continue;
            }
            output::say(format_args!("  ✗ {}: {} faults", check.what, check.faults))?;
            for fault in &check.shown {
                output::say(format_args!("      {fault}"))?;
            }
        }
        if self.passed {
            output::say("chaos: passed")?;
        } else {
            output::say("\nwhat was done:")?;
            for line in &self.history {
                output::say(line)?;
            }
            output::say(format_args!(
                "chaos: FAILED with seed {}; what the processes said is in {}",
                self.seed,
                self.logs.display()
            ))?;
        }
        Ok(())
    }
}
