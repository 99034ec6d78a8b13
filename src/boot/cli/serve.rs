//! `iit all | web | worker | scheduler`: the long-lived processes.

use std::{process::ExitCode, sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;

use super::{exit::CommandResult, queue::known_queue};
use crate::{
    boot::{
        config::Config,
        database::Database,
        logging, process,
        wiring::{self, Parts, Wiring},
    },
    jobs::{
        QUEUES,
        common::{ask, cron},
    },
    ops::health::Readiness,
    queue::{history, sweep},
    store::{idempotency, schedules::firings},
    types::clock::Clock,
};

/// Connections of a process's main pool.
const CONNECTIONS: u32 = 20;
/// How long a process that serves goes on to after a stop was asked for, at least.
const LINGER: Duration = Duration::from_millis(1500);
/// How often the scheduler tidies up.
const TIDY_EVERY: Duration = Duration::from_secs(600);

/// Arguments of `worker`.
#[derive(Debug, clap::Args)]
pub struct WorkerArgs {
    /// 只处理这些队列，逗号分隔 · only these queues, separated by commas: chat, llm, edc, vision, deliver.
    #[arg(long, value_delimiter = ',')]
    queues: Option<Vec<String>>,
}

/// What a process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// All of it.
    All,
    /// HTTP only.
    Web,
    /// Jobs only.
    Worker,
    /// Schedules and housekeeping.
    Scheduler,
}

impl Role {
    fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Web => "web",
            Self::Worker => "worker",
            Self::Scheduler => "scheduler",
        }
    }
}

/// `iit worker`.
///
/// # Errors
/// See [`super::exit::Failure`].
pub fn worker(args: WorkerArgs) -> CommandResult {
    let queues = match args.queues {
        None => QUEUES.to_vec(),
        Some(names) => names
            .iter()
            .map(|name| known_queue(name))
            .collect::<Result<_, _>>()?,
    };
    run(Role::Worker, queues)
}

/// `iit all`, `iit web`, `iit scheduler`.
///
/// # Errors
/// See [`super::exit::Failure`].
pub fn run(role: Role, queues: Vec<&'static str>) -> CommandResult {
    logging::start("info");
    let config = Config::from_env()?;
    process::block_on(async move {
        let stop = process::stop_on_signals()?;
        let database = Arc::new(Database::open(role.name(), CONNECTIONS).await?);
        let mut parts = Parts::default();
        // What serves and tells others goes on until the workers are drained.
        let (drained, until) = (CancellationToken::new(), CancellationToken::new());
        let bind = match role {
            Role::All | Role::Web => Some(config.bind),
            Role::Worker | Role::Scheduler => config.metrics_bind,
        };
        let has_token = config.api_token.is_some();
        let wiring = Wiring::new(config, database.pool.clone(), Clock::system(), None)?;
        wiring::common_parts(&mut parts, &wiring, &database, &until);
        let mut worker = None;
        if matches!(role, Role::All | Role::Worker) {
            let claims = database.claims_pool(role.name()).await?;
            let this = wiring.worker(claims);
            worker = Some(this.clone());
            let (stop, drained) = (stop.clone(), drained.clone().drop_guard());
            let queues = wiring.servable(&queues);
            parts.add_endless(async move {
                let _drained = drained;
                this.run(&queues, stop).await;
            });
        } else {
            drained.cancel();
        }
        let readiness = wiring.readiness(worker.as_ref());
        if let Some(bind) = bind {
            let listener = wiring::bind(bind).await?;
            let app = match role {
                Role::All | Role::Web => {
                    if !has_token {
                        tracing::warn!("IIT_API_TOKEN is not set: the API refuses every call");
                    }
                    wiring.app(readiness.clone())
                }
                Role::Worker | Role::Scheduler => wiring.ops_app(readiness.clone()),
            };
            tracing::info!(address = %bind, "web.listening");
            parts.add(wiring::serve(listener, app, until.clone()));
        }
        parts.add_endless(drain(
            readiness,
            stop.clone(),
            drained,
            bind.is_some(),
            until,
        ));
        let history = wiring.config().job_history;
        if role != Role::Web {
            parts.add_endless(history::run(database.pool.clone(), history, stop.clone()));
        }
        if matches!(role, Role::All | Role::Scheduler) {
            let (pool, wake) = (database.pool.clone(), wiring.wake().clone());
            let lease = wiring.config().worker.lease;
            parts.add_endless(cron::run(
                pool.clone(),
                wake.clone(),
                cron::POLL,
                stop.clone(),
            ));
            if role == Role::Scheduler {
                // Elsewhere the worker half listens.
                parts.add_endless(wake.clone().run_listener(pool.clone(), stop.clone()));
            }
            parts.add_endless(sweep::run(pool.clone(), wake, lease, stop.clone()));
            let stop = stop.clone();
            parts.add_endless(async move {
                let mut every = tokio::time::interval(TIDY_EVERY);
                while stop.run_until_cancelled(every.tick()).await.is_some() {
                    tidy(&pool).await;
                }
            });
        }
        tracing::info!(
            role = role.name(),
            database = database.server.describe(),
            "process.started"
        );
        let outcome = parts.join(&stop).await;
        drop(worker);
        drop(wiring);
        if let Ok(database) = Arc::try_unwrap(database) {
            database.close().await?;
        }
        outcome?;
        Ok(ExitCode::SUCCESS)
    })
}

/// From the stop on `/readyz` says that this process is draining, while it still serves: until its running
/// jobs have ended, and long enough for a load balancer to notice.
async fn drain(
    readiness: Readiness,
    stop: CancellationToken,
    drained: CancellationToken,
    serves: bool,
    until: CancellationToken,
) {
    stop.cancelled().await;
    readiness.drain();
    let noticed = async {
        if serves {
            tokio::time::sleep(LINGER).await;
        }
    };
    tokio::join!(drained.cancelled(), noticed);
    until.cancel();
}

/// Answers kept for repeated requests are of no use after two days, what became of a schedule after a
/// year; reservations of calls whose run is gone are resolved.
async fn tidy(pool: &sqlx::PgPool) {
    let tidied = async {
        let mut conn = pool.acquire().await?;
        let keys = idempotency::forget_old(&mut conn).await?;
        Ok::<_, sqlx::Error>((keys, firings::forget_old(&mut conn).await?))
    };
    match tidied.await {
        Ok((0, 0)) => {}
        Ok((keys, firings)) => tracing::info!(keys, firings, "scheduler.forgotten"),
        Err(error) => tracing::warn!(%error, "scheduler.tidy.failed"),
    }
    match ask::settle_abandoned(pool).await {
        Ok(0) => {}
        Ok(calls) => tracing::warn!(calls, "scheduler.llm_calls.abandoned"),
        Err(error) => tracing::warn!(%error, "scheduler.llm_calls.failed"),
    }
}
