//! A generated study: 60 fields on six forms, 5 % of the values blank, 1 % wrong, and rules with what
//! they must say, decided here by other means than the program's.

use std::path::Path;

use anyhow::{Context, Result};
use chrono::{Days, NaiveDate};
use serde_json::{Value, json};

use crate::dice::Dice;

const FORMS: [&str; 6] = [
    "screening",
    "demography",
    "labs",
    "vitals",
    "visit",
    "safety",
];
const BLANK: f64 = 0.05;
const WRONG: f64 = 0.01;
/// Codes a rule accepts; 9 is on the list of choices and never accepted.
const CODES: [&str; 4] = ["1", "2", "3", "4"];

/// What a field holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Number,
    Date,
    Code,
}

/// A form's ten fields.
const KINDS: [Kind; 10] = [
    Kind::Number,
    Kind::Number,
    Kind::Number,
    Kind::Number,
    Kind::Date,
    Kind::Date,
    Kind::Date,
    Kind::Code,
    Kind::Code,
    Kind::Code,
];
/// Fields of the study, the record id apart.
pub const FIELDS: usize = FORMS.len() * KINDS.len();

fn name(field: usize) -> String {
    let form = FORMS[field / KINDS.len()];
    let kind = match KINDS[field % KINDS.len()] {
        Kind::Number => "num",
        Kind::Date => "date",
        Kind::Code => "code",
    };
    format!("{form}_{kind}{}", field % KINDS.len())
}

/// Bounds of a number; each field has its own.
fn bounds(field: usize) -> (i64, i64) {
    let low = i64::try_from(field).unwrap_or(0) * 3;
    (low, low + 100)
}

/// One value, `None` when blank.
#[derive(Clone, Copy)]
enum Cell {
    Number(i64),
    Date(NaiveDate),
    Code(u8),
}

/// One record, by field.
pub struct Subject(Vec<Option<Cell>>);

impl Subject {
    fn roll(dice: &mut Dice) -> Self {
        let first = NaiveDate::from_ymd_opt(2024, 1, 1).unwrap_or_default();
        let enrolled = Days::new(u64::try_from(dice.below(300)).unwrap_or(0));
        let cells = (0..FIELDS).map(|field| {
            if dice.chance(BLANK) {
                return None;
            }
            let wrong = dice.chance(WRONG);
            Some(match KINDS[field % KINDS.len()] {
                Kind::Number => {
                    let (low, _) = bounds(field);
                    let above = if wrong { 150 } else { dice.below(101) };
                    Cell::Number(low + above)
                }
                // The three dates of a form are a week apart; a wrong one lies two months back.
                Kind::Date => {
                    let week = u64::try_from(field % KINDS.len()).unwrap_or(0) * 7;
                    let day = u64::try_from(dice.below(6)).unwrap_or(0);
                    let date = first + enrolled + Days::new(week + day);
                    Cell::Date(if wrong { date - Days::new(60) } else { date })
                }
                Kind::Code => Cell::Code(if wrong {
                    9
                } else {
                    u8::try_from(dice.below(4) + 1).unwrap_or(1)
                }),
            })
        });
        Self(cells.collect())
    }

    fn text(&self, field: usize) -> String {
        match self.0[field] {
            None => String::new(),
            Some(Cell::Number(n)) => n.to_string(),
            Some(Cell::Date(date)) => date.to_string(),
            Some(Cell::Code(code)) => code.to_string(),
        }
    }

    /// As plain JSON, for other engines.
    pub fn json(&self) -> Value {
        let pairs = (0..FIELDS).map(|field| {
            let value = match self.0[field] {
                Some(Cell::Number(n)) => json!(n),
                _ => json!(self.text(field)),
            };
            (name(field), value)
        });
        Value::Object(pairs.collect())
    }
}

