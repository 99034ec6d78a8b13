//! What a job is, and what may come of one attempt at it.

use std::time::Duration;

use serde::{Serialize, de::DeserializeOwned};

/// One kind of work. The payload holds ids and small arguments (at most 8 KB); data stays in tables.
///
/// Names are stored data: a kind is never renamed, it gets an alias where it is registered.
pub trait Job: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Stored name.
    const KIND: &'static str;
    /// The queue it runs on unless the enqueuer says otherwise.
    const QUEUE: &'static str;
    /// Attempts before it is given up, crashes included.
    const MAX_ATTEMPTS: i32 = 5;
    /// Longest time one attempt may take.
    const TIMEOUT: Duration = Duration::from_secs(120);

    /// At most one unfinished job of this kind has this key.
    fn key(&self) -> Option<String> {
        None
    }

    /// Jobs of one group run in the order they were enqueued, one at a time.
    fn group(&self) -> Option<String> {
        None
    }
}

/// How an attempt ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The work is done.
    Done,
    /// Try again after a while; uses up an attempt.
    Retry {
        /// From now, by the database clock.
        after: Duration,
        /// Shown to operators.
        why: String,
    },
    /// Not yet; uses up no attempt.
    Snooze(Duration),
    /// No longer wanted.
    Cancel(String),
    /// Can't be done; an operator may retry it.
    Dead(String),
}

/// Why a handler did not settle its job itself; the guard settles it accordingly.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JobError {
    /// Somebody else holds the job now: nothing may be written any more.
    #[error("the lease was lost; another worker has the job")]
    LostLease,
    /// Worth another attempt.
    #[error("{why:#}")]
    Retry {
        /// What went wrong.
        why: anyhow::Error,
        /// When to try again; the usual backoff when not given.
        after: Option<Duration>,
    },
    /// Another attempt would fail the same way.
    #[error("{0:#}")]
    Dead(anyhow::Error),
    /// The job is no longer wanted.
    #[error("cancelled: {0}")]
    Cancel(String),
    /// Not yet.
    #[error("not before {0:?} from now")]
    Snooze(Duration),
}

impl JobError {
    /// A permanent failure.
    pub fn dead(why: impl Into<anyhow::Error>) -> Self {
        Self::Dead(why.into())
    }

    /// A failure worth another attempt.
    pub fn retry(why: impl Into<anyhow::Error>) -> Self {
        Self::Retry {
            why: why.into(),
            after: None,
        }
    }
}

impl From<anyhow::Error> for JobError {
    fn from(why: anyhow::Error) -> Self {
        match why.downcast::<sqlx::Error>() {
            Ok(error) => error.into(),
            Err(why) => Self::Retry { why, after: None },
        }
    }
}

impl From<sqlx::Error> for JobError {
    /// Data the database refuses (class 22, 23) is refused again next time; the rest may pass.
    fn from(error: sqlx::Error) -> Self {
        let permanent = error
            .as_database_error()
            .and_then(|db| db.code())
            .is_some_and(|code| code.starts_with("22") || code.starts_with("23"));
        if permanent {
            Self::Dead(anyhow::Error::new(error))
        } else {
            Self::retry(error)
        }
    }
}

/// Waiting time before attempt `attempt + 1`: doubling from one second, at most five minutes, spread
/// by ±25 % so that jobs that failed together do not come back together.
#[must_use]
pub fn backoff(attempt: i32) -> Duration {
    let exponent = u32::try_from(attempt.clamp(1, 10) - 1).unwrap_or(0);
    let base = 1000_u64.saturating_mul(1 << exponent).min(300_000);
    let spread = base / 4;
    let jitter = rand::random_range(0..=spread * 2);
    Duration::from_millis(base - spread + jitter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_doubles_and_stays_under_its_cap() {
        for attempt in -3..40 {
            let wait = backoff(attempt);
            assert!(wait >= Duration::from_millis(750), "{attempt}: {wait:?}");
            assert!(wait <= Duration::from_secs(375), "{attempt}: {wait:?}");
        }
        assert!(backoff(5) > backoff(1));
    }
}
