//! What operators on numbers, texts and dates compute.

use std::borrow::Cow;

use super::{
    eval::Eval,
    expr::{Arithmetic, Expr},
    moment::Moment,
    value::V,
};

impl<'a> Eval<'_, 'a> {
    pub(super) fn arithmetic(&self, op: Arithmetic, operands: &'a [Expr]) -> V<'a> {
        let mut total: Option<f64> = None;
        let (mut unknown, mut undefined) = (false, false);
        for operand in operands {
            let value = self.value(operand);
            if value == V::Unknown {
                unknown = true;
                continue;
            }
            let Some(x) = value.number() else {
                undefined = true;
                self.blame(matches!(value, V::Span(..)), &[operand]);
                continue;
            };
            total = Some(match total {
                None if operands.len() == 1 && op == Arithmetic::Subtract => -x,
                None => x,
                Some(total) => match op {
                    Arithmetic::Add => total + x,
                    Arithmetic::Subtract => total - x,
                    Arithmetic::Multiply => total * x,
                    Arithmetic::Divide => total / x,
                    Arithmetic::Remainder => total % x,
                    Arithmetic::Min => total.min(x),
                    Arithmetic::Max => total.max(x),
                },
            });
        }
        match total {
            _ if unknown || undefined => V::Unknown,
            Some(x) if x.is_finite() => V::Num(x),
            _ => {
                let involved: Vec<&Expr> = operands.iter().collect();
                self.blame(false, &involved);
                V::Unknown
            }
        }
    }

    pub(super) fn cat(&self, parts: &'a [Expr]) -> V<'a> {
        let mut text = String::new();
        let mut unknown = false;
        for part in parts {
            let value = self.value(part);
            match value.to_text() {
                Some(piece) => text.push_str(&piece),
                None => {
                    unknown = true;
                    if value != V::Unknown {
                        self.blame(matches!(value, V::Span(..)), &[part]);
                    }
                }
            }
        }
        if unknown {
            V::Unknown
        } else {
            V::Str(Cow::Owned(text))
        }
    }

    /// Counted in characters; negative counts from the end, as in JSON Logic.
    pub(super) fn substr(&self, expr: &'a Expr, from: i64, length: Option<i64>) -> V<'a> {
        let value = self.value(expr);
        let Some(text) = value.to_text() else {
            if value != V::Unknown {
                self.blame(false, &[expr]);
            }
            return V::Unknown;
        };
        let chars: Vec<char> = text.chars().collect();
        let count = i64::try_from(chars.len()).unwrap_or(i64::MAX);
        let start = if from < 0 {
            count.saturating_add(from).max(0)
        } else {
            from.min(count)
        };
        let end = match length {
            None => count,
            Some(n) if n < 0 => count.saturating_add(n),
            Some(n) => start.saturating_add(n).min(count),
        };
        let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
        let part = range.and_then(|(start, end)| chars.get(start..end));
        V::Str(Cow::Owned(part.unwrap_or_default().iter().collect()))
    }

    /// Both sides as dates; `None` with the reason noted.
    fn dates(&self, sides: &'a [Expr; 2]) -> Option<(Moment, Moment)> {
        let [a, b] = sides;
        let (x, y) = (self.value(a), self.value(b));
        for (expr, value) in [(a, &x), (b, &y)] {
            if *value != V::Unknown && value.date().is_none() {
                self.blame(false, &[expr]);
            }
        }
        x.date().zip(y.date())
    }

    pub(super) fn days_between(&self, sides: &'a [Expr; 2]) -> V<'a> {
        let Some((from, to)) = self.dates(sides) else {
            return V::Unknown;
        };
        let (fewest, most) = from.days_until(to);
        span(fewest as f64, most as f64)
    }

    pub(super) fn age_at(&self, sides: &'a [Expr; 2]) -> V<'a> {
        let Some((born, at)) = self.dates(sides) else {
            return V::Unknown;
        };
        let (fewest, most) = born.years_until(at);
        // Nobody is born after the day his age is asked for: a negative age would pass an upper limit.
        if most < 0 {
            self.blame(false, &[&sides[0], &sides[1]]);
            return V::Unknown;
        }
        span(f64::from(fewest.max(0)), f64::from(most))
    }

    pub(super) fn matched_text(&self, expr: &'a Expr) -> Option<String> {
        if let Expr::Field(id) = expr {
            return match self.field(*id) {
                V::Unknown => None,
                // The text of a list is JSON, cut short; nobody wrote a pattern for that.
                V::List(_) | V::Codes(_) => {
                    self.blame(false, &[expr]);
                    None
                }
                _ => self.frame.text(*id),
            };
        }
        let value = self.value(expr);
        let text = value.to_text().map(Cow::into_owned);
        if text.is_none() && value != V::Unknown {
            self.blame(false, &[expr]);
        }
        text
    }
}

fn span<'a>(lo: f64, hi: f64) -> V<'a> {
    if lo == hi {
        V::Num(lo)
    } else {
        V::Span(lo, hi)
    }
}
