//! Prometheus metrics. Depth gauges come from one query, cached, so that scraping often costs little
//! and every process shows the same numbers.

use std::{
    collections::HashSet,
    sync::{Arc, OnceLock},
    time::Duration,
};

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use sqlx::{PgConnection, PgPool};
use tokio::{sync::Mutex, time::Instant};

use crate::{
    jobs::QUEUES,
    queue::{
        control,
        depth::{self, Depth},
    },
    store::{db, outbox, schedules::listing, wecom_gate},
};

/// How old depth gauges may be.
const MAX_AGE: Duration = Duration::from_secs(5);
/// Buckets of waiting and running times, in seconds.
const SECONDS: [f64; 14] = [
    0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 30.0, 120.0, 600.0,
];

static RECORDER: OnceLock<Option<PrometheusHandle>> = OnceLock::new();

/// The process's metrics page. Cheap to clone.
#[derive(Clone)]
pub struct Metrics {
    handle: Option<PrometheusHandle>,
    shown: Arc<Mutex<Shown>>,
}

#[derive(Default)]
struct Shown {
    at: Option<Instant>,
    labels: HashSet<(String, String)>,
    queues: HashSet<String>,
    causes: HashSet<String>,
}

impl Metrics {
    /// Installs the process-wide recorder, once; later calls share it.
    #[must_use]
    pub fn install() -> Self {
        let handle = RECORDER.get_or_init(|| {
            let builder = PrometheusBuilder::new()
                .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)
                .inspect_err(|error| tracing::warn!(%error, "metrics.buckets"));
            let installed = builder.and_then(PrometheusBuilder::install_recorder);
            if let Err(error) = &installed {
                tracing::warn!(%error, "metrics.install");
            }
            describe();
            installed.ok()
        });
        Self {
            handle: handle.clone(),
            shown: Arc::default(),
        }
    }

    /// The page in Prometheus's text format.
    ///
    /// # Errors
    /// The database failed.
    pub async fn page(&self, pool: &PgPool) -> Result<String, sqlx::Error> {
        self.refresh(pool).await?;
        Ok(self
            .handle
            .as_ref()
            .map(|handle| {
                handle.run_upkeep();
                handle.render()
            })
            .unwrap_or_default())
    }

    async fn refresh(&self, pool: &PgPool) -> Result<(), sqlx::Error> {
        let mut shown = self.shown.lock().await;
        if shown.at.is_some_and(|at| at.elapsed() < MAX_AGE) {
            return Ok(());
        }
        let mut conn = pool.acquire().await?;
        let depths = depth::depth(&mut conn).await?;
        let set = control::settings(&mut conn).await?;
        let figures = db::server_figures(&mut conn).await?;
        show_sending(&mut conn, &mut shown.causes).await?;
        schedule_gauges(&mut conn).await?;
        drop(conn);
        shown.depths(depths);
        for queue in QUEUES {
            let paused = set
                .iter()
                .any(|set| set.queue == queue && set.paused_at.is_some());
            metrics::gauge!("iit_queue_paused", "queue" => queue).set(f64::from(u8::from(paused)));
        }
        for (table, dead) in figures.dead_tuples {
            metrics::gauge!("iit_table_dead_tuples", "table" => table).set(float(dead));
        }
        metrics::gauge!("iit_oldest_xact_age_seconds").set(figures.oldest_xact_age_s);
        shown.at = Some(Instant::now());
        Ok(())
    }
}

impl Shown {
    /// Every queue is shown, and what has emptied since is zero, not its last value.
    fn depths(&mut self, depths: Vec<Depth>) {
        for queue in QUEUES {
            self.queues.insert(queue.to_owned());
            for state in ["available", "scheduled", "running", "dead"] {
                self.labels.insert((queue.to_owned(), state.to_owned()));
            }
        }
        for (queue, state) in &self.labels {
            metrics::gauge!("iit_jobs", "queue" => queue.clone(), "state" => state.clone())
                .set(0.0);
        }
        for queue in &self.queues {
            metrics::gauge!("iit_queue_oldest_job_age_seconds", "queue" => queue.clone()).set(0.0);
            metrics::gauge!("iit_jobs_dead", "queue" => queue.clone()).set(0.0);
        }
        for depth in depths {
            let (queue, state) = (depth.queue, depth.state);
            metrics::gauge!("iit_jobs", "queue" => queue.clone(), "state" => state.clone())
                .set(float(depth.jobs));
            if state == "available" {
                metrics::gauge!("iit_queue_oldest_job_age_seconds", "queue" => queue.clone())
                    .set(depth.oldest_age_s.unwrap_or(0.0));
            }
            if state == "dead" {
                metrics::gauge!("iit_jobs_dead", "queue" => queue.clone()).set(float(depth.jobs));
            }
            self.queues.insert(queue.clone());
            self.labels.insert((queue, state));
        }
    }
}

