//! From the clock on a wall to a moment, where summer time makes some times of day miss and others
//! come twice.

use chrono::{DateTime, LocalResult, NaiveDateTime, TimeDelta, TimeZone, Utc};
use chrono_tz::{GapInfo, Tz};

/// The first moment at which clocks in `zone` show `local` or, where it is skipped, a later time: the
/// moment itself on most days, the first of the two where a clock is put back, the end of the gap where
/// it is put forward. A later `local` never gives an earlier moment.
#[must_use]
pub fn first_moment(local: NaiveDateTime, zone: Tz) -> DateTime<Utc> {
    match zone.from_local_datetime(&local) {
        LocalResult::Single(moment) | LocalResult::Ambiguous(moment, _) => moment.to_utc(),
        LocalResult::None => GapInfo::new(&local, &zone)
            .and_then(|gap| gap.end)
            .map_or_else(
                // Past the end of the zone's tables there are no gaps; a day later is no gap's length away.
                || {
                    zone.from_utc_datetime(&(local + TimeDelta::days(1)))
                        .to_utc()
                },
                |end| end.to_utc(),
            ),
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        reason = "a failed expectation is the test's verdict"
    )]

    use chrono::NaiveDate;
    use chrono_tz::{
        America::{New_York, Sao_Paulo},
        Asia::Shanghai,
        Australia::Lord_Howe,
        Pacific::Apia,
    };
    use proptest::prelude::*;

    use super::*;

    fn local(text: &str) -> NaiveDateTime {
        text.parse().unwrap()
    }

    #[test]
    fn a_skipped_time_is_the_end_of_its_gap_and_a_repeated_one_its_first_coming() {
        for (zone, wall, moment) in [
            (Shanghai, "2026-12-07T09:00:00", "2026-12-07T01:00:00Z"),
            (New_York, "2026-03-08T02:30:00", "2026-03-08T07:00:00Z"),
            (New_York, "2026-03-08T03:00:00", "2026-03-08T07:00:00Z"),
            (New_York, "2026-11-01T01:30:00", "2026-11-01T05:30:00Z"),
            (New_York, "2026-11-01T02:00:00", "2026-11-01T07:00:00Z"),
            // China had summer time in 1986 to 1991.
            (Shanghai, "1986-05-04T02:30:00", "1986-05-03T18:00:00Z"),
            (Shanghai, "1986-09-14T01:30:00", "1986-09-13T16:30:00Z"),
            // A gap at midnight, half an hour of it, and a whole day that Samoa left out.
            (Sao_Paulo, "2018-11-04T00:00:00", "2018-11-04T03:00:00Z"),
            (Lord_Howe, "2026-10-04T02:10:00", "2026-10-03T15:30:00Z"),
            (Apia, "2011-12-30T12:00:00", "2011-12-30T10:00:00Z"),
        ] {
            let expected: DateTime<Utc> = moment.parse().unwrap();
            assert_eq!(first_moment(local(wall), zone), expected, "{zone} {wall}");
        }
    }

    proptest! {
        #[test]
        fn a_later_time_of_day_is_never_an_earlier_moment(
            zone in prop::sample::select(vec![New_York, Shanghai, Sao_Paulo, Lord_Howe, Apia]),
            minute in 0..30_i64 * 366 * 1440,
            more in 0..3000_i64,
        ) {
            let start = NaiveDate::from_ymd_opt(1985, 1, 1).unwrap().and_hms_opt(0, 0, 0).unwrap();
            let earlier = start + TimeDelta::minutes(minute);
            let later = earlier + TimeDelta::minutes(more);
            prop_assert!(first_moment(earlier, zone) <= first_moment(later, zone));
            prop_assert!(first_moment(earlier, zone).with_timezone(&zone).naive_local() >= earlier);
        }
    }
}
