//! Where the next claim begins. Usually behind the last one; from the first row again every so often,
//! since rows before it may have become due.
//!
//! While some connection holds a snapshot for minutes, the rows taken since can't be vacuumed, and a look
//! from the first row has to pass all of them. How often it is done therefore depends on what it took.

use std::time::Duration;

use tokio::time::Instant;

use super::claim::Bound;

/// Rows before the bound are looked for this often while there is enough behind it.
const BOUND_AGE: Duration = Duration::from_millis(250);
/// A look from the first row that took less is as good as free.
const CHEAP: Duration = Duration::from_millis(5);
/// A dearer one is not repeated before this many times its own time.
const REST: u32 = 10;

/// A claimer's place in its queue.
pub(super) struct Cursor {
    /// Where the last claim that found anything ended.
    last: Bound,
    /// The next claim begins at the first row.
    again: bool,
    /// When the last look from the first row began, and what it took.
    looked: Instant,
    took: Duration,
}

impl Cursor {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            last: Bound::START,
            again: true,
            looked: now,
            took: Duration::ZERO,
        }
    }

    /// From where to claim next.
    pub(super) fn next(&self, now: Instant) -> Bound {
        let is_old = now.duration_since(self.looked) >= BOUND_AGE.max(self.rest());
        if self.again || is_old {
            Bound::START
        } else {
            self.last
        }
    }

    /// A claim from `from`, asked for at `asked`, ended at `to`. One that found nothing leaves the place
    /// as it was: there is nothing to claim before it either.
    pub(super) fn claimed(&mut self, from: Bound, to: Bound, asked: Instant, now: Instant) {
        if !to.is_start() {
            self.last = to;
        }
        if from.is_start() {
            self.again = false;
            self.looked = asked;
            self.took = now.duration_since(asked);
        }
    }

    /// Nothing is left behind the bound: goes back to the first row, or, while that is too dear, stays
    /// and says for how long. Jobs that become due meanwhile stand behind the bound, but for those of
    /// a more urgent priority or an earlier due time.
    pub(super) fn go_back(&mut self, now: Instant) -> Option<Duration> {
        let wait = self.rest().saturating_sub(now.duration_since(self.looked));
        self.again = wait.is_zero();
        (!self.again).then_some(wait)
    }

    fn rest(&self) -> Duration {
        if self.took < CHEAP {
            Duration::ZERO
        } else {
            self.took.saturating_mul(REST)
        }
    }
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, Utc};

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn later() -> Bound {
        Bound::after(0, DateTime::<Utc>::UNIX_EPOCH, 7)
    }

    /// A cursor whose look from the first row at `begin` took `took`.
    fn after_a_look_of(took: Duration, begin: Instant) -> Cursor {
        let mut cursor = Cursor::new(begin);
        assert!(cursor.next(begin).is_start());
        cursor.claimed(Bound::START, later(), begin, begin + took);
        cursor
    }

    #[test]
    fn claims_go_on_behind_the_last_one_and_from_the_first_row_every_quarter_second() {
        let begin = Instant::now();
        let cursor = after_a_look_of(MS, begin);
        assert!(!cursor.next(begin + 249 * MS).is_start());
        assert!(cursor.next(begin + 250 * MS).is_start());
    }

    #[test]
    fn a_queue_that_ran_out_is_looked_at_from_the_first_row_at_once_while_that_is_cheap() {
        let begin = Instant::now();
        let mut cursor = after_a_look_of(MS, begin);
        assert_eq!(cursor.go_back(begin + MS), None);
        assert!(cursor.next(begin + MS).is_start());
    }

    #[test]
    fn a_dear_look_from_the_first_row_is_not_repeated_before_ten_times_its_time() {
        let begin = Instant::now();
        let mut cursor = after_a_look_of(100 * MS, begin);
        assert!(!cursor.next(begin + 999 * MS).is_start());
        assert_eq!(cursor.go_back(begin + 400 * MS), Some(600 * MS));
        assert!(!cursor.next(begin + 400 * MS).is_start());
        assert_eq!(cursor.go_back(begin + 1000 * MS), None);
        assert!(cursor.next(begin + 1000 * MS).is_start());
    }

    #[test]
    fn claims_behind_the_bound_say_nothing_about_the_look_from_the_first_row() {
        let begin = Instant::now();
        let mut cursor = after_a_look_of(100 * MS, begin);
        let from = cursor.next(begin + 200 * MS);
        cursor.claimed(from, from, begin + 200 * MS, begin + 201 * MS);
        assert_eq!(cursor.go_back(begin + 400 * MS), Some(600 * MS));
    }

    #[test]
    fn a_dear_look_that_found_nothing_keeps_the_place() {
        let begin = Instant::now();
        let mut cursor = after_a_look_of(100 * MS, begin);
        let second = begin + 2000 * MS;
        assert!(cursor.next(second).is_start());
        cursor.claimed(Bound::START, Bound::START, second, second + 100 * MS);
        assert!(!cursor.next(second + 101 * MS).is_start());
    }
}
