//! What can be compared with what, decided before any data is read. A comparison that could never be
//! right is a fault of the rule: left alone, it would be a silent pass.

use super::{
    expr::Expr,
    moment::{self, Moment},
    names::{Names, RefId, SlotKind, did_you_mean},
    number,
};
use crate::types::{dictionary::ValueType, near_miss::near_misses};

/// The type of an expression, as far as the dictionary tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ty {
    /// Not known: data without a dictionary.
    Any,
    Null,
    Bool,
    Num,
    Text,
    Date,
    Time,
    /// A code of that field.
    Code(RefId),
    /// The checked codes of that field.
    Codes(RefId),
    List,
}

/// The type of a field.
pub(super) fn of_field(names: &Names<'_>, id: RefId) -> Ty {
    match &names.slot(id).kind {
        SlotKind::Untyped { .. } => Ty::Any,
        // An event is a choice of the project's; without events, the name is blank on every row.
        SlotKind::EventName if names.layout.is_classic() => Ty::Text,
        SlotKind::EventName => Ty::Code(id),
        SlotKind::Instance => Ty::Num,
        SlotKind::Checkbox { .. } => Ty::Codes(id),
        SlotKind::CheckboxChoice { .. } => Ty::Code(id),
        SlotKind::Cell { ty, .. } => match ty {
            ValueType::Integer | ValueType::Number { .. } => Ty::Num,
            ValueType::Date | ValueType::DateTime => Ty::Date,
            ValueType::Time => Ty::Time,
            ValueType::Code => Ty::Code(id),
            ValueType::Codes => Ty::Codes(id),
            ValueType::Text => Ty::Text,
        },
    }
}

/// An expression and its type.
pub(super) type Typed = (Expr, Ty);

/// Types one operand of an ordering by the type it is ordered against.
pub(super) fn ordered(names: &Names<'_>, operand: Typed, other: Ty) -> Result<Expr, String> {
    let rule = Comparison {
        names,
        ordering: true,
    };
    let (expr, ty) = rule.literal(operand.0, operand.1, other)?;
    let stand_in = (Expr::Today, other);
    let fits = (expr, ty);
    rule.pair(&fits, &stand_in)?;
    Ok(fits.0)
}

/// Types both sides of an equality to each other, turning literals into what they stand for.
pub(super) fn compared(names: &Names<'_>, a: Typed, b: Typed) -> Result<(Expr, Expr), String> {
    let rule = Comparison {
        names,
        ordering: false,
    };
    if a.0.is_literal() && b.0.is_literal() {
        // A field's name without its `var` is a text, and `!=` of it always holds.
        return match names.study().dictionary {
            Some(_) => Err(format!(
                "{} and {} are both written out, so the answer is the same for every patient; \
                 a field is written {{\"var\": \"…\"}}",
                shown(&a.0),
                shown(&b.0)
            )),
            None => Ok((a.0, b.0)),
        };
    }
    let a_fits = rule.literal(a.0, a.1, b.1)?;
    let b_fits = rule.literal(b.0, b.1, a.1)?;
    rule.pair(&a_fits, &b_fits)?;
    Ok((a_fits.0, b_fits.0))
}

struct Comparison<'n, 's> {
    names: &'n Names<'s>,
    ordering: bool,
}

impl Comparison<'_, '_> {
    /// A literal, read as the type of what it is compared with.
    fn literal(&self, expr: Expr, ty: Ty, other: Ty) -> Result<Typed, String> {
        if !expr.is_literal() {
            return Ok((expr, ty));
        }
        match (other, &expr) {
            (Ty::Date, Expr::Str(text)) => date_literal(text),
            (Ty::Date, _) => Err(format!(
                "a date is compared with {}; write the date as \"2026-01-31\"",
                shown(&expr)
            )),
            (Ty::Time, Expr::Str(text)) => match moment::parse_time(text.trim()) {
                Some(seconds) => Ok((Expr::Clock(seconds), Ty::Time)),
                None => Err(format!(
                    "\"{text}\" is no time of day; write it as \"08:30\""
                )),
            },
            (Ty::Num, Expr::Str(text)) => match number::parse(text.trim()) {
                Some(x) => Ok((Expr::Num(x), Ty::Num)),
                None => Err(format!(
                    "a number is compared with \"{text}\", which is none"
                )),
            },
            (Ty::Num, Expr::Bool(b)) => {
                Err(format!("a number is compared with {b}; write the number"))
            }
            (Ty::Code(field), _) => {
                if self.ordering {
                    self.numeric_codes(field)?;
                } else {
                    self.is_choice(field, &expr)?;
                }
                Ok((expr, ty))
            }
            (Ty::Text, Expr::Num(_) | Expr::Bool(_)) if !self.ordering => Err(format!(
                "text is compared with {}; write the text in quotes",
                shown(&expr)
            )),
            // Literals of data without a dictionary: what can be ordered must look like it.
            (_, Expr::Str(text)) if self.ordering => orderable(text),
            _ => Ok((expr, ty)),
        }
    }

