//! What was done to the processes and what they did, with times; and one order over everything that is
//! seen on the wire and by the fake servers.

use std::collections::HashMap;
use std::fmt::Display;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use uuid::Uuid;

/// A run's step.
pub type StepKey = (Uuid, i32);

/// What happened, in order. Cheap to clone.
#[derive(Clone)]
pub struct History(Arc<Inner>);

struct Inner {
    begun: Instant,
    order: AtomicU64,
    lines: Mutex<Vec<String>>,
    wire: Mutex<Wire>,
}

/// What was seen between the processes and Postgres.
#[derive(Debug, Clone, Default)]
pub struct Wire {
    /// When each ask that made a row was sent to be journaled: (step, ask) → place in the order.
    pub asks: HashMap<(StepKey, i32), u64>,
    /// Steps by the number of a call's row.
    pub calls: HashMap<i64, StepKey>,
    /// When the first answer to a step was known to be committed.
    pub answered: HashMap<StepKey, u64>,
    /// Settlements that went on although their fence found the lease gone.
    pub unfenced: Vec<String>,
    /// Transactions begun where one was left open.
    pub left_open: Vec<String>,
    /// Fences that found the lease gone, as they should now and then.
    pub fenced_off: usize,
}

impl History {
    pub fn begin() -> Self {
        Self(Arc::new(Inner {
            begun: Instant::now(),
            order: AtomicU64::new(0),
            lines: Mutex::default(),
            wire: Mutex::default(),
        }))
    }

    pub fn note(&self, what: impl Display) {
        let line = format!("{:9.3} s  {what}", self.seconds());
        lock(&self.0.lines).push(line);
    }

    pub fn lines(&self) -> Vec<String> {
        lock(&self.0.lines).clone()
    }

    pub fn seconds(&self) -> f64 {
        self.0.begun.elapsed().as_secs_f64()
    }

    /// The next place in the order.
    pub fn next(&self) -> u64 {
        self.0.order.fetch_add(1, Ordering::SeqCst)
    }

    pub fn wire(&self) -> MutexGuard<'_, Wire> {
        lock(&self.0.wire)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
