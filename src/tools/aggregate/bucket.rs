//! The values of one group, and what becomes of them.

use serde_json::{Map, Value, json};

use super::{Op, plan::Plan};
use crate::{
    engines::rules::{Reading, Seen},
    tools::show,
};

/// Most subjects that are named for a smallest or largest value.
const MOST_NAMED: usize = 3;

/// The values of one group.
#[derive(Debug, Default)]
pub(super) struct Bucket {
    n: usize,
    /// Subjects with a value; their rows come one after the other.
    records: usize,
    last: Option<String>,
    /// Numbers, or seconds since 1970 of dates, or since midnight of times; with whose they are.
    values: Vec<(f64, String)>,
    is_date: bool,
    is_time: bool,
    blank: usize,
    hidden: usize,
    not_opened: usize,
    coded: usize,
    invalid: usize,
    partial: usize,
    untold: usize,
}

impl Bucket {
    pub(super) fn add(&mut self, record: &str, seen: Option<&Seen<'_>>, plan: &Plan) {
        let Some(seen) = seen else {
            return;
        };
        let value = match &seen.reading {
            Reading::Number(x) => *x,
            Reading::Date { .. } if show::is_partial(&seen.reading) && plan.op != Op::Count => {
                self.partial += 1;
                return;
            }
            #[allow(
                clippy::cast_precision_loss,
                reason = "seconds since 1970 are far below 2^52"
            )]
            Reading::Date { first, .. } => {
                self.is_date = true;
                first.and_utc().timestamp() as f64
            }
            Reading::Time(seconds) => {
                self.is_time = true;
                f64::from(*seconds)
            }
            Reading::Code(_) | Reading::Codes(_) | Reading::Text(_) => 0.0,
            Reading::Blank => return self.blank += 1,
            Reading::Hidden => return self.hidden += 1,
            Reading::NotOpened => return self.not_opened += 1,
            Reading::Coded(_) => return self.coded += 1,
            Reading::Invalid => return self.invalid += 1,
            Reading::NotExported | Reading::Ambiguous => return self.untold += 1,
        };
        self.n += 1;
        if self.last.as_deref() != Some(record) {
            self.records += 1;
            self.last = Some(record.to_owned());
        }
        if plan.op != Op::Count {
            self.values.push((value, record.to_owned()));
        }
    }

    pub(super) fn n(&self) -> usize {
        self.n
    }

    /// The figure with what it rests on. `whole`: of how many values a count is a part.
    pub(super) fn told(&self, plan: &Plan, whole: Option<usize>) -> Map<String, Value> {
        let mut told = Map::new();
        let mut put = |name: &str, value: Value| told.insert(name.to_owned(), value);
        put("n", json!(self.n));
        put("records", json!(self.records));
        put("missing", json!(self.missing()));
        if self.invalid > 0 {
            put("invalid", json!(self.invalid));
        }
        if self.partial > 0 {
            put("partial_dates", json!(self.partial));
        }
        put("value", self.figure(plan));
        #[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
        if plan.op == Op::Count
            && let Some(whole) = whole.filter(|whole| *whole > 0 && self.n > 0)
        {
            put("percent", number(self.n as f64 * 100.0 / whole as f64, 1));
        }
        let whose = self.extreme_of(plan);
        if !whose.is_empty() {
            put("of", json!(whose));
        }
        told
    }

    fn missing(&self) -> usize {
        self.blank + self.hidden + self.not_opened + self.coded + self.untold
    }

    fn figure(&self, plan: &Plan) -> Value {
        let values = || self.values.iter().map(|(value, _)| *value);
        #[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
        let n = self.n as f64;
        if plan.op == Op::Count {
            return json!(self.n);
        }
        if self.values.is_empty() {
            return Value::Null;
        }
        match plan.op {
            Op::Count => json!(self.n),
            Op::Sum => number(values().sum(), 6),
            Op::Mean => number(values().sum::<f64>() / n, 4),
            Op::Median => {
                let mut sorted: Vec<f64> = values().collect();
                sorted.sort_by(f64::total_cmp);
                let at = |at: usize| sorted.get(at).copied().unwrap_or_default();
                let half = sorted.len() / 2;
                number(
                    match sorted.len() % 2 {
                        1 => at(half),
                        _ => f64::midpoint(at(half.saturating_sub(1)), at(half)),
                    },
                    4,
                )
            }
            Op::Min | Op::Max => self
                .extreme(plan.op)
                .map_or(Value::Null, |value| self.shown(value, plan)),
        }
    }

    fn extreme(&self, op: Op) -> Option<f64> {
        let values = self.values.iter().map(|(value, _)| *value);
        match op {
            Op::Min => values.min_by(f64::total_cmp),
            Op::Max => values.max_by(f64::total_cmp),
            _ => None,
        }
    }

    /// Whose the smallest or largest value is.
    pub(super) fn extreme_of(&self, plan: &Plan) -> Vec<String> {
        let Some(extreme) = self.extreme(plan.op) else {
            return Vec::new();
        };
        let mut whose: Vec<String> = Vec::new();
        for (value, record) in &self.values {
            if value.total_cmp(&extreme).is_eq() && !whose.contains(record) {
                whose.push(record.clone());
            }
            if whose.len() == MOST_NAMED {
                break;
            }
        }
        whose
    }

    #[allow(
        clippy::cast_possible_truncation,
        reason = "made from whole seconds of a calendar date"
    )]
    fn shown(&self, value: f64, plan: &Plan) -> Value {
        if self.is_time {
            let seconds = value as i64;
            return json!(format!("{:02}:{:02}", seconds / 3600, seconds % 3600 / 60));
        }
        if !self.is_date {
            return number(value, 6);
        }
        let format = match plan.with_time {
            true => "%Y-%m-%d %H:%M",
            false => "%Y-%m-%d",
        };
        chrono::DateTime::from_timestamp(value as i64, 0)
            .map_or(Value::Null, |at| json!(at.format(format).to_string()))
    }

    /// Why values are missing; nothing when none are.
    pub(super) fn note(&self) -> Option<String> {
        let parts: Vec<String> = [
            (self.blank, "空白"),
            (self.not_opened, "表单未填写"),
            (self.hidden, "不适用（分支逻辑隐藏）"),
            (self.coded, "缺失码"),
            (self.invalid, "值不符合字段类型"),
            (self.partial, "日期不完整"),
            (self.untold, "无法读取"),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, why)| format!("{count} 个{why}"))
        .collect();
        (!parts.is_empty()).then(|| format!("未计入的值：{}", parts.join("，")))
    }
}

/// A number with at most so many decimals, whole ones without any.
fn number(x: f64, decimals: i32) -> Value {
    let scale = 10f64.powi(decimals);
    let rounded = match (x * scale).round() / scale {
        rounded if rounded.is_finite() => rounded,
        _ => x,
    };
    #[allow(clippy::cast_possible_truncation, reason = "whole and below 2^53")]
    if rounded.fract() == 0.0 && rounded.abs() < 9e15 {
        json!(rounded as i64)
    } else {
        json!(rounded)
    }
}
