//! The calendar on a virtual clock: summer time, weekdays, and a brute-force reading beside croner's.

#![allow(
    clippy::unwrap_used,
    reason = "a failed expectation is the test's verdict"
)]

use chrono::{Datelike, TimeDelta, Timelike, Weekday};
use chrono_tz::{
    America::{New_York, Sao_Paulo},
    Asia::Shanghai,
    Australia::Lord_Howe,
    Europe::London,
    Pacific::Apia,
};
use proptest::prelude::*;

use super::*;

fn at(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

/// The times of `written` in a span given in UTC, as local clocks show them.
fn times(written: &str, zone: Tz, after: &str, upto: &str) -> Vec<String> {
    Expression::parse(written)
        .unwrap()
        .between(at(after), at(upto), zone)
        .map(|time| {
            time.with_timezone(&zone)
                .format("%m-%d %H:%M %z")
                .to_string()
        })
        .collect()
}

#[test]
fn monday_is_one_and_sunday_is_zero_or_seven() {
    for (written, weekday) in [
        ("0 9 * * 1", Weekday::Mon),
        ("0 9 * * 6", Weekday::Sat),
        ("0 9 * * 0", Weekday::Sun),
        ("0 9 * * 7", Weekday::Sun),
    ] {
        let next = Expression::parse(written)
            .unwrap()
            .next_after(at("2026-01-01T00:00:00Z"), Shanghai);
        assert_eq!(
            next.unwrap().with_timezone(&Shanghai).weekday(),
            weekday,
            "{written}"
        );
    }
}

#[test]
fn an_expression_that_cannot_be_meant_is_refused() {
    for written in [
        "0 0 9 * * 1",
        "@weekly",
        "60 9 * * 1",
        "0 9 * * 8",
        "0 9 30 2 *",
        "",
        "每周一",
        "0 9 * *",
        "* * * * * *",
    ] {
        assert!(Expression::parse(written).is_err(), "{written}");
    }
    for written in [
        "*/15 8-18 * * 1-5",
        "0 0 29 2 *",
        "0 9 * * MON",
        "0 9 L * *",
    ] {
        assert!(Expression::parse(written).is_ok(), "{written}");
    }
}

#[test]
fn a_time_that_the_clock_skips_comes_once_at_the_end_of_the_gap() {
    // New York, 2026-03-08: 02:00 EST is 03:00 EDT.
    let (after, upto) = ("2026-03-07T12:00:00Z", "2026-03-09T12:00:00Z");
    assert_eq!(
        times("30 2 * * *", New_York, after, upto),
        ["03-08 03:00 -0400", "03-09 02:30 -0400"]
    );
    // Several times in one gap fall on one moment, and that is once.
    assert_eq!(
        times("0,30 2 * * *", New_York, after, "2026-03-08T12:00:00Z"),
        ["03-08 03:00 -0400"]
    );
    assert_eq!(
        times("0 2,3 * * *", New_York, after, "2026-03-08T12:00:00Z"),
        ["03-08 03:00 -0400"]
    );
    // The weekday is the one the calendar on the wall shows: the gap was on a Sunday.
    assert_eq!(
        times("30 2 * * 7", New_York, after, upto),
        ["03-08 03:00 -0400"]
    );
    assert_eq!(
        times("30 2 * * 6", New_York, after, upto),
        Vec::<String>::new()
    );
    // A gap at midnight does not lose the day.
    assert_eq!(
        times(
            "0 0 * * *",
            Sao_Paulo,
            "2018-11-03T12:00:00Z",
            "2018-11-05T12:00:00Z"
        ),
        ["11-04 01:00 -0200", "11-05 00:00 -0200"]
    );
    assert_eq!(
        times(
            "15 2 * * *",
            Lord_Howe,
            "2026-10-03T00:00:00Z",
            "2026-10-04T00:00:00Z"
        ),
        ["10-04 02:30 +1100"]
    );
    // Samoa left a whole day out: what was due on it comes when the next one begins.
    assert_eq!(
        times(
            "0 12 * * *",
            Apia,
            "2011-12-29T00:00:00Z",
            "2012-01-01T00:00:00Z"
        ),
        [
            "12-29 12:00 -1000",
            "12-31 00:00 +1400",
            "12-31 12:00 +1400",
            "01-01 12:00 +1400"
        ]
    );
}

#[test]
fn a_time_that_the_clock_repeats_comes_once() {
    // New York, 2026-11-01: 02:00 EDT is 01:00 EST.
    let (after, upto) = ("2026-10-31T12:00:00Z", "2026-11-02T12:00:00Z");
    for written in ["30 1 * * *", "30 1 * * 0,1"] {
        assert_eq!(
            times(written, New_York, after, upto),
            ["11-01 01:30 -0400", "11-02 01:30 -0500"],
            "{written}"
        );
    }
    // More than one hour or minute named: still each once.
    assert_eq!(
        times("0,30 1,13 * * *", New_York, after, "2026-11-01T20:00:00Z"),
        [
            "10-31 13:00 -0400",
            "10-31 13:30 -0400",
            "11-01 01:00 -0400",
            "11-01 01:30 -0400",
            "11-01 13:00 -0500",
            "11-01 13:30 -0500"
        ]
    );
    // Asked from within the second coming: it has been.
    assert_eq!(
        times(
            "30 1 * * *",
            New_York,
            "2026-11-01T06:10:00Z",
            "2026-11-02T00:00:00Z"
        ),
        Vec::<String>::new()
    );
    assert_eq!(
        times(
            "30 1 * * *",
            London,
            "2026-10-24T12:00:00Z",
            "2026-10-25T12:00:00Z"
        ),
        ["10-25 01:30 +0100"]
    );
}

#[test]
fn an_expression_with_open_hours_runs_with_the_clock() {
    assert_eq!(
        times(
            "*/30 * * * *",
            New_York,
            "2026-11-01T04:30:00Z",
            "2026-11-01T07:00:00Z"
        ),
        [
            "11-01 01:00 -0400",
            "11-01 01:30 -0400",
            "11-01 01:00 -0500",
            "11-01 01:30 -0500",
            "11-01 02:00 -0500"
        ]
    );
    assert_eq!(
        times(
            "*/30 * * * *",
            New_York,
            "2026-03-08T06:00:00Z",
            "2026-03-08T07:30:00Z"
        ),
        [
            "03-08 01:30 -0500",
            "03-08 03:00 -0400",
            "03-08 03:30 -0400"
        ]
    );
    assert_eq!(
        times(
            "30 * * * *",
            New_York,
            "2026-03-08T06:00:00Z",
            "2026-03-08T07:30:00Z"
        ),
        ["03-08 01:30 -0500", "03-08 03:30 -0400"]
    );
}

#[test]
fn china_had_summer_time_from_1986_to_1991_and_has_none_now() {
    // The first began on 1986-05-04 at 02:00, the last ended on 1991-09-15 at 02:00.
    assert_eq!(
        times(
            "30 2 * * *",
            Shanghai,
            "1986-05-03T00:00:00Z",
            "1986-05-05T00:00:00Z"
        ),
        ["05-04 03:00 +0900", "05-05 02:30 +0900"]
    );
    assert_eq!(
        times(
            "30 1 * * *",
            Shanghai,
            "1991-09-14T00:00:00Z",
            "1991-09-16T00:00:00Z"
        ),
        ["09-15 01:30 +0900", "09-16 01:30 +0800"]
    );
    for year in 1986..=1991 {
        let days = times(
            "30 2 * * *",
            Shanghai,
            &format!("{year}-01-01T00:00:00Z"),
            &format!("{}-01-01T00:00:00Z", year + 1),
        );
        let in_year = if year % 4 == 0 { 366 } else { 365 };
        assert_eq!(days.len(), in_year, "{year}");
        assert_eq!(
            days.iter().filter(|time| time.contains("03:00")).count(),
            1,
            "{year}"
        );
    }
    let days = times(
        "30 2 * * *",
        Shanghai,
        "2026-01-01T00:00:00Z",
        "2027-01-01T00:00:00Z",
    );
    assert_eq!(days.len(), 365);
    assert!(days.iter().all(|time| time.ends_with("02:30 +0800")));
}

#[test]
fn monday_morning_in_shanghai_is_monday_though_it_is_sunday_in_utc() {
    let start = at("2026-11-29T12:00:00Z");
    for minute in 0..8 * 60 {
        let written = format!("{} {} * * 1", minute % 60, minute / 60);
        let next = Expression::parse(&written)
            .unwrap()
            .next_after(start, Shanghai)
            .unwrap();
        assert_eq!(next.weekday(), Weekday::Sun, "{written}");
        let local = next.with_timezone(&Shanghai);
        assert_eq!(local.date_naive().to_string(), "2026-11-30", "{written}");
        assert_eq!(
            u32::try_from(minute).unwrap(),
            local.hour() * 60 + local.minute(),
            "{written}"
        );
    }
    // Five in the morning of Monday, week after week, over the turn of the year.
    assert_eq!(
        times(
            "0 5 * * 1",
            Shanghai,
            "2026-12-20T00:00:00Z",
            "2027-01-11T00:00:00Z"
        ),
        [
            "12-21 05:00 +0800",
            "12-28 05:00 +0800",
            "01-04 05:00 +0800",
            "01-11 05:00 +0800"
        ]
    );
}

#[test]
fn seconds_and_fractions_of_the_start_do_not_lose_or_double_a_time() {
    let daily = Expression::parse("0 9 * * *").unwrap();
    for (after, next) in [
        ("2026-12-01T00:59:59.999Z", "2026-12-01T01:00:00Z"),
        ("2026-12-01T01:00:00Z", "2026-12-02T01:00:00Z"),
        ("2026-12-01T01:00:00.001Z", "2026-12-02T01:00:00Z"),
    ] {
        assert_eq!(
            daily.next_after(at(after), Shanghai),
            Some(at(next)),
            "{after}"
        );
    }
}

/// One field of plain numbers and steps, as text and as the values it stands for.
fn field(least: u32, most: u32) -> impl Strategy<Value = (String, Vec<u32>)> {
    prop_oneof![
        Just(("*".to_owned(), (least..=most).collect())),
        (2..=most.min(30)).prop_map(move |step| (
            format!("*/{step}"),
            (least..=most)
                .step_by(usize::try_from(step).unwrap())
                .collect()
        )),
        prop::collection::btree_set(least..=most, 1..4).prop_map(|set| {
            let values: Vec<u32> = set.into_iter().collect();
            let text: Vec<String> = values.iter().map(ToString::to_string).collect();
            (text.join(","), values)
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Three days about every kind of change, minute by minute, read without croner.
    #[test]
    fn every_time_is_found_once_and_in_order(
        (minutes, minute_set) in field(0, 59),
        (hours, hour_set) in field(0, 23),
        (weekdays, weekday_set) in field(0, 6),
        (zone, day) in prop::sample::select(vec![
            (New_York, "2026-03-08"), (New_York, "2026-11-01"), (Shanghai, "1986-05-04"),
            (Shanghai, "1986-09-14"), (Shanghai, "2026-12-31"), (Sao_Paulo, "2018-11-04"),
            (Sao_Paulo, "2018-02-18"), (Lord_Howe, "2026-10-04"), (Lord_Howe, "2026-04-05"),
        ]),
    ) {
        let written = format!("{minutes} {hours} * * {weekdays}");
        let expression = Expression::parse(&written).unwrap();
        let after = at(&format!("{day}T00:00:00Z")) - TimeDelta::hours(36);
        let upto = after + TimeDelta::hours(72);
        let matches = |local: chrono::NaiveDateTime| {
            minute_set.contains(&local.minute())
                && hour_set.contains(&local.hour())
                && weekday_set.contains(&local.weekday().num_days_from_sunday())
        };
        let mut expected: Vec<DateTime<Utc>> = if hours.contains('*') {
            // Every minute that really was.
            (1..=72 * 60).map(|minute| after + TimeDelta::minutes(minute))
                .filter(|time| matches(time.with_timezone(&zone).naive_local()))
                .collect()
        } else {
            // Every minute that a clock without summer time would show.
            let start = after.naive_utc() - TimeDelta::hours(26);
            (0..=124 * 60).map(|minute| start + TimeDelta::minutes(minute))
                .filter(|local| matches(*local))
                .map(|local| first_moment(local, zone))
                .filter(|time| *time > after && *time <= upto)
                .collect()
        };
        expected.dedup();
        let found: Vec<DateTime<Utc>> = expression.between(after, upto, zone).collect();
        prop_assert!(found.is_sorted_by(|a, b| a < b));
        prop_assert_eq!(found, expected, "{} in {}", written, zone);
    }

    /// However a span is cut, the parts hold what the whole holds.
    #[test]
    fn a_span_cut_in_two_loses_and_doubles_nothing(
        written in prop::sample::select(vec!["30 2 * * *", "*/20 1-3 * * *", "0 * * * *", "0,30 1,13 * * 0"]),
        start in 1_700_000_000..1_900_000_000_i64,
        first in 0..400_000_i64,
        second in 0..400_000_i64,
    ) {
        let expression = Expression::parse(written).unwrap();
        let moment = |seconds| DateTime::from_timestamp(seconds, 0).unwrap();
        let (a, b, c) = (moment(start), moment(start + first), moment(start + first + second));
        let whole: Vec<_> = expression.between(a, c, New_York).collect();
        let parts: Vec<_> = expression.between(a, b, New_York).chain(expression.between(b, c, New_York)).collect();
        prop_assert_eq!(whole, parts);
    }
}
