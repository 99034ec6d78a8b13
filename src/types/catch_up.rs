//! What becomes of ticks that nobody was there for.

use std::{fmt, str::FromStr, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;
use serde::Serialize;

use super::cron::Expression;

/// A tick seen no later than this is on time: schedulers restart, databases fail over.
pub const ON_TIME: Duration = Duration::from_secs(5 * 60);
/// The widest window.
pub const MAX_WINDOW: Duration = Duration::from_secs(31 * 24 * 3600);
/// The narrowest: one narrower than what is on time anyway would say nothing.
pub const MIN_WINDOW: Duration = ON_TIME;
/// Most ticks settled at once; after a long silence the rest follows in the next round.
const MOST_AT_ONCE: usize = 1000;

/// Which of the late ticks still fire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// None: what is late is missed.
    None,
    /// The last one.
    #[default]
    Last,
    /// Every one.
    All,
}

impl Policy {
    /// The names people write.
    pub const NAMES: [&str; 3] = ["none", "last", "all"];

    /// The stored and written name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Last => "last",
            Self::All => "all",
        }
    }

    /// The policy of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        [Self::None, Self::Last, Self::All]
            .into_iter()
            .find(|policy| policy.as_str() == name)
    }
}

/// How late a tick may be and still fire; written `90m`, `24h`, `7d`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window(Duration);

impl Window {
    /// As long as this, if it is a length a window may have.
    #[must_use]
    pub fn new(length: Duration) -> Option<Self> {
        (MIN_WINDOW..=MAX_WINDOW)
            .contains(&length)
            .then_some(Self(length))
    }

    /// Whole seconds, as stored.
    #[must_use]
    pub fn seconds(self) -> i32 {
        i32::try_from(self.0.as_secs()).unwrap_or(i32::MAX)
    }
}

impl Default for Window {
    fn default() -> Self {
        Self(Duration::from_secs(24 * 3600))
    }
}

impl FromStr for Window {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused =
            || format!("`{text}` 应写作 30m、24h 或 7d，从 5m 到 31d (a length from 5m to 31d)");
        let unit = text.chars().last().ok_or_else(refused)?;
        let seconds = match unit {
            'm' => 60,
            'h' => 3600,
            'd' => 24 * 3600,
            _ => return Err(refused()),
        };
        let number = text.strip_suffix(unit).unwrap_or_default();
        if !number.bytes().all(|b| b.is_ascii_digit()) {
            return Err(refused());
        }
        let number: u64 = number.parse().map_err(|_| refused())?;
        Self::new(Duration::from_secs(number.saturating_mul(seconds))).ok_or_else(refused)
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_secs() {
            s if s % (24 * 3600) == 0 && s > 24 * 3600 => write!(f, "{}d", s / (24 * 3600)),
            s if s % 3600 == 0 => write!(f, "{}h", s / 3600),
            s => write!(f, "{}m", s / 60),
        }
    }
}

/// A policy and how far back it reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CatchUp {
    /// Which late ticks fire.
    pub policy: Policy,
    /// How late they may be.
    pub window: Window,
}

impl CatchUp {
    fn reach(self) -> Duration {
        match self.policy {
            Policy::None => ON_TIME,
            Policy::Last | Policy::All => self.window.0,
        }
    }
}

/// What to do about a schedule that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Ticks to fire, in order, and whether each is late.
    pub fire: Vec<(DateTime<Utc>, bool)>,
    /// Ticks nobody will fire any more, in order.
    pub missed: Vec<DateTime<Utc>>,
    /// When to look again: in the future, or, after a very long silence, still in the past.
    pub next: Option<DateTime<Utc>>,
}

