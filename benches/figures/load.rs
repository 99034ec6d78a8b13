//! Open-loop load: requests leave when they are due, whether or not earlier ones were answered, and their
//! time counts from when they were due. A slow answer then can't hide the wait of those behind it.

use std::future::Future;
use std::time::Duration;

use anyhow::Result;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::dice::Dice;
use crate::samples::Samples;

/// Arrival times of a Poisson process, as independent senders make: bursts included.
pub fn poisson(rate: f64, count: usize) -> Vec<Duration> {
    let mut dice = Dice::new(300);
    let mut at = 0.0;
    (0..count)
        .map(|_| {
            at -= (1.0 - dice.fraction()).ln() / rate;
            Duration::from_secs_f64(at)
        })
        .collect()
}

/// Starts `send(n)` at each of `arrivals`; its result is how long the n-th took from its due time.
pub async fn open_loop<F>(
    arrivals: &[Duration],
    send: impl Fn(usize, Instant) -> F,
) -> Result<Samples>
where
    F: Future<Output = Result<Duration>> + Send + 'static,
{
    let begin = Instant::now() + Duration::from_millis(100);
    let mut sent = JoinSet::new();
    for (n, at) in arrivals.iter().enumerate() {
        let due = begin + *at;
        tokio::time::sleep_until(due).await;
        sent.spawn(send(n, due));
    }
    let mut times = Vec::with_capacity(arrivals.len());
    while let Some(time) = sent.join_next().await {
        times.push(time??);
    }
    Ok(Samples::new(times))
}
