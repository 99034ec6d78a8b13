//! Decides logic on the data of one row, the way REDCap does, but says so when it can't.

use super::parse::{BinaryOp, Expr};
use crate::engines::rules::number;

/// What stands at a place the logic names.
#[derive(Debug, Clone, PartialEq)]
pub enum Lookup<'a> {
    /// The stored characters; `""` when blank. A checkbox choice is `"1"` or `"0"`.
    Value(&'a str),
    /// Nobody knows: no such field, or it doesn't say which instance.
    Unknown,
}

/// Where logic reads its values.
pub trait Source {
    /// The value of a field, of one choice of a checkbox, at the row's own or the named event.
    fn lookup(&self, event: Option<&str>, field: &str, code: Option<&str>) -> Lookup<'_>;
}

/// A value of the logic language.
enum Value<'a> {
    Text(&'a str),
    Number(f64),
    Bool(bool),
}

impl Value<'_> {
    fn number(&self) -> Option<f64> {
        match self {
            Self::Text(text) => number::parse(text.trim()),
            Self::Number(x) => Some(*x),
            Self::Bool(b) => Some(f64::from(u8::from(*b))),
        }
    }

    fn is_blank(&self) -> bool {
        matches!(self, Self::Text(text) if text.trim().is_empty())
    }

    fn truthy(&self) -> bool {
        match self {
            Self::Text(text) => !matches!(text.trim(), "" | "0"),
            Self::Number(x) => *x != 0.0,
            Self::Bool(b) => *b,
        }
    }
}

/// Whether the logic holds; `None` when that can't be told.
///
/// A blank equals `''` and nothing else, as in REDCap. A blank has no order (REDCap's answer there has
/// changed between versions), nor do two texts that are neither numbers nor ISO dates.
#[must_use]
pub fn decide(expr: &Expr, source: &impl Source) -> Option<bool> {
    match expr {
        Expr::Not(inner) => decide(inner, source).map(|b| !b),
        Expr::Binary(BinaryOp::And, a, b) => match (decide(a, source), decide(b, source)) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (Some(true), Some(true)) => Some(true),
            _ => None,
        },
        Expr::Binary(BinaryOp::Or, a, b) => match (decide(a, source), decide(b, source)) {
            (Some(true), _) | (_, Some(true)) => Some(true),
            (Some(false), Some(false)) => Some(false),
            _ => None,
        },
        Expr::Binary(op, a, b) => compare(*op, &value(a, source)?, &value(b, source)?),
        _ => value(expr, source).map(|v| v.truthy()),
    }
}

fn value<'a>(expr: &'a Expr, source: &'a impl Source) -> Option<Value<'a>> {
    match expr {
        Expr::Number(x) => Some(Value::Number(*x)),
        Expr::Text(text) => Some(Value::Text(text)),
        Expr::Field { event, field, code } => {
            match source.lookup(event.as_deref(), field, code.as_deref()) {
                Lookup::Value(text) => Some(Value::Text(text)),
                Lookup::Unknown => None,
            }
        }
        Expr::Not(_) | Expr::Binary(..) => decide(expr, source).map(Value::Bool),
    }
}

fn compare(op: BinaryOp, a: &Value<'_>, b: &Value<'_>) -> Option<bool> {
    if matches!(op, BinaryOp::Equal | BinaryOp::NotEqual) {
        let equal = match (a.is_blank(), b.is_blank()) {
            (true, other) | (other, true) => other,
            _ => match (a.number(), b.number(), a, b) {
                (Some(x), Some(y), ..) => x == y,
                (_, _, Value::Text(x), Value::Text(y)) => x.trim() == y.trim(),
                _ => false,
            },
        };
        return Some(equal == (op == BinaryOp::Equal));
    }
    let ordering = match (a.number(), b.number(), a, b) {
        (Some(x), Some(y), ..) => x.partial_cmp(&y)?,
        (_, _, Value::Text(x), Value::Text(y)) => {
            let (x, y) = (x.trim(), y.trim());
            if !(is_iso_date(x) && is_iso_date(y) && x.len() == y.len()) {
                return None;
            }
            x.cmp(y)
        }
        _ => return None,
    };
    Some(match op {
        BinaryOp::Less => ordering.is_lt(),
        BinaryOp::LessEqual => ordering.is_le(),
        BinaryOp::Greater => ordering.is_gt(),
        _ => ordering.is_ge(),
    })
}

fn is_iso_date(text: &str) -> bool {
    text.len() >= 10
        && crate::engines::rules::moment::Moment::parse_any(text)
            .is_some_and(|moment| !moment.is_partial())
}
