//! From the names a rule is written with to the places values stand at.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use super::{branching, layout::Layout, study::Study};
use crate::types::{
    dictionary::{Field, FieldKind, ValueType},
    near_miss::near_misses,
};

/// Index of a [`FieldRef`] in its set.
pub(super) type RefId = usize;

/// A field as one rule refers to it.
#[derive(Debug)]
pub(super) struct FieldRef {
    pub(super) slot: usize,
    /// `event.field` names the event itself.
    pub(super) event: Option<usize>,
    /// As resolved: the field's own name, with the event before it if one was named.
    pub(super) name: Arc<str>,
}

/// One field some rule reads, parsed at most once a row.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) name: String,
    pub(super) label: String,
    /// `None`: stands on every row (record id, pseudo-fields, data without a dictionary).
    pub(super) form: Option<usize>,
    pub(super) kind: SlotKind,
    /// When the field is shown; `None` when always, or when that can't be told.
    pub(super) shown_when: Option<branching::Expr>,
}

/// How the characters of a slot are read.
#[derive(Debug)]
pub(super) enum SlotKind {
    /// No dictionary: JSON types stand. `path` is the name split at dots; `alias` is used when the data
    /// has no such name itself.
    Untyped {
        path: Vec<String>,
        alias: Option<Vec<String>>,
    },
    /// One cell of that type. `codes` is empty when the choices are not known.
    Cell { ty: ValueType, codes: Vec<String> },
    /// One `field___code` column a choice: (code, column).
    Checkbox {
        columns: Vec<(String, String)>,
        missing: Vec<(String, String)>,
    },
    /// One choice of a checkbox, read as yes or no; `columns` are those of all its choices, `missing` those of
    /// its missing-data codes.
    CheckboxChoice {
        columns: Vec<(String, String)>,
        missing: Vec<(String, String)>,
    },
    /// The row's event name.
    EventName,
    /// The row's instance number.
    Instance,
}

/// The form's fields that a person fills in, to tell whether it was ever opened.
#[derive(Debug, Default)]
pub(super) struct FormFields {
    pub(super) complete: String,
    pub(super) columns: Vec<String>,
    pub(super) checkbox_columns: Vec<String>,
}

/// Resolves names while rules are compiled; becomes part of the compiled set.
#[derive(Debug)]
pub(super) struct Names<'s> {
    study: Study<'s>,
    pub(super) layout: Layout,
    pub(super) slots: Vec<Slot>,
    pub(super) refs: Vec<FieldRef>,
    by_slot: HashMap<String, usize>,
    by_ref: HashMap<(usize, Option<usize>), RefId>,
}

impl<'s> Names<'s> {
    pub(super) fn new(study: Study<'s>) -> Self {
        Self {
            layout: study.dictionary.map(Layout::of).unwrap_or_default(),
            study,
            slots: Vec::new(),
            refs: Vec::new(),
            by_slot: HashMap::new(),
            by_ref: HashMap::new(),
        }
    }

