//! From JSON Logic to the compiled tree. Every branch is looked at, for an engine that short-circuits
//! would meet a slip of the pen only on the patient it matters for.

use regex::RegexBuilder;
use serde_json::{Map, Value};

use super::{
    expr::{Arithmetic, Between, Expr, Wanted},
    functions,
    moment::Order,
    names::{Names, RefId, did_you_mean},
    typing::{self, Ty, Typed},
};
use crate::types::near_miss::near_misses;

/// Deepest nesting of operators.
pub(super) const MAX_DEPTH: usize = 32;

/// Most memory a compiled pattern may take.
const PATTERN_BYTES: usize = 256 * 1024;

/// Longest pattern, in characters.
const PATTERN_CHARS: usize = 1_000;

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
    names: &'n mut Names<'s>,
    pub(super) faults: Vec<Found>,
}

impl<'n, 's> Parser<'n, 's> {
    pub(super) fn new(names: &'n mut Names<'s>) -> Self {
        Self {
            names,
            faults: Vec::new(),
        }
    }

    fn fault(&mut self, path: &str, what: impl Into<String>) -> Typed {
        self.faults.push((path.to_owned(), what.into()));
        (Expr::Null, Ty::Any)
    }

    /// `result`, or a fault at `path`.
    fn check<T>(&mut self, path: &str, result: Result<T, String>) -> Option<T> {
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

/// One operation being compiled.
struct Operation<'p, 'n, 's, 'v> {
    parser: &'p mut Parser<'n, 's>,
    operator: &'static str,
    operands: &'v [Value],
    path: String,
    paths: Vec<String>,
    depth: usize,
}

impl Operation<'_, '_, '_, '_> {
    fn compile(mut self) -> Typed {
        match self.operator {
            "var" => self.var(),
            "today" => (Expr::Today, Ty::Date),
            // They hand on the value of one operand.
            "and" => (Expr::And(self.conditions()), Ty::Any),
            "or" => (Expr::Or(self.conditions()), Ty::Any),
            "!" => (Expr::Not(Box::new(self.condition(0))), Ty::Bool),
            "!!" => (Expr::Truth(Box::new(self.condition(0))), Ty::Bool),
            "if" | "?:" => self.branches(),
            "==" => self.equality(false, false),
            "===" => self.equality(true, false),
            "!=" => self.equality(false, true),
            "!==" => self.equality(true, true),
            "<" => self.ordering(Order::Less),
            "<=" => self.ordering(Order::LessEqual),
            ">" => self.ordering(Order::Greater),
            ">=" => self.ordering(Order::GreaterEqual),
            "between" => self.between(),
            "in" => self.membership(),
            "in_codes" => self.in_codes(),
            "+" => self.arithmetic(Arithmetic::Add),
            "-" => self.arithmetic(Arithmetic::Subtract),
            "*" => self.arithmetic(Arithmetic::Multiply),
            "/" => self.arithmetic(Arithmetic::Divide),
            "%" => self.arithmetic(Arithmetic::Remainder),
            "min" => self.arithmetic(Arithmetic::Min),
            "max" => self.arithmetic(Arithmetic::Max),
            "cat" => self.cat(),
            "substr" => self.substr(),
            "is_blank" => match self.named_field(0) {
                Some(field) => (
                    Expr::IsBlank {
                        field,
                        negated: false,
                    },
                    Ty::Bool,
                ),
                None => (Expr::Null, Ty::Any),
            },
            "missing" => {
                let wanted = self.wanted(self.operands, self.paths.clone());
                (Expr::Missing(wanted), Ty::List)
            }
            "missing_some" => self.missing_some(),
            "date_before" => self.date_order(Order::Less),
            "date_after" => self.date_order(Order::Greater),
            "date_diff_days" => match self.two_dates() {
                Some(sides) => (Expr::DaysBetween(sides), Ty::Num),
                None => (Expr::Null, Ty::Any),
            },
            "age_at" => match self.two_dates() {
                Some(sides) => (Expr::AgeAt(sides), Ty::Num),
                None => (Expr::Null, Ty::Any),
            },
            "matches" => self.matches(),
            _ => self.fault_here(format!("`{}` can't be used here", self.operator)),
        }
    }

    fn fault_here(&mut self, what: impl Into<String>) -> Typed {
        self.parser.fault(&self.path, what)
    }

    fn check_here<T>(&mut self, result: Result<T, String>) -> Option<T> {
        self.parser.check(&self.path, result)
    }

    fn operand(&mut self, at: usize) -> Typed {
        match (self.operands.get(at), self.paths.get(at)) {
            (Some(value), Some(path)) => self.parser.expr(value, path, self.depth),
            _ => (Expr::Null, Ty::Null),
        }
    }

    fn condition(&mut self, at: usize) -> Expr {
        match (self.operands.get(at), self.paths.get(at)) {
            (Some(value), Some(path)) => self.parser.condition(value, path, self.depth),
            _ => Expr::Null,
        }
    }

    fn conditions(&mut self) -> Box<[Expr]> {
        (0..self.operands.len())
            .map(|at| self.condition(at))
            .collect()
    }

    fn var(&mut self) -> Typed {
        let Some(name) = self.operands.first().and_then(Value::as_str) else {
            return self.fault_here("the name of a field must be written out, not computed");
        };
        // The default of a blank would answer in its place, and a blank must never pass: it is read over.
        if let Some(default) = self.operands.get(1)
            && (default.is_object() || default.is_array())
        {
            return self.fault_here("the default of a field must be a literal");
        }
        let resolved = self.parser.names.resolve(name);
        match self.check_here(resolved) {
            Some(id) => (Expr::Field(id), typing::of_field(self.parser.names, id)),
            None => (Expr::Null, Ty::Any),
        }
    }

    fn branches(&mut self) -> Typed {
        let count = self.operands.len();
        let mut ty = None;
        let mut parts = Vec::with_capacity(count);
        for at in 0..count {
            let is_condition = at % 2 == 0 && at + 1 < count;
            if is_condition {
                parts.push(self.condition(at));
            } else {
                let (expr, branch) = self.operand(at);
                ty = match ty {
                    None => Some(branch),
                    Some(ty) if ty == branch => Some(ty),
                    Some(_) => Some(Ty::Any),
                };
                parts.push(expr);
            }
        }
        let ty = match ty {
            // Without an `else` the value may be null.
            Some(ty) if count % 2 == 1 => ty,
            _ => Ty::Any,
        };
        (Expr::If(parts.into()), ty)
    }

    fn equality(&mut self, strict: bool, negated: bool) -> Typed {
        let (a, b) = (self.operand(0), self.operand(1));
        let is_empty =
            |typed: &Typed| matches!(&typed.0, Expr::Str(text) if text.trim().is_empty());
        match (&a, &b) {
            ((Expr::Field(field), _), other) | (other, (Expr::Field(field), _))
                if is_empty(other) =>
            {
                let field = *field;
                return (Expr::IsBlank { field, negated }, Ty::Bool);
            }
            _ if (is_empty(&a) && !b.0.is_literal()) || (is_empty(&b) && !a.0.is_literal()) => {
                return self.fault_here("only a field can be asked for a blank; use is_blank");
            }
            _ => {}
        }
        let result = typing::compared(self.parser.names, a, b);
        match self.check_here(result) {
            Some((a, b)) => (
                Expr::Equal {
                    strict,
                    negated,
                    sides: Box::new([a, b]),
                },
                Ty::Bool,
            ),
            None => (Expr::Null, Ty::Any),
        }
    }

    fn ordering(&mut self, order: Order) -> Typed {
        let typed: Vec<Typed> = (0..self.operands.len())
            .map(|at| self.operand(at))
            .collect();
        match self.ordered(typed) {
            Some(operands) => (Expr::Compare(order, operands.into()), Ty::Bool),
            None => (Expr::Null, Ty::Any),
        }
    }

    /// Operands of one chain of orderings, each typed by the first whose type is known.
    fn ordered(&mut self, typed: Vec<Typed>) -> Option<Vec<Expr>> {
        let known = |(expr, ty): &Typed| !expr.is_literal() && *ty != Ty::Any;
        let lead = typed.iter().position(known);
        let lead_ty = lead
            .and_then(|at| typed.get(at))
            .map_or(Ty::Any, |(_, ty)| *ty);
        let mut operands = Vec::with_capacity(typed.len());
        for (at, operand) in typed.into_iter().enumerate() {
            let other = if Some(at) == lead { Ty::Any } else { lead_ty };
            let result = typing::ordered(self.parser.names, operand, other);
            operands.push(self.check_here(result)?);
        }
        Some(operands)
    }

    fn between(&mut self) -> Typed {
        let bounds = match self.operands.get(3) {
            None => Some((true, true)),
            Some(Value::String(text)) => match text.as_str() {
                "[]" | "inclusive" => Some((true, true)),
                "()" | "exclusive" => Some((false, false)),
                "[)" => Some((true, false)),
                "(]" => Some((false, true)),
                _ => None,
            },
            Some(_) => None,
        };
        let Some((low_closed, high_closed)) = bounds else {
            return self
                .fault_here("the fourth operand of between is \"[]\", \"[)\", \"(]\" or \"()\"");
        };
        let typed: Vec<Typed> = (0..3).map(|at| self.operand(at)).collect();
        let Some(operands) = self.ordered(typed) else {
            return (Expr::Null, Ty::Any);
        };
        let Ok([value, low, high]) = <[Expr; 3]>::try_from(operands) else {
            return (Expr::Null, Ty::Any);
        };
        if let (Expr::Num(low), Expr::Num(high)) = (&low, &high)
            && low > high
        {
            return self.fault_here("the lower bound is above the upper bound");
        }
        let pick = |closed, inclusive, exclusive| if closed { inclusive } else { exclusive };
        let between = Between {
            value,
            low,
            high,
            low_order: pick(low_closed, Order::GreaterEqual, Order::Greater),
            high_order: pick(high_closed, Order::LessEqual, Order::Less),
        };
        (Expr::Between(Box::new(between)), Ty::Bool)
    }

    fn membership(&mut self) -> Typed {
        let (needle, haystack) = (self.operand(0), self.operand(1));
        let result = self.typed_membership(needle, haystack);
        match self.check_here(result) {
            Some(sides) => (Expr::In(Box::new(sides)), Ty::Bool),
            None => (Expr::Null, Ty::Any),
        }
    }

    fn typed_membership(&self, needle: Typed, haystack: Typed) -> Result<[Expr; 2], String> {
        let names = &*self.parser.names;
        let blank = |expr: &Expr| matches!(expr, Expr::Str(text) if text.trim().is_empty());
        if let Ty::Codes(field) = needle.1 {
            let name = &names.refs[field].name;
            return Err(format!("`{name}` is a checkbox; use in_codes"));
        }
        match haystack {
            (Expr::List(items), _) => {
                if items.is_empty() {
                    return Err("nothing is on an empty list".to_owned());
                }
                let (mut needle, ty) = needle;
                let literal_needle = needle.is_literal();
                let mut fitted = Vec::with_capacity(items.len());
                for item in items {
                    if !literal_needle && (blank(&item) || matches!(item, Expr::Null)) {
                        return Err("a blank is on no list; ask for it with is_blank".to_owned());
                    }
                    if literal_needle {
                        fitted.push(item);
                        continue;
                    }
                    let item_ty = literal_type(&item);
                    let (back, item) = typing::compared(names, (needle, ty), (item, item_ty))?;
                    needle = back;
                    fitted.push(item);
                }
                Ok([needle, Expr::List(fitted.into())])
            }
            (expr, Ty::Codes(field)) => {
                match &needle.0 {
                    Expr::Str(code) => typing::check_code(names, field, code)?,
                    Expr::Num(x) => typing::check_code(names, field, &super::number::show(*x))?,
                    _ => {}
                }
                Ok([needle.0, expr])
            }
            (_, Ty::Text) if matches!(needle.1, Ty::Num | Ty::Date | Ty::Time | Ty::Bool) => {
                Err("only text can be searched for in text".to_owned())
            }
            (expr, Ty::Text | Ty::Any | Ty::List) => {
                if blank(&needle.0) {
                    return Err("every text contains the empty text; use is_blank".to_owned());
                }
                Ok([needle.0, expr])
            }
            (_, Ty::Code(field)) => Err(format!(
                "`{}` holds one code; compare it with ==",
                names.refs[field].name
            )),
            _ => Err("`in` searches a list, a checkbox or a text".to_owned()),
        }
    }

    fn in_codes(&mut self) -> Typed {
        let (expr, ty) = self.operand(0);
        let Expr::Field(field) = expr else {
            return self.fault_here("in_codes takes a field and a list of codes");
        };
        let listed = match self.operands.get(1) {
            Some(Value::Array(items)) => items.as_slice(),
            Some(single) => std::slice::from_ref(single),
            None => &[],
        };
        let mut codes: Vec<Box<str>> = Vec::with_capacity(listed.len());
        for code in listed {
            let text = match code {
                Value::String(text) if !text.trim().is_empty() => text.trim().to_owned(),
                Value::Number(n) => n.as_f64().map(super::number::show).unwrap_or_default(),
                _ => return self.fault_here("a code is a text or a number"),
            };
            if matches!(ty, Ty::Code(_) | Ty::Codes(_)) {
                let known = typing::check_code(self.parser.names, field, &text);
                self.check_here(known);
            }
            codes.push(text.into());
        }
        if codes.is_empty() {
            return self.fault_here("no code is on an empty list");
        }
        if matches!(ty, Ty::Date | Ty::Time) {
            return self.fault_here("a date has no codes; use date_before, date_after or between");
        }
        (Expr::AnyCode(field, codes.into()), Ty::Bool)
    }

    fn arithmetic(&mut self, op: Arithmetic) -> Typed {
        let mut operands = Vec::with_capacity(self.operands.len());
        for at in 0..self.operands.len() {
            let typed = self.operand(at);
            let result = typing::as_number(self.parser.names, typed);
            operands.push(self.check_here(result).unwrap_or(Expr::Null));
        }
        (Expr::Arithmetic(op, operands.into()), Ty::Num)
    }

    fn cat(&mut self) -> Typed {
        let mut parts = Vec::with_capacity(self.operands.len());
        for at in 0..self.operands.len() {
            let (expr, ty) = self.operand(at);
            if matches!(ty, Ty::List | Ty::Codes(_) | Ty::Date | Ty::Time) {
                self.fault_here("cat joins texts, numbers and codes");
            }
            parts.push(expr);
        }
        (Expr::Cat(parts.into()), Ty::Text)
    }

    fn substr(&mut self) -> Typed {
        let (text, ty) = self.operand(0);
        if matches!(
            ty,
            Ty::List | Ty::Codes(_) | Ty::Date | Ty::Time | Ty::Bool | Ty::Null
        ) {
            return self.fault_here("substr cuts text");
        }
        let number = |at: usize| self.operands.get(at).map(Value::as_i64);
        match (number(1), number(2)) {
            (Some(Some(from)), None) => (Expr::Substr(Box::new(text), from, None), Ty::Text),
            (Some(Some(from)), Some(Some(length))) => {
                (Expr::Substr(Box::new(text), from, Some(length)), Ty::Text)
            }
            _ => self.fault_here("the places of substr are whole numbers, written out"),
        }
    }

    /// `{"var":"x"}` or `"x"`.
    fn named_field(&mut self, at: usize) -> Option<RefId> {
        let value = self.operands.get(at)?;
        if let Value::String(name) = value {
            let resolved = self.parser.names.resolve(name);
            return self.check_here(resolved);
        }
        match self.operand(at) {
            (Expr::Field(id), _) => Some(id),
            (Expr::Null, Ty::Any) => None,
            _ => {
                self.fault_here("a field is needed here: {\"var\": \"…\"} or its name");
                None
            }
        }
    }

    fn wanted(&mut self, names: &[Value], paths: Vec<String>) -> Box<[Wanted]> {
        // As in JSON Logic, a list as the first operand is the list of names.
        let (names, paths) = match names.first() {
            Some(Value::Array(inner)) => {
                let outer = paths.first().cloned().unwrap_or_default();
                let paths = (0..inner.len())
                    .map(|at| format!("{outer}[{at}]"))
                    .collect();
                (inner.as_slice(), paths)
            }
            _ => (names, paths),
        };
        let mut wanted = Vec::with_capacity(names.len());
        for (name, path) in names.iter().zip(paths) {
            let Some(written) = name.as_str() else {
                self.parser.fault(
                    &path,
                    "the name of a field must be written out, not computed",
                );
                continue;
            };
            let resolved = self.parser.names.resolve(written);
            if let Some(field) = self.parser.check(&path, resolved) {
                wanted.push(Wanted {
                    written: written.into(),
                    field,
                });
            }
        }
        wanted.into()
    }

    fn missing_some(&mut self) -> Typed {
        let (Some(least), Some(names)) = (
            self.operands.first().and_then(Value::as_u64),
            self.operands.get(1).and_then(Value::as_array),
        ) else {
            return self.fault_here("missing_some takes a whole number and a list of field names");
        };
        let least = usize::try_from(least).unwrap_or(usize::MAX);
        if least > names.len() {
            return self.fault_here("more fields are asked for than are named");
        }
        let paths = (0..names.len())
            .map(|at| format!("{}[1][{at}]", self.path))
            .collect();
        let wanted = self.wanted(names, paths);
        (Expr::MissingSome(least, wanted), Ty::List)
    }

    fn two_dates(&mut self) -> Option<Box<[Expr; 2]>> {
        let (a, b) = (self.operand(0), self.operand(1));
        let (a, b) = (
            self.check_here(typing::as_date(a)),
            self.check_here(typing::as_date(b)),
        );
        Some(Box::new([a?, b?]))
    }

    fn date_order(&mut self, order: Order) -> Typed {
        match self.two_dates() {
            Some(sides) => (Expr::Compare(order, sides), Ty::Bool),
            None => (Expr::Null, Ty::Any),
        }
    }

    fn matches(&mut self) -> Typed {
        let (text, ty) = self.operand(0);
        if matches!(ty, Ty::List | Ty::Codes(_) | Ty::Bool | Ty::Null) {
            return self.fault_here("matches looks at the text of one field");
        }
        let Some(pattern) = self.operands.get(1).and_then(Value::as_str) else {
            return self.fault_here("the pattern of matches is a text, written out");
        };
        if pattern.chars().count() > PATTERN_CHARS {
            return self.fault_here(format!(
                "the pattern is longer than {PATTERN_CHARS} characters"
            ));
        }
        let build = |pattern: &str| {
            RegexBuilder::new(pattern)
                .size_limit(PATTERN_BYTES)
                .dfa_size_limit(PATTERN_BYTES)
                .nest_limit(50)
                .build()
        };
        // Readable by itself, so that no `)` of it can end the anchored group.
        let compiled = build(pattern).and_then(|_| build(&format!("^(?:{pattern})$")));
        match compiled {
            Ok(regex) => (Expr::Matches(Box::new(text), regex), Ty::Bool),
            Err(regex::Error::CompiledTooBig(_)) => {
                self.fault_here("the pattern grows too big; use smaller repeats")
            }
            Err(error) => {
                let text = error.to_string();
                let last = text.lines().last().unwrap_or_default().trim();
                self.fault_here(format!("the pattern can't be read: {last}"))
            }
        }
    }
}

fn literal_type(expr: &Expr) -> Ty {
    match expr {
        Expr::Num(_) => Ty::Num,
        Expr::Str(_) => Ty::Text,
        Expr::Bool(_) => Ty::Bool,
        Expr::Null => Ty::Null,
        Expr::List(_) => Ty::List,
        Expr::Moment(_) | Expr::Today => Ty::Date,
        _ => Ty::Any,
    }
}