/// A rule, and what it says.
pub enum Check {
    /// A number within its bounds, the upper one widened a little.
    Range(usize, i64),
    Code(usize),
    /// One date not after another.
    Order(usize, usize),
    /// At most so many days from one date to another, and not backwards.
    Span(usize, usize, i64),
    All(Vec<Check>),
    Any(Vec<Check>),
    Not(Box<Check>),
}

impl Check {
    /// With the typed operators.
    pub fn logic(&self) -> Value {
        let var = |field: usize| json!({ "var": name(field) });
        match self {
            Self::Range(field, wider) => {
                let (low, high) = bounds(*field);
                json!({ "between": [var(*field), low, high + wider] })
            }
            Self::Code(field) => json!({ "in_codes": [var(*field), CODES] }),
            Self::Order(a, b) => json!({ "<=": [var(*a), var(*b)] }),
            Self::Span(a, b, days) => {
                json!({ "between": [{ "date_diff_days": [var(*a), var(*b)] }, 0, days] })
            }
            Self::All(parts) => json!({ "and": parts.iter().map(Self::logic).collect::<Vec<_>>() }),
            Self::Any(parts) => json!({ "or": parts.iter().map(Self::logic).collect::<Vec<_>>() }),
            Self::Not(part) => json!({ "!": [part.logic()] }),
        }
    }

    /// With JSON Logic's own operators alone; it has no days between dates, only their order.
    pub fn standard_logic(&self) -> Value {
        let var = |field: usize| json!({ "var": name(field) });
        let list = |parts: &[Check]| parts.iter().map(Self::standard_logic).collect::<Vec<_>>();
        match self {
            Self::Range(field, wider) => {
                let (low, high) = bounds(*field);
                json!({ "<=": [low, var(*field), high + wider] })
            }
            Self::Code(field) => json!({ "in": [var(*field), CODES] }),
            Self::Order(a, b) | Self::Span(a, b, _) => json!({ "<=": [var(*a), var(*b)] }),
            Self::All(parts) => json!({ "and": list(parts) }),
            Self::Any(parts) => json!({ "or": list(parts) }),
            Self::Not(part) => json!({ "!": [part.standard_logic()] }),
        }
    }

    /// Kleene's answer: `None` when a blank leaves it open.
    pub fn holds(&self, subject: &Subject) -> Option<bool> {
        let date = |field: usize| match subject.0[field] {
            Some(Cell::Date(date)) => Some(date),
            _ => None,
        };
        let answers = |parts: &[Check]| parts.iter().map(|p| p.holds(subject)).collect::<Vec<_>>();
        match self {
            Self::Range(field, wider) => match subject.0[*field] {
                Some(Cell::Number(n)) => {
                    let (low, high) = bounds(*field);
                    Some((low..=high + wider).contains(&n))
                }
                _ => None,
            },
            Self::Code(field) => match subject.0[*field] {
                Some(Cell::Code(code)) => Some(code < 9),
                _ => None,
            },
            Self::Order(a, b) => Some(date(*a)? <= date(*b)?),
            Self::Span(a, b, days) => {
                Some((0..=*days).contains(&(date(*b)? - date(*a)?).num_days()))
            }
            Self::All(parts) => decided(&answers(parts), false),
            Self::Any(parts) => decided(&answers(parts), true),
            Self::Not(part) => part.holds(subject).map(|holds| !holds),
        }
    }

    fn field(&self) -> usize {
        match self {
            Self::Range(field, _) | Self::Code(field) => *field,
            Self::Order(_, field) | Self::Span(_, field, _) => *field,
            Self::All(parts) | Self::Any(parts) => parts.last().map_or(0, Self::field),
            Self::Not(part) => part.field(),
        }
    }
}

fn decided(answers: &[Option<bool>], by: bool) -> Option<bool> {
    if answers.contains(&Some(by)) {
        Some(by)
    } else if answers.contains(&None) {
        None
    } else {
        Some(!by)
    }
}

