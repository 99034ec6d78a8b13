//! Calendar dates as the span of instants they may mean: `2026-11` is a month, `2026-11-05` a day.
//!
//! A comparison answers only when every completion of a partial date gives the same answer. A date and a
//! date with time are compared by day: a consent on the day of the visit is not after it.

use chrono::{Datelike, NaiveDate, NaiveDateTime, NaiveTime};

/// The earliest and latest instant a written date may mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moment {
    lo: NaiveDateTime,
    hi: NaiveDateTime,
    /// Written without a time of day, so only whole days can be compared.
    day_only: bool,
}

/// The four orderings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// `<`
    Less,
    /// `<=`
    LessEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterEqual,
}

impl Order {
    /// Decides for values that are totally ordered.
    pub(super) fn holds<T: PartialOrd>(self, a: T, b: T) -> bool {
        match self {
            Self::Less => a < b,
            Self::LessEqual => a <= b,
            Self::Greater => a > b,
            Self::GreaterEqual => a >= b,
        }
    }
}

impl Moment {
    /// A whole day.
    pub(super) fn day(day: NaiveDate) -> Self {
        Self::days(day, day)
    }

    fn days(lo: NaiveDate, hi: NaiveDate) -> Self {
        Self {
            lo: lo.and_time(NaiveTime::MIN),
            hi: hi.and_time(NaiveTime::MIN),
            day_only: true,
        }
    }

    /// Reads `YYYY-MM-DD`, or the partial `YYYY-MM` and `YYYY`; zero-padded, nothing else.
    pub(super) fn parse_date(text: &str) -> Option<Self> {
        let year = digits(text, 0, 4)?;
        let year = i32::try_from(year).ok()?;
        match text.len() {
            4 => Some(Self::days(
                NaiveDate::from_ymd_opt(year, 1, 1)?,
                NaiveDate::from_ymd_opt(year, 12, 31)?,
            )),
            7 => {
                dash(text, 4)?;
                let month = digits(text, 5, 7)?;
                let first = NaiveDate::from_ymd_opt(year, month, 1)?;
                let next = first.checked_add_months(chrono::Months::new(1))?;
                Some(Self::days(first, next.pred_opt()?))
            }
            10 => {
                dash(text, 4)?;
                dash(text, 7)?;
                let day = NaiveDate::from_ymd_opt(year, digits(text, 5, 7)?, digits(text, 8, 10)?)?;
                Some(Self::day(day))
            }
            _ => None,
        }
    }

    /// Reads `YYYY-MM-DD HH:MM[:SS]` (also with a `T`), or a date, whose time is then unknown.
    pub(super) fn parse_datetime(text: &str) -> Option<Self> {
        if text.len() <= 10 {
            let date = Self::parse_date(text)?;
            return Some(Self {
                lo: date.lo,
                hi: date.hi.date().and_hms_opt(23, 59, 59)?,
                day_only: false,
            });
        }
        let (date, time) = (text.get(..10)?, text.get(11..)?);
        if !matches!(text.as_bytes().get(10), Some(b' ' | b'T')) {
            return None;
        }
        let day = Self::parse_date(date)?.lo.date();
        let seconds = parse_time(time)?;
        let at = day.and_time(NaiveTime::from_num_seconds_from_midnight_opt(seconds, 0)?);
        Some(Self {
            lo: at,
            hi: at,
            day_only: false,
        })
    }

    /// Reads a date or a date with time by its shape, for data without a dictionary.
    pub(super) fn parse_any(text: &str) -> Option<Self> {
        if text.len() <= 10 {
            Self::parse_date(text)
        } else {
            Self::parse_datetime(text)
        }
    }

    /// Whether it names one day.
    pub(super) fn is_whole_day(self) -> bool {
        self.lo.date() == self.hi.date()
    }

    /// Whether it could be completed in more than one way.
    pub(super) fn is_partial(self) -> bool {
        self.lo != self.hi
    }

    /// First and last moment it may mean.
    pub(super) fn bounds(self) -> (NaiveDateTime, NaiveDateTime) {
        (self.lo, self.hi)
    }

    /// First and last day it may mean.
    pub(super) fn day_range(self) -> (NaiveDate, NaiveDate) {
        (self.lo.date(), self.hi.date())
    }

    fn aligned(self, other: Self) -> (Self, Self) {
        if self.day_only || other.day_only {
            let cut = |m: Self| Self::days(m.lo.date(), m.hi.date());
            (cut(self), cut(other))
        } else {
            (self, other)
        }
    }

    /// Decides an ordering; `None` when completions disagree.
    pub(super) fn compare(self, order: Order, other: Self) -> Option<bool> {
        let (a, b) = self.aligned(other);
        let (always, never) = match order {
            Order::Less => (a.hi < b.lo, a.lo >= b.hi),
            Order::LessEqual => (a.hi <= b.lo, a.lo > b.hi),
            Order::Greater => (a.lo > b.hi, a.hi <= b.lo),
            Order::GreaterEqual => (a.lo >= b.hi, a.hi < b.lo),
        };
        match (always, never) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        }
    }

    /// Decides equality; `None` when completions disagree.
    pub(super) fn equals(self, other: Self) -> Option<bool> {
        let (a, b) = self.aligned(other);
        if a.lo == a.hi && b.lo == b.hi {
            Some(a.lo == b.lo)
        } else if a.hi < b.lo || b.hi < a.lo {
            Some(false)
        } else {
            None
        }
    }

    /// Fewest and most days from `self` to `to` (negative when `to` is earlier).
    pub(super) fn days_until(self, to: Self) -> (i64, i64) {
        let (from_lo, from_hi) = self.day_range();
        let (to_lo, to_hi) = to.day_range();
        ((to_lo - from_hi).num_days(), (to_hi - from_lo).num_days())
    }

    /// Completed years of a person born at `self` on the day `at`: fewest and most. Born on 29 February,
    /// a person completes a year on 1 March of a common year.
    pub(super) fn years_until(self, at: Self) -> (i32, i32) {
        let years = |born: NaiveDate, at: NaiveDate| {
            let before_birthday = (at.month(), at.day()) < (born.month(), born.day());
            at.year() - born.year() - i32::from(before_birthday)
        };
        let (born_lo, born_hi) = self.day_range();
        let (at_lo, at_hi) = at.day_range();
        (years(born_hi, at_lo), years(born_lo, at_hi))
    }
}

