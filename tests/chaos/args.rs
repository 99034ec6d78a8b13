//! The command line: that of the chaos, and that of a test binary, which `cargo test` takes it for.

use std::time::Duration;

use clap::{Parser, ValueEnum};

/// Kills, freezes and cuts off real processes, and counts from outside what became of the work.
#[derive(Debug, Clone, Parser)]
#[command(name = "chaos")]
pub struct Args {
    /// Messages to be answered, one run each [default: 2000; 24 in the short form].
    #[arg(long)]
    pub runs: Option<usize>,
    /// Steps of a run, each of which asks the model [default: 5; 3 in the short form].
    #[arg(long)]
    pub steps: Option<usize>,
    /// Time between two kills, such as 2s or 500ms [default: 2s; 1.2s in the short form].
    #[arg(long, value_parser = duration)]
    pub kill_every: Option<Duration>,
    /// Decides what is done when, and what the model says [default: another one each time].
    #[arg(long)]
    pub seed: Option<u64>,
    /// Worker processes.
    #[arg(long, default_value_t = 3)]
    pub workers: usize,
    /// How long nothing may move before the run counts as stuck.
    #[arg(long, value_parser = duration, default_value = "60s")]
    pub patience: Duration,
    /// The long form: 2,000 runs, five steps, a kill every 2 s, commits synced.
    #[arg(long)]
    pub long: bool,
    /// Keeps what Postgres was told, beside what the processes said.
    #[arg(long)]
    pub trace: bool,
    /// How the result is printed.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,

    /// Filters, as a test binary takes them.
    #[arg(hide = true)]
    filters: Vec<String>,
    #[arg(long, hide = true)]
    list: bool,
    #[arg(long, hide = true)]
    exact: bool,
    #[arg(long, hide = true)]
    ignored: bool,
    #[arg(long, hide = true)]
    skip: Vec<String>,
    #[command(flatten)]
    harness: Harness,
}

/// What a test binary is told and this one has no use for.
#[derive(Debug, Clone, clap::Args)]
struct Harness {
    #[arg(long, hide = true)]
    include_ignored: bool,
    #[arg(long, alias = "no-capture", hide = true)]
    nocapture: bool,
    #[arg(long, hide = true)]
    show_output: bool,
    #[arg(long, short, hide = true)]
    quiet: bool,
    #[arg(long, hide = true)]
    test_threads: Option<String>,
    #[arg(long, hide = true)]
    color: Option<String>,
    #[arg(long, hide = true)]
    logfile: Option<String>,
    #[arg(long, hide = true)]
    report_time: bool,
    #[arg(short = 'Z', hide = true)]
    unstable: Vec<String>,
}

/// Output formats; the last two are the harness's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Table,
    /// For programs.
    Json,
    #[value(hide = true)]
    Pretty,
    #[value(hide = true)]
    Terse,
}

/// The only test there is.
const NAME: &str = "chaos::killed_in_every_phase_nothing_is_lost_and_nothing_happens_twice";

/// What is asked for.
pub enum Asked {
    Run,
    /// Lists the one test, or none.
    List(Option<&'static str>),
    /// The filters leave nothing.
    Nothing,
}

/// The size of a run.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    pub runs: usize,
    pub steps: usize,
    pub kill_every: Duration,
    /// Rounds through all kinds of kills that must be finished; messages go on until they are.
    pub rounds: usize,
    /// Kills between two troubles of another kind.
    pub trouble_every: usize,
    /// Slots a queue of each process.
    pub concurrency: usize,
    /// Messages that may wait for their answers at a time.
    pub window: usize,
    /// Commits are synced.
    pub durable: bool,
}

impl Args {
    pub fn asked(&self) -> Asked {
        let is = |filter: &String| {
            if self.exact {
                NAME == filter
            } else {
                NAME.contains(filter.as_str())
            }
        };
        let chosen = !self.ignored
            && (self.filters.is_empty() || self.filters.iter().any(is))
            && !self.skip.iter().any(is);
        match (self.list, chosen) {
            (true, chosen) => Asked::List(chosen.then_some(NAME)),
            (false, true) => Asked::Run,
            (false, false) => Asked::Nothing,
        }
    }

    pub fn size(&self) -> Size {
        let long = self.long || self.runs.is_some_and(|runs| runs > 500);
        Size {
            runs: self.runs.unwrap_or(if long { 2000 } else { 24 }).max(1),
            steps: self.steps.unwrap_or(if long { 5 } else { 3 }).max(1),
            kill_every: self.kill_every.unwrap_or(Duration::from_millis(if long {
                2000
            } else {
                700
            })),
            rounds: 2,
            trouble_every: if long { 3 } else { 2 },
            concurrency: if long { 8 } else { 4 },
            window: if long { 64 } else { 24 },
            durable: long,
        }
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    let number = |text: &str| text.parse::<f64>().ok();
    let seconds = match text.strip_suffix("ms") {
        Some(millis) => number(millis).map(|millis| millis / 1e3),
        None => number(text.strip_suffix('s').unwrap_or(text)),
    };
    seconds
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .filter(|duration| !duration.is_zero())
        .ok_or_else(|| "a time such as 2s or 500ms".to_owned())
}
