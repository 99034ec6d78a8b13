//! The three-valued evaluator.
//!
//! Two questions are asked of an expression: its *truth* (Kleene: false ∧ unknown is false, true ∨ unknown
//! is true, an unknown condition of `if` is unknown) and its *value*. A blank is [`V::Unknown`] to both; only
//! `is_blank`, `missing`, `missing_some` and `== ""` look at it.

use std::{borrow::Cow, cell::RefCell, rc::Rc};

use super::{
    cell::Cell,
    expr::{Between, Expr, Wanted},
    frame::Frame,
    moment::{Moment, Order},
    names::{RefId, SlotKind},
    result::Reason,
    value::{self, NoAnswer, V},
};

/// Why something was unknown; kept only while a verdict is being explained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Doubt {
    pub(super) reason: Reason,
    /// `None` when no field is to blame (a division of two literals).
    pub(super) field: Option<RefId>,
}

/// Evaluates expressions at one place.
pub(super) struct Eval<'f, 'a> {
    pub(super) frame: Frame<'f, 'a>,
    today: Moment,
    doubts: Option<RefCell<Vec<Doubt>>>,
    /// `is_blank` takes what branching logic hides for filled in, see [`Eval::excuse`].
    hidden_as_filled: bool,
}

impl<'f, 'a> Eval<'f, 'a> {
    /// The fast way: no explanation.
    pub(super) fn new(frame: Frame<'f, 'a>, today: Moment) -> Self {
        Self {
            frame,
            today,
            doubts: None,
            hidden_as_filled: false,
        }
    }

    /// Why `expr` is unknown: the doubts that would have to be cleared, in reading order.
    pub(super) fn explain(&self, expr: &'a Expr) -> Vec<Doubt> {
        let explaining = Self {
            frame: self.frame,
            today: self.today,
            doubts: Some(RefCell::new(Vec::new())),
            hidden_as_filled: self.hidden_as_filled,
        };
        explaining.truth(expr);
        let mut doubts = explaining
            .doubts
            .map(RefCell::into_inner)
            .unwrap_or_default();
        distinct(&mut doubts);
        doubts
    }

    /// The same, with what branching logic hides taken for filled in by what asks for blanks.
    pub(super) fn hidden_as_filled(&self) -> Self {
        Self {
            frame: self.frame,
            today: self.today,
            doubts: None,
            hidden_as_filled: true,
        }
    }

    /// Notes why something is unknown.
    pub(super) fn doubt(&self, reason: Reason, field: Option<RefId>) {
        if let Some(doubts) = &self.doubts {
            doubts.borrow_mut().push(Doubt { reason, field });
        }
    }

    fn mark(&self) -> usize {
        self.doubts
            .as_ref()
            .map_or(0, |doubts| doubts.borrow().len())
    }

    /// Drops the doubts noted since `mark`: they turned out not to matter.
    fn forget(&self, mark: usize) {
        if let Some(doubts) = &self.doubts {
            doubts.borrow_mut().truncate(mark);
        }
    }

    /// Whether the expression holds; `None` when that is unknown.
    pub(super) fn truth(&self, expr: &'a Expr) -> Option<bool> {
        let mark = self.mark();
        let answer = match expr {
            Expr::And(items) => self.all(items, false),
            Expr::Or(items) => self.all(items, true),
            Expr::Not(inner) => self.truth(inner).map(|b| !b),
            Expr::Truth(inner) => self.truth(inner),
            Expr::If(parts) => self.branch(parts, Self::truth, || Some(false), || None),
            Expr::Equal {
                strict,
                negated,
                sides,
            } => {
                let [a, b] = sides.as_ref();
                self.equal(*strict, a, b).map(|equal| equal != *negated)
            }
            Expr::Compare(order, operands) => self.compare(*order, operands),
            Expr::Between(between) => self.between(between),
            Expr::In(sides) => {
                let [needle, haystack] = sides.as_ref();
                self.contains(needle, haystack)
            }
            Expr::AnyCode(field, codes) => self.any_code(*field, codes),
            Expr::IsBlank { field, negated } => self.is_blank(*field).map(|b| b != *negated),
            Expr::Missing(wanted) => self.missing(wanted).map(|(some, _)| some),
            Expr::MissingSome(least, wanted) => self.missing_some(*least, wanted),
            Expr::Matches(text, pattern) => {
                self.matched_text(text).map(|text| pattern.is_match(&text))
            }
            Expr::Function(function) => function.decide(self),
            _ => self.value(expr).truthy(),
        };
        if answer.is_some() {
            self.forget(mark);
        }
        answer
    }

