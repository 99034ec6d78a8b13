//! The compiled rule: a tree whose names are resolved and whose literals are typed.

use regex::Regex;

use super::{
    functions::NamedFunction,
    moment::{Moment, Order},
    names::RefId,
};

/// A compiled expression. At most [`MAX_DEPTH`](super::compile::MAX_DEPTH) deep.
#[derive(Debug)]
pub(super) enum Expr {
    Null,
    Bool(bool),
    Num(f64),
    Str(Box<str>),
    List(Box<[Expr]>),
    /// A date literal.
    Moment(Moment),
    /// A time-of-day literal, in seconds since midnight.
    Clock(u32),
    Today,
    Field(RefId),
    And(Box<[Expr]>),
    Or(Box<[Expr]>),
    Not(Box<Expr>),
    Truth(Box<Expr>),
    If(Box<[Expr]>),
    Equal {
        strict: bool,
        negated: bool,
        sides: Box<[Expr; 2]>,
    },
    Compare(Order, Box<[Expr]>),
    Between(Box<Between>),
    In(Box<[Expr; 2]>),
    /// Any of a checkbox's codes on a list.
    AnyCode(RefId, Box<[Box<str>]>),
    Arithmetic(Arithmetic, Box<[Expr]>),
    Cat(Box<[Expr]>),
    Substr(Box<Expr>, i64, Option<i64>),
    IsBlank {
        field: RefId,
        negated: bool,
    },
    Missing(Box<[Wanted]>),
    MissingSome(usize, Box<[Wanted]>),
    DaysBetween(Box<[Expr; 2]>),
    AgeAt(Box<[Expr; 2]>),
    Matches(Box<Expr>, Regex),
    Function(Box<dyn NamedFunction>),
}

/// `low ≤ value ≤ high`, each bound inclusive unless said.
#[derive(Debug)]
pub(super) struct Between {
    pub(super) value: Expr,
    pub(super) low: Expr,
    pub(super) high: Expr,
    pub(super) low_order: Order,
    pub(super) high_order: Order,
}

/// A field `missing` asks for, under the name the rule writes.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) written: Box<str>,
    pub(super) field: RefId,
}

/// Operators on numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Min,
    Max,
}

impl Expr {
    /// Whether it is written out and reads nothing.
    pub(super) fn is_literal(&self) -> bool {
        matches!(
            self,
            Self::Null
                | Self::Bool(_)
                | Self::Num(_)
                | Self::Str(_)
                | Self::Moment(_)
                | Self::Clock(_)
        )
    }

    /// Every field the expression reads, in reading order, with repeats.
    pub(super) fn fields(&self, out: &mut Vec<RefId>) {
        let mut all = |items: &[Expr]| items.iter().for_each(|item| item.fields(out));
        match self {
            Self::Null
            | Self::Bool(_)
            | Self::Num(_)
            | Self::Str(_)
            | Self::Moment(_)
            | Self::Clock(_)
            | Self::Today => {}
            Self::Field(id) | Self::IsBlank { field: id, .. } | Self::AnyCode(id, _) => {
                out.push(*id);
            }
            Self::List(items)
            | Self::And(items)
            | Self::Or(items)
            | Self::If(items)
            | Self::Compare(_, items)
            | Self::Arithmetic(_, items)
            | Self::Cat(items) => all(items),
            Self::Equal { sides, .. }
            | Self::In(sides)
            | Self::DaysBetween(sides)
            | Self::AgeAt(sides) => all(&sides[..]),
            Self::Not(inner)
            | Self::Truth(inner)
            | Self::Substr(inner, ..)
            | Self::Matches(inner, _) => inner.fields(out),
            Self::Between(between) => {
                between.value.fields(out);
                between.low.fields(out);
                between.high.fields(out);
            }
            Self::Missing(wanted) | Self::MissingSome(_, wanted) => {
                out.extend(wanted.iter().map(|w| w.field));
            }
            Self::Function(function) => out.extend(function.fields()),
        }
    }
}
