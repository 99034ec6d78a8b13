//! Where a rule's values are found: in a row of a record, or in one JSON object.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::{
    branching,
    cell::{self, Cell},
    flat,
    layout::Layout,
    names::{FieldRef, FormFields, RefId, Slot, SlotKind},
    record_view::{self, Place, RecordView},
};

/// What a compiled set knows of fields, shared by all its rules.
#[derive(Debug, Default)]
pub(super) struct Fields {
    pub(super) layout: Layout,
    pub(super) slots: Vec<Slot>,
    pub(super) refs: Vec<FieldRef>,
    pub(super) forms: Vec<FormFields>,
    pub(super) missing_codes: Vec<String>,
    /// Form of each dictionary field, for branching logic; `None` for the record id.
    pub(super) form_of: HashMap<String, Option<usize>>,
    pub(super) checkboxes: flat::Checkboxes,
    /// The columns where a JSON `true` is a value.
    pub(super) truth_columns: HashSet<String>,
}

impl Fields {
    /// The columns of a checkbox's choices, without those of missing-data codes.
    fn choice_columns(&self, checkbox: &str) -> impl Iterator<Item = &String> {
        self.checkboxes
            .get(checkbox)
            .into_iter()
            .flatten()
            .filter(|(code, _)| !self.missing_codes.contains(code))
            .map(|(_, column)| column)
    }
}

/// One place to evaluate a rule at.
#[derive(Clone, Copy)]
pub(super) enum Frame<'f, 'a> {
    /// One JSON object, without a dictionary.
    Json(&'a Fields, &'a Value),
    /// One row of a record.
    Row(&'f RecordView<'a>, usize),
}

impl<'a> Frame<'_, 'a> {
    pub(super) fn fields(&self) -> &'a Fields {
        match self {
            Self::Json(fields, _) => fields,
            Self::Row(view, _) => view.fields,
        }
    }

    /// The cell a reference reads.
    pub(super) fn cell(&self, id: RefId) -> Cell<'a> {
        match self {
            Self::Row(view, row) => view.cell(id, *row),
            Self::Json(fields, data) => match &fields.slots[fields.refs[id].slot].kind {
                SlotKind::Untyped { path, alias } => {
                    let own = json_at(data, path);
                    let value = own.or_else(|| json_at(data, alias.as_ref()?));
                    cell::read_json(value)
                }
                _ => Cell::NotExported,
            },
        }
    }

    /// The characters a reference reads, trimmed; `None` when blank.
    pub(super) fn text(&self, id: RefId) -> Option<String> {
        match self {
            Self::Row(view, row) => view.raw(id, *row),
            Self::Json(fields, data) => match &fields.slots[fields.refs[id].slot].kind {
                SlotKind::Untyped { path, alias } => {
                    let own = json_at(data, path);
                    json_text(own.or_else(|| json_at(data, alias.as_ref()?))?)
                }
                _ => None,
            },
        }
    }

    /// Whether the blank a reference reads stands on a form nobody opened, or at an event without a row.
    pub(super) fn is_unopened(&self, id: RefId) -> bool {
        let Self::Row(view, row) = self else {
            return false;
        };
        let field = &view.fields.refs[id];
        let slot = &view.fields.slots[field.slot];
        match view.locate(slot.form, field.event, *row) {
            Place::NoRow => true,
            Place::Ambiguous => false,
            Place::Row(at) => !view.is_opened(at, slot.form),
        }
    }

    /// Whether branching logic hides the field a reference reads. Logic that can't be decided hides nothing.
    pub(super) fn is_hidden(&self, id: RefId) -> bool {
        let Self::Row(view, row) = self else {
            return false;
        };
        let field = &view.fields.refs[id];
        let slot = &view.fields.slots[field.slot];
        let Some(shown_when) = &slot.shown_when else {
            return false;
        };
        match view.locate(slot.form, field.event, *row) {
            Place::Row(at) => {
                branching::decide(shown_when, &RowSource { view, row: at }) == Some(false)
            }
            Place::NoRow | Place::Ambiguous => false,
        }
    }
}

fn json_text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(cell::trim(text).to_owned()).filter(|text| !text.is_empty()),
        Value::Number(n) => n.as_f64().map(super::number::show),
        other => Some(crate::types::text::ellipsis(&other.to_string(), 80)),
    }
}

fn json_at<'v>(data: &'v Value, path: &[String]) -> Option<&'v Value> {
    // A flat export may have the dotted name itself as its key.
    if path.len() > 1
        && let Some(value) = data.get(path.join("."))
    {
        return Some(value);
    }
    path.iter().try_fold(data, |value, key| value.get(key))
}

/// Branching logic reads the characters as exported.
struct RowSource<'f, 'a> {
    view: &'f RecordView<'a>,
    row: usize,
}

impl branching::Source for RowSource<'_, '_> {
    fn lookup(
        &self,
        event: Option<&str>,
        field: &str,
        code: Option<&str>,
    ) -> branching::Lookup<'_> {
        use branching::Lookup;
        let fields = self.view.fields;
        let Some(&form) = fields.form_of.get(field) else {
            return Lookup::Unknown;
        };
        let event = match event {
            None => None,
            Some(name) => match fields.layout.event(Some(name)) {
                Some(event) => Some(event),
                None => return Lookup::Unknown,
            },
        };
        let row = match self.view.locate(form, event, self.row) {
            Place::Row(row) => row,
            // REDCap reads an event without data as blank.
            Place::NoRow => return Lookup::Value(""),
            Place::Ambiguous => return Lookup::Unknown,
        };
        let column = match code {
            Some(code) => crate::types::dictionary::checkbox_column(field, code),
            None => field.to_owned(),
        };
        let Some(row) = self.view.row(row) else {
            return Lookup::Unknown;
        };
        match row.get(&column) {
            Some(_) if self.view.is_invalid(&column) => Lookup::Unknown,
            Some(text)
                if code.is_some()
                    && cell::trim(text).is_empty()
                    && record_view::is_partly_blank(row, fields.choice_columns(field)) =>
            {
                Lookup::Unknown
            }
            Some(text) => Lookup::Value(text),
            None => Lookup::Unknown,
        }
    }
}
