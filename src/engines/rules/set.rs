//! A compiled set of rules, and what it says about a record.

use std::{collections::HashMap, sync::Arc};

use chrono::NaiveDate;
use serde_json::Value;

use super::{
    eval::Eval,
    fault::RuleFault,
    flat,
    frame::{Fields, Frame},
    key::id_of,
    moment::Moment,
    names::{self, Names},
    record_view::RecordView,
    result::RuleResult,
    rule::Rule,
    study::Study,
};
use crate::types::{record::Record, rule::RuleSpec};

/// Rules compiled for one study; immutable, share it by `Arc`.
#[derive(Debug)]
pub struct RuleSet {
    fields: Fields,
    rules: Vec<Rule>,
    typed: bool,
}

impl RuleSet {
    /// Compiles `specs` for `study`.
    ///
    /// # Errors
    /// Every fault of every rule, each with its place.
    pub fn compile(specs: &[RuleSpec], study: &Study<'_>) -> Result<Self, Vec<RuleFault>> {
        let mut names = Names::new(*study);
        let mut rules = Vec::with_capacity(specs.len());
        let mut faults = Vec::new();
        let mut seen: HashMap<&str, usize> = HashMap::new();
        for (at, spec) in specs.iter().enumerate() {
            let label = id_of(spec).map_or_else(|| format!("#{}", at + 1), str::to_owned);
            let mut fault = |path: &str, what: String| {
                faults.push(RuleFault {
                    rule: label.clone(),
                    path: path.to_owned(),
                    what,
                });
            };
            if let Some(id) = id_of(spec)
                && let Some(first) = seen.insert(id, at)
            {
                fault(
                    "id",
                    format!(
                        "`{id}` is also the id of rule #{}; an id names one rule",
                        first + 1
                    ),
                );
            }
            match Rule::compile(spec, label.clone(), &mut names) {
                Ok(rule) => rules.push(rule),
                Err(found) => found
                    .into_iter()
                    .for_each(|(path, what)| fault(&path, what)),
            }
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        Ok(Self {
            fields: fields(names),
            rules,
            typed: study.dictionary.is_some(),
        })
    }

    /// How many rules the set has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Whether the set has no rule.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// What people call the rule at `index`: its id, or `#n` counted from 1.
    #[must_use]
    pub fn label(&self, index: usize) -> Option<&str> {
        self.rules.get(index).map(|rule| rule.label.as_str())
    }

    /// The names of the fields the rule at `index` reads, as resolved, in reading order.
    #[must_use]
    pub fn fields_of(&self, index: usize) -> &[Arc<str>] {
        self.rules.get(index).map_or(&[], |rule| &rule.names)
    }

    /// What every rule says about every row it applies to, in rule order. `today` is the day the data is
    /// looked at, in the study's time zone.
    #[must_use]
    pub fn evaluate(&self, record: &Record, today: NaiveDate) -> Vec<RuleResult> {
        self.evaluate_view(RecordView::new(&self.fields, record), record, today)
    }

    fn evaluate_view<'a>(
        &'a self,
        view: RecordView<'a>,
        record: &'a Record,
        today: NaiveDate,
    ) -> Vec<RuleResult> {
        let today = Moment::day(today);
        let events: Vec<Option<Arc<str>>> = record
            .rows
            .iter()
            .map(|row| row.event.as_deref().map(Arc::from))
            .collect();
        let mut results = Vec::with_capacity(self.rules.len());
        for (index, rule) in self.rules.iter().enumerate() {
            let before = results.len();
            for (row, event) in events.iter().enumerate() {
                if !rule.scope.applies(&self.fields, &view, row) {
                    continue;
                }
                let eval = Eval::new(Frame::Row(&view, row), today);
                let mut result = rule.judge(index, &eval);
                result.event.clone_from(event);
                result.instance = record.rows.get(row).and_then(|row| row.instance);
                results.push(result);
            }
            let asked = results.len() > before;
            let awaited = rule.scope.awaited(&self.fields, &view, asked);
            results.extend(
                awaited
                    .into_iter()
                    .map(|event| rule.awaited(index, &self.fields, event)),
            );
        }
        results
    }

    /// What every rule says about one JSON object, one flat row: without a dictionary, JSON types stand and
    /// numeric text counts as a number; with one, the values are read as an export's, and a form is taken for
    /// opened unless its `<form>_complete` is given as 0.
    #[must_use]
    pub fn evaluate_json(&self, data: &Value, today: NaiveDate) -> Vec<RuleResult> {
        if self.typed {
            let flat = flat::record(&self.fields, data);
            let view = RecordView::of_flat(&self.fields, &flat);
            return self.evaluate_view(view, &flat.record, today);
        }
        let today = Moment::day(today);
        self.rules
            .iter()
            .enumerate()
            .map(|(index, rule)| {
                rule.judge(index, &Eval::new(Frame::Json(&self.fields, data), today))
            })
            .collect()
    }
}

/// What the compiled set keeps of the names.
pub(super) fn fields(names: Names<'_>) -> Fields {
    let study = names.study();
    let forms = names::form_fields(study, &names.layout);
    let dictionary = study.dictionary;
    let record_id = dictionary
        .and_then(|d| d.record_id_field())
        .map(|f| f.name.as_str());
    let form_of = dictionary
        .map(|d| d.fields())
        .unwrap_or_default()
        .iter()
        .map(|field| {
            let form = names.layout.form(&field.form);
            (
                field.name.clone(),
                form.filter(|_| Some(field.name.as_str()) != record_id),
            )
        })
        .collect();
    Fields {
        truth_columns: dictionary.map(flat::truth_columns).unwrap_or_default(),
        checkboxes: dictionary.map(flat::checkboxes).unwrap_or_default(),
        missing_codes: dictionary
            .map(|d| d.missing_codes.iter().map(|c| c.code.clone()).collect())
            .unwrap_or_default(),
        layout: names.layout,
        slots: names.slots,
        refs: names.refs,
        forms,
        form_of,
    }
}
