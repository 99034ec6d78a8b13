//! The operators JSON Logic doesn't have and a clinical rule needs: ranges, code lists, blanks, dates,
//! patterns.

use regex::RegexBuilder;
use serde_json::Value;

use super::{
    expr::{Between, Expr, Wanted},
    moment::Order,
    names::RefId,
    number,
    operation::Operation,
    typing::{self, Ty, Typed},
};

/// Most memory a compiled pattern may take.
const PATTERN_BYTES: usize = 256 * 1024;

/// Longest pattern, in characters.
const PATTERN_CHARS: usize = 1_000;

impl Operation<'_, '_, '_, '_> {
    pub(super) fn between(&mut self) -> Typed {
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

    pub(super) fn in_codes(&mut self) -> Typed {
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
                Value::Number(n) => n.as_f64().map(number::show).unwrap_or_default(),
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

    /// `{"var":"x"}` or `"x"`.
    pub(super) fn named_field(&mut self, at: usize) -> Option<RefId> {
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

    pub(super) fn wanted(&mut self, names: &[Value], paths: Vec<String>) -> Box<[Wanted]> {
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

    pub(super) fn missing_some(&mut self) -> Typed {
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

    pub(super) fn two_dates(&mut self) -> Option<Box<[Expr; 2]>> {
        let (a, b) = (self.operand(0), self.operand(1));
        let (a, b) = (
            self.check_here(typing::as_date(a)),
            self.check_here(typing::as_date(b)),
        );
        Some(Box::new([a?, b?]))
    }

    pub(super) fn date_order(&mut self, order: Order) -> Typed {
        match self.two_dates() {
            Some(sides) => (Expr::Compare(order, sides), Ty::Bool),
            None => (Expr::Null, Ty::Any),
        }
    }

    pub(super) fn matches(&mut self) -> Typed {
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
