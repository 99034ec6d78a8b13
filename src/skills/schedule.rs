//! Schedules: five-field cron in the project's time zone, Monday = 1, Sunday = 0 or 7.

use chrono::{TimeZone, Utc};
use croner::{
    Cron,
    parser::{CronParser, Seconds, Year},
};

/// Parses a schedule.
///
/// # Errors
/// What is wrong, as one sentence: not five fields, a field out of range, a date that never comes.
pub fn parse(written: &str) -> Result<Cron, String> {
    let fields = written.split_whitespace().count();
    if fields != 5 {
        return Err(format!("`{written}` 有 {fields} 段，应为 5 段"));
    }
    CronParser::builder()
        .seconds(Seconds::Disallowed)
        .year(Year::Disallowed)
        .build()
        .parse(written)
        .map_err(|error| format!("`{written}` 读不懂：{error}"))
}

/// Checks a schedule, including that it fires at all.
///
/// # Errors
/// As [`parse`].
pub fn check(written: &str) -> Result<(), String> {
    let cron = parse(written)?;
    // Any start shows whether a date exists at all: the leap-year cycle is searched through.
    let start = Utc
        .with_ymd_and_hms(2024, 1, 1, 0, 0, 0)
        .single()
        .unwrap_or_default();
    cron.find_next_occurrence(&start, true)
        .map(|_| ())
        .map_err(|_| format!("`{written}` 永远不会到来 never fires"))
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        reason = "a failed expectation is the test's verdict"
    )]

    use chrono::{Datelike, TimeZone, Utc, Weekday};

    use super::{check, parse};

    #[test]
    fn monday_is_one_and_sunday_is_zero_or_seven() {
        let start = Utc.with_ymd_and_hms(2026, 1, 1, 0, 0, 0).unwrap();
        for (written, weekday) in [
            ("0 9 * * 1", Weekday::Mon),
            ("0 9 * * 0", Weekday::Sun),
            ("0 9 * * 7", Weekday::Sun),
        ] {
            let next = parse(written).unwrap().find_next_occurrence(&start, true);
            assert_eq!(next.unwrap().weekday(), weekday, "{written}");
        }
    }

    #[test]
    fn a_schedule_that_cannot_be_meant_is_refused() {
        for written in [
            "0 0 9 * * 1",
            "@weekly",
            "60 9 * * 1",
            "0 9 * * 8",
            "0 9 30 2 *",
            "",
            "每周一",
        ] {
            assert!(check(written).is_err(), "{written}");
        }
        assert_eq!(check("*/15 8-18 * * 1-5"), Ok(()));
        assert_eq!(check("0 0 29 2 *"), Ok(()));
    }
}
