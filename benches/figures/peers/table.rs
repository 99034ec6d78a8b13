//! The table of ours beside the others.

use iit_manager::boot::cli::output;
use serde::{Deserialize, Serialize};

use crate::cost::Cost;

/// Times from due to started, in milliseconds.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct Start {
    pub p50: f64,
    pub p95: f64,
    pub p99: f64,
    pub max: f64,
}

/// What a contender reached with the best of its settings.
#[derive(Serialize)]
pub struct Best<T> {
    pub setting: String,
    pub value: T,
}

#[derive(Serialize)]
pub struct Row {
    pub name: String,
    pub settles: String,
    /// See [`super::contenders::Contender::beaten_by`].
    #[serde(skip)]
    pub beaten_by: (Option<f64>, Option<f64>),
    pub drain_per_s: Option<Best<f64>>,
    pub start_ms: Option<Best<Start>>,
    pub steps_per_s: Option<Best<f64>>,
    /// Of a step.
    pub cost: Option<Cost>,
}

/// One setting, measured.
#[derive(Serialize)]
pub struct Tried {
    pub name: String,
    pub task: &'static str,
    pub setting: String,
    /// A rate a second; for starts the p95 in milliseconds.
    pub value: Option<f64>,
    /// Why there is none.
    pub failed: Option<String>,
}

#[derive(Serialize)]
pub struct Comparison {
    pub rows: Vec<Row>,
    pub tried: Vec<Tried>,
    /// Peers that could not be measured, and why.
    pub left_out: Vec<String>,
    pub load_before: f64,
}

impl Comparison {
    pub fn print(&self) {
        let mut table = output::table(&[
            "",
            "settles",
            "drain, jobs/s",
            "start at 50/s, p50 · p95 · p99 ms",
            "durable steps/s",
            "rows a step",
            "bytes a step: table · WAL",
        ]);
        for row in &self.rows {
            let rate = |best: &Option<Best<f64>>| {
                best.as_ref()
                    .map_or("–".to_owned(), |best| format!("{:.0}", best.value))
            };
            table.add_row([
                row.name.clone(),
                row.settles.clone(),
                rate(&row.drain_per_s),
                row.start_ms.as_ref().map_or("–".to_owned(), |best| {
                    let Start { p50, p95, p99, .. } = best.value;
                    format!("{p50:.1} · {p95:.1} · {p99:.1}")
                }),
                rate(&row.steps_per_s),
                row.cost
                    .map_or("–".to_owned(), |cost| format!("{:.1}", cost.rows)),
                row.cost.map_or("–".to_owned(), |cost| {
                    format!("{:.0} · {:.0}", cost.table_bytes, cost.wal_bytes)
                }),
            ]);
        }
        println!(
            "\nbeside the queues and engines people would use instead (load {:.2} before):\n{table}",
            self.load_before
        );
        for row in &self.rows {
            let rates = [("drain", &row.drain_per_s), ("steps", &row.steps_per_s)];
            let mut best: Vec<String> = rates
                .into_iter()
                .filter_map(|(task, best)| Some(format!("{task}: {}", best.as_ref()?.setting)))
                .collect();
            best.extend(
                row.start_ms
                    .as_ref()
                    .map(|best| format!("start: {}", best.setting)),
            );
            println!(
                "· {} ({}), best of the settings tried: {}",
                row.name,
                row.settles,
                best.join("; ")
            );
        }
        for tried in &self.tried {
            let result = match (tried.value, &tried.failed) {
                (Some(value), _) => format!("{value:.1}"),
                (None, failed) => format!("failed: {}", failed.as_deref().unwrap_or_default()),
            };
            println!(
                "· tried: {}, {}, {}: {result}",
                tried.name, tried.task, tried.setting
            );
        }
        for left_out in &self.left_out {
            println!("· not measured: {left_out}");
        }
    }
}
