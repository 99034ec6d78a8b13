//! A question over a study's records: for which of them a condition holds, and what stands in some fields.
//! Names, types, places and the three values are those of the rules.
//!
//! A condition that a form's rows decide holds for a record when it holds on one of them. Fields that stand on
//! the very rows the condition is asked on are read only where it holds: the serious events of a patient, not
//! all events of a patient who has a serious one.

use std::sync::Arc;

use chrono::NaiveDate;
use serde_json::Value;

use super::{
    eval::Eval,
    fault::RuleFault,
    frame::{Fields, Frame},
    moment::Moment,
    names::{Names, RefId},
    reading::Seen,
    record_view::RecordView,
    result::Outcome,
    rule::Rule,
    scope::Scope,
    set,
    study::Study,
};
use crate::types::{record::Record, rule::RuleSpec};

/// A compiled question; immutable.
#[derive(Debug)]
pub struct Query {
    fields: Fields,
    filter: Option<Rule>,
    columns: Vec<Column>,
}

/// Fields that are read together.
#[derive(Debug)]
struct Column {
    refs: Vec<RefId>,
    scope: Scope,
    /// Stands on the rows the condition is asked on.
    follows: bool,
}

/// Whether the condition holds for a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Nowhere, decided on known values only.
    Fails,
    /// What would decide it is hidden by branching logic.
    Hidden,
    /// What would decide it stands on a form nobody opened yet.
    NotOpened,
    /// What would decide it is blank, not of its type, or a partial date.
    Unknown,
    /// Somewhere, decided on known values only.
    Holds,
}

/// What the question finds in one record.
#[derive(Debug)]
pub struct Answer<'a> {
    /// Whether the condition holds; always, without one.
    pub verdict: Verdict,
    /// By column, the places its fields stand at, in export order.
    pub columns: Vec<Vec<Place<'a>>>,
    /// By column, the places left out because the condition can't be decided there.
    pub undecided: Vec<usize>,
}

/// Fields at one place.
#[derive(Debug)]
pub struct Place<'a> {
    /// Unique event name; `None` where the project has none.
    pub event: Option<&'a str>,
    /// Instance of a repeating form or event.
    pub instance: Option<u32>,
    /// What stands there, in the column's order.
    pub seen: Vec<Seen<'a>>,
}

/// How often a column's fields can stand in a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// At more than one event of an arm.
    pub several_events: bool,
    /// In any number of instances.
    pub repeats: bool,
}

impl Query {
    /// Compiles a question. `columns`: names of fields read together, from the places of the first.
    ///
    /// # Errors
    /// What is wrong with the condition (rule `filter`), or with column n (rule `#n`, from 1).
    pub fn compile(
        filter: Option<&Value>,
        columns: &[&[&str]],
        study: &Study<'_>,
    ) -> Result<Self, Vec<RuleFault>> {
        let mut names = Names::new(*study);
        let fault = |rule: &str, path: &str, what: String| RuleFault {
            rule: rule.to_owned(),
            path: path.to_owned(),
            what,
        };
        let filter = filter
            .map(|logic| {
                let spec = RuleSpec {
                    id: None,
                    field: String::new(),
                    logic: logic.clone(),
                    message: None,
                    severity: None,
                };
                Rule::compile(&spec, "filter".to_owned(), &mut names).map_err(|found| {
                    found
                        .into_iter()
                        .map(|(path, what)| fault("filter", &path, what))
                        .collect::<Vec<_>>()
                })
            })
            .transpose()?;
        let mut faults = Vec::new();
        let mut compiled = Vec::with_capacity(columns.len());
        for (at, column) in columns.iter().enumerate() {
            match compile_column(column, filter.as_ref(), &mut names) {
                Ok(column) => compiled.push(column),
                Err(what) => faults.push(fault(&format!("#{}", at + 1), "field", what)),
            }
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        Ok(Self {
            fields: set::fields(names),
            filter,
            columns: compiled,
        })
    }

    /// The fields the condition reads, as resolved.
    #[must_use]
    pub fn filter_fields(&self) -> &[Arc<str>] {
        self.filter.as_ref().map_or(&[], |filter| &filter.names)
    }

    /// Whether the column is read only where the condition holds.
    #[must_use]
    pub fn follows_filter(&self, column: usize) -> bool {
        self.columns.get(column).is_some_and(|c| c.follows)
    }

    /// How often the column can stand in a record.
    #[must_use]
    pub fn standing(&self, column: usize) -> Standing {
        let layout = &self.fields.layout;
        let form = match self.columns.get(column).map(|c| &c.scope) {
            Some(&Scope::Form(form)) => form,
            _ => {
                return Standing {
                    several_events: false,
                    repeats: false,
                };
            }
        };
        let arms = layout.arms();
        Standing {
            several_events: arms
                .iter()
                .any(|arm| layout.standing(form, *arm).nth(1).is_some()),
            repeats: arms.iter().any(|arm| {
                layout
                    .standing(form, *arm)
                    .any(|event| layout.is_repeating(event, form) || layout.event_repeats(event))
            }),
        }
    }

    /// Asks one record. `today` is the day the data is looked at, in the study's time zone.
    #[must_use]
    pub fn ask<'a>(&'a self, record: &'a Record, today: NaiveDate) -> Answer<'a> {
        let view = RecordView::new(&self.fields, record);
        let today = Moment::day(today);
        let verdict = self.verdict(&view, record, today);
        let mut columns = Vec::with_capacity(self.columns.len());
        let mut undecided = Vec::with_capacity(self.columns.len());
        for column in &self.columns {
            let (places, left_out) = if verdict == Verdict::Holds {
                self.places(column, &view, record, today)
            } else {
                (Vec::new(), 0)
            };
            columns.push(places);
            undecided.push(left_out);
        }
        Answer {
            verdict,
            columns,
            undecided,
        }
    }

    fn verdict<'a>(&'a self, view: &RecordView<'a>, record: &'a Record, today: Moment) -> Verdict {
        let Some(filter) = &self.filter else {
            return Verdict::Holds;
        };
        let mut verdict = Verdict::Fails;
        let mut asked = false;
        for row in 0..record.rows.len() {
            if !filter.scope.applies(&self.fields, view, row) {
                continue;
            }
            asked = true;
            verdict = verdict.max(of_outcome(
                &filter.outcome(&Eval::new(Frame::Row(view, row), today)),
            ));
            if verdict == Verdict::Holds {
                return verdict;
            }
        }
        if !filter.scope.awaited(&self.fields, view, asked).is_empty() {
            verdict = verdict.max(Verdict::NotOpened);
        }
        verdict
    }

