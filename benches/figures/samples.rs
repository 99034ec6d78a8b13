//! Many measured times, read by rank.

use std::time::Duration;

pub struct Samples(Vec<Duration>);

impl Samples {
    pub fn new(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self(times)
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The smallest time that `percent` of all are not above (nearest rank), in milliseconds.
    pub fn ms(&self, percent: usize) -> f64 {
        let rank = (self.0.len() * percent).div_ceil(100).max(1);
        self.0
            .get(rank - 1)
            .map_or(f64::NAN, |time| time.as_secs_f64() * 1e3)
    }

    pub fn spread(&self) -> String {
        format!(
            "p50 {:.1} · p95 {:.1} · p99 {:.1} · max {:.1} ms",
            self.ms(50),
            self.ms(95),
            self.ms(99),
            self.ms(100)
        )
    }
}

/// The middle of a few runs.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// So many in so many seconds, a second.
pub fn rate(count: usize, seconds: f64) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    let count = count as f64;
    count / seconds
}
