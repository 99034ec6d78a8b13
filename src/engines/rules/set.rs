//! A compiled set of rules, and what it says about a record.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use chrono::NaiveDate;
use serde_json::Value;

use super::{
    eval::{Doubt, Eval},
    expr::Expr,
    fault::RuleFault,
    flat,
    frame::{Fields, Frame, RecordView},
    key::{id_of, rule_key},
    message::{self, Template},
    moment::Moment,
    names::{self, Names, RefId},
    parse::Parser,
    result::{Outcome, Reason, RuleResult},
    scope::Scope,
    study::Study,
    words,
};
use crate::types::{finding::Severity, record::Record, rule::RuleSpec};

/// Rules compiled for one study; immutable, share it by `Arc`.
#[derive(Debug)]
pub struct RuleSet {
    fields: Fields,
    rules: Vec<Rule>,
    typed: bool,
}

#[derive(Debug)]
struct Rule {
    key: Arc<str>,
    label: String,
    field: Arc<str>,
    expr: Expr,
    /// Every field the rule reads, once, in reading order.
    refs: Vec<RefId>,
    names: Vec<Arc<str>>,
    scope: Scope,
    template: Template,
    has_own_message: bool,
    severity: Severity,
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
            if results.len() == before
                && let Some(event) = rule.scope.awaited(&self.fields, &view)
            {
                results.push(rule.awaited(index, &self.fields, event));
            }
        }
        results
    }

    /// What every rule says about one JSON object, one flat row: without a dictionary, JSON types stand and
    /// numeric text counts as a number; with one, the values are read as an export's, and a form is taken for
    /// opened unless its `<form>_complete` is given as 0.
    #[must_use]
    pub fn evaluate_json(&self, data: &Value, today: NaiveDate) -> Vec<RuleResult> {
        if self.typed {
            let record = flat::record(&self.fields, data);
            let view = RecordView::new(&self.fields, &record).opened_unless_said();
            return self.evaluate_view(view, &record, today);
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

impl Rule {
    fn compile(
        spec: &RuleSpec,
        label: String,
        names: &mut Names<'_>,
    ) -> Result<Self, Vec<(String, String)>> {
        let mut faults = Vec::new();
        let mut expr = Expr::Null;
        if spec.logic.is_object() {
            let mut parser = Parser::new(names);
            expr = parser.condition(&spec.logic, "logic", 1);
            faults.append(&mut parser.faults);
        } else {
            let what = if spec.logic.is_null() {
                "is missing"
            } else {
                "is a literal, which is the same for every patient; write an operation as an object"
            };
            faults.push(("logic".to_owned(), what.to_owned()));
        }
        let field_name = spec.field.trim();
        let field = if field_name.is_empty() {
            None
        } else {
            match names.resolve(field_name) {
                Ok(id) => Some(id),
                Err(what) => {
                    faults.push(("field".to_owned(), what));
                    None
                }
            }
        };
        let mut refs = Vec::new();
        expr.fields(&mut refs);
        let mut seen = Vec::with_capacity(refs.len());
        refs.retain(|id| {
            let new = !seen.contains(id);
            seen.push(*id);
            new
        });
        if refs.is_empty() && faults.is_empty() && names.study().dictionary.is_some() {
            let what = "reads no field, so the answer is the same for every patient";
            faults.push(("logic".to_owned(), what.to_owned()));
        }
        let scope = match Scope::of(names, field, &refs) {
            Ok(scope) => scope,
            Err(what) => {
                faults.push(("logic".to_owned(), what));
                Scope::Once
            }
        };
        if !faults.is_empty() {
            return Err(faults);
        }
        // Hashing follows the check of the logic: it may be as deep as JSON lets it.
        let key = rule_key(spec);
        let mut placeholders: BTreeMap<String, RefId> = refs
            .iter()
            .chain(&field)
            .map(|id| (names.refs[*id].name.to_string(), *id))
            .collect();
        if let Some(id) = field {
            placeholders.insert(field_name.to_owned(), id);
        }
        let own = spec
            .message
            .as_deref()
            .map(str::trim)
            .filter(|text| !text.is_empty());
        let template = match own {
            Some(text) => Template::parse(text, &placeholders),
            None => Template::parse(&default_message(spec, &expr, names), &BTreeMap::new()),
        };
        let field = field.or(refs.first().copied());
        Ok(Self {
            key: key.into(),
            label,
            field: field.map_or_else(|| "".into(), |id| Arc::clone(&names.refs[id].name)),
            names: refs
                .iter()
                .map(|id| Arc::clone(&names.refs[*id].name))
                .collect(),
            expr,
            refs,
            scope,
            template,
            has_own_message: own.is_some(),
            severity: spec.severity.unwrap_or(Severity::Error),
        })
    }

    fn judge<'a>(&'a self, index: usize, eval: &Eval<'_, 'a>) -> RuleResult {
        match eval.truth(&self.expr) {
            Some(true) => self.result(index, Outcome::Pass),
            Some(false) => self.failed(index, eval),
            None => self.undecided(index, eval),
        }
    }

    fn result(&self, index: usize, outcome: Outcome) -> RuleResult {
        RuleResult {
            rule: Arc::clone(&self.key),
            rule_index: index,
            event: None,
            instance: None,
            field: Arc::clone(&self.field),
            outcome,
            message: String::new(),
            severity: self.severity,
            values: Vec::new(),
        }
    }

    fn failed<'a>(&'a self, index: usize, eval: &Eval<'_, 'a>) -> RuleResult {
        let hidden: Vec<RefId> = self
            .refs
            .iter()
            .copied()
            .filter(|id| eval.frame.text(*id).is_none() && eval.frame.is_hidden(*id))
            .collect();
        if !hidden.is_empty() && eval.excuses(&self.expr) {
            let mut result = self.result(index, Outcome::Hidden);
            result.message = message::hidden(eval, &hidden);
            result.values = message::values(eval, &hidden);
            return result;
        }
        let mut result = self.result(index, Outcome::Fail);
        result.message = message::failed(
            eval,
            &self.expr,
            &self.template,
            self.has_own_message,
            &self.refs,
        );
        result.values = message::values(eval, &self.refs);
        result
    }

    /// Not evaluable if anything visible is to blame; else nothing is asked of an unopened form or of a
    /// hidden field.
    fn undecided<'a>(&'a self, index: usize, eval: &Eval<'_, 'a>) -> RuleResult {
        let (mut unopened, mut hidden, mut visible) = (Vec::new(), Vec::new(), Vec::new());
        for doubt in eval.explain(&self.expr) {
            match (doubt.reason, doubt.field) {
                (Reason::Missing, Some(id)) if eval.frame.is_unopened(id) => unopened.push(id),
                (Reason::Missing | Reason::CodedMissing, Some(id)) if eval.frame.is_hidden(id) => {
                    hidden.push(id);
                }
                _ => visible.push(doubt),
            }
        }
        if visible.is_empty() && hidden.is_empty() && unopened.is_empty() {
            visible.push(Doubt {
                reason: Reason::Undefined,
                field: None,
            });
        }
        let Some(first) = visible.first() else {
            let (outcome, fields, text) = if unopened.is_empty() {
                let text = message::hidden(eval, &hidden);
                (Outcome::Hidden, hidden, text)
            } else {
                let text = message::not_opened(eval, &unopened);
                (Outcome::FormNotOpened, unopened, text)
            };
            let mut result = self.result(index, outcome);
            result.values = message::values(eval, &fields);
            result.message = text;
            return result;
        };
        let mut fields: Vec<Arc<str>> = visible
            .iter()
            .filter_map(|doubt| doubt.field)
            .map(|id| Arc::clone(&eval.frame.fields().refs[id].name))
            .collect();
        if fields.is_empty() {
            fields.push(Arc::clone(&self.field));
        }
        let reason = first.reason;
        let mut result = self.result(index, Outcome::NotEvaluable { reason, fields });
        result.severity = Severity::Query;
        result.message = message::not_evaluable(eval, &self.expr, &self.template, &visible);
        result.values = message::values(eval, &self.refs);
        result
    }

    /// The record has no row the rule could be evaluated on.
    fn awaited(&self, index: usize, fields: &Fields, event: usize) -> RuleResult {
        let mut result = self.result(index, Outcome::FormNotOpened);
        if !fields.layout.is_classic() {
            result.event = fields
                .layout
                .event_names()
                .get(event)
                .map(|name| name.as_str().into());
        }
        result.message = format!("表单尚未填写: {}", self.field);
        result
    }
}

fn default_message(spec: &RuleSpec, expr: &Expr, names: &mut Names<'_>) -> String {
    if let Expr::Function(function) = expr {
        return function.words();
    }
    let titles: HashMap<String, String> = names
        .refs
        .iter()
        .map(|field| {
            let label = &names.slots[field.slot].label;
            let title = if label.is_empty() {
                &*field.name
            } else {
                label
            };
            (field.name.to_string(), title.to_owned())
        })
        .collect();
    let title = |name: &str| titles.get(name).cloned().unwrap_or_else(|| name.to_owned());
    format!("应满足: {}", words::in_words(&spec.logic, &title))
}

/// What the compiled set keeps of the names.
fn fields(names: Names<'_>) -> Fields {
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