    /// The value of the expression.
    pub(super) fn value(&self, expr: &'a Expr) -> V<'a> {
        let mark = self.mark();
        let value = match expr {
            Expr::Null => V::Null,
            Expr::Bool(b) => V::Bool(*b),
            Expr::Num(x) => V::Num(*x),
            Expr::Str(s) => V::Str(Cow::Borrowed(s)),
            Expr::Moment(moment) => V::Date(*moment),
            Expr::Clock(seconds) => V::Time(*seconds),
            Expr::Today => V::Date(self.today),
            Expr::Field(id) => self.field(*id),
            Expr::List(items) => V::List(items.iter().map(|item| self.value(item)).collect()),
            Expr::And(items) => self.last(items, false),
            Expr::Or(items) => self.last(items, true),
            Expr::If(parts) => self.branch(parts, Self::value, || V::Null, || V::Unknown),
            Expr::Arithmetic(op, operands) => self.arithmetic(*op, operands),
            Expr::Cat(parts) => self.cat(parts),
            Expr::Substr(text, from, length) => self.substr(text, *from, *length),
            Expr::DaysBetween(sides) => self.days_between(sides),
            Expr::AgeAt(sides) => self.age_at(sides),
            Expr::Missing(wanted) => match self.missing(wanted) {
                Some((_, names)) => names,
                None => V::Unknown,
            },
            Expr::MissingSome(_, wanted) => match self.truth(expr) {
                None => V::Unknown,
                Some(false) => V::List(Rc::from([])),
                Some(true) => self.missing(wanted).map_or(V::Unknown, |(_, names)| names),
            },
            _ => match self.truth(expr) {
                Some(b) => V::Bool(b),
                None => V::Unknown,
            },
        };
        // A list is known with an unknown among its items; whoever asks for them needs the reason.
        if value != V::Unknown && !matches!(expr, Expr::List(_)) {
            self.forget(mark);
        }
        value
    }

    pub(super) fn field(&self, id: RefId) -> V<'a> {
        match self.frame.cell(id).known() {
            Ok(value) => value,
            Err(reason) => {
                self.doubt(reason, Some(id));
                V::Unknown
            }
        }
    }

    /// Kleene's `and` (`decider` false) and `or` (`decider` true).
    fn all(&self, items: &'a [Expr], decider: bool) -> Option<bool> {
        let mut answer = Some(!decider);
        for item in items {
            match self.truth(item) {
                Some(b) if b == decider => return Some(decider),
                Some(_) => {}
                None => answer = None,
            }
        }
        answer
    }

