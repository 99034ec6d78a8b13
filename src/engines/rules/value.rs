//! Values during evaluation, and when two of them are equal or ordered.

use std::{borrow::Cow, rc::Rc};

use super::{
    moment::{self, Moment, Order},
    number,
};

/// A value, or that there is none.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum V<'a> {
    /// Not known; every operator hands it on, save where Kleene's tables decide without it.
    Unknown,
    /// A literal `null`.
    Null,
    Bool(bool),
    Num(f64),
    /// A number between two, both included: an age or a number of days from a partial date.
    Span(f64, f64),
    /// Text: a literal, a computed text, or a text field of the dictionary.
    Str(Cow<'a, str>),
    /// Text of data without a dictionary; counts as a number where it is one.
    Loose(&'a str),
    /// The code of a choice.
    Code(&'a str),
    /// The checked codes of a checkbox.
    Codes(Rc<[&'a str]>),
    Date(Moment),
    /// Seconds since midnight.
    Time(u32),
    List(Rc<[V<'a>]>),
}

impl<'a> V<'a> {
    /// JSON Logic truthiness, with one difference: `"0"` from the data is 0, as REDCap exports a "no".
    pub(super) fn truthy(&self) -> Option<bool> {
        Some(match self {
            Self::Unknown => return None,
            Self::Null => false,
            Self::Bool(b) => *b,
            Self::Num(x) => *x != 0.0,
            Self::Span(lo, hi) if *lo <= 0.0 && *hi >= 0.0 => return None,
            Self::Span(..) => true,
            Self::Str(s) => !s.is_empty(),
            Self::Loose(s) | Self::Code(s) => number::parse(s) != Some(0.0),
            Self::Codes(codes) => !codes.is_empty(),
            Self::List(items) => !items.is_empty(),
            Self::Date(_) | Self::Time(_) => true,
        })
    }

    /// The number this is; `None` when it is none.
    pub(super) fn number(&self) -> Option<f64> {
        match self {
            Self::Num(x) => Some(*x),
            Self::Bool(b) => Some(f64::from(u8::from(*b))),
            Self::Str(s) => number::parse(s.trim()),
            Self::Loose(s) | Self::Code(s) => number::parse(s),
            _ => None,
        }
    }

    fn range(&self) -> Option<(f64, f64)> {
        match self {
            Self::Span(lo, hi) => Some((*lo, *hi)),
            _ => self.number().map(|x| (x, x)),
        }
    }

    /// The date this is; text counts where it is written as a date.
    pub(super) fn date(&self) -> Option<Moment> {
        match self {
            Self::Date(moment) => Some(*moment),
            Self::Str(s) => Moment::parse_any(s),
            Self::Loose(s) => Moment::parse_any(s),
            _ => None,
        }
    }

    fn time(&self) -> Option<u32> {
        match self {
            Self::Time(seconds) => Some(*seconds),
            Self::Str(s) => moment::parse_time(s),
            Self::Loose(s) => moment::parse_time(s),
            _ => None,
        }
    }

    fn text(&self) -> Option<&str> {
        match self {
            Self::Str(s) => Some(s),
            Self::Loose(s) | Self::Code(s) => Some(s),
            _ => None,
        }
    }

    /// What `cat` writes; `None` for what has no text.
    pub(super) fn to_text(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Null => Some(Cow::Borrowed("null")),
            Self::Bool(b) => Some(Cow::Borrowed(if *b { "true" } else { "false" })),
            Self::Num(x) => Some(Cow::Owned(number::show(*x))),
            _ => self.text().map(Cow::Borrowed),
        }
    }
}

/// Why two known values have no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoAnswer {
    /// One is unknown; that was said when it was read.
    Unknown,
    /// A date is partial and its completions disagree.
    Partial,
    /// They cannot be compared.
    Undefined,
}

/// Decides an ordering.
pub(super) fn compare(order: Order, a: &V<'_>, b: &V<'_>) -> Result<bool, NoAnswer> {
    match (a, b) {
        (V::Unknown, _) | (_, V::Unknown) => Err(NoAnswer::Unknown),
        (V::Num(x), V::Num(y)) => Ok(order.holds(*x, *y)),
        (V::Date(_), _) | (_, V::Date(_)) => compare_dates(order, a, b),
        (V::Span(..), _) | (_, V::Span(..)) => match (a.range(), b.range()) {
            (Some((a_lo, a_hi)), Some((b_lo, b_hi))) => {
                let ends = [
                    order.holds(a_lo, b_lo),
                    order.holds(a_lo, b_hi),
                    order.holds(a_hi, b_lo),
                    order.holds(a_hi, b_hi),
                ];
                match ends {
                    [true, true, true, true] => Ok(true),
                    [false, false, false, false] => Ok(false),
                    _ => Err(NoAnswer::Partial),
                }
            }
            _ => Err(NoAnswer::Undefined),
        },
        (V::Time(_), _) | (_, V::Time(_)) => match (a.time(), b.time()) {
            (Some(x), Some(y)) => Ok(order.holds(x, y)),
            _ => Err(NoAnswer::Undefined),
        },
        _ => match (a.number(), b.number()) {
            (Some(x), Some(y)) => Ok(order.holds(x, y)),
            // Text of data without a dictionary may hold dates; text that holds neither has no order.
            _ if a.text().is_some() && b.text().is_some() => compare_dates(order, a, b),
            _ => Err(NoAnswer::Undefined),
        },
    }
}

fn compare_dates(order: Order, a: &V<'_>, b: &V<'_>) -> Result<bool, NoAnswer> {
    match (a.date(), b.date()) {
        (Some(x), Some(y)) => x.compare(order, y).ok_or(NoAnswer::Partial),
        _ => match (a.time(), b.time()) {
            (Some(x), Some(y)) => Ok(order.holds(x, y)),
            _ => Err(NoAnswer::Undefined),
        },
    }
}

/// Decides `==` (`strict`: `===`, which never takes a JSON number for a JSON string).
pub(super) fn equal(strict: bool, a: &V<'_>, b: &V<'_>) -> Result<bool, NoAnswer> {
    use V::{Bool, Code, Codes, Date, List, Loose, Null, Num, Span, Str, Time, Unknown};
    Ok(match (a, b) {
        (Unknown, _) | (_, Unknown) => return Err(NoAnswer::Unknown),
        (Num(x), Num(y)) => x == y,
        (Bool(x), Bool(y)) => x == y,
        (Null, Null) => true,
        (Null, _) | (_, Null) => false,
        (Span(..), _) | (_, Span(..)) => {
            return match (a.range(), b.range()) {
                (Some((_, a_hi)), Some((b_lo, _))) if a_hi < b_lo => Ok(false),
                (Some((a_lo, _)), Some((_, b_hi))) if b_hi < a_lo => Ok(false),
                (Some(_), Some(_)) => Err(NoAnswer::Partial),
                _ => Err(NoAnswer::Undefined),
            };
        }
        (Date(_), _) | (_, Date(_)) => {
            return match (a.date(), b.date()) {
                (Some(x), Some(y)) => x.equals(y).ok_or(NoAnswer::Partial),
                _ => Err(NoAnswer::Undefined),
            };
        }
        (Time(_), _) | (_, Time(_)) => {
            return match (a.time(), b.time()) {
                (Some(x), Some(y)) => Ok(x == y),
                _ => Err(NoAnswer::Undefined),
            };
        }
        (List(_) | Codes(_), _) | (_, List(_) | Codes(_)) => return Err(NoAnswer::Undefined),
        (Code(x), Code(y)) => x == y,
        (Code(x), Str(y)) | (Str(y), Code(x)) => *x == y.as_ref(),
        // A code is text: 1 is the choice `1` and no other, such as `01`.
        (Code(x), Num(y)) | (Num(y), Code(x)) => **x == *number::show(*y),
        (Code(x), Bool(y)) | (Bool(y), Code(x)) => *x == if *y { "1" } else { "0" },
        // Text of the data against a number: a text that is none (`<5`) has no answer, for `!=` would pass.
        (Loose(x), Num(y)) | (Num(y), Loose(x)) => match number::parse(x) {
            Some(x) => x == *y,
            None => return Err(NoAnswer::Undefined),
        },
        (Loose(x), other) | (other, Loose(x)) => match other {
            Bool(y) if !strict => match number::parse(x) {
                Some(x) => x == f64::from(u8::from(*y)),
                None => return Err(NoAnswer::Undefined),
            },
            Bool(_) => false,
            _ => {
                let y = other.text().unwrap_or_default();
                match (number::parse(x), number::parse(y)) {
                    (Some(x), Some(y)) => x == y,
                    _ => *x == y,
                }
            }
        },
        (Str(x), Str(y)) => x == y,
        (Num(x), Str(y)) | (Str(y), Num(x)) => !strict && number::parse(y.trim()) == Some(*x),
        (Bool(x), Num(y)) | (Num(y), Bool(x)) => !strict && f64::from(u8::from(*x)) == *y,
        (Bool(x), Str(y)) | (Str(y), Bool(x)) => {
            !strict && number::parse(y.trim()) == Some(f64::from(u8::from(*x)))
        }
    })
}
