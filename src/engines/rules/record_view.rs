//! The rows of one record, with their cells read by type: each referenced cell once a row.

use std::{cell::OnceCell, collections::HashSet, rc::Rc, sync::Arc};

use super::{
    cell::{self, Cell},
    flat::Flat,
    frame::Fields,
    names::{RefId, SlotKind},
    value::V,
};
use crate::types::record::{Columns, Record, Row};

/// The rows of one record with their cells read so far. Each referenced cell is read once a row.
pub(super) struct RecordView<'a> {
    pub(super) fields: &'a Fields,
    rows: &'a [Row],
    /// By row: event number.
    events: Vec<Option<usize>>,
    /// By row: form number of the repeating instrument.
    instruments: Vec<Option<usize>>,
    /// By event: its base row.
    base_rows: Vec<Option<usize>>,
    /// By row and slot.
    cells: Vec<OnceCell<Cell<'a>>>,
    /// By row and form.
    opened: Vec<OnceCell<bool>>,
    /// By row: whether the subject has come to its event.
    reached: Vec<OnceCell<bool>>,
    positions: Vec<Positions<'a>>,
    /// A row without the column of a form's status tells nothing about forms; take it for filled in.
    opened_unless_said: bool,
    /// Columns of no readable value, see [`Flat::invalid`].
    invalid: Option<&'a HashSet<String>>,
}

/// Column of each slot in one export; rows of an export share it.
struct Positions<'a> {
    columns: &'a Arc<Columns>,
    slots: Vec<Option<usize>>,
}

/// Which row a reference reads.
pub(super) enum Place {
    Row(usize),
    NoRow,
    Ambiguous,
}

impl<'a> RecordView<'a> {
    pub(super) fn new(fields: &'a Fields, record: &'a Record) -> Self {
        let rows = &record.rows;
        let events: Vec<_> = rows
            .iter()
            .map(|row| fields.layout.event(row.event.as_deref()))
            .collect();
        let instruments = rows
            .iter()
            .map(|row| {
                let instrument = row.instrument.as_deref()?;
                // An instrument the dictionary doesn't have must not be taken for a base row.
                Some(fields.layout.form(instrument).unwrap_or(usize::MAX))
            })
            .collect();
        let mut base_rows = vec![None; fields.layout.event_count()];
        for (at, row) in rows.iter().enumerate() {
            let event = events.get(at).copied().flatten();
            if row.is_base()
                && row.instrument.is_none()
                && let Some(slot @ None) = event.and_then(|event| base_rows.get_mut(event))
            {
                *slot = Some(at);
            }
        }
        let mut positions: Vec<Positions<'a>> = Vec::new();
        for row in rows {
            if !positions
                .iter()
                .any(|p| Arc::ptr_eq(p.columns, row.columns()))
            {
                let columns = row.columns();
                positions.push(Positions {
                    columns,
                    slots: fields
                        .slots
                        .iter()
                        .map(|slot| columns.position(&slot.name))
                        .collect(),
                });
            }
        }
        let cell_count = rows.len() * fields.slots.len();
        Self {
            fields,
            rows,
            events,
            instruments,
            base_rows,
            cells: (0..cell_count).map(|_| OnceCell::new()).collect(),
            opened: (0..rows.len() * fields.forms.len())
                .map(|_| OnceCell::new())
                .collect(),
            reached: rows.iter().map(|_| OnceCell::new()).collect(),
            positions,
            opened_unless_said: false,
            invalid: None,
        }
    }

    /// Of a JSON object, which is no export: a form is opened unless its status says otherwise.
    pub(super) fn of_flat(fields: &'a Fields, flat: &'a Flat) -> Self {
        Self {
            opened_unless_said: true,
            invalid: Some(&flat.invalid),
            ..Self::new(fields, &flat.record)
        }
    }

    /// Whether the column was given as something no cell of it can be.
    pub(super) fn is_invalid(&self, column: &str) -> bool {
        self.invalid.is_some_and(|invalid| invalid.contains(column))
    }

    pub(super) fn event(&self, row: usize) -> Option<usize> {
        self.events.get(row).copied().flatten()
    }

    pub(super) fn instrument(&self, row: usize) -> Option<usize> {
        self.instruments.get(row).copied().flatten()
    }

    /// The base row of an event the subject has reached.
    pub(super) fn base_row(&self, event: usize) -> Option<usize> {
        let row = self.base_rows.get(event).copied().flatten()?;
        self.is_reached(row).then_some(row)
    }

    /// Whether the event has the row of an instance, be it of the event or of a form.
    pub(super) fn has_instance(&self, event: usize) -> bool {
        self.rows.iter().zip(&self.events).any(|(row, at)| {
            *at == Some(event) && (row.instance.is_some() || row.instrument.is_some())
        })
    }

