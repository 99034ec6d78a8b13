//! Weeks as reports count them: ISO 8601, Monday to Sunday of a time zone. The year of a week is the one
//! its Thursday lies in, so the last days of December may belong to week 1, and the first of January to
//! week 53.

use std::{fmt, str::FromStr};

use chrono::{DateTime, Datelike, NaiveDate, NaiveTime, TimeDelta, Utc, Weekday};
use chrono_tz::Tz;
use serde::{Deserialize, Serialize};

use super::local_time::first_moment;

/// One week, written `2026-W53`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct IsoWeek {
    /// Always a Monday.
    monday: NaiveDate,
}

/// Why a text is no week.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` 不是周；写作 2026-W49 (no ISO week, write it like 2026-W49)")]
pub struct NoWeek(String);

impl IsoWeek {
    /// The week that is on in `zone` at `moment`.
    #[must_use]
    pub fn at(moment: DateTime<Utc>, zone: Tz) -> Self {
        Self::of(moment.with_timezone(&zone).date_naive())
    }

    /// The week a day belongs to.
    #[must_use]
    pub fn of(day: NaiveDate) -> Self {
        let back = TimeDelta::days(i64::from(day.weekday().num_days_from_monday()));
        Self {
            monday: day.checked_sub_signed(back).unwrap_or(day),
        }
    }

    /// Its first day.
    #[must_use]
    pub fn monday(self) -> NaiveDate {
        self.monday
    }

    /// Its last day.
    #[must_use]
    pub fn sunday(self) -> NaiveDate {
        self.shifted(6)
    }

    /// The week before.
    #[must_use]
    pub fn previous(self) -> Self {
        Self {
            monday: self.shifted(-7),
        }
    }

    /// The week after.
    #[must_use]
    pub fn next(self) -> Self {
        Self {
            monday: self.shifted(7),
        }
    }

    /// From its first moment in `zone` up to, but not with, the first moment of the next week.
    #[must_use]
    pub fn span(self, zone: Tz) -> (DateTime<Utc>, DateTime<Utc>) {
        let midnight = |day: NaiveDate| first_moment(day.and_time(NaiveTime::MIN), zone);
        (midnight(self.monday), midnight(self.next().monday))
    }

    fn shifted(self, days: i64) -> NaiveDate {
        self.monday
            .checked_add_signed(TimeDelta::days(days))
            .unwrap_or(self.monday)
    }
}

impl fmt::Display for IsoWeek {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let week = self.monday.iso_week();
        write!(f, "{:04}-W{:02}", week.year(), week.week())
    }
}

impl FromStr for IsoWeek {
    type Err = NoWeek;

    fn from_str(text: &str) -> Result<Self, NoWeek> {
        let digits = |text: &str, count: usize| {
            (text.len() == count && text.bytes().all(|b| b.is_ascii_digit()))
                .then(|| text.parse::<u32>().ok())
                .flatten()
        };
        let week = text.split_once("-W").and_then(|(year, week)| {
            let year = i32::try_from(digits(year, 4)?).ok()?;
            NaiveDate::from_isoywd_opt(year, digits(week, 2)?, Weekday::Mon)
        });
        week.map(|monday| Self { monday })
            .ok_or_else(|| NoWeek(text.to_owned()))
    }
}

impl TryFrom<String> for IsoWeek {
    type Error = NoWeek;

    fn try_from(text: String) -> Result<Self, NoWeek> {
        text.parse()
    }
}

impl From<IsoWeek> for String {
    fn from(week: IsoWeek) -> Self {
        week.to_string()
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        reason = "a failed expectation is the test's verdict"
    )]

    use chrono_tz::{Asia::Shanghai, UTC};
    use proptest::prelude::*;

    use super::*;

    fn day(text: &str) -> NaiveDate {
        text.parse().unwrap()
    }

    #[test]
    fn the_days_about_new_year_belong_to_the_week_of_their_thursday() {
        for no in 28..=31 {
            assert_eq!(
                IsoWeek::of(day(&format!("2026-12-{no}"))).to_string(),
                "2026-W53"
            );
        }
        for no in 1..=3 {
            assert_eq!(
                IsoWeek::of(day(&format!("2027-01-0{no}"))).to_string(),
                "2026-W53"
            );
        }
        assert_eq!(IsoWeek::of(day("2027-01-04")).to_string(), "2027-W01");
        // The end of December may be week 1 already.
        assert_eq!(IsoWeek::of(day("2025-12-29")).to_string(), "2026-W01");
    }

    #[test]
    fn a_week_begins_on_monday_morning_of_its_zone() {
        let moment: DateTime<Utc> = "2027-01-03T17:00:00Z".parse().unwrap();
        assert_eq!(IsoWeek::at(moment, Shanghai).to_string(), "2027-W01");
        assert_eq!(IsoWeek::at(moment, UTC).to_string(), "2026-W53");
        let (begin, end) = IsoWeek::at(moment, Shanghai).span(Shanghai);
        assert_eq!(begin.to_rfc3339(), "2027-01-03T16:00:00+00:00");
        assert_eq!(end.to_rfc3339(), "2027-01-10T16:00:00+00:00");
    }

    #[test]
    fn a_text_that_is_no_week_is_refused() {
        for text in [
            "2027-W53",
            "2026-W00",
            "2026-W54",
            "2026W49",
            "2026-W7",
            "26-W07",
            "2026-w49",
            "",
            "2026-W+7",
            "+026-W07",
            " 2026-W07",
            "2026-49",
        ] {
            assert!(text.parse::<IsoWeek>().is_err(), "{text}");
        }
        let week: IsoWeek = "2026-W53".parse().unwrap();
        assert_eq!(
            (week.monday(), week.sunday()),
            (day("2026-12-28"), day("2027-01-03"))
        );
        assert_eq!(
            (week.previous().to_string(), week.next().to_string()),
            ("2026-W52".to_owned(), "2027-W01".to_owned())
        );
        assert_eq!(serde_json::to_string(&week).unwrap(), "\"2026-W53\"");
        assert_eq!(
            serde_json::from_str::<IsoWeek>("\"2026-W53\"").unwrap(),
            week
        );
    }

    proptest! {
        #[test]
        fn every_moment_lies_in_the_span_of_its_week(seconds in 0..2_000_000_000_i64) {
            let moment = DateTime::from_timestamp(seconds, 0).unwrap();
            for zone in [UTC, Shanghai, chrono_tz::America::New_York] {
                let week = IsoWeek::at(moment, zone);
                let (begin, end) = week.span(zone);
                prop_assert!(begin <= moment && moment < end, "{week}");
                prop_assert_eq!(week.to_string().parse::<IsoWeek>().unwrap(), week);
                prop_assert_eq!(week.next().previous(), week);
            }
        }
    }
}
