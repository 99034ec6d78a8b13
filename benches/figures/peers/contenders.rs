//! Who is measured, and the settings each may choose from: what its own documents name for such work.

use super::programs::Program;

/// One row of the table.
pub struct Contender {
    pub name: &'static str,
    pub program: Program,
    /// What its row says about how work is settled.
    pub settles: &'static str,
    pub drain: Task,
    pub start: Task,
    pub steps: Task,
    /// How many times theirs ours must be: in the drain, in steps.
    pub beaten_by: (Option<f64>, Option<f64>),
}

/// How much of a task, and the settings to try; none: it can't do it.
#[derive(Clone, Copy)]
pub struct Task {
    pub amount: usize,
    pub settings: &'static [Setting],
}

pub struct Setting {
    pub name: &'static str,
    pub args: &'static [&'static str],
}

const CANNOT: Task = Task {
    amount: 0,
    settings: &[],
};

const fn setting(name: &'static str, args: &'static [&'static str]) -> Setting {
    Setting { name, args }
}

/// As many as are worked off by ours beside it.
pub const DRAIN_JOBS: usize = 5_000;
pub const START_JOBS: usize = 500;
pub const STEP_RUNS: usize = 500;

// `run` fetches one job for each announcement or poll in each slot, so that a backlog is what `run_once` is
// for. The local queue and the short poll are what its own benches use.
const BACKLOG: &[Setting] = &[setting("8 slots, run_once", &["--slots", "8", "--once"])];
const ONE_BY_ONE: &[Setting] = &[
    setting("8 slots", &["--slots", "8"]),
    setting(
        "8 slots, polled every 10 ms",
        &["--slots", "8", "--poll-ms", "10"],
    ),
];
const AHEAD: &[Setting] = &[setting(
    "8 slots, local queue of 100, polled every 10 ms",
    &["--slots", "8", "--local-queue", "100", "--poll-ms", "10"],
)];
const COLLECTED: &[Setting] = &[
    setting(
        "8 slots, completions every 5 ms, local queue of 100, polled every 10 ms",
        &[
            "--slots",
            "8",
            "--complete-ms",
            "5",
            "--local-queue",
            "100",
            "--poll-ms",
            "10",
        ],
    ),
    setting(
        "24 slots, completions every 5 ms, local queue of 500, polled every 5 ms",
        &[
            "--slots",
            "24",
            "--complete-ms",
            "5",
            "--local-queue",
            "500",
            "--poll-ms",
            "5",
        ],
    ),
];

pub const ALL: &[Contender] = &[
    Contender {
        name: "graphile_worker 0.14",
        beaten_by: (Some(1.5), None),
        program: Program::Graphile,
        settles: "each job claimed and completed by itself",
        drain: Task {
            amount: DRAIN_JOBS,
            settings: BACKLOG,
        },
        start: Task {
            amount: START_JOBS,
            settings: ONE_BY_ONE,
        },
        steps: Task {
            amount: STEP_RUNS,
            settings: ONE_BY_ONE,
        },
    },
    Contender {
        name: "graphile_worker 0.14",
        beaten_by: (None, None),
        program: Program::Graphile,
        settles: "100 claimed ahead, each completed by itself",
        drain: Task {
            amount: DRAIN_JOBS,
            settings: AHEAD,
        },
        start: Task {
            amount: START_JOBS,
            settings: AHEAD,
        },
        steps: Task {
            amount: STEP_RUNS,
            settings: AHEAD,
        },
    },
    Contender {
        name: "graphile_worker 0.14",
        beaten_by: (None, None),
        program: Program::Graphile,
        settles: "claimed ahead, completions collected",
        drain: Task {
            amount: DRAIN_JOBS,
            settings: COLLECTED,
        },
        start: Task {
            amount: START_JOBS,
            settings: COLLECTED,
        },
        steps: Task {
            amount: STEP_RUNS,
            settings: COLLECTED,
        },
    },
    Contender {
        name: "DBOS 3.4",
        beaten_by: (None, Some(4.0)),
        program: Program::Dbos,
        settles: "each step's result by itself",
        drain: Task {
            amount: 1_000,
            settings: &[
                setting(
                    "queue, 8 at a time, polled every 20 ms",
                    &["--slots", "8", "--polling", "0.02"],
                ),
                setting(
                    "queue, no limit, polled every second",
                    &["--slots", "1000", "--polling", "1"],
                ),
            ],
        },
        start: Task {
            amount: START_JOBS,
            settings: &[
                setting(
                    "queue polled every 20 ms",
                    &["--slots", "64", "--polling", "0.02"],
                ),
                setting(
                    "queue polled every second",
                    &["--slots", "1000", "--polling", "1"],
                ),
            ],
        },
        steps: Task {
            amount: 200,
            settings: &[
                setting("8 threads", &["--mode", "threads", "--parallel", "8"]),
                setting("32 threads", &["--mode", "threads", "--parallel", "32"]),
                setting(
                    "queue, 16 at a time",
                    &["--mode", "queue", "--parallel", "16"],
                ),
                setting("16 coroutines", &["--mode", "async", "--parallel", "16"]),
                setting(
                    "2 processes × 8 threads",
                    &["--mode", "threads", "--parallel", "8", "--processes", "2"],
                ),
                setting(
                    "2 processes × 16 coroutines",
                    &["--mode", "async", "--parallel", "16", "--processes", "2"],
                ),
            ],
        },
    },
    Contender {
        name: "LangGraph 1.2 + Postgres checkpointer 3.2",
        beaten_by: (None, Some(4.0)),
        program: Program::LangGraph,
        settles: "a checkpoint a step, durability sync",
        drain: CANNOT,
        start: CANNOT,
        steps: Task {
            amount: 150,
            settings: &[
                setting("8 threads", &["--mode", "threads", "--parallel", "8"]),
                setting("16 threads", &["--mode", "threads", "--parallel", "16"]),
                setting("16 coroutines", &["--mode", "async", "--parallel", "16"]),
                setting(
                    "2 processes × 8 threads",
                    &["--mode", "threads", "--parallel", "8", "--processes", "2"],
                ),
                setting(
                    "2 processes × 16 coroutines",
                    &["--mode", "async", "--parallel", "16", "--processes", "2"],
                ),
            ],
        },
    },
];
