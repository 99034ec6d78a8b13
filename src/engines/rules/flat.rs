//! One flat JSON object as one row of an export, for data that comes with a dictionary.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Map, Value};

use super::{frame::Fields, number};
use crate::types::{
    dictionary::{Dictionary, FieldKind, ValueType},
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

/// The columns that can hold `true`: yes or no, and the choices of checkboxes.
pub(super) fn truth_columns(dictionary: &Dictionary) -> HashSet<String> {
    let mut columns = HashSet::new();
    for field in dictionary.fields() {
        let is_truth = match field.kind {
            FieldKind::Checkbox => {
                let choices = field.choices.iter().chain(&dictionary.missing_codes);
                columns.extend(choices.map(|choice| field.checkbox_column(&choice.code)));
                false
            }
            FieldKind::YesNo | FieldKind::TrueFalse => true,
            _ => {
                field.value_type() == ValueType::Code
                    && !field.choices.is_empty()
                    && field
                        .choices
                        .iter()
                        .all(|choice| matches!(choice.code.as_str(), "0" | "1"))
            }
        };
        if is_truth {
            columns.insert(field.name.clone());
        }
    }
    columns
}

/// An object as a record of one row.
pub(super) struct Flat {
    pub(super) record: Record,
    /// Columns whose JSON is of a type the field can't have: no characters say what was meant.
    pub(super) invalid: HashSet<String>,
}

/// Reads the object. A name the object doesn't have is blank. A checkbox is given as `field___code` columns, or under its own
/// name as a code or a list of codes. A code that is no choice makes the whole checkbox invalid: who wrote
/// `Fever` did not mean that `fever` is unchecked.
pub(super) fn record(fields: &Fields, data: &Value) -> Flat {
    let empty = Map::new();
    let object = data.as_object().unwrap_or(&empty);
    let is_checkbox = |name: &&String| fields.checkboxes.contains_key(*name);
    let mut cells: BTreeMap<String, String> = BTreeMap::new();
    let mut invalid = HashSet::new();
    for name in fields.form_of.keys().filter(|name| !is_checkbox(name)) {
        cells.insert(name.clone(), String::new());
    }
    for (name, value) in object.iter().filter(|(name, _)| !is_checkbox(name)) {
        cells.insert(name.clone(), text(value));
        let fits = match value {
            Value::Array(_) | Value::Object(_) => false,
            Value::Bool(_) => fields.truth_columns.contains(name),
            Value::Null | Value::Number(_) | Value::String(_) => true,
        };
        if !fits {
            invalid.insert(name.clone());
        }
    }
    for (name, columns) in &fields.checkboxes {
        if fill_checkbox(&mut cells, name, columns, object).is_err() {
            invalid.extend(columns.iter().map(|(_, column)| column.clone()));
        }
    }
    let structure = |name: &str| {
        cells
            .get(name)
            .map(|text| text.trim().to_owned())
            .filter(|text| !text.is_empty())
    };
    let (event, instrument, numbered) = (
        structure("redcap_event_name"),
        structure("redcap_repeat_instrument"),
        structure("redcap_repeat_instance"),
    );
    let instance = numbered.as_ref().and_then(|text| text.parse().ok());
    if numbered.is_some() && instance.is_none() {
        invalid.insert("redcap_repeat_instance".to_owned());
    }
    let id = object.get("record_id").map(text).unwrap_or_default();
    let (names, values): (Vec<String>, Vec<Box<str>>) = cells
        .into_iter()
        .map(|(name, text)| (name, text.into_boxed_str()))
        .unzip();
    let row = Row::new(event, instrument, instance, Columns::new(names), values);
    Flat {
        record: Record {
            id,
            rows: vec![row],
        },
        invalid,
    }
}

/// What is given under a checkbox's names contradicts itself or the dictionary.
struct Unreadable;

/// Fills the columns of one checkbox that the object doesn't give itself.
fn fill_checkbox(
    cells: &mut BTreeMap<String, String>,
    name: &str,
    columns: &[(String, String)],
    object: &Map<String, Value>,
) -> Result<(), Unreadable> {
    let listed = listed_codes(object.get(name));
    let is_choice = |code: &String| columns.iter().any(|(choice, _)| choice == code);
    let off_list = listed.iter().flatten().find(|code| !is_choice(code));
    let off_column = object.iter().find_map(|(column, value)| {
        let code = column.strip_prefix(name)?.strip_prefix("___")?;
        let checked = text(value).trim() == "1";
        (checked && columns.iter().all(|(_, known)| known != column)).then_some(code)
    });
    if let Some(code) = off_list.map(String::as_str).or(off_column) {
        for (_, column) in columns {
            cells.insert(column.clone(), format!("无此选项: {code}"));
        }
        return Err(Unreadable);
    }
    let given = columns
        .iter()
        .any(|(_, column)| object.contains_key(column));
    for (code, column) in columns {
        let cell = match &listed {
            Some(codes) if codes.contains(code) => "1",
            Some(_) => "0",
            // A column left out beside others is not exported: it doesn't say that nobody checked the choice.
            None if given => continue,
            None => "",
        };
        let given = cells
            .entry(column.clone())
            .or_insert_with(|| cell.to_owned());
        // A list with the code beside a column without it, or the other way round.
        if listed.is_some() && given.trim() != cell {
            return Err(Unreadable);
        }
    }
    Ok(())
}

/// The codes given under a checkbox's own name; `None` when nothing is.
fn listed_codes(value: Option<&Value>) -> Option<Vec<String>> {
    let code = |value: &Value| Some(text(value).trim().to_owned()).filter(|code| !code.is_empty());
    match value? {
        Value::Array(items) => Some(items.iter().filter_map(code).collect()),
        single => code(single).map(|code| vec![code]),
    }
}

/// The characters an export would have; a table program writes the whole number 7 as 7.0.
fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Bool(b) => u8::from(*b).to_string(),
        Value::String(text) => text.clone(),
        Value::Number(n) if n.is_f64() => n.as_f64().map_or_else(|| n.to_string(), number::show),
        other => other.to_string(),
    }
}