    pub(super) fn study(&self) -> Study<'s> {
        self.study
    }

    pub(super) fn slot(&self, id: RefId) -> &Slot {
        &self.slots[self.refs[id].slot]
    }

    /// The field `written` means, or a sentence about why it means none.
    pub(super) fn resolve(&mut self, written: &str) -> Result<RefId, String> {
        let written = written.trim();
        if written.is_empty() {
            return Err("an empty name; name the field".to_owned());
        }
        let (event, name) = match (self.study.dictionary, written.split_once('.')) {
            (Some(_), Some((event, name))) => {
                let at = self
                    .layout
                    .event(Some(event))
                    .filter(|_| !self.layout.is_classic());
                (Some(at.ok_or_else(|| self.unknown_event(event))?), name)
            }
            _ => (None, written),
        };
        let slot = self.resolve_slot(name)?;
        if let (Some(event), Some(form)) = (event, self.slots[slot].form) {
            let field = &self.slots[slot].name;
            let event_name = &self.layout.event_names()[event];
            if !self.layout.is_designated(event, form) {
                return Err(format!(
                    "`{field}` is not collected at event `{event_name}`"
                ));
            }
            if self.layout.is_repeating(event, form) || self.layout.event_repeats(event) {
                return Err(format!(
                    "`{field}` repeats at event `{event_name}`, so `{written}` doesn't say which instance"
                ));
            }
        }
        Ok(self.intern(slot, event))
    }

    fn intern(&mut self, slot: usize, event: Option<usize>) -> RefId {
        if let Some(&id) = self.by_ref.get(&(slot, event)) {
            return id;
        }
        let field = &self.slots[slot].name;
        let name = match event {
            Some(event) => format!("{}.{field}", self.layout.event_names()[event]),
            None => field.clone(),
        };
        let id = self.refs.len();
        self.refs.push(FieldRef {
            slot,
            event,
            name: name.into(),
        });
        self.by_ref.insert((slot, event), id);
        id
    }

    fn resolve_slot(&mut self, name: &str) -> Result<usize, String> {
        let Some(dictionary) = self.study.dictionary else {
            return Ok(self.untyped(name));
        };
        let target = if self.slot_of(name).is_some() {
            name
        } else {
            let aliased = self.study.aliases.get(name).map(String::as_str);
            match aliased.or_else(|| self.study.role(name)) {
                None => return Err(self.unknown_field(name)),
                Some(target)
                    if dictionary.field(target).is_none() && self.slot_of(target).is_none() =>
                {
                    return Err(format!(
                        "`{name}` stands for `{target}`, which the data dictionary doesn't have; correct the alias"
                    ));
                }
                Some(target) => target,
            }
        };
        if let Some(&slot) = self.by_slot.get(target) {
            return Ok(slot);
        }
        let Some(slot) = self.slot_of(target) else {
            return Err(self.unknown_field(name));
        };
        self.by_slot.insert(target.to_owned(), self.slots.len());
        self.slots.push(slot);
        Ok(self.slots.len() - 1)
    }

    fn untyped(&mut self, name: &str) -> usize {
        if let Some(&slot) = self.by_slot.get(name) {
            return slot;
        }
        let split = |name: &str| name.split('.').map(str::to_owned).collect::<Vec<_>>();
        let alias = self.study.aliases.get(name).map(String::as_str);
        let alias = alias.or_else(|| self.study.role(name)).map(split);
        self.by_slot.insert(name.to_owned(), self.slots.len());
        self.slots.push(Slot {
            name: name.to_owned(),
            label: String::new(),
            form: None,
            kind: SlotKind::Untyped {
                path: split(name),
                alias,
            },
            shown_when: None,
        });
        self.slots.len() - 1
    }

    /// The slot of a dictionary field, of `<form>_complete`, of one checkbox column or of a pseudo-field.
    fn slot_of(&self, name: &str) -> Option<Slot> {
        let dictionary = self.study.dictionary?;
        let plain = |kind, form, label: &str| Slot {
            name: name.to_owned(),
            label: label.to_owned(),
            form,
            kind,
            shown_when: None,
        };
        let cell = |ty, codes| SlotKind::Cell { ty, codes };
        if let Some(field) = dictionary.field(name) {
            return Some(self.field_slot(field));
        }
        match name {
            "redcap_event_name" => return Some(plain(SlotKind::EventName, None, "")),
            "redcap_repeat_instance" => return Some(plain(SlotKind::Instance, None, "")),
            "redcap_data_access_group" => {
                return Some(plain(cell(ValueType::Text, Vec::new()), None, ""));
            }
            _ => {}
        }
        if let Some(form) = name.strip_suffix("_complete")
            && let Some(form) = self.layout.form(form)
        {
            let codes = ["0", "1", "2"].map(str::to_owned).to_vec();
            return Some(plain(cell(ValueType::Code, codes), Some(form), ""));
        }
        let field = dictionary.field(name.split_once("___")?.0)?;
        if field.kind != FieldKind::Checkbox {
            return None;
        }
        let choice = field
            .choices
            .iter()
            .find(|choice| field.checkbox_column(&choice.code) == name)?;
        let mut slot = plain(
            SlotKind::CheckboxChoice {
                columns: choice_columns(field),
                missing: missing_columns(field, dictionary),
            },
            self.layout.form(&field.form),
            &format!("{}：{}", field.label, choice.label),
        );
        slot.shown_when = branching::parse(&field.branching).ok().flatten();
        Some(slot)
    }

    fn field_slot(&self, field: &Field) -> Slot {
        let dictionary = self.study.dictionary;
        let is_record_id = dictionary
            .and_then(|d| d.record_id_field())
            .is_some_and(|first| first.name == field.name);
        let kind = match field.kind {
            FieldKind::Checkbox => SlotKind::Checkbox {
                columns: choice_columns(field),
                missing: dictionary.map_or_else(Vec::new, |d| missing_columns(field, d)),
            },
            _ => SlotKind::Cell {
                ty: field.value_type(),
                codes: field.choices.iter().map(|c| c.code.clone()).collect(),
            },
        };
        Slot {
            name: field.name.clone(),
            label: field.label.clone(),
            form: if is_record_id {
                None
            } else {
                self.layout.form(&field.form)
            },
            kind,
            // Branching that can't be read hides nothing.
            shown_when: branching::parse(&field.branching).ok().flatten(),
        }
    }

    /// A sentence about an event the project doesn't have, with those written like it.
    pub(super) fn unknown_event(&self, event: &str) -> String {
        let near = near_misses(
            event,
            self.layout.event_names().iter().map(String::as_str),
            3,
        );
        format!("the project has no event `{event}`{}", did_you_mean(&near))
    }

    fn unknown_field(&self, name: &str) -> String {
        let known: BTreeSet<&str> = self
            .study
            .dictionary
            .map(|d| {
                d.fields()
                    .iter()
                    .map(|f| f.name.as_str())
                    .collect::<Vec<_>>()
            })
            .unwrap_or_default()
            .into_iter()
            .chain(self.study.aliases.keys().map(String::as_str))
            .collect();
        let near = near_misses(name, known, 3);
        format!(
            "`{name}` is neither a field of the data dictionary nor an alias{}",
            did_you_mean(&near)
        )
    }
}

