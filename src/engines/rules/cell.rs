//! What stands in one cell, read by the type of its field and never by its look.

use std::rc::Rc;

use serde_json::Value;

use super::{
    moment::{self, Moment},
    number,
    result::Reason,
    value::V,
};
use crate::types::dictionary::ValueType;

/// One cell, read.
#[derive(Debug, Clone)]
pub(super) enum Cell<'a> {
    /// A value of the field's type.
    Known(V<'a>),
    /// Nothing, or only white space.
    Blank,
    /// One choice of a checkbox is blank beside others that are not: nobody exports that of a form nobody
    /// opened, so it is neither an answer nor a blank.
    PartlyBlank,
    /// A missing-data code.
    Coded(&'a str),
    /// Something that is not of the field's type.
    Invalid,
    /// The export has no such column.
    NotExported,
    /// On a form nobody opened, or at an event without a row.
    NotOpened,
    /// It stands at several events, and the rule doesn't say which.
    Ambiguous,
}

impl<'a> Cell<'a> {
    /// The value, or why there is none.
    pub(super) fn known(self) -> Result<V<'a>, Reason> {
        Err(match self {
            Self::Known(value) => return Ok(value),
            Self::Blank | Self::PartlyBlank | Self::NotOpened => Reason::Missing,
            Self::Coded(_) => Reason::CodedMissing,
            Self::Invalid => Reason::Invalid,
            Self::NotExported => Reason::NotExported,
            Self::Ambiguous => Reason::AmbiguousEvent,
        })
    }
}

/// Reads one cell of a typed field. `codes` empty: any code goes. `missing`: the project's missing codes.
pub(super) fn read<'a>(
    text: &'a str,
    ty: ValueType,
    codes: &[String],
    missing: &[String],
) -> Cell<'a> {
    let text = trim(text);
    if text.is_empty() {
        return Cell::Blank;
    }
    let known = match ty {
        ValueType::Text => Some(V::Str(text.into())),
        ValueType::Integer => number::parse_integer(text).map(V::Num),
        ValueType::Number { comma: false } => number::parse(text).map(V::Num),
        ValueType::Number { comma: true } => number::parse_comma(text).map(V::Num),
        ValueType::Date => Moment::parse_date(text).map(V::Date),
        ValueType::DateTime => Moment::parse_datetime(text).map(V::Date),
        ValueType::Time => moment::parse_time(text).map(V::Time),
        ValueType::Code | ValueType::Codes => {
            (codes.is_empty() || codes.iter().any(|code| code == text)).then_some(V::Code(text))
        }
    };
    // A missing-data code is one in text fields too; only a choice of the field's own goes first.
    let is_choice = matches!(known, Some(V::Code(_))) && !codes.is_empty();
    if !is_choice && missing.iter().any(|code| is_code(code, text, ty)) {
        return Cell::Coded(text);
    }
    match known {
        Some(value) => Cell::Known(value),
        None => Cell::Invalid,
    }
}

/// Whether the characters are that missing-data code. In a field of numbers, -99.0 is the code -99: a table
/// program writes decimals on a column that has them.
fn is_code(code: &str, text: &str, ty: ValueType) -> bool {
    let number = match ty {
        ValueType::Integer | ValueType::Number { comma: false } => number::parse(text),
        ValueType::Number { comma: true } => {
            number::parse_comma(text).or_else(|| number::parse(text))
        }
        _ => None,
    };
    code == text || number.is_some_and(|x| number::parse(code) == Some(x))
}

/// Reads one cell of data without a dictionary.
pub(super) fn read_untyped(text: &str) -> Cell<'_> {
    let text = trim(text);
    if text.is_empty() {
        Cell::Blank
    } else {
        Cell::Known(V::Loose(text))
    }
}

/// Reads a JSON value of data without a dictionary.
pub(super) fn read_json(value: Option<&Value>) -> Cell<'_> {
    match value {
        None | Some(Value::Null) => Cell::Blank,
        Some(Value::Bool(b)) => Cell::Known(V::Bool(*b)),
        Some(Value::Number(n)) => match n.as_f64().filter(|x| x.is_finite()) {
            Some(x) => Cell::Known(V::Num(x)),
            None => Cell::Invalid,
        },
        Some(Value::String(text)) => read_untyped(text),
        Some(Value::Array(items)) => {
            let items: Rc<[V<'_>]> = items
                .iter()
                .map(|item| match read_json_scalar(item) {
                    Some(value) => value,
                    None => V::Unknown,
                })
                .collect();
            Cell::Known(V::List(items))
        }
        Some(Value::Object(_)) => Cell::Invalid,
    }
}

fn read_json_scalar(value: &Value) -> Option<V<'_>> {
    match value {
        Value::Array(_) | Value::Object(_) => None,
        scalar => match read_json(Some(scalar)) {
            Cell::Known(value) => Some(value),
            _ => None,
        },
    }
}

/// White space as people and other programs leave it, with no-break and zero-width spaces.
pub(super) fn trim(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || matches!(c, '\u{feff}' | '\u{200b}'))
}