    /// Whether the event has an instance of that form.
    pub(super) fn has_instance_of(&self, event: usize, form: usize) -> bool {
        self.events
            .iter()
            .zip(&self.instruments)
            .any(|(at, instrument)| *at == Some(event) && *instrument == Some(form))
    }

    /// Whether the row says more than none would: of a project with events, the base row of an event at which
    /// no form was opened and nothing has an instance is an event the subject has not come to.
    pub(super) fn is_reached(&self, at: usize) -> bool {
        let layout = &self.fields.layout;
        let (Some(row), Some(event), Some(reached)) =
            (self.row(at), self.event(at), self.reached.get(at))
        else {
            return true;
        };
        if layout.is_classic() || row.instance.is_some() || row.instrument.is_some() {
            return true;
        }
        *reached.get_or_init(|| {
            (0..self.fields.forms.len()).any(|form| self.is_opened(at, Some(form)))
                || self.has_instance(event)
        })
    }

    pub(super) fn row(&self, row: usize) -> Option<&'a Row> {
        self.rows.get(row)
    }

    /// The arms the record has rows in.
    pub(super) fn arms(&self) -> Vec<u32> {
        let mut arms: Vec<u32> = self
            .events
            .iter()
            .flatten()
            .map(|&event| self.fields.layout.arm(event))
            .collect();
        arms.sort_unstable();
        arms.dedup();
        arms
    }

    /// On which row a field of `form` is read, seen from `row`.
    pub(super) fn locate(&self, form: Option<usize>, event: Option<usize>, row: usize) -> Place {
        let layout = &self.fields.layout;
        let base = |event: usize| self.base_row(event).map_or(Place::NoRow, Place::Row);
        let Some(form) = form else {
            return match event {
                Some(event) => base(event),
                None => Place::Row(row),
            };
        };
        if let Some(event) = event {
            return base(event);
        }
        let Some(here) = self.event(row) else {
            return Place::NoRow;
        };
        let instrument = self.instrument(row);
        if instrument == Some(form) {
            return Place::Row(row);
        }
        match layout.source(here, form) {
            None => Place::Ambiguous,
            Some(event) if event == here && instrument.is_none() => Place::Row(row),
            Some(event) => base(event),
        }
    }

    pub(super) fn cell(&self, id: RefId, row: usize) -> Cell<'a> {
        let field = &self.fields.refs[id];
        let slot = &self.fields.slots[field.slot];
        match self.locate(slot.form, field.event, row) {
            Place::NoRow => Cell::NotOpened,
            Place::Ambiguous => Cell::Ambiguous,
            Place::Row(at) => match self.cells.get(at * self.fields.slots.len() + field.slot) {
                Some(cell) => cell.get_or_init(|| self.read(at, field.slot)).clone(),
                None => Cell::NotOpened,
            },
        }
    }

    fn read(&self, at: usize, slot_id: usize) -> Cell<'a> {
        let Some(row) = self.row(at) else {
            return Cell::NotOpened;
        };
        let slot = &self.fields.slots[slot_id];
        let missing = &self.fields.missing_codes;
        let unreadable = match &slot.kind {
            SlotKind::Checkbox { columns, missing } => columns
                .iter()
                .chain(missing)
                .any(|(_, column)| self.is_invalid(column)),
            _ => self.is_invalid(&slot.name),
        };
        if unreadable {
            return Cell::Invalid;
        }
        match &slot.kind {
            SlotKind::EventName => match row.event.as_deref() {
                // An event of another project, or of this one before it was renamed.
                Some(_) if self.event(at).is_none() => Cell::Invalid,
                Some(event) => Cell::Known(V::Str(event.into())),
                None => Cell::Blank,
            },
            SlotKind::Instance => match row.instance {
                Some(instance) => Cell::Known(V::Num(f64::from(instance))),
                None => Cell::Blank,
            },
            SlotKind::Untyped { path, alias } => {
                let own = path.join(".");
                let text = row
                    .get(&own)
                    .or_else(|| row.get(&alias.as_ref()?.join(".")));
                text.map_or(Cell::NotExported, cell::read_untyped)
            }
            SlotKind::Cell { ty, codes } => match self.text(row, slot_id) {
                Some(text) => cell::read(text, *ty, codes, missing),
                None => Cell::NotExported,
            },
            SlotKind::CheckboxChoice { columns, missing } => {
                if let Some(code) = self.checked(row, missing) {
                    return Cell::Coded(code);
                }
                match self.text(row, slot_id).map(cell::trim) {
                    None => Cell::NotExported,
                    Some("1") => Cell::Known(V::Code("1")),
                    // "0" is also what an unopened form exports.
                    Some("0") if self.is_opened(at, slot.form) => Cell::Known(V::Code("0")),
                    Some("") if is_partly_blank(row, columns.iter().map(|(_, column)| column)) => {
                        Cell::PartlyBlank
                    }
                    Some("0" | "") => Cell::Blank,
                    Some(_) => Cell::Invalid,
                }
            }
            SlotKind::Checkbox { columns, missing } => {
                if let Some(code) = self.checked(row, missing) {
                    return Cell::Coded(code);
                }
                let mut codes: Vec<&'a str> = Vec::new();
                let (mut absent, mut unchecked) = (false, false);
                for (code, column) in columns {
                    match row.get(column).map(cell::trim) {
                        Some("1") => codes.push(code),
                        Some("0") => unchecked = true,
                        Some("") => {}
                        Some(_) => return Cell::Invalid,
                        None => absent = true,
                    }
                }
                if absent {
                    Cell::NotExported
                } else if is_partly_blank(row, columns.iter().map(|(_, column)| column)) {
                    Cell::PartlyBlank
                } else if codes.is_empty() && !(unchecked && self.is_opened(at, slot.form)) {
                    Cell::Blank
                } else {
                    Cell::Known(V::Codes(Rc::from(codes)))
                }
            }
        }
    }

    /// The characters a reference reads, trimmed; the checked codes of a checkbox.
    pub(super) fn raw(&self, id: RefId, row: usize) -> Option<String> {
        let field = &self.fields.refs[id];
        let slot = &self.fields.slots[field.slot];
        let Place::Row(at) = self.locate(slot.form, field.event, row) else {
            return None;
        };
        let row = self.row(at)?;
        let text = match &slot.kind {
            SlotKind::EventName => row.event.clone()?,
            SlotKind::Instance => row.instance?.to_string(),
            SlotKind::Untyped { path, alias } => row
                .get(&path.join("."))
                .or_else(|| row.get(&alias.as_ref()?.join(".")))?
                .to_owned(),
            SlotKind::Cell { .. } | SlotKind::CheckboxChoice { .. } => {
                self.text(row, field.slot)?.to_owned()
            }
            SlotKind::Checkbox { columns, missing } => columns
                .iter()
                .chain(missing)
                .filter(|(_, column)| row.get(column).map(cell::trim) == Some("1"))
                .map(|(code, _)| code.as_str())
                .collect::<Vec<_>>()
                .join(","),
        };
        Some(cell::trim(&text).to_owned()).filter(|text| !text.is_empty())
    }

    fn text(&self, row: &'a Row, slot: usize) -> Option<&'a str> {
        let positions = self
            .positions
            .iter()
            .find(|p| Arc::ptr_eq(p.columns, row.columns()))?;
        row.cell(positions.slots.get(slot).copied().flatten()?)
    }

    /// The first checked missing-data code.
    fn checked(&self, row: &'a Row, missing: &'a [(String, String)]) -> Option<&'a str> {
        missing
            .iter()
            .find(|(_, column)| row.get(column).map(cell::trim) == Some("1"))
            .map(|(code, _)| code.as_str())
    }

    /// Whether anybody ever opened the form on that row: something on it is filled in, or its status is
    /// more than 0. An unopened form exports blanks, `0` for its checkboxes and `0` for its status.
    pub(super) fn is_opened(&self, at: usize, form: Option<usize>) -> bool {
        let Some(form) = form else { return true };
        let (Some(row), Some(opened), Some(fields)) = (
            self.row(at),
            self.opened.get(at * self.fields.forms.len() + form),
            self.fields.forms.get(form),
        ) else {
            return true;
        };
        // The row of a repeating instrument exists because somebody made it.
        if row.instrument.is_some() {
            return true;
        }
        if self.opened_unless_said && row.get(&fields.complete).is_none() {
            return true;
        }
        *opened.get_or_init(|| {
            let text = |column: &String| row.get(column).map(cell::trim);
            matches!(text(&fields.complete), Some("1" | "2"))
                || fields
                    .columns
                    .iter()
                    .any(|column| text(column).is_some_and(|text| !text.is_empty()))
                || fields
                    .checkbox_columns
                    .iter()
                    .any(|column| text(column) == Some("1"))
        })
    }
}

/// Whether some of a checkbox's choices are blank and others not. REDCap exports all of them filled, or all
/// of them blank.
pub(super) fn is_partly_blank<'c>(row: &Row, columns: impl Iterator<Item = &'c String>) -> bool {
    let (mut blank, mut filled) = (false, false);
    for text in columns.filter_map(|column| row.get(column)) {
        if cell::trim(text).is_empty() {
            blank = true;
        } else {
            filled = true;
        }
    }
    blank && filled
}
