//! The only place that reads the wall clock.
//!
//! Leases and due times never use it: those belong to the database clock (`now()` in SQL). This clock
//! is for what people see and for checks against the outside, such as the age of a webhook.

use std::sync::Arc;

use chrono::{DateTime, Utc};

/// Where "now" comes from. Cheap to clone; tests inject a fixed or moving one.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> DateTime<Utc> + Send + Sync>);

impl Clock {
    /// The machine's clock.
    #[must_use]
    pub fn system() -> Self {
        Self(Arc::new(Utc::now))
    }

    /// A clock that answers what `now` answers.
    #[must_use]
    pub fn from_fn(now: impl Fn() -> DateTime<Utc> + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// A clock that stands still.
    #[must_use]
    pub fn fixed(at: DateTime<Utc>) -> Self {
        Self::from_fn(move || at)
    }

    /// The present moment, UTC.
    #[must_use]
    pub fn now(&self) -> DateTime<Utc> {
        (self.0)()
    }
}

impl std::fmt::Debug for Clock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Clock({})", self.now())
    }
}
