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
    queue::depth,
    store::{outbox, wecom_gate},
};

/// How old depth gauges may be.
const MAX_AGE: Duration = Duration::from_secs(5);
/// Buckets of waiting and running times, in seconds.
const SECONDS: [f64; 12] = [
    0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0, 120.0,
];

static RECORDER: OnceLock<Option<PrometheusHandle>> = OnceLock::new();

/// The process's metrics page. Cheap to clone.
#[derive(Clone)]
pub struct Metrics {
    handle: Option<PrometheusHandle>,
    depth: Arc<Mutex<Shown>>,
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
            metrics::gauge!("iit_build_info", "version" => env!("CARGO_PKG_VERSION")).set(1.0);
            installed.ok()
        });
        Self {
            handle: handle.clone(),
            depth: Arc::default(),
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
        let mut shown = self.depth.lock().await;
        if shown.at.is_some_and(|at| at.elapsed() < MAX_AGE) {
            return Ok(());
        }
        let mut conn = pool.acquire().await?;
        let depths = depth::depth(&mut conn).await?;
        show_sending(&mut conn, &mut shown.causes).await?;
        drop(conn);
        // Every queue is shown, and what has emptied since is zero, not its last value.
        shown.queues.extend(QUEUES.map(str::to_owned));
        for queue in QUEUES {
            shown
                .labels
                .insert((queue.to_owned(), "available".to_owned()));
        }
        for (queue, state) in &shown.labels {
            metrics::gauge!("iit_jobs", "queue" => queue.clone(), "state" => state.clone())
                .set(0.0);
        }
        for queue in &shown.queues {
            metrics::gauge!("iit_queue_oldest_job_age_seconds", "queue" => queue.clone()).set(0.0);
            metrics::gauge!("iit_jobs_dead", "queue" => queue.clone()).set(0.0);
        }
        for depth in depths {
            let (queue, state) = (depth.queue, depth.state);
            #[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
            let jobs = depth.jobs as f64;
            metrics::gauge!("iit_jobs", "queue" => queue.clone(), "state" => state.clone())
                .set(jobs);
            if state == "available" {
                metrics::gauge!("iit_queue_oldest_job_age_seconds", "queue" => queue.clone())
                    .set(depth.oldest_age_s.unwrap_or(0.0));
            }
            if state == "dead" {
                metrics::gauge!("iit_jobs_dead", "queue" => queue.clone()).set(jobs);
            }
            shown.queues.insert(queue.clone());
            shown.labels.insert((queue, state));
        }
        shown.at = Some(Instant::now());
        Ok(())
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
        #[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
        metrics::gauge!("iit_outbox", "state" => state).set(messages as f64);
    }
    Ok(())
}
