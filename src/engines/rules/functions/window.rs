//! The days a visit may take place on. Bounds are inclusive; the anchor is day 0, or day 1 in studies without
//! a day 0. Days are counted after the anchor, as the fewest and most that partial dates leave open.

use crate::types::project::Visit;

/// The days a visit may take place on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Days after the anchor, inclusive.
    earliest: i64,
    latest: i64,
    anchor_is_day_one: bool,
}

impl Window {
    /// The visit's window; `None` when it is planned on the day 0 that its study doesn't have.
    #[must_use]
    pub fn of(visit: &Visit) -> Option<Self> {
        let planned = i64::from(visit.day);
        if visit.anchor_is_day_one && planned == 0 {
            return None;
        }
        let after_anchor = if visit.anchor_is_day_one && planned > 0 {
            planned - 1
        } else {
            planned
        };
        Some(Self {
            earliest: after_anchor - i64::from(visit.minus),
            latest: after_anchor + i64::from(visit.plus),
            anchor_is_day_one: visit.anchor_is_day_one,
        })
    }

    /// Whether the visit lies in the window; `None` when the dates leave that open.
    #[must_use]
    pub fn holds(&self, (fewest, most): (i64, i64)) -> Option<bool> {
        if fewest >= self.earliest && most <= self.latest {
            Some(true)
        } else if most < self.earliest || fewest > self.latest {
            Some(false)
        } else {
            None
        }
    }

    /// Days out of the window, at least; 0 when the visit may lie in it.
    #[must_use]
    pub fn deviation(&self, (fewest, most): (i64, i64)) -> i64 {
        (self.earliest - most).max(fewest - self.latest).max(0)
    }

    /// The study day of a number of days after the anchor.
    #[must_use]
    pub fn study_day(&self, after_anchor: i64) -> i64 {
        if self.anchor_is_day_one && after_anchor >= 0 {
            after_anchor + 1
        } else {
            after_anchor
        }
    }

    /// Days after the anchor, first and last.
    #[must_use]
    pub fn days(&self) -> (i64, i64) {
        (self.earliest, self.latest)
    }

    /// `Day 25 - Day 31`
    #[must_use]
    pub fn range(&self) -> String {
        format!(
            "Day {} - Day {}",
            self.study_day(self.earliest),
            self.study_day(self.latest)
        )
    }
}
