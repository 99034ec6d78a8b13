//! `iit all | web | worker | scheduler`: the long-lived processes.

use std::{process::ExitCode, sync::Arc, time::Duration};

use super::{exit::CommandResult, queue::known_queue};
use crate::{
    boot::{
        config::Config,
        database::Database,
        logging, process,
        wiring::{self, Parts, Wiring},
    },
    jobs::{QUEUES, common::ask},
    queue::sweep,
    store::idempotency,
    types::clock::Clock,
};

/// Connections of a process's main pool.
const CONNECTIONS: u32 = 20;
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
    /// Housekeeping (and, later, schedules).
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
        let bind = config.bind;
        let has_token = config.api_token.is_some();
        let wiring = Wiring::new(config, database.pool.clone(), Clock::system(), None)?;
        wiring::common_parts(&mut parts, &wiring, &database, &stop);
        let mut worker = None;
        if matches!(role, Role::All | Role::Worker) {
            let claims = database.claims_pool(role.name()).await?;
            let this = wiring.worker(claims);
            worker = Some(this.clone());
            let stop = stop.clone();
            let queues = wiring.servable(&queues);
            parts.add_endless(async move { this.run(&queues, stop).await });
        }
        if matches!(role, Role::All | Role::Web) {
            let readiness = wiring.readiness(worker.as_ref());
            let listener = wiring::bind(bind).await?;
            if !has_token {
                tracing::warn!("IIT_API_TOKEN is not set: the API refuses every call");
            }
            tracing::info!(address = %bind, "web.listening");
            let app = wiring.app(readiness.clone());
            parts.add(wiring::serve(listener, app, stop.clone()));
            let stop = stop.clone();
            parts.add_endless(async move {
                stop.cancelled().await;
                readiness.drain();
            });
        }
        if matches!(role, Role::All | Role::Scheduler) {
            let (pool, wake) = (database.pool.clone(), wiring.wake().clone());
            let lease = wiring.config().worker.lease;
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

/// Answers kept for repeated requests are of no use after two days; reservations of calls whose run is gone
/// are resolved.
async fn tidy(pool: &sqlx::PgPool) {
    let tidied = async { idempotency::forget_old(&mut *pool.acquire().await?).await };
    match tidied.await {
        Ok(0) => {}
        Ok(keys) => tracing::info!(keys, "scheduler.idempotency_keys.forgotten"),
        Err(error) => tracing::warn!(%error, "scheduler.tidy.failed"),
    }
    match ask::settle_abandoned(pool).await {
        Ok(0) => {}
        Ok(calls) => tracing::warn!(calls, "scheduler.llm_calls.abandoned"),
        Err(error) => tracing::warn!(%error, "scheduler.llm_calls.failed"),
    }
}