/// `count` rules over all forms: of eight, three ranges, one code list, one order and one span of
/// dates, one conjunction, one implication.
pub fn checks(count: usize) -> Vec<Check> {
    (0..count)
        .map(|n| {
            let form = n % FORMS.len() * KINDS.len();
            let round = n / 8;
            let number = form + round % 4;
            let code = form + 7 + round % 3;
            let wider = i64::try_from(n % 5).unwrap_or(0);
            match n % 8 {
                0..=2 => Check::Range(number, wider),
                3 => Check::Code(code),
                4 => Check::Order(form + 4 + round % 2, form + 5 + round % 2),
                5 => Check::Span(form + 4, form + 6, 30 + wider),
                6 => Check::All(vec![Check::Range(number, wider), Check::Code(code)]),
                _ => Check::Any(vec![
                    Check::Not(Box::new(Check::Code(code))),
                    Check::Range(number, wider),
                ]),
            }
        })
        .collect()
}

/// The rules as a skill file's `rules`.
pub fn rules(checks: &[Check], logic: impl Fn(&Check) -> Value) -> Vec<Value> {
    let rule = |(n, check): (usize, &Check)| {
        json!({
            "id": format!("G-{:03}", n + 1),
            "field": name(check.field()),
            "logic": logic(check),
            "message": format!("第 {} 条规则不成立", n + 1),
        })
    };
    checks.iter().enumerate().map(rule).collect()
}

/// What all rules must say of all subjects: (fail, not evaluable).
pub fn expected(checks: &[Check], subjects: &[Subject]) -> (usize, usize) {
    let answers = subjects
        .iter()
        .flat_map(|subject| checks.iter().map(|check| check.holds(subject)));
    answers.fold((0, 0), |(fail, open), answer| match answer {
        Some(true) => (fail, open),
        Some(false) => (fail + 1, open),
        None => (fail, open + 1),
    })
}

pub fn subjects(count: usize) -> Vec<Subject> {
    let mut dice = Dice::new(20_260_101);
    (0..count).map(|_| Subject::roll(&mut dice)).collect()
}

/// Writes the study as a folder of REDCap exports.
pub fn write(folder: &Path, subjects: &[Subject]) -> Result<()> {
    std::fs::create_dir_all(folder).context("making the study's folder")?;
    let mut metadata = csv::Writer::from_path(folder.join("metadata.csv"))?;
    metadata.write_record([
        "field_name",
        "form_name",
        "field_type",
        "field_label",
        "select_choices_or_calculations",
        "text_validation_type_or_show_slider_number",
        "branching_logic",
        "required_field",
    ])?;
    metadata.write_record(["record_id", FORMS[0], "text", "Subject", "", "", "", "y"])?;
    for field in 0..FIELDS {
        let (kind, choices, validation) = match KINDS[field % KINDS.len()] {
            Kind::Number => ("text", "", "number"),
            Kind::Date => ("text", "", "date_ymd"),
            Kind::Code => (
                "radio",
                "1, one | 2, two | 3, three | 4, four | 9, other",
                "",
            ),
        };
        let name = name(field);
        let form = FORMS[field / KINDS.len()];
        metadata.write_record([&name, form, kind, &name, choices, validation, "", "y"])?;
    }
    metadata.flush()?;

    let mut records = csv::Writer::from_path(folder.join("records.csv"))?;
    let mut header = vec!["record_id".to_owned()];
    for (at, form) in FORMS.iter().enumerate() {
        header.extend((0..KINDS.len()).map(|n| name(at * KINDS.len() + n)));
        header.push(format!("{form}_complete"));
    }
    records.write_record(&header)?;
    for (n, subject) in subjects.iter().enumerate() {
        let mut row = vec![format!("S{:05}", n + 1)];
        for at in 0..FORMS.len() {
            row.extend((0..KINDS.len()).map(|n| subject.text(at * KINDS.len() + n)));
            row.push("2".to_owned());
        }
        records.write_record(&row)?;
    }
    records.flush()?;
    Ok(())
}