    fn places<'a>(
        &'a self,
        column: &Column,
        view: &RecordView<'a>,
        record: &'a Record,
        today: Moment,
    ) -> (Vec<Place<'a>>, usize) {
        let mut places = Vec::new();
        let mut undecided = 0;
        for (at, row) in record.rows.iter().enumerate() {
            if !column.scope.applies(&self.fields, view, at) {
                continue;
            }
            let frame = Frame::Row(view, at);
            if let Some(filter) = self.filter.as_ref().filter(|_| column.follows) {
                match of_outcome(&filter.outcome(&Eval::new(frame, today))) {
                    Verdict::Holds => {}
                    Verdict::Fails => continue,
                    Verdict::Hidden | Verdict::NotOpened | Verdict::Unknown => {
                        undecided += 1;
                        continue;
                    }
                }
            }
            places.push(Place {
                event: row.event.as_deref(),
                instance: row.instance,
                seen: column.refs.iter().map(|id| Seen::at(frame, *id)).collect(),
            });
        }
        (places, undecided)
    }
}

fn of_outcome(outcome: &Outcome) -> Verdict {
    match outcome {
        Outcome::Pass => Verdict::Holds,
        Outcome::Fail => Verdict::Fails,
        Outcome::NotEvaluable { .. } => Verdict::Unknown,
        Outcome::Hidden => Verdict::Hidden,
        Outcome::FormNotOpened => Verdict::NotOpened,
    }
}

fn compile_column(
    written: &[&str],
    filter: Option<&Rule>,
    names: &mut Names<'_>,
) -> Result<Column, String> {
    let refs = written
        .iter()
        .map(|name| names.resolve(name))
        .collect::<Result<Vec<_>, _>>()?;
    let Some(first) = refs.first().copied() else {
        return Err("names no field".to_owned());
    };
    let scope = Scope::of(names, Some(first), &[first])?;
    let together = Scope::of(names, Some(first), &refs)?;
    if scope != together {
        let others: Vec<&str> = refs
            .iter()
            .skip(1)
            .map(|id| &*names.refs[*id].name)
            .collect();
        return Err(format!(
            "`{}` doesn't have one value for each `{}`; name the event as `event.field`",
            others.join("`, `"),
            names.refs[first].name,
        ));
    }
    let follows = filter.is_some_and(|filter| {
        let all: Vec<RefId> = refs.iter().chain(&filter.refs).copied().collect();
        // Of a condition that can't be asked beside the column, one place decides for the record.
        Scope::of(names, Some(first), &all).is_ok_and(|joint| joint == scope)
    });
    Ok(Column {
        refs,
        scope,
        follows,
    })
}
