//! A study's data dictionary: what fields exist, of what type, on which form, at which event.
//!
//! The shape follows REDCap's metadata export, because that is what studies have. Structure always
//! comes from here, never from the look of the data.

use std::collections::{BTreeSet, HashMap};

use serde::Serialize;

/// How a field is entered (REDCap `field_type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FieldKind {
    /// One line of text; its validation says more.
    Text,
    /// Free text.
    Notes,
    /// One choice of a list.
    Dropdown,
    /// One choice of a list.
    Radio,
    /// Any number of choices; exported as one `field___code` column a choice.
    Checkbox,
    /// `1` yes, `0` no.
    YesNo,
    /// `1` true, `0` false.
    TrueFalse,
    /// A number on a scale.
    Slider,
    /// Computed by REDCap.
    Calc,
    /// An uploaded file.
    File,
    /// Shown, never filled in.
    Descriptive,
    /// A choice list from a query; choices unknown here.
    Sql,
}

/// What the characters of a value mean. Derived from kind and validation, never from the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueType {
    /// A whole number.
    Integer,
    /// A decimal number; `comma` when the validation type writes it `1,5`.
    Number {
        /// The decimal sign is a comma.
        comma: bool,
    },
    /// `YYYY-MM-DD` in every export, whatever the form displays.
    Date,
    /// `YYYY-MM-DD HH:MM[:SS]`.
    DateTime,
    /// `HH:MM[:SS]`.
    Time,
    /// One code of the choice list.
    Code,
    /// A set of codes of the choice list.
    Codes,
    /// Text without order.
    Text,
}

/// One choice of a radio, dropdown or checkbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Choice {
    /// What is stored.
    pub code: String,
    /// What people see.
    pub label: String,
}

/// One field of the dictionary.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Field {
    /// Variable name.
    pub name: String,
    /// The form (instrument) it stands on.
    pub form: String,
    /// What people see.
    pub label: String,
    /// How it is entered.
    pub kind: FieldKind,
    /// REDCap's validation type as written (`date_dmy`, `number_1dp`, …); empty when none.
    pub validation: String,
    /// Lower bound as written (may be `today` or `[field]`); empty when none.
    pub min: String,
    /// Upper bound as written; empty when none.
    pub max: String,
    /// Choices; `1`/`0` are filled in for yes/no and true/false.
    pub choices: Vec<Choice>,
    /// For `calc`, the calculation as written; else empty.
    pub calculation: String,
    /// Branching logic as written; empty when the field is always shown.
    pub branching: String,
    /// Must be filled in.
    pub required: bool,
    /// Identifies a person.
    pub identifier: bool,
    /// Field annotation (action tags).
    pub annotation: String,
}

impl Field {
    /// What the characters of this field's values mean.
    #[must_use]
    pub fn value_type(&self) -> ValueType {
        match self.kind {
            FieldKind::Checkbox => ValueType::Codes,
            FieldKind::Dropdown
            | FieldKind::Radio
            | FieldKind::YesNo
            | FieldKind::TrueFalse
            | FieldKind::Sql => ValueType::Code,
            FieldKind::Slider | FieldKind::Calc => ValueType::Number { comma: false },
            FieldKind::Notes | FieldKind::File | FieldKind::Descriptive => ValueType::Text,
            FieldKind::Text => match self.validation.as_str() {
                "int" | "integer" => ValueType::Integer,
                "float" | "number" => ValueType::Number { comma: false },
                v if v.starts_with("number_") => ValueType::Number {
                    comma: v.ends_with("comma_decimal"),
                },
                v if v.starts_with("datetime") => ValueType::DateTime,
                v if v.starts_with("date") => ValueType::Date,
                v if v.starts_with("time") => ValueType::Time,
                _ => ValueType::Text,
            },
        }
    }

    /// The export column of one checkbox choice, see [`checkbox_column`].
    #[must_use]
    pub fn checkbox_column(&self, code: &str) -> String {
        checkbox_column(&self.name, code)
    }
}

/// The export column of one choice of checkbox `field`: the code lower-cased, every non-alphanumeric `_`.
///
/// Source: REDCap flat export (`-4` → `field____4`, `k>=9` → `field___k__9`).
#[must_use]
pub fn checkbox_column(field: &str, code: &str) -> String {
    let suffix: String = code
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() {
                c.to_ascii_lowercase()
            } else {
                '_'
            }
        })
        .collect();
    format!("{field}___{suffix}")
}

/// One event of a longitudinal project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Event {
    /// `screening_arm_1`
    pub unique_name: String,
    /// What people see.
    pub label: String,
    /// Arm number.
    pub arm: u32,
}

/// The whole dictionary of one study. Immutable once built; share it by `Arc`.
#[derive(Debug, Clone, Default)]
pub struct Dictionary {
    fields: Vec<Field>,
    by_name: HashMap<String, usize>,
    /// Forms in dictionary order.
    pub forms: Vec<String>,
    /// Events in project order; empty for a classic project.
    pub events: Vec<Event>,
    /// (event unique name, form) pairs where the form is designated; unused for a classic project.
    pub designations: BTreeSet<(String, String)>,
    /// (event unique name or empty, form); form empty = the whole event repeats.
    pub repeating: BTreeSet<(String, String)>,
    /// Project-wide missing-data codes, e.g. `NI` → `No information`.
    pub missing_codes: Vec<Choice>,
    /// The field whose value no two records may share; `None` when the project names none.
    pub secondary_unique_field: Option<String>,
}

impl Dictionary {
    /// Builds a dictionary of a classic project; the caller adds events, designations and repeats.
    #[must_use]
    pub fn new(fields: Vec<Field>) -> Self {
        let mut forms: Vec<String> = Vec::new();
        let mut by_name = HashMap::with_capacity(fields.len());
        for (at, field) in fields.iter().enumerate() {
            if !forms.contains(&field.form) {
                forms.push(field.form.clone());
            }
            by_name.insert(field.name.clone(), at);
        }
        Self {
            fields,
            by_name,
            forms,
            ..Self::default()
        }
    }

    /// All fields in dictionary order.
    #[must_use]
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The field of that name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.by_name.get(name).map(|&at| &self.fields[at])
    }

    /// The record-id field: the dictionary's first.
    #[must_use]
    pub fn record_id_field(&self) -> Option<&Field> {
        self.fields.first()
    }

    /// Whether the project has events.
    #[must_use]
    pub fn is_longitudinal(&self) -> bool {
        !self.events.is_empty()
    }

    /// Whether `form` is designated at `event` (always, in a classic project).
    #[must_use]
    pub fn is_designated(&self, event: Option<&str>, form: &str) -> bool {
        match event {
            None => true,
            Some(event) => {
                !self.is_longitudinal()
                    || self
                        .designations
                        .contains(&(event.to_owned(), form.to_owned()))
            }
        }
    }

    /// Whether `form` is a repeating instrument at `event`.
    #[must_use]
    pub fn is_repeating_form(&self, event: Option<&str>, form: &str) -> bool {
        self.repeating
            .contains(&(event.unwrap_or_default().to_owned(), form.to_owned()))
    }

    /// Whether the whole `event` repeats.
    #[must_use]
    pub fn is_repeating_event(&self, event: &str) -> bool {
        self.repeating.contains(&(event.to_owned(), String::new()))
    }
}
