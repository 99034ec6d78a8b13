//! Named functions, for what JSON Logic can't say: `{"function_name": "visit_window", "args": {…}}`.
//!
//! A new function is one file, with a struct that implements [`NamedFunction`], and one line in [`REGISTRY`].

use std::fmt::Debug;

use serde_json::{Map, Value};

use super::{
    cell::Cell,
    eval::Eval,
    moment::Moment,
    names::{Names, RefId, did_you_mean},
    parse::Found,
    result::Reason,
    typing::{self, Ty},
    value::V,
};
use crate::types::near_miss::near_misses;

mod age_requirement;
mod informed_consent;
mod visit_window;
mod window;

pub use window::Window;

/// A check with a name.
pub(super) trait NamedFunction: Debug + Send + Sync {
    /// Every field it reads.
    fn fields(&self) -> Vec<RefId>;

    /// Whether the check holds; notes its doubts in `eval` when that is unknown.
    fn decide<'a>(&'a self, eval: &Eval<'_, 'a>) -> Option<bool>;

    /// After a failure: what was found, with the values.
    fn detail(&self, eval: &Eval<'_, '_>) -> String;

    /// What a field is to this check, for the message when it is missing.
    fn role(&self, _field: RefId) -> Option<&'static str> {
        None
    }

    /// The check in words.
    fn words(&self) -> String;
}

type Compiled = Result<Box<dyn NamedFunction>, Vec<Found>>;

type Make = fn(&mut Args<'_, '_>) -> Option<Box<dyn NamedFunction>>;

/// Every named function: name, arguments it takes, how it is made.
const REGISTRY: [(&str, &[&str], Make); 3] = [
    ("visit_window", &["visit", "event"], visit_window::make),
    (
        "informed_consent",
        &["consent_date", "enrollment_date"],
        informed_consent::make,
    ),
    (
        "age_requirement",
        &["age", "guardian_consent_date", "min_age"],
        age_requirement::make,
    ),
];

/// Compiles `{"function_name", "args"}`.
pub(super) fn compile(map: &Map<String, Value>, names: &mut Names<'_>) -> Compiled {
    let fault = |place: &str, what: String| Err(vec![(place.to_owned(), what)]);
    if let Some(extra) = map
        .keys()
        .find(|key| !matches!(key.as_str(), "function_name" | "args"))
    {
        return fault(
            extra,
            "a named function has only function_name and args".to_owned(),
        );
    }
    let known = || REGISTRY.iter().map(|(name, ..)| *name);
    let Some(name) = map.get("function_name").and_then(Value::as_str) else {
        return fault(
            "function_name",
            "is a text, the name of the function".to_owned(),
        );
    };
    let Some((_, takes, make)) = REGISTRY.iter().find(|(known, ..)| *known == name) else {
        let near = near_misses(name, known(), 3);
        let hint = if near.is_empty() {
            format!("; there are `{}`", known().collect::<Vec<_>>().join("`, `"))
        } else {
            did_you_mean(&near)
        };
        return fault(
            "function_name",
            format!("there is no function `{name}`{hint}"),
        );
    };
    let empty = Map::new();
    let given = match map.get("args") {
        None | Some(Value::Null) => &empty,
        Some(Value::Object(args)) => args,
        Some(_) => return fault("args", "is an object of arguments".to_owned()),
    };
    if let Some(extra) = given.keys().find(|key| !takes.contains(&key.as_str())) {
        return fault(
            &format!("args.{extra}"),
            format!(
                "`{name}` has no such argument; it takes `{}`",
                takes.join("`, `")
            ),
        );
    }
    let mut args = Args {
        given,
        names,
        faults: Vec::new(),
    };
    match make(&mut args) {
        Some(function) if args.faults.is_empty() => Ok(function),
        _ => Err(args.faults),
    }
}

/// The arguments of one call, and what is wrong with them.
struct Args<'g, 'n> {
    given: &'g Map<String, Value>,
    names: &'g mut Names<'n>,
    faults: Vec<Found>,
}

impl Args<'_, '_> {
    fn fault<T>(&mut self, argument: &str, what: String) -> Option<T> {
        self.faults.push((format!("args.{argument}"), what));
        None
    }

    fn text(&mut self, argument: &str) -> Option<String> {
        match self.given.get(argument) {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => {
                Some(text.trim().to_owned()).filter(|text| !text.is_empty())
            }
            Some(_) => self.fault(argument, "is a text".to_owned()),
        }
    }

    /// The field named by the argument, else by the study's role of the same name.
    fn role_field(&mut self, role: &str, wanted: Ty) -> Option<RefId> {
        let named = match self.text(role) {
            Some(name) => name,
            None => self.names.study().role(role).unwrap_or(role).to_owned(),
        };
        self.field(role, &named, wanted)
    }

    fn field(&mut self, argument: &str, name: &str, wanted: Ty) -> Option<RefId> {
        match self.names.resolve(name) {
            Ok(id) => match typing::of_field(self.names, id) {
                ty if ty == Ty::Any || ty == wanted => Some(id),
                _ if wanted == Ty::Date => {
                    self.fault(argument, format!("`{name}` is no date field"))
                }
                _ => self.fault(argument, format!("`{name}` is no number field")),
            },
            Err(what) => self.fault(
                argument,
                format!("set `{argument}` under [fields] of the project file or in args: {what}"),
            ),
        }
    }
}

/// A field read as a date (`V::date`) or a number (`V::number`), with the doubt noted when it is none.
fn read<'a, T>(
    eval: &Eval<'_, 'a>,
    field: RefId,
    convert: impl Fn(&V<'a>) -> Option<T>,
) -> Option<T> {
    let read = eval.frame.cell(field).known();
    match read.and_then(|value| convert(&value).ok_or(Reason::Invalid)) {
        Ok(value) => Some(value),
        Err(reason) => {
            eval.doubt(reason, Some(field));
            None
        }
    }
}

fn date(eval: &Eval<'_, '_>, field: RefId) -> Option<Moment> {
    read(eval, field, V::date)
}

/// Whether there is nothing in the field: blank, a missing code, or a form nobody opened.
fn is_absent(eval: &Eval<'_, '_>, field: RefId) -> bool {
    matches!(
        eval.frame.cell(field),
        Cell::Blank | Cell::Coded(_) | Cell::NotOpened
    )
}

fn shown(eval: &Eval<'_, '_>, field: RefId) -> String {
    eval.frame.text(field).unwrap_or_else(|| "空".to_owned())
}
