//! One operation: its operands compiled and typed.

use serde_json::Value;

use super::{
    expr::{Arithmetic, Expr},
    moment::Order,
    parse::Parser,
    typing::{self, Ty, Typed},
};

/// One operation being compiled.
pub(super) struct Operation<'p, 'n, 's, 'v> {
    pub(super) parser: &'p mut Parser<'n, 's>,
    pub(super) operator: &'static str,
    pub(super) operands: &'v [Value],
    pub(super) path: String,
    pub(super) paths: Vec<String>,
    pub(super) depth: usize,
}

impl Operation<'_, '_, '_, '_> {
    pub(super) fn compile(mut self) -> Typed {
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

    pub(super) fn fault_here(&mut self, what: impl Into<String>) -> Typed {
        self.parser.fault(&self.path, what)
    }

    pub(super) fn check_here<T>(&mut self, result: Result<T, String>) -> Option<T> {
        self.parser.check(&self.path, result)
    }

    pub(super) fn operand(&mut self, at: usize) -> Typed {
        match (self.operands.get(at), self.paths.get(at)) {
            (Some(value), Some(path)) => self.parser.expr(value, path, self.depth),
            _ => (Expr::Null, Ty::Null),
        }
    }

    pub(super) fn condition(&mut self, at: usize) -> Expr {
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
    pub(super) fn ordered(&mut self, typed: Vec<Typed>) -> Option<Vec<Expr>> {
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
            (expr, Ty::Code(field)) if typing::is_event_name(names, field) => {
                if let Expr::Str(part) = &needle.0
                    && !names
                        .layout
                        .event_names()
                        .iter()
                        .any(|name| name.contains(&**part))
                {
                    return Err(format!(
                        "no event of the project has \"{part}\" in its name"
                    ));
                }
                if blank(&needle.0) {
                    return Err("every text contains the empty text; use is_blank".to_owned());
                }
                if matches!(needle.1, Ty::Num | Ty::Date | Ty::Time | Ty::Bool) {
                    return Err("only text can be searched for in text".to_owned());
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