    fn pair(&self, a: &Typed, b: &Typed) -> Result<(), String> {
        for ty in [a.1, b.1] {
            match ty {
                Ty::Codes(field) => {
                    return Err(format!(
                        "`{}` is a checkbox, a set of codes; use in_codes, or `in` with the code first",
                        self.names.refs[field].name
                    ));
                }
                Ty::List => {
                    return Err(
                        "a list has no order and equals nothing; use `in` or `!`".to_owned()
                    );
                }
                Ty::Code(field) if self.ordering => self.numeric_codes(field)?,
                Ty::Text if self.ordering => {
                    return Err(
                        "text has no order, so `<` and `>` need numbers, dates or times".to_owned(),
                    );
                }
                _ => {}
            }
        }
        let null = [a.1, b.1].contains(&Ty::Null);
        if null && (self.ordering || !(a.0.is_literal() && b.0.is_literal())) {
            return Err("null is compared; ask for a blank with is_blank".to_owned());
        }
        let kind = |ty: Ty| match ty {
            Ty::Date => Some("a date"),
            Ty::Time => Some("a time of day"),
            Ty::Any | Ty::Null => None,
            _ => Some(""),
        };
        if let (Some(x), Some(y)) = (kind(a.1), kind(b.1))
            && x != y
        {
            let what = |ty: Ty| match ty {
                Ty::Date => "a date",
                Ty::Time => "a time of day",
                Ty::Num => "a number",
                Ty::Text => "text",
                Ty::Bool => "a truth value",
                _ => "a code",
            };
            return Err(format!("{} is compared with {}", what(a.1), what(b.1)));
        }
        if let (Ty::Text, Ty::Num) | (Ty::Num, Ty::Text) = (a.1, b.1)
            && !(a.0.is_literal() && b.0.is_literal())
        {
            return Err("text is compared with a number".to_owned());
        }
        Ok(())
    }

    fn numeric_codes(&self, field: RefId) -> Result<(), String> {
        let codes = codes_of(self.names, field);
        match codes.iter().find(|code| number::parse(code).is_none()) {
            None => Ok(()),
            Some(code) => Err(format!(
                "the codes of `{}` have no order (`{code}` is no number); use in_codes",
                self.names.refs[field].name
            )),
        }
    }

    fn is_choice(&self, field: RefId, literal: &Expr) -> Result<(), String> {
        let codes = codes_of(self.names, field);
        let matches = |code: &&str| match literal {
            Expr::Str(text) => **code == **text,
            // A code is text: 1 is the choice `1` and no other, such as `01`.
            Expr::Num(x) => **code == *number::show(*x),
            Expr::Bool(b) => **code == *number::show(f64::from(u8::from(*b))),
            _ => false,
        };
        if codes.is_empty() || codes.iter().any(matches) {
            return Ok(());
        }
        Err(off_list(self.names, field, &shown(literal)))
    }
}

/// Checks that every code of `in_codes` or `in` is a choice of the checkbox or code field.
pub(super) fn check_code(names: &Names<'_>, field: RefId, code: &str) -> Result<(), String> {
    let codes = codes_of(names, field);
    if codes.is_empty() || codes.contains(&code) {
        Ok(())
    } else {
        Err(off_list(names, field, &format!("\"{code}\"")))
    }
}

/// Whether the field holds the name of the row's event.
pub(super) fn is_event_name(names: &Names<'_>, field: RefId) -> bool {
    matches!(names.slot(field).kind, SlotKind::EventName)
}

