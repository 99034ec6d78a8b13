//! When a schedule is due: five-field cron on the clocks of a time zone, Monday = 1, Sunday = 0 or 7.
//!
//! The fields are croner's to read and to search; what summer time does to them is decided here, by
//! whether the expression names its hours:
//!
//! - **hours are named** (`30 2 * * *`, `0,30 1,13 * * 1`): each of these times of day comes once a day. One
//!   that the clock skips comes at the end of the gap; one that it repeats comes the first time.
//!   (croner by itself does so for a single hour and minute only.)
//! - **hours are open** (`*/15 * * * *`, `0 */2 * * *`): it runs with the clock, so in a repeated hour it runs
//!   through both, and in a skipped hour it does not run: there was no such hour.

use chrono::{DateTime, TimeZone, Utc};
use chrono_tz::Tz;
use croner::{
    Cron,
    parser::{CronParser, Seconds, Year},
};

use super::local_time::first_moment;

/// A cron expression that comes at some time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expression {
    cron: Cron,
    names_hours: bool,
}

impl Expression {
    /// Reads an expression.
    ///
    /// # Errors
    /// What is wrong, as one sentence: not five fields, a field out of range, a date that never comes.
    pub fn parse(written: &str) -> Result<Self, String> {
        let fields: Vec<&str> = written.split_whitespace().collect();
        let [_, hours, ..] = fields.as_slice() else {
            return Err(format!("`{written}` 有 {} 段，应为 5 段", fields.len()));
        };
        if fields.len() != 5 {
            return Err(format!("`{written}` 有 {} 段，应为 5 段", fields.len()));
        }
        let cron = CronParser::builder()
            .seconds(Seconds::Disallowed)
            .year(Year::Disallowed)
            .build()
            .parse(written)
            .map_err(|error| format!("`{written}` 读不懂：{error}"))?;
        let expression = Self {
            cron,
            names_hours: !hours.contains(['*', '?']),
        };
        // Any start shows whether a date exists at all: the leap-year cycle is searched through.
        let start = DateTime::from_timestamp(1_704_067_200, 0).unwrap_or_default();
        expression
            .next_after(start, Tz::UTC)
            .map(|_| expression)
            .ok_or_else(|| format!("`{written}` 永远不会到来 never fires"))
    }

    /// The first time after `after`; `None` when there is none for thousands of years.
    #[must_use]
    pub fn next_after(&self, after: DateTime<Utc>, zone: Tz) -> Option<DateTime<Utc>> {
        let start = zone.from_utc_datetime(&after.naive_utc());
        if !self.names_hours {
            return self
                .cron
                .find_next_occurrence(&start, false)
                .ok()
                .map(|time| time.to_utc());
        }
        let mut local = start.naive_local();
        loop {
            local = self.cron.find_next_occurrence(&local, false).ok()?;
            let time = first_moment(local, zone);
            // Behind us: in the second coming of a repeated hour, all of its times have been.
            if time > after {
                return Some(time);
            }
        }
    }

    /// The times in `(after, upto]`, in order, each once.
    pub fn between(
        &self,
        after: DateTime<Utc>,
        upto: DateTime<Utc>,
        zone: Tz,
    ) -> impl Iterator<Item = DateTime<Utc>> {
        std::iter::successors(self.next_after(after, zone), move |last| {
            self.next_after(*last, zone)
        })
        .take_while(move |time| *time <= upto)
    }
}

#[cfg(test)]
mod tests;
