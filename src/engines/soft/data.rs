//! What a model is shown of a record. It is stored as it was shown, and quotes are checked against it:
//! not against what the record has become since.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::types::{dictionary::Dictionary, record::Record};

/// Most characters of data a model is shown. What is longer is not cut: a judgement on a part could pass
/// over what decides.
const MOST_CHARS: usize = 40_000;

/// One record as shown. Blank cells are left out, and so are fields that identify a person and columns the
/// dictionary does not know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Data {
    /// Record id.
    pub record: String,
    /// What the fields mean that occur in the rows.
    pub fields: BTreeMap<String, FieldNote>,
    /// The rows that have anything to show.
    pub rows: Vec<DataRow>,
}

/// What a field means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldNote {
    /// What people see.
    pub label: String,
    /// The choices that occur, by code.
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
        let mut fields = BTreeMap::new();
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
                let (name, code) = match column.split_once("___") {
                    Some((name, code)) => (name, Some(code)),
                    None => (column.as_str(), None),
                };
                let Some(field) = dictionary.field(name) else {
                    continue;
                };
                if field.identifier || Some(name) == id_field {
                    continue;
                }
                let note = fields.entry(name.to_owned()).or_insert_with(|| FieldNote {
                    label: field.label.clone(),
                    choices: BTreeMap::new(),
                });
                let code = code.unwrap_or(value);
                let choice = field
                    .choices
                    .iter()
                    .find(|choice| choice.code.eq_ignore_ascii_case(code));
                if let Some(choice) = choice {
                    note.choices
                        .insert(choice.code.clone(), choice.label.clone());
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

    /// Whether `quote` stands word for word in `value` of `column`, or in the label of its choice.
    #[must_use]
    pub fn quotes(&self, column: &str, value: &str, quote: &str) -> bool {
        let (name, code) = column.split_once("___").unwrap_or((column, value));
        value.contains(quote)
            || self
                .fields
                .get(name)
                .and_then(|note| note.choices.get(code))
                .is_some_and(|label| label.contains(quote))
    }
}