fn off_list(names: &Names<'_>, field: RefId, literal: &str) -> String {
    if is_event_name(names, field) {
        return names.unknown_event(literal.trim_matches('"'));
    }
    let codes = codes_of(names, field);
    let near = near_misses(literal.trim_matches('"'), codes.iter().copied(), 1);
    let listed: Vec<&str> = codes.iter().copied().take(12).collect();
    format!(
        "{literal} is not among the choices of `{}` (`{}`{}){}",
        names.refs[field].name,
        listed.join("`, `"),
        if listed.len() < codes.len() {
            ", …"
        } else {
            ""
        },
        did_you_mean(&near)
    )
}

/// The codes of a field; empty when they are not known.
fn codes_of<'n>(names: &'n Names<'_>, field: RefId) -> Vec<&'n str> {
    match &names.slot(field).kind {
        SlotKind::Cell { codes, .. } => codes.iter().map(String::as_str).collect(),
        SlotKind::Checkbox { columns, .. } => {
            columns.iter().map(|(code, _)| code.as_str()).collect()
        }
        SlotKind::CheckboxChoice { .. } => vec!["0", "1"],
        SlotKind::EventName if !names.layout.is_classic() => names
            .layout
            .event_names()
            .iter()
            .map(String::as_str)
            .collect(),
        _ => Vec::new(),
    }
}

/// An operand of a date operator.
pub(super) fn as_date(typed: Typed) -> Result<Expr, String> {
    match typed {
        (Expr::Str(text), _) => Ok(date_literal(&text)?.0),
        (expr, Ty::Date | Ty::Any) if !expr.is_literal() => Ok(expr),
        (expr, Ty::Date) => Ok(expr),
        _ => Err("a date is needed here: a date field, \"2026-01-31\" or \"today\"".to_owned()),
    }
}

/// An operand of an operator on numbers.
pub(super) fn as_number(names: &Names<'_>, typed: Typed) -> Result<Expr, String> {
    match typed {
        (Expr::Str(text), _) => match number::parse(text.trim()) {
            Some(x) => Ok(Expr::Num(x)),
            None => Err(format!("\"{text}\" is no number")),
        },
        (expr, Ty::Num | Ty::Any) => Ok(expr),
        (expr, Ty::Bool) => Ok(expr),
        (expr, Ty::Code(field)) => {
            let rule = Comparison {
                names,
                ordering: true,
            };
            rule.numeric_codes(field)?;
            Ok(expr)
        }
        (_, Ty::Date) => {
            Err("a number is needed here; for dates use date_diff_days or age_at".to_owned())
        }
        _ => Err("a number is needed here".to_owned()),
    }
}

/// An operand whose truth is asked for.
pub(super) fn as_condition(names: &Names<'_>, typed: Typed) -> Result<Expr, String> {
    if let (_, Ty::Code(field)) = typed {
        let codes = codes_of(names, field);
        if !codes.iter().all(|code| matches!(*code, "0" | "1")) || codes.is_empty() {
            return Err(format!(
                "`{}` is a code and neither true nor false; compare it with a choice",
                names.refs[field].name
            ));
        }
    }
    Ok(typed.0)
}

fn date_literal(text: &str) -> Result<Typed, String> {
    let text = text.trim();
    if text.eq_ignore_ascii_case("today") {
        return Ok((Expr::Today, Ty::Date));
    }
    match Moment::parse_any(text) {
        Some(moment) if moment.is_whole_day() => Ok((Expr::Moment(moment), Ty::Date)),
        _ => Err(format!(
            "\"{text}\" is no whole date; write it as \"2026-01-31\""
        )),
    }
}

/// A text literal that is ordered against something of unknown type.
fn orderable(text: &str) -> Result<Typed, String> {
    let trimmed = text.trim();
    if let Some(x) = number::parse(trimmed) {
        return Ok((Expr::Num(x), Ty::Num));
    }
    if let Some(seconds) = moment::parse_time(trimmed) {
        return Ok((Expr::Clock(seconds), Ty::Time));
    }
    date_literal(trimmed).map_err(|_| {
        format!("\"{text}\" has no order; write a number, or a date as \"2026-01-31\"")
    })
}

fn shown(literal: &Expr) -> String {
    match literal {
        Expr::Null => "null".to_owned(),
        Expr::Bool(b) => b.to_string(),
        Expr::Num(x) => number::show(*x),
        Expr::Str(text) => format!("\"{text}\""),
        _ => "a literal".to_owned(),
    }
}
