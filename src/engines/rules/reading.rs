//! What stands at one place, for those who show it or count with it: read by the same eyes as the rules.

use std::borrow::Cow;

use chrono::NaiveDateTime;

use super::{cell::Cell, frame::Frame, names::RefId, value::V};

/// One value, or why there is none.
#[derive(Debug, Clone, PartialEq)]
pub enum Reading<'a> {
    /// A number.
    Number(f64),
    /// A date with or without its time: the first and last moment it may mean. They differ in their day
    /// when it is partial.
    Date {
        /// First.
        first: NaiveDateTime,
        /// Last.
        last: NaiveDateTime,
    },
    /// Seconds since midnight.
    Time(u32),
    /// One code of the choice list.
    Code(&'a str),
    /// The checked codes.
    Codes(Vec<&'a str>),
    /// Text.
    Text(Cow<'a, str>),
    /// Nothing, on an opened form.
    Blank,
    /// Nothing, and branching logic hides the field.
    Hidden,
    /// A missing-data code.
    Coded(&'a str),
    /// Something that is not of the field's type.
    Invalid,
    /// On a form nobody opened, or at an event without a row.
    NotOpened,
    /// The export has no such column.
    NotExported,
    /// It stands at several places, and nothing says which is meant.
    Ambiguous,
}

/// A field at one place.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen<'a> {
    /// The value as its type says.
    pub reading: Reading<'a>,
    /// The characters as exported, trimmed; `None` when blank.
    pub text: Option<String>,
}

impl<'a> Seen<'a> {
    pub(super) fn at(frame: Frame<'_, 'a>, id: RefId) -> Self {
        let reading = match frame.cell(id) {
            Cell::Known(value) => known(value),
            Cell::Blank | Cell::NotOpened if frame.is_unopened(id) => Reading::NotOpened,
            Cell::Blank if frame.is_hidden(id) => Reading::Hidden,
            Cell::Blank | Cell::PartlyBlank => Reading::Blank,
            Cell::Coded(code) => Reading::Coded(code),
            Cell::Invalid => Reading::Invalid,
            Cell::NotExported => Reading::NotExported,
            Cell::NotOpened => Reading::NotOpened,
            Cell::Ambiguous => Reading::Ambiguous,
        };
        Self {
            reading,
            text: frame.text(id),
        }
    }
}

fn known(value: V<'_>) -> Reading<'_> {
    match value {
        V::Num(x) => Reading::Number(x),
        V::Date(moment) => {
            let (first, last) = moment.bounds();
            Reading::Date { first, last }
        }
        V::Time(seconds) => Reading::Time(seconds),
        V::Code(code) => Reading::Code(code),
        V::Codes(codes) => Reading::Codes(codes.to_vec()),
        V::Str(text) => Reading::Text(text),
        V::Loose(text) => Reading::Text(Cow::Borrowed(text)),
        // No cell of an export is one of these.
        V::Unknown | V::Null | V::Bool(_) | V::Span(..) | V::List(_) => Reading::Invalid,
    }
}
