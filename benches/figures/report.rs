//! What was measured, for people and for programs.

use anyhow::{Result, ensure};
use iit_manager::boot::cli::output;
use serde::Serialize;

use crate::machine::Machine;
use crate::peers::Comparison;

/// What a figure must reach.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    Below(f64),
    AtLeast(f64),
    /// Shown for comparison.
    None,
}

/// One number and what is to be known about it.
#[derive(Serialize)]
pub struct Figure {
    pub name: String,
    pub target: Target,
    pub value: f64,
    pub unit: &'static str,
    /// The numbers around it.
    pub detail: String,
    /// How it was measured.
    pub note: String,
    met: Option<bool>,
    load_before: f64,
}

impl Figure {
    pub fn new(name: impl Into<String>, target: Target, value: f64, unit: &'static str) -> Self {
        let met = match target {
            Target::Below(limit) => Some(value < limit),
            Target::AtLeast(limit) => Some(value >= limit),
            Target::None => None,
        };
        Self {
            name: name.into(),
            target,
            value,
            unit,
            detail: String::new(),
            note: String::new(),
            met,
            load_before: f64::NAN,
        }
    }

    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }

    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    fn target_text(&self) -> String {
        match self.target {
            Target::Below(limit) => format!("< {limit} {}", self.unit),
            Target::AtLeast(limit) => format!("≥ {limit} {}", self.unit),
            Target::None => String::new(),
        }
    }

    fn value_text(&self) -> String {
        let digits = match self.value.abs() {
            v if v >= 100.0 => 0,
            v if v >= 10.0 => 1,
            v if v >= 1.0 => 2,
            _ => 3,
        };
        format!("{:.digits$} {}", self.value, self.unit)
    }

    fn met_text(&self) -> &'static str {
        match self.met {
            Some(true) => "yes",
            Some(false) => "NO",
            None => "",
        }
    }
}

/// All of a run.
#[derive(Serialize)]
pub struct Report {
    machine: Machine,
    quick: bool,
    figures: Vec<Figure>,
    #[serde(skip_serializing_if = "Option::is_none")]
    comparison: Option<Comparison>,
    /// Figures that could not be measured, and why.
    failed: Vec<String>,
}

impl Report {
    pub fn new(machine: Machine, quick: bool) -> Self {
        Self {
            machine,
            quick,
            figures: Vec::new(),
            comparison: None,
            failed: Vec::new(),
        }
    }

    pub fn add(&mut self, load_before: f64, figures: Vec<Figure>) {
        self.figures
            .extend(figures.into_iter().map(|figure| Figure {
                load_before,
                ..figure
            }));
    }

    pub fn compare(&mut self, comparison: Option<Comparison>) {
        self.comparison = comparison.or(self.comparison.take());
    }

    pub fn failed(&mut self, name: &str, error: &anyhow::Error) {
        eprintln!("  failed: {error:#}");
        self.failed.push(format!("{name}: {error:#}"));
    }

    /// Prints all there is.
    ///
    /// # Errors
    /// A figure could not be measured.
    pub fn print(&self, json: bool) -> Result<()> {
        if json {
            output::json(self)?;
        } else {
            self.print_for_people();
        }
        ensure!(
            self.failed.is_empty(),
            "not measured: {}",
            self.failed.join("; ")
        );
        Ok(())
    }

    fn print_for_people(&self) {
        println!("\n{}", self.machine);
        let mut table = output::table(&["figure", "target", "measured", "met", "detail", "load"]);
        for figure in &self.figures {
            table.add_row([
                figure.name.clone(),
                figure.target_text(),
                figure.value_text(),
                figure.met_text().to_owned(),
                figure.detail.clone(),
                format!("{:.2}", figure.load_before),
            ]);
        }
        println!("{table}");
        for figure in self.figures.iter().filter(|f| !f.note.is_empty()) {
            println!("· {}: {}", figure.name, figure.note);
        }
        if let Some(comparison) = &self.comparison {
            comparison.print();
        }
        println!("load = 1-minute load average just before the figure, other programs included");
        if self.quick {
            println!("--quick: a tenth of the work; these numbers count for nothing");
        }
        if cfg!(debug_assertions) {
            println!("built without optimisation; these numbers count for nothing");
        }
    }
}