#[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn float(count: i64) -> f64 {
    count as f64
}

/// What each series means, and zero where nothing has happened yet: a counter that appears with its first
/// event hides it from `rate()`.
fn describe() {
    use metrics::{
        describe_counter as counter, describe_gauge as gauge, describe_histogram as histogram,
    };
    gauge!("iit_build_info", "The version that runs.");
    metrics::gauge!("iit_build_info", "version" => env!("CARGO_PKG_VERSION")).set(1.0);
    gauge!("iit_jobs", "Unfinished and dead jobs, over all processes.");
    gauge!(
        "iit_jobs_dead",
        "Jobs that were given up, over all processes."
    );
    gauge!(
        "iit_queue_oldest_job_age_seconds",
        "How long the oldest due job waits."
    );
    gauge!(
        "iit_queue_paused",
        "1 while an operator has the queue paused."
    );
    gauge!(
        "iit_table_dead_tuples",
        "Rows that vacuum has yet to remove."
    );
    gauge!(
        "iit_oldest_xact_age_seconds",
        "Age of the oldest transaction; it holds vacuum back."
    );
    gauge!(
        "iit_wecom_gate_closed",
        "1 while WeCom refuses the app for that cause."
    );
    gauge!("iit_outbox", "Messages that are not sent, by state.");
    gauge!(
        "iit_cron_lag_seconds",
        "How long something due has waited for a scheduler."
    );
    counter!(
        "iit_cron_missed_total",
        "Scheduled times nobody was there for."
    );
    counter!("iit_llm_tokens_total", "Tokens this process used.");
    gauge!("iit_llm_cost_cny_total", "What they cost, in yuan.");
    counter!(
        "iit_llm_maybe_billed_total",
        "Questions found without an answer that may have been billed."
    );
    counter!(
        "iit_llm_breaker_opened_total",
        "Times this process found the provider in trouble for all."
    );
    histogram!("iit_llm_call_seconds", "One call, by how it ended.");
    histogram!(
        "iit_tool_call_seconds",
        "One call of a tool, by how it ended."
    );
    gauge!("iit_worker_slots", "Slots of this process.");
    histogram!(
        "iit_job_wait_seconds",
        "From due to claimed, by the database clock."
    );
    histogram!("iit_job_run_seconds", "From claimed to ended.");
    counter!(
        "iit_job_attempts_total",
        "Attempts of this process by how they ended."
    );
    counter!(
        "iit_jobs_rescued_total",
        "Jobs this process took back from lost workers."
    );
    counter!(
        "iit_lease_lost_total",
        "Jobs this process lost to another while at work."
    );
    metrics::counter!("iit_lease_lost_total").increment(0);
    for reason in ["blamed", "suspected"] {
        metrics::counter!("iit_jobs_rescued_total", "reason" => reason).increment(0);
    }
}

/// Whether WeCom takes messages (`iit_wecom_gate_closed`, 1 for each cause that keeps an app's gate closed),
/// and how many messages are not sent, by state.
async fn show_sending(
    conn: &mut PgConnection,
    causes: &mut HashSet<String>,
) -> Result<(), sqlx::Error> {
    let closed = wecom_gate::closed(conn).await?;
    causes.extend(closed.iter().map(|gate| gate.cause.clone()));
    for cause in causes.iter() {
        let is_closed = closed.iter().any(|gate| gate.cause == *cause);
        metrics::gauge!("iit_wecom_gate_closed", "cause" => cause.clone())
            .set(f64::from(u8::from(is_closed)));
    }
    let unsent = outbox::unsent(conn).await?;
    for state in ["queued", "unknown", "failed"] {
        let messages = unsent
            .iter()
            .find(|(of, _)| of == state)
            .map_or(0, |of| of.1);
        metrics::gauge!("iit_outbox", "state" => state).set(float(messages));
    }
    Ok(())
}

/// From the table, like the depths: a scheduler process has no metrics page of its own, and one that
/// does not run can't say that it is late.
async fn schedule_gauges(conn: &mut PgConnection) -> Result<(), sqlx::Error> {
    let (missed, lag) = listing::gauges(conn).await?;
    metrics::gauge!("iit_cron_lag_seconds").set(lag);
    for (schedule, missed) in missed {
        metrics::counter!("iit_cron_missed_total", "schedule" => schedule)
            .absolute(u64::try_from(missed).unwrap_or(0));
    }
    Ok(())
}
