//! The flat records table: rows of one record gathered, structure checked, columns compared with the
//! dictionary. Every cell is kept as it is written.

use std::{
    collections::{BTreeSet, HashMap, hash_map::Entry},
    sync::Arc,
};

use crate::types::{
    dictionary::{Dictionary, Event, FieldKind},
    record::{Columns, Record, Row},
};

use super::{
    super::error::{EdcError, Warning},
    structure::designate_everywhere,
    table::{Table, TableRow},
};

const EVENT: &str = "redcap_event_name";
const INSTRUMENT: &str = "redcap_repeat_instrument";
const INSTANCE: &str = "redcap_repeat_instance";
/// Columns REDCap adds that are no fields.
const PSEUDO_FIELDS: [&str; 5] = [
    EVENT,
    INSTRUMENT,
    INSTANCE,
    "redcap_data_access_group",
    "redcap_survey_identifier",
];

pub(super) struct Read {
    pub ids: Vec<String>,
    pub records: HashMap<String, Arc<Record>>,
}

/// Where a row belongs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Place {
    record: usize,
    event: Option<String>,
    instrument: Option<String>,
    instance: Option<u32>,
}

pub(super) fn read(
    table: Table,
    dictionary: &mut Dictionary,
    warnings: &mut Vec<Warning>,
) -> Result<Read, EdcError> {
    let id_field = dictionary
        .record_id_field()
        .map(|field| field.name.clone())
        .unwrap_or_default();
    let id_at = table.require(
        &id_field,
        "export raw data with raw headers; the dictionary's first field is the record id",
    )?;
    compare_columns(&table, dictionary, warnings);
    derive_events(&table, dictionary, warnings)?;

    let columns = Columns::new(table.header.clone());
    let mut records: Vec<Record> = Vec::new();
    let mut by_id: HashMap<String, usize> = HashMap::new();
    let mut lines: HashMap<Place, u64> = HashMap::with_capacity(table.rows.len());
    let mut derived_repeats = BTreeSet::new();
    for row in &table.rows {
        let id = row.cells.get(id_at).unwrap_or_default().trim();
        if id.is_empty() {
            return Err(table.fault(
                row.line,
                "the record id is blank",
                "fill it in or delete the row",
            ));
        }
        let record = match by_id.get(id) {
            Some(&at) => at,
            None => {
                by_id.insert(id.to_owned(), records.len());
                records.push(Record {
                    id: id.to_owned(),
                    rows: Vec::new(),
                });
                records.len() - 1
            }
        };
        let place = place(&table, row, record, dictionary)?;
        note_repeat(&place, dictionary, &mut derived_repeats);
        let cells: Vec<Box<str>> = row.cells.iter().map(Box::from).collect();
        if let Some(record) = records.get_mut(record) {
            record.rows.push(Row::new(
                place.event.clone(),
                place.instrument.clone(),
                place.instance,
                Arc::clone(&columns),
                cells,
            ));
        }
        match lines.entry(place) {
            Entry::Vacant(free) => {
                free.insert(row.line);
            }
            Entry::Occupied(first) => {
                return Err(table.fault(
                    row.line,
                    &format!(
                        "record `{id}` has this event, instrument and instance already in line {}",
                        first.get()
                    ),
                    "keep one of the two rows",
                ));
            }
        }
    }
    if !derived_repeats.is_empty() {
        let names: Vec<String> = derived_repeats.iter().map(repeat_in_words).collect();
        warnings.push(table.warning(format!(
            "has instances of {}, which no repeating.csv lists; taken as repeating",
            names.join(", ")
        )));
        dictionary.repeating.extend(derived_repeats);
    }
    Ok(Read {
        ids: records.iter().map(|record| record.id.clone()).collect(),
        records: records
            .into_iter()
            .map(|mut record| {
                record.rows.shrink_to_fit();
                (record.id.clone(), Arc::new(record))
            })
            .collect(),
    })
}

/// Events out of the data, for an export without an events file.
fn derive_events(
    table: &Table,
    dictionary: &mut Dictionary,
    warnings: &mut Vec<Warning>,
) -> Result<(), EdcError> {
    if dictionary.is_longitudinal() {
        if table.position(EVENT).is_none() {
            return Err(table.fault(
                1,
                &format!("has no column `{EVENT}` although the project has events"),
                "export the records with the record id field, which brings the event along",
            ));
        }
        return Ok(());
    }
    for row in &table.rows {
        let name = table.cell(row, EVENT);
        if !name.is_empty()
            && dictionary
                .events
                .iter()
                .all(|event| event.unique_name != name)
        {
            dictionary.events.push(Event {
                unique_name: name.to_owned(),
                label: name.to_owned(),
                arm: arm_of(name),
            });
        }
    }
    if dictionary.is_longitudinal() {
        warnings.push(table.warning(
            "has events but there is no events.csv; events are taken from the data, and every form as used at every event"
                .to_owned(),
        ));
        designate_everywhere(dictionary);
    }
    Ok(())
}