/// What tells whether each form was opened, by form number.
pub(super) fn form_fields(study: Study<'_>, layout: &Layout) -> Vec<FormFields> {
    let Some(dictionary) = study.dictionary else {
        return Vec::new();
    };
    let mut forms: Vec<FormFields> = dictionary
        .forms
        .iter()
        .map(|form| FormFields {
            complete: format!("{form}_complete"),
            ..FormFields::default()
        })
        .collect();
    // The record id is filled on every row; a calculation fills itself.
    for field in dictionary.fields().iter().skip(1) {
        let Some(form) = layout.form(&field.form).and_then(|at| forms.get_mut(at)) else {
            continue;
        };
        match field.kind {
            FieldKind::Calc | FieldKind::Descriptive => {}
            FieldKind::Checkbox => form.checkbox_columns.extend(
                field
                    .choices
                    .iter()
                    .chain(&dictionary.missing_codes)
                    .map(|choice| field.checkbox_column(&choice.code)),
            ),
            _ => form.columns.push(field.name.clone()),
        }
    }
    forms
}

fn choice_columns(field: &Field) -> Vec<(String, String)> {
    field
        .choices
        .iter()
        .map(|choice| (choice.code.clone(), field.checkbox_column(&choice.code)))
        .collect()
}

fn missing_columns(
    field: &Field,
    dictionary: &crate::types::dictionary::Dictionary,
) -> Vec<(String, String)> {
    dictionary
        .missing_codes
        .iter()
        .map(|choice| (choice.code.clone(), field.checkbox_column(&choice.code)))
        .collect()
}

/// `; did you mean …?`, or nothing.
pub(super) fn did_you_mean(near: &[&str]) -> String {
    if near.is_empty() {
        String::new()
    } else {
        format!("; did you mean `{}`?", near.join("` or `"))
    }
}
