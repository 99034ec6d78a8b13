//! What a model is shown of a record. It is stored as it was shown, and quotes are checked against it:
//! not against what the record has become since.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use sha2::{Digest, Sha256};

use crate::types::{
    dictionary::{Dictionary, Field, ValueType, checkbox_column},
    record::{Record, Row},
};

/// Most characters of data a model is shown. What is longer is not cut: a judgement on a part could pass
/// over what decides.
const MOST_CHARS: usize = 40_000;

/// One record as shown. Blank cells are left out, and so are columns the dictionary does not know. Fields
/// that identify a person are named, not shown: left out without a word they would pass for blank.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Data {
    /// Record id.
    pub record: String,
    /// What the fields mean that occur in the rows.
    pub fields: BTreeMap<String, FieldNote>,
    /// Fields that have a value which is not shown, with what people see.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub withheld: BTreeMap<String, String>,
    /// The rows that have anything to show.
    pub rows: Vec<DataRow>,
}

/// What a field means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldNote {
    /// What people see.
    pub label: String,
    /// The choices that were made: by code, of a checkbox by the column that is ticked.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub choices: BTreeMap<String, String>,
}

/// One row as shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataRow {
    /// Unique event name.
    pub event: Option<String>,
    /// The repeating form, when it is one's row.
    pub form: Option<String>,
    /// Instance of a repeating form or event.
    pub instance: Option<u32>,
    /// Values as exported, by column.
    pub values: BTreeMap<String, String>,
}

/// The record has more than a model can be shown at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("记录内容共 {chars} 字，超过一次可供大模型阅读的 {MOST_CHARS} 字")]
pub struct TooLarge {
    chars: usize,
}

impl Data {
    /// What a model is shown of `record`.
    ///
    /// # Errors
    /// [`TooLarge`].
    pub fn of(record: &Record, dictionary: &Dictionary) -> Result<Self, TooLarge> {
        Self::of_some(record, dictionary, |_, _| true)
    }

    /// The same of the fields that are `wanted` on a row.
    ///
    /// # Errors
    /// [`TooLarge`].
    pub fn of_some(
        record: &Record,
        dictionary: &Dictionary,
        wanted: impl Fn(&Row, &Field) -> bool,
    ) -> Result<Self, TooLarge> {
        let mut fields = BTreeMap::new();
        let mut withheld = BTreeMap::new();
        let mut rows = Vec::new();
        let id_field = dictionary
            .record_id_field()
            .map(|field| field.name.as_str());
        for row in &record.rows {
            let mut values = BTreeMap::new();
            for (at, column) in row.columns().names().iter().enumerate() {
                let Some(value) = row.cell(at).map(str::trim).filter(|v| !v.is_empty()) else {
                    continue;
                };
                let name = column
                    .split_once("___")
                    .map_or(column.as_str(), |(name, _)| name);
                let Some(field) = dictionary.field(name) else {
                    continue;
                };
                if Some(name) == id_field || !wanted(row, field) {
                    continue;
                }
                if field.identifier {
                    withheld.insert(name.to_owned(), field.label.clone());
                    continue;
                }
                let note = fields.entry(name.to_owned()).or_insert_with(|| FieldNote {
                    label: field.label.clone(),
                    choices: BTreeMap::new(),
                });
                let is_box = field.value_type() == ValueType::Codes;
                let chosen = field.choices.iter().find(|choice| match is_box {
                    true => value == "1" && checkbox_column(name, &choice.code) == *column,
                    false => choice.code == value,
                });
                if let Some(choice) = chosen {
                    // By what stands in the data, so that a quote is looked up as it was shown.
                    let shown = if is_box { column } else { &choice.code };
                    note.choices.insert(shown.clone(), choice.label.clone());
                }
                values.insert(column.clone(), value.to_owned());
            }
            if !values.is_empty() {
                rows.push(DataRow {
                    event: row.event.clone(),
                    form: row.instrument.clone(),
                    instance: row.instance,
                    values,
                });
            }
        }
        let data = Self {
            record: record.id.clone(),
            fields,
            withheld,
            rows,
        };
        let chars = data.to_json().chars().count();
        if chars > MOST_CHARS {
            return Err(TooLarge { chars });
        }
        Ok(data)
    }

    /// As it is shown and stored.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The columns that have a value anywhere.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.rows
            .iter()
            .flat_map(|row| row.values.keys().map(String::as_str))
    }

    /// The values of `column` at that place. More than one form may repeat at the same event.
    pub fn values_at<'a>(
        &'a self,
        event: Option<&'a str>,
        instance: Option<u32>,
        column: &'a str,
    ) -> impl Iterator<Item = &'a str> {
        self.rows
            .iter()
            .filter(move |row| row.event.as_deref() == event && row.instance == instance)
            .filter_map(move |row| row.values.get(column).map(String::as_str))
    }

    /// Whether `quote` stands word for word in `value` of `column`, or in the label of the choice made there.
    /// A box that is not ticked is no choice: its label proves nothing.
    #[must_use]
    pub fn quotes(&self, column: &str, value: &str, quote: &str) -> bool {
        let (name, shown) = match column.split_once("___") {
            Some((name, _)) => (name, (value == "1").then_some(column)),
            None => (column, Some(value)),
        };
        let label = shown.and_then(|shown| self.fields.get(name)?.choices.get(shown));
        value.contains(quote) || label.is_some_and(|label| label.contains(quote))
    }

    /// The first withheld field that `instruction` speaks of, by its name or by what people see.
    #[must_use]
    pub fn withheld_for(&self, instruction: &str) -> Option<&str> {
        self.withheld
            .iter()
            .find(|(name, label)| {
                instruction.contains(name.as_str())
                    || (!label.is_empty() && instruction.contains(label.as_str()))
            })
            .map(|(name, _)| name.as_str())
    }

    /// Stands for all that was shown: other data, another value. SHA-256, shortened.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let digest = Sha256::digest(self.to_json());
        digest.iter().take(8).map(|b| format!("{b:02x}")).collect()
    }
}
