//! One flat JSON object as one row of an export, for data that comes with a dictionary.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value};

use super::frame::Fields;
use crate::types::{
    dictionary::{Dictionary, FieldKind},
    record::{Columns, Record, Row},
};

/// Code and column of every choice and missing-data code, by checkbox field.
pub(super) type Checkboxes = HashMap<String, Vec<(String, String)>>;

pub(super) fn checkboxes(dictionary: &Dictionary) -> Checkboxes {
    dictionary
        .fields()
        .iter()
        .filter(|field| field.kind == FieldKind::Checkbox)
        .map(|field| {
            let columns = field
                .choices
                .iter()
                .chain(&dictionary.missing_codes)
                .map(|choice| (choice.code.clone(), field.checkbox_column(&choice.code)))
                .collect();
            (field.name.clone(), columns)
        })
        .collect()
}

/// A name the object doesn't have is blank. A checkbox is given as `field___code` columns or as a list of
/// codes.
pub(super) fn record(fields: &Fields, data: &Value) -> Record {
    let empty = Map::new();
    let object = data.as_object().unwrap_or(&empty);
    let mut cells: BTreeMap<String, String> = BTreeMap::new();
    for name in fields.form_of.keys() {
        match fields.checkboxes.get(name) {
            None => {
                cells.insert(name.clone(), String::new());
            }
            Some(columns) => {
                let listed = object.get(name).and_then(Value::as_array);
                let given = columns
                    .iter()
                    .any(|(_, column)| object.contains_key(column));
                for (code, column) in columns {
                    let cell = match listed {
                        Some(codes) if codes.iter().any(|c| text(c) == *code) => "1",
                        Some(_) => "0",
                        None if given => "0",
                        None => "",
                    };
                    cells.insert(column.clone(), cell.to_owned());
                }
            }
        }
    }
    for (name, value) in object {
        if !(fields.checkboxes.contains_key(name) && value.is_array()) {
            cells.insert(name.clone(), text(value));
        }
    }
    let structure = |name: &str| {
        cells
            .get(name)
            .map(|text| text.trim().to_owned())
            .filter(|text| !text.is_empty())
    };
    let (event, instrument, instance) = (
        structure("redcap_event_name"),
        structure("redcap_repeat_instrument"),
        structure("redcap_repeat_instance").and_then(|text| text.parse().ok()),
    );
    let id = object.get("record_id").map(text).unwrap_or_default();
    let (names, values): (Vec<String>, Vec<Box<str>>) = cells
        .into_iter()
        .map(|(name, text)| (name, text.into_boxed_str()))
        .unzip();
    Record {
        id,
        rows: vec![Row::new(
            event,
            instrument,
            instance,
            Columns::new(names),
            values,
        )],
    }
}

/// The characters an export would have.
fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Bool(b) => u8::from(*b).to_string(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
