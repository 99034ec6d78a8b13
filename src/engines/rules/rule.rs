//! One compiled rule, and the verdict it gives at one place.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use super::{
    eval::{Doubt, Eval},
    excuse::Excuse,
    expr::Expr,
    frame::Fields,
    key::rule_key,
    message::{self, Template},
    names::{Names, RefId},
    parse::{Found, Parser},
    result::{Outcome, Reason, RuleResult},
    scope::Scope,
    words,
};
use crate::types::{finding::Severity, rule::RuleSpec};

/// One compiled rule.
#[derive(Debug)]
pub(super) struct Rule {
    key: Arc<str>,
    pub(super) label: String,
    field: Arc<str>,
    expr: Expr,
    /// Every field the rule reads, once, in reading order.
    pub(super) refs: Vec<RefId>,
    pub(super) names: Vec<Arc<str>>,
    pub(super) scope: Scope,
    template: Template,
    has_own_message: bool,
    severity: Severity,
}

impl Rule {
    pub(super) fn compile(
        spec: &RuleSpec,
        label: String,
        names: &mut Names<'_>,
    ) -> Result<Self, Vec<Found>> {
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
            Some(text) => {
                if names.study().dictionary.is_some() {
                    for name in message::placeholders(text) {
                        // Braces around anything but a field stay as they are.
                        if let Ok(id) = names.resolve(name) {
                            placeholders.entry(name.to_owned()).or_insert(id);
                        }
                    }
                }
                Template::parse(text, &placeholders)
            }
            None => Template::parse(&default_message(spec, &expr, names), &BTreeMap::new()),
        };
        let field = field.or(refs.first().copied());
        Ok(Self {
            key: key.into(),
            label,
            field: field.map_or("", |id| names.slot(id).name.as_str()).into(),
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

    pub(super) fn judge<'a>(&'a self, index: usize, eval: &Eval<'_, 'a>) -> RuleResult {
        match eval.truth(&self.expr) {
            Some(true) => self.result(index, Outcome::Pass),
            Some(false) => self.failed(index, eval),
            None => self.undecided(index, eval, eval.explain(&self.expr)),
        }
    }

    /// The outcome without a word about it.
    pub(super) fn outcome<'a>(&'a self, eval: &Eval<'_, 'a>) -> Outcome {
        match eval.truth(&self.expr) {
            Some(true) => Outcome::Pass,
            Some(false) => Outcome::Fail,
            None => self.undecided(0, eval, eval.explain(&self.expr)).outcome,
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
        if !hidden.is_empty() {
            match eval.excuse(&self.expr) {
                Excuse::Stands => {}
                Excuse::Open(doubts) => return self.undecided(index, eval, doubts),
                Excuse::Excused => {
                    let mut result = self.result(index, Outcome::Hidden);
                    result.message = message::hidden(eval, &hidden);
                    result.values = message::values(eval, &hidden);
                    return result;
                }
            }
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
    fn undecided<'a>(
        &'a self,
        index: usize,
        eval: &Eval<'_, 'a>,
        doubts: Vec<Doubt>,
    ) -> RuleResult {
        let (mut unopened, mut hidden, mut visible) = (Vec::new(), Vec::new(), Vec::new());
        for doubt in doubts {
            match (doubt.reason, doubt.field) {
                (Reason::Missing, Some(id)) if eval.frame.is_unopened(id) => unopened.push(id),
                (_, Some(id)) if eval.is_hidden(&doubt) => hidden.push(id),
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
    pub(super) fn awaited(&self, index: usize, fields: &Fields, event: usize) -> RuleResult {
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
