//! Redaction, tested: what must be hidden, what must not, and the way back.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a failed expectation is the test's verdict"
)]

mod found;
mod people;
mod placeholders;
mod properties;
mod sealed;
mod study;
mod untouched;

use std::sync::Arc;

use super::{Hidden, Redactor, Study};
use crate::types::{
    dictionary::{Dictionary, Field, FieldKind},
    record::{Columns, Record, Row},
};

/// A field people type into.
fn field(name: &str, label: &str) -> Field {
    Field {
        name: name.to_owned(),
        form: "base".to_owned(),
        label: label.to_owned(),
        kind: FieldKind::Text,
        validation: String::new(),
        min: String::new(),
        max: String::new(),
        choices: Vec::new(),
        calculation: String::new(),
        branching: String::new(),
        required: false,
        identifier: false,
        annotation: String::new(),
    }
}

/// The same, flagged.
fn flagged(name: &str, label: &str) -> Field {
    Field {
        identifier: true,
        ..field(name, label)
    }
}

/// Records of one row each.
fn records(fields: &[Field], rows: &[&[&str]]) -> Vec<Arc<Record>> {
    let columns = Columns::new(fields.iter().map(|field| field.name.clone()).collect());
    rows.iter()
        .map(|cells| {
            let values = cells.iter().map(|cell| (*cell).into()).collect();
            Arc::new(Record {
                id: cells[0].to_owned(),
                rows: vec![Row::new(None, None, None, Arc::clone(&columns), values)],
            })
        })
        .collect()
}

/// The redactor of a study with these fields and rows.
fn redactor_of(fields: &[Field], rows: &[&[&str]]) -> Redactor {
    redactor_with(fields, rows, &[])
}

fn redactor_with(fields: &[Field], rows: &[&[&str]], patterns: &[String]) -> Redactor {
    Redactor::new(&Study {
        dictionary: &Dictionary::new(fields.to_vec()),
        records: &records(fields, rows),
        people: &[],
        patterns,
    })
    .unwrap()
}

/// A redactor that knows nobody.
fn stranger() -> Redactor {
    redactor_of(&[field("record_id", "编号")], &[])
}

/// `text` redacted, with the way back tried.
fn redact(redactor: &Redactor, text: &str) -> String {
    let mut hidden = Hidden::default();
    let redacted = redactor.redact(text, &mut hidden).unwrap();
    assert_eq!(hidden.restore(&redacted), text, "{redacted}");
    assert_eq!(redactor.left_in(&redacted, &hidden), None, "{redacted}");
    redacted
}