/// Seconds since midnight of `HH:MM[:SS]`, zero-padded.
pub(super) fn parse_time(text: &str) -> Option<u32> {
    let colon = |at: usize| (text.as_bytes().get(at) == Some(&b':')).then_some(());
    let (hours, minutes) = match text.len() {
        5 | 8 => {
            colon(2)?;
            (digits(text, 0, 2)?, digits(text, 3, 5)?)
        }
        _ => return None,
    };
    let seconds = if text.len() == 8 {
        colon(5)?;
        digits(text, 6, 8)?
    } else {
        0
    };
    (hours < 24 && minutes < 60 && seconds < 60).then_some(hours * 3600 + minutes * 60 + seconds)
}

fn digits(text: &str, from: usize, to: usize) -> Option<u32> {
    let part = text.get(from..to)?;
    if part.bytes().all(|b| b.is_ascii_digit()) {
        part.parse().ok()
    } else {
        None
    }
}

fn dash(text: &str, at: usize) -> Option<()> {
    (text.as_bytes().get(at) == Some(&b'-')).then_some(())
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        reason = "a failed expectation is the test's verdict"
    )]
    use super::*;

    fn date(text: &str) -> Moment {
        Moment::parse_any(text).unwrap()
    }

    #[test]
    fn only_iso_dates_are_dates() {
        for text in [
            "2026-1-5",
            "05/01/2026",
            "2026/01/05",
            "20260105",
            "2026-13",
            "2026-02-30",
            "2026-00-10",
            "26-01-05",
            "2026-01-05 ",
            "2026-1",
            "UN-JAN-2026",
            "2026-01-UN",
            "-026-01-01",
            "+2026",
            "2026-01-0５",
            "",
            "2026-01-05 8:00",
            "2026-01-05 24:00",
            "2026-01-05 08:60",
            "2026-01-05T08:00Z",
            "2026-01-05_08:00",
        ] {
            assert_eq!(Moment::parse_any(text), None, "{text}");
        }
        assert!(Moment::parse_any("2024-02-29").is_some());
        assert!(Moment::parse_any("2026-01-05 08:00").is_some());
        assert!(Moment::parse_any("2026-01-05T08:00:59").is_some());
    }

    #[test]
    fn a_partial_date_decides_only_what_every_completion_agrees_on() {
        let cases = [
            ("2026-11", Order::Less, "2026-12-05", Some(true)),
            ("2026-12", Order::Less, "2026-12-05", None),
            ("2026-12", Order::LessEqual, "2026-12-31", Some(true)),
            ("2026-12", Order::Less, "2026-12-31", None),
            ("2027", Order::Less, "2026-12-05", Some(false)),
            ("2026", Order::GreaterEqual, "2026-01-01", Some(true)),
            ("2026", Order::Greater, "2026-01-01", None),
            ("2026-12", Order::Greater, "2026-12-31", Some(false)),
            ("2026-12", Order::LessEqual, "2026-12", None),
        ];
        for (a, order, b, expected) in cases {
            assert_eq!(
                date(a).compare(order, date(b)),
                expected,
                "{a} {order:?} {b}"
            );
        }
        assert_eq!(date("2026-11").equals(date("2026-12-05")), Some(false));
        assert_eq!(date("2026-12").equals(date("2026-12-05")), None);
        assert_eq!(date("2026-12").equals(date("2026-12")), None);
    }

    #[test]
    fn a_date_and_a_time_of_that_day_are_the_same_day() {
        let (day, at) = (date("2026-01-05"), date("2026-01-05 08:30"));
        assert_eq!(day.compare(Order::LessEqual, at), Some(true));
        assert_eq!(day.compare(Order::Less, at), Some(false));
        assert_eq!(day.equals(at), Some(true));
        let unknown_time = Moment::parse_datetime("2026-01-05").unwrap();
        assert_eq!(unknown_time.compare(Order::Less, at), None);
        assert_eq!(
            unknown_time.compare(Order::Less, date("2026-01-06 00:00")),
            Some(true)
        );
    }

    #[test]
    fn ages_complete_on_the_birthday() {
        let age = |born: &str, at: &str| date(born).years_until(date(at));
        assert_eq!(age("2008-12-01", "2026-11-30"), (17, 17));
        assert_eq!(age("2008-11-30", "2026-11-30"), (18, 18));
        assert_eq!(age("2008-02-29", "2026-02-28"), (17, 17));
        assert_eq!(age("2008-02-29", "2026-03-01"), (18, 18));
        assert_eq!(age("2008", "2026-11-30"), (17, 18));
        assert_eq!(age("2008-10", "2026-11-30"), (18, 18));
    }

    #[test]
    fn times_are_padded() {
        assert_eq!(parse_time("08:30"), Some(30_600));
        assert_eq!(parse_time("23:59:59"), Some(86_399));
        for text in [
            "8:30", "24:00", "08:60", "08-30", "0830", "08:30:6", "08:30 ",
        ] {
            assert_eq!(parse_time(text), None, "{text}");
        }
    }
}