/// `baseline_arm_2` → 2: REDCap puts the arm at the end of a unique event name.
fn arm_of(unique_name: &str) -> u32 {
    unique_name
        .rsplit_once("_arm_")
        .and_then(|(_, arm)| {
            arm.trim_end_matches(|c: char| c.is_ascii_lowercase())
                .parse()
                .ok()
        })
        .unwrap_or(1)
}

fn place(
    table: &Table,
    row: &TableRow,
    record: usize,
    dictionary: &Dictionary,
) -> Result<Place, EdcError> {
    let event = match table.cell(row, EVENT) {
        "" if dictionary.is_longitudinal() => {
            return Err(table.fault(
                row.line,
                &format!("`{EVENT}` is blank although the project has events"),
                "write the row's unique event name",
            ));
        }
        "" => None,
        name if dictionary
            .events
            .iter()
            .any(|event| event.unique_name == name) =>
        {
            Some(name.to_owned())
        }
        name => {
            return Err(table.fault(
                row.line,
                &format!("event `{name}` is not among the project's events"),
                "export raw values, not labels, and events.csv from the same project",
            ));
        }
    };
    let instrument = match table.cell(row, INSTRUMENT) {
        "" => None,
        name if dictionary.forms.iter().any(|form| form == name) => Some(name.to_owned()),
        name => {
            return Err(table.fault(
                row.line,
                &format!("repeating instrument `{name}` is not a form of the dictionary"),
                "export raw values, not labels, and the dictionary from the same project",
            ));
        }
    };
    let instance = match table.cell(row, INSTANCE) {
        "" => None,
        written => Some(
            written
                .parse::<u32>()
                .ok()
                .filter(|n| *n > 0)
                .ok_or_else(|| {
                    table.fault(
                        row.line,
                        &format!("`{written}` is no instance number"),
                        "write a whole number from 1, as REDCap exports it",
                    )
                })?,
        ),
    };
    match (&event, &instrument, instance) {
        (_, Some(form), None) => Err(table.fault(
            row.line,
            &format!("the row of repeating instrument `{form}` has no `{INSTANCE}`"),
            "write its instance number",
        )),
        (None, None, Some(_)) => Err(table.fault(
            row.line,
            &format!("has a `{INSTANCE}` but no `{INSTRUMENT}`, and the project has no events that could repeat"),
            "write the form's unique name",
        )),
        _ => Ok(Place { record, event, instrument, instance }),
    }
}

fn note_repeat(place: &Place, dictionary: &Dictionary, derived: &mut BTreeSet<(String, String)>) {
    if place.instance.is_none() {
        return;
    }
    let repeat = (
        place.event.clone().unwrap_or_default(),
        place.instrument.clone().unwrap_or_default(),
    );
    if !dictionary.repeating.contains(&repeat) {
        derived.insert(repeat);
    }
}

fn repeat_in_words((event, form): &(String, String)) -> String {
    match (event.as_str(), form.as_str()) {
        ("", form) => format!("form `{form}`"),
        (event, "") => format!("event `{event}`"),
        (event, form) => format!("form `{form}` at event `{event}`"),
    }
}

/// Columns that should be there and are not, and columns nobody knows.
fn compare_columns(table: &Table, dictionary: &Dictionary, warnings: &mut Vec<Warning>) {
    let mut known: BTreeSet<String> = PSEUDO_FIELDS.map(str::to_owned).into();
    let mut absent: Vec<(&str, Vec<String>)> = Vec::new();
    for form in &dictionary.forms {
        let complete = format!("{form}_complete");
        let mut expected: Vec<String> = Vec::new();
        for field in dictionary
            .fields()
            .iter()
            .filter(|field| &field.form == form)
        {
            match field.kind {
                FieldKind::Descriptive => {}
                FieldKind::Checkbox => {
                    expected.extend(
                        field
                            .choices
                            .iter()
                            .map(|choice| field.checkbox_column(&choice.code)),
                    );
                    known.extend(
                        dictionary
                            .missing_codes
                            .iter()
                            .map(|choice| field.checkbox_column(&choice.code)),
                    );
                }
                _ => expected.push(field.name.clone()),
            }
        }
        expected.push(complete);
        known.extend(["timestamp", "return_code"].map(|suffix| format!("{form}_{suffix}")));
        let missing: Vec<String> = expected
            .iter()
            .filter(|column| table.position(column).is_none())
            .cloned()
            .collect();
        if !missing.is_empty() {
            absent.push((form, missing));
        }
        known.extend(expected);
    }
    for (form, missing) in absent {
        warnings.push(table.warning(format!(
            "form `{form}` lacks {}; hidden by form rights, or exported in part",
            some_of(&missing)
        )));
    }
    let unknown: Vec<String> = table
        .header
        .iter()
        .filter(|name| !known.contains(*name))
        .cloned()
        .collect();
    if !unknown.is_empty() {
        warnings.push(table.warning(format!(
            "{} stands in no dictionary; kept, but not checked",
            some_of(&unknown)
        )));
    }
}

fn some_of(columns: &[String]) -> String {
    let shown: Vec<String> = columns
        .iter()
        .take(5)
        .map(|name| format!("`{name}`"))
        .collect();
    match columns.len().saturating_sub(shown.len()) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
