//! From JSON Logic to the compiled tree. Every branch is looked at, for an engine that short-circuits
//! would meet a slip of the pen only on the patient it matters for.

use serde_json::{Map, Value};

use super::{
    expr::Expr,
    functions,
    names::{Names, did_you_mean},
    operation::Operation,
    typing::{self, Ty, Typed},
};
use crate::types::near_miss::near_misses;

/// Deepest nesting of operators.
pub(super) const MAX_DEPTH: usize = 32;

/// Operators on the list, with the fewest and most operands.
const OPERATORS: [(&str, usize, usize); 36] = [
    ("!", 1, 1),
    ("!!", 1, 1),
    ("!=", 2, 2),
    ("!==", 2, 2),
    ("%", 2, 2),
    ("*", 1, usize::MAX),
    ("+", 1, usize::MAX),
    ("-", 1, 2),
    ("/", 2, 2),
    ("<", 2, 3),
    ("<=", 2, 3),
    ("==", 2, 2),
    ("===", 2, 2),
    (">", 2, 3),
    (">=", 2, 3),
    ("?:", 3, 3),
    ("age_at", 2, 2),
    ("and", 1, usize::MAX),
    ("between", 3, 4),
    ("cat", 1, usize::MAX),
    ("date_after", 2, 2),
    ("date_before", 2, 2),
    ("date_diff_days", 2, 2),
    ("if", 0, usize::MAX),
    ("in", 2, 2),
    ("in_codes", 2, 2),
    ("is_blank", 1, 1),
    ("matches", 2, 2),
    ("max", 1, usize::MAX),
    ("min", 1, usize::MAX),
    ("missing", 0, usize::MAX),
    ("missing_some", 2, 2),
    ("or", 1, usize::MAX),
    ("substr", 2, 3),
    ("today", 0, 0),
    ("var", 1, 2),
];

/// The operators a rule may use, in no particular order.
pub fn operators() -> impl Iterator<Item = &'static str> {
    OPERATORS.iter().map(|(name, ..)| *name)
}

/// A fault's place and what it is.
pub(super) type Found = (String, String);

/// Compiles one rule's logic.
pub(super) struct Parser<'n, 's> {
    pub(super) names: &'n mut Names<'s>,
    pub(super) faults: Vec<Found>,
}

impl<'n, 's> Parser<'n, 's> {
    pub(super) fn new(names: &'n mut Names<'s>) -> Self {
        Self {
            names,
            faults: Vec::new(),
        }
    }

    pub(super) fn fault(&mut self, path: &str, what: impl Into<String>) -> Typed {
        self.faults.push((path.to_owned(), what.into()));
        (Expr::Null, Ty::Any)
    }

    /// `result`, or a fault at `path`.
    pub(super) fn check<T>(&mut self, path: &str, result: Result<T, String>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(what) => {
                self.fault(path, what);
                None
            }
        }
    }

    /// A condition: the whole rule, an operand of `and`, the first operand of `if`.
    pub(super) fn condition(&mut self, value: &Value, path: &str, depth: usize) -> Expr {
        let typed = self.expr(value, path, depth);
        let result = typing::as_condition(self.names, typed);
        self.check(path, result).unwrap_or(Expr::Null)
    }

    /// Any expression.
    pub(super) fn expr(&mut self, value: &Value, path: &str, depth: usize) -> Typed {
        if depth > MAX_DEPTH {
            return self.fault(
                path,
                format!("nested deeper than {MAX_DEPTH}; split the rule"),
            );
        }
        match value {
            Value::Null => (Expr::Null, Ty::Null),
            Value::Bool(b) => (Expr::Bool(*b), Ty::Bool),
            Value::Number(n) => match n.as_f64().filter(|x| x.is_finite()) {
                Some(x) => (Expr::Num(x), Ty::Num),
                None => self.fault(path, format!("{n} is out of range")),
            },
            Value::String(text) => (Expr::Str(text.as_str().into()), Ty::Text),
            Value::Array(items) => {
                let items = items
                    .iter()
                    .enumerate()
                    .map(|(at, item)| self.expr(item, &format!("{path}[{at}]"), depth + 1).0)
                    .collect();
                (Expr::List(items), Ty::List)
            }
            Value::Object(map) => self.object(map, path, depth),
        }
    }

    fn object(&mut self, map: &Map<String, Value>, path: &str, depth: usize) -> Typed {
        if map.contains_key("function_name") {
            return match functions::compile(map, self.names) {
                Ok(function) => (Expr::Function(function), Ty::Bool),
                Err(faults) => {
                    for (place, what) in faults {
                        self.fault(&format!("{path}.{place}"), what);
                    }
                    (Expr::Null, Ty::Any)
                }
            };
        }
        let mut entries = map.iter();
        let (Some((operator, operands)), None) = (entries.next(), entries.next()) else {
            if map.is_empty() {
                return self.fault(path, "an empty object is no operation");
            }
            let keys: Vec<&str> = map.keys().map(String::as_str).collect();
            return self.fault(
                path,
                format!(
                    "an operation is an object with exactly one key, this one has {} (`{}`)",
                    keys.len(),
                    keys.join("`, `")
                ),
            );
        };
        let path = format!("{path}.{operator}");
        let Some(&(operator, least, most)) = OPERATORS.iter().find(|(name, ..)| name == operator)
        else {
            let near = near_misses(operator, operators(), 3);
            return self.fault(
                &path,
                format!("there is no operator `{operator}`{}", did_you_mean(&near)),
            );
        };
        let single = std::slice::from_ref(operands);
        let (operands, paths): (&[Value], Vec<String>) = match operands {
            Value::Array(items) => (
                items,
                (0..items.len()).map(|at| format!("{path}[{at}]")).collect(),
            ),
            _ => (single, vec![path.clone()]),
        };
        if operands.len() < least || operands.len() > most {
            let wanted = match (least, most) {
                (least, usize::MAX) => format!("at least {least}"),
                (least, most) if least == most => least.to_string(),
                (least, most) => format!("{least} to {most}"),
            };
            return self.fault(
                &path,
                format!(
                    "`{operator}` takes {wanted} operand(s), not {}",
                    operands.len()
                ),
            );
        }
        Operation {
            parser: self,
            operator,
            operands,
            path,
            paths,
            depth: depth + 1,
        }
        .compile()
    }
}