    /// The value of `and`/`or`: the first that decides, else the last. An unknown before the decider leaves
    /// open which value it would have been.
    fn last(&self, items: &'a [Expr], decider: bool) -> V<'a> {
        let mut last = V::Null;
        for item in items {
            last = self.value(item);
            match last.truthy() {
                Some(b) if b == decider => return last,
                Some(_) => {}
                None => return V::Unknown,
            }
        }
        last
    }

    fn branch<T>(
        &self,
        parts: &'a [Expr],
        ask: impl Fn(&Self, &'a Expr) -> T,
        otherwise: impl Fn() -> T,
        unknown: impl Fn() -> T,
    ) -> T {
        let mut parts = parts.iter();
        while let Some(condition) = parts.next() {
            let Some(then) = parts.next() else {
                return ask(self, condition);
            };
            match self.truth(condition) {
                Some(true) => return ask(self, then),
                Some(false) => {}
                None => return unknown(),
            }
        }
        otherwise()
    }

    fn compare(&self, order: Order, operands: &'a [Expr]) -> Option<bool> {
        let mut answer = Some(true);
        for pair in operands.windows(2) {
            if let [a, b] = pair {
                match self.ordered(order, a, b) {
                    Some(false) => return Some(false),
                    Some(true) => {}
                    None => answer = None,
                }
            }
        }
        answer
    }

    fn between(&self, between: &'a Between) -> Option<bool> {
        let low = self.ordered(between.low_order, &between.value, &between.low);
        let high = self.ordered(between.high_order, &between.value, &between.high);
        match (low, high) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (Some(true), Some(true)) => Some(true),
            _ => None,
        }
    }

    fn ordered(&self, order: Order, a: &'a Expr, b: &'a Expr) -> Option<bool> {
        let (x, y) = (self.value(a), self.value(b));
        self.settle(value::compare(order, &x, &y), &[a, b])
    }

    fn equal(&self, strict: bool, a: &'a Expr, b: &'a Expr) -> Option<bool> {
        let (x, y) = (self.value(a), self.value(b));
        self.settle(value::equal(strict, &x, &y), &[a, b])
    }

    /// An answer, or unknown with the fields of `involved` noted as the reason.
    fn settle(&self, answer: Result<bool, NoAnswer>, involved: &[&'a Expr]) -> Option<bool> {
        match answer {
            Ok(b) => Some(b),
            Err(NoAnswer::Unknown) => None,
            Err(no_answer) => {
                self.blame(no_answer == NoAnswer::Partial, involved);
                None
            }
        }
    }

    /// Notes that the values of `involved` are known but give no answer.
    pub(super) fn blame(&self, partial: bool, involved: &[&'a Expr]) {
        if self.doubts.is_none() {
            return;
        }
        let mut ids = Vec::new();
        involved.iter().for_each(|expr| expr.fields(&mut ids));
        let fields = self.frame.fields();
        let is_partial = |id: &RefId| match self.frame.cell(*id) {
            Cell::Known(value) => value.date().is_some_and(Moment::is_partial),
            _ => false,
        };
        if partial && ids.iter().any(is_partial) {
            ids.retain(is_partial);
        }
        if ids.is_empty() {
            self.doubt(Reason::Undefined, None);
        }
        for id in ids {
            let untyped = matches!(
                fields.slots[fields.refs[id].slot].kind,
                SlotKind::Untyped { .. }
            );
            let reason = match (partial, untyped) {
                (true, _) => Reason::PartialDate,
                (false, true) => Reason::Invalid,
                (false, false) => Reason::Undefined,
            };
            self.doubt(reason, Some(id));
        }
    }

    fn contains(&self, needle_expr: &'a Expr, haystack_expr: &'a Expr) -> Option<bool> {
        let mark = self.mark();
        let (needle, haystack) = (self.value(needle_expr), self.value(haystack_expr));
        let answer = match (&needle, &haystack) {
            (V::Unknown, _) | (_, V::Unknown) => Err(NoAnswer::Unknown),
            // A literal on a list of literals is JSON against JSON; data is compared by value.
            (_, V::List(items)) => {
                let strict = needle_expr.is_literal();
                any(items.iter().map(|item| value::equal(strict, &needle, item)))
            }
            (_, V::Codes(codes)) => any(codes
                .iter()
                .map(|code| value::equal(false, &V::Code(code), &needle))),
            (V::Str(_) | V::Loose(_) | V::Code(_), V::Str(_) | V::Loose(_)) => {
                match (needle.to_text(), haystack.to_text()) {
                    (Some(needle), Some(haystack)) => Ok(haystack.contains(needle.as_ref())),
                    _ => Err(NoAnswer::Undefined),
                }
            }
            _ => Err(NoAnswer::Undefined),
        };
        let involved = [needle_expr, haystack_expr];
        // A list of the data may hold what is no value, which nobody has complained of yet.
        if answer == Err(NoAnswer::Unknown) && self.mark() == mark {
            self.blame(false, &involved);
        }
        self.settle(answer, &involved)
    }

    fn any_code(&self, field: RefId, codes: &'a [Box<str>]) -> Option<bool> {
        let value = self.field(field);
        let on_list = |value: &V<'_>| {
            any(codes
                .iter()
                .map(|code| value::equal(false, value, &V::Str(Cow::Borrowed(code)))))
        };
        let answer = match &value {
            V::Unknown => Err(NoAnswer::Unknown),
            V::Codes(checked) => any(checked.iter().map(|code| on_list(&V::Code(code)))),
            V::List(items) => any(items.iter().map(on_list)),
            scalar => on_list(scalar),
        };
        if answer.is_err() && value != V::Unknown {
            self.doubt(Reason::Invalid, Some(field));
        }
        answer.ok()
    }

    /// Whether the field is blank. Unknown on a form nobody opened: its blanks are not yet answers. Unknown
    /// of what can't be read: `n.d.` in a date field is neither a date nor a blank.
    pub(super) fn is_blank(&self, id: RefId) -> Option<bool> {
        let reason = match self.frame.cell(id) {
            Cell::Known(V::Codes(codes)) if codes.is_empty() => {
                return Some(!(self.hidden_as_filled && self.frame.is_hidden(id)));
            }
            Cell::Known(V::List(items)) if items.is_empty() => return Some(true),
            // A JSON list of nothing but nulls and objects.
            Cell::Known(V::List(items)) if items.iter().all(|item| *item == V::Unknown) => {
                Reason::Invalid
            }
            Cell::Known(_) => return Some(false),
            Cell::Invalid => Reason::Invalid,
            Cell::Blank | Cell::Coded(_) => {
                if self.frame.is_unopened(id) {
                    Reason::Missing
                } else {
                    return Some(!(self.hidden_as_filled && self.frame.is_hidden(id)));
                }
            }
            Cell::PartlyBlank | Cell::NotOpened => Reason::Missing,
            Cell::NotExported => Reason::NotExported,
            Cell::Ambiguous => Reason::AmbiguousEvent,
        };
        self.doubt(reason, Some(id));
        None
    }

    /// Whether any of the fields is blank, and the names of those that are. The names are unknown when one
    /// field is; that one is missing may be known all the same.
    fn missing(&self, wanted: &'a [Wanted]) -> Option<(bool, V<'a>)> {
        let mut names = Vec::new();
        let mut unknown = false;
        for field in wanted {
            match self.is_blank(field.field) {
                Some(true) => names.push(V::Str(Cow::Borrowed(&*field.written))),
                Some(false) => {}
                None => unknown = true,
            }
        }
        if unknown && names.is_empty() {
            return None;
        }
        let some = !names.is_empty();
        let names = if unknown {
            V::Unknown
        } else {
            V::List(names.into())
        };
        Some((some, names))
    }

    /// True when fewer than `least` of the fields are filled in.
    fn missing_some(&self, least: usize, wanted: &'a [Wanted]) -> Option<bool> {
        let (mut filled, mut unknown) = (0, 0);
        for field in wanted {
            match self.is_blank(field.field) {
                Some(false) => filled += 1,
                Some(true) => {}
                None => unknown += 1,
            }
        }
        if filled >= least {
            Some(false)
        } else if filled + unknown < least {
            Some(true)
        } else {
            None
        }
    }
}

/// Keeps the first doubt of each field.
pub(super) fn distinct(doubts: &mut Vec<Doubt>) {
    let mut seen = Vec::with_capacity(doubts.len());
    doubts.retain(|doubt| {
        let new = !seen.contains(&doubt.field);
        seen.push(doubt.field);
        new
    });
}

/// Kleene's `or` over answers.
fn any(answers: impl Iterator<Item = Result<bool, NoAnswer>>) -> Result<bool, NoAnswer> {
    let mut result = Ok(false);
    for answer in answers {
        match answer {
            Ok(true) => return Ok(true),
            Ok(false) => {}
            Err(no_answer) => result = Err(no_answer),
        }
    }
    result
}