/// Decides about the ticks from `due` (the next one that was promised, not after `now`) up to `now`.
/// Every one of them is fired or missed, none is both.
#[must_use]
pub fn plan(
    expression: &Expression,
    zone: Tz,
    due: DateTime<Utc>,
    now: DateTime<Utc>,
    catch_up: CatchUp,
) -> Plan {
    let mut ticks: Vec<DateTime<Utc>> = std::iter::once(due)
        .chain(expression.between(due, now, zone))
        .take(MOST_AT_ONCE + 1)
        .collect();
    let next = if ticks.len() > MOST_AT_ONCE {
        ticks.pop()
    } else {
        let last = ticks.last().copied().unwrap_or(due);
        expression.next_after(last, zone)
    };
    let is_the_last = |at: usize| at + 1 == ticks.len() && next.is_none_or(|next| next > now);
    let mut plan = Plan {
        fire: Vec::new(),
        missed: Vec::new(),
        next,
    };
    for (at, tick) in ticks.iter().enumerate() {
        let age = (now - *tick)
            .max(TimeDelta::zero())
            .to_std()
            .unwrap_or_default();
        let is_within = age <= catch_up.reach();
        if is_within && (catch_up.policy == Policy::All || is_the_last(at)) {
            plan.fire.push((*tick, age > ON_TIME));
        } else {
            plan.missed.push(*tick);
        }
    }
    plan
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        reason = "a failed expectation is the test's verdict"
    )]

    use chrono_tz::Asia::Shanghai;
    use proptest::prelude::*;

    use super::*;

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    fn catch_up(policy: Policy, window: &str) -> CatchUp {
        CatchUp {
            policy,
            window: window.parse().unwrap(),
        }
    }

    /// Daily at 09:00 in Shanghai, due on the first; fired and missed days.
    fn down_until(now: &str, catch_up: CatchUp) -> (Vec<String>, Vec<String>) {
        let daily = Expression::parse("0 9 * * *").unwrap();
        let plan = plan(
            &daily,
            Shanghai,
            at("2026-12-01T01:00:00Z"),
            at(now),
            catch_up,
        );
        assert!(plan.next.unwrap() > at(now));
        let days =
            |times: &[DateTime<Utc>]| times.iter().map(|t| t.format("%d").to_string()).collect();
        let fired: Vec<DateTime<Utc>> = plan.fire.iter().map(|(time, _)| *time).collect();
        (days(&fired), days(&plan.missed))
    }

    #[test]
    fn after_three_missed_ticks_each_policy_does_what_it_says() {
        let now = "2026-12-03T04:00:00Z";
        for (policy, window, fired, missed) in [
            (Policy::None, "24h", vec![], vec!["01", "02", "03"]),
            (Policy::Last, "24h", vec!["03"], vec!["01", "02"]),
            (Policy::Last, "2h", vec![], vec!["01", "02", "03"]),
            (Policy::All, "7d", vec!["01", "02", "03"], vec![]),
            (Policy::All, "30h", vec!["02", "03"], vec!["01"]),
        ] {
            let (f, m) = down_until(now, catch_up(policy, window));
            assert_eq!(
                (f, m),
                (
                    fired.iter().map(|s| (*s).to_owned()).collect(),
                    missed.iter().map(|s| (*s).to_owned()).collect()
                ),
                "{policy:?} {window}"
            );
        }
    }

    #[test]
    fn a_tick_that_is_on_time_fires_under_every_policy() {
        for policy in [Policy::None, Policy::Last, Policy::All] {
            for now in ["2026-12-01T01:00:00Z", "2026-12-01T01:05:00Z"] {
                let (fired, missed) = down_until(now, catch_up(policy, "5m"));
                assert_eq!(
                    (fired, missed),
                    (vec!["01".to_owned()], vec![]),
                    "{policy:?} {now}"
                );
            }
        }
        let (fired, missed) = down_until("2026-12-01T01:05:01Z", catch_up(Policy::None, "24h"));
        assert_eq!((fired, missed), (vec![], vec!["01".to_owned()]));
    }

    #[test]
    fn a_year_of_silence_is_settled_in_rounds_and_only_its_last_tick_fires() {
        let every_minute = Expression::parse("* * * * *").unwrap();
        let (mut due, now) = (at("2026-01-01T00:00:00Z"), at("2026-01-08T00:00:30Z"));
        let (mut fired, mut missed, mut rounds) = (Vec::new(), 0, 0);
        while due <= now {
            let plan = plan(&every_minute, Shanghai, due, now, CatchUp::default());
            fired.extend(plan.fire);
            missed += plan.missed.len();
            due = plan.next.unwrap();
            rounds += 1;
        }
        assert_eq!(fired, [(at("2026-01-08T00:00:00Z"), false)]);
        assert_eq!((missed, rounds), (7 * 1440, 11));
    }

    #[test]
    fn a_window_is_written_as_people_say_it() {
        for (text, seconds, shown) in [
            ("5m", 300, "5m"),
            ("24h", 86_400, "24h"),
            ("1d", 86_400, "24h"),
            ("7d", 604_800, "7d"),
            ("90m", 5400, "90m"),
            ("31d", 2_678_400, "31d"),
        ] {
            let window: Window = text.parse().unwrap();
            assert_eq!(
                (window.seconds(), window.to_string().as_str()),
                (seconds, shown)
            );
        }
        for text in [
            "",
            "24",
            "h",
            "4m",
            "32d",
            "24 h",
            "-1h",
            "+1h",
            "1.5h",
            "24H",
            "1w",
            "99999999999999999999d",
            "二h",
        ] {
            assert!(text.parse::<Window>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_tick_is_fired_or_missed_once(
            written in prop::sample::select(vec!["*/7 * * * *", "0 9 * * *", "30 2,14 * * 1", "* * * * *"]),
            policy in prop::sample::select(vec![Policy::None, Policy::Last, Policy::All]),
            hours in 1..48_u64,
            silence in 0..400_000_i64,
        ) {
            let expression = Expression::parse(written).unwrap();
            let due = expression.next_after(at("2026-03-06T00:00:00Z"), chrono_tz::America::New_York).unwrap();
            let now = due + TimeDelta::seconds(silence);
            let catch_up = CatchUp { policy, window: Window::new(Duration::from_secs(hours * 3600)).unwrap() };
            let plan = plan(&expression, chrono_tz::America::New_York, due, now, catch_up);
            let upto = plan.next.unwrap() - TimeDelta::seconds(1);
            let mut all: Vec<_> = plan.fire.iter().map(|(time, _)| *time).chain(plan.missed.iter().copied()).collect();
            all.sort();
            let expected: Vec<_> = std::iter::once(due).chain(expression.between(due, upto.min(now), chrono_tz::America::New_York)).collect();
            prop_assert_eq!(all, expected);
            for (time, late) in &plan.fire {
                prop_assert_eq!(now - *time > TimeDelta::minutes(5), *late);
                prop_assert!(!*late || policy != Policy::None);
            }
            prop_assert!(policy == Policy::All || plan.fire.len() <= 1);
        }
    }
}
