//! Wiring: from settings and a database to services, workers and the HTTP side.

use std::{future::Future, net::SocketAddr, sync::Arc};

use sqlx::PgPool;
use tokio::{net::TcpListener, task::JoinSet};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{cli::exit::Failure, config::Config, database::Database};
use crate::{
    adapters::{
        edc::EdcPool,
        wecom::{callback::Gate, client::WecomClient, config::WecomConfig, http::Deadlines},
    },
    entry::{self, AppState},
    jobs::{
        Jobs,
        common::{
            model::Model,
            services::{ConversationSettings, Services, Shared},
            study::SkillCache,
            tokens::PgTokenStore,
        },
    },
    ops::{health::Readiness, metrics::Metrics},
    queue::{Wake, worker::Worker},
    store::reader,
    tools::{Registry, Snapshots},
    types::clock::Clock,
};

/// Everything one process is made of. Parts are started as its role asks.
pub struct Wiring {
    config: Config,
    pool: PgPool,
    wake: Wake,
    clock: Clock,
    services: Shared,
    wecom: Option<Arc<WecomConfig>>,
    metrics: Metrics,
}

impl Wiring {
    /// Wires a process. `open_project`: the project every sender counts as a member of (the demo).
    ///
    /// # Errors
    /// A setting that can't work.
    pub fn new(
        mut config: Config,
        pool: PgPool,
        clock: Clock,
        open_project: Option<String>,
    ) -> Result<Self, Failure> {
        let wake = Wake::new(Uuid::new_v4());
        let wecom = config.wecom.take().map(Arc::new);
        let client = wecom
            .as_deref()
            .map(|wecom| {
                let store = PgTokenStore::new(pool.clone(), wecom);
                WecomClient::new(wecom, store, Deadlines::default())
            })
            .transpose()
            .map_err(|error| {
                Failure::Usage(format!(
                    "企业微信客户端无法建立 the WeCom client can't be built: {error:#}"
                ))
            })?;
        let model = config.llm.as_ref().map(Model::new).transpose();
        let model = model.map_err(|error| {
            Failure::Usage(format!(
                "大模型客户端无法建立 the model client can't be built: {error:#}"
            ))
        })?;
        let services = Arc::new(Services {
            pool: pool.clone(),
            wake: wake.clone(),
            clock: clock.clone(),
            edc: EdcPool::default(),
            skills: SkillCache::default(),
            wecom: client,
            model,
            tools: Registry::standard(),
            reader: reader::pool(&pool),
            snapshots: Snapshots::default(),
            conversation: ConversationSettings {
                open_project,
                progress_after: config.progress_after,
                ..ConversationSettings::default()
            },
        });
        Ok(Self {
            config,
            pool,
            wake,
            clock,
            services,
            wecom,
            metrics: Metrics::install(),
        })
    }

    /// What jobs work with.
    #[must_use]
    pub fn services(&self) -> &Shared {
        &self.services
    }

    /// Tells workers about new jobs.
    #[must_use]
    pub fn wake(&self) -> &Wake {
        &self.wake
    }

    /// The settings.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Of `wanted` queues, those this process can serve: without WeCom's keys it must not take messages
    /// that another process could deliver.
    #[must_use]
    pub fn servable(&self, wanted: &[&'static str]) -> Vec<&'static str> {
        let has_wecom = self.services.wecom.is_some();
        if !has_wecom && wanted.contains(&"deliver") {
            tracing::info!("queue `deliver` is not served here: WECOM_* is not set");
        }
        wanted
            .iter()
            .copied()
            .filter(|queue| has_wecom || *queue != "deliver")
            .collect()
    }

    /// The worker half of this process.
    #[must_use]
    pub fn worker(&self, claims: PgPool) -> Worker {
        Worker::new(
            self.pool.clone(),
            claims,
            self.wake.clone(),
            Jobs::register(Arc::clone(&self.services)),
            self.config.worker.clone(),
        )
    }

    /// Readiness of a process with or without a worker half.
    #[must_use]
    pub fn readiness(&self, worker: Option<&Worker>) -> Readiness {
        let readiness = Readiness::of_web(self.pool.clone());
        match worker {
            None => readiness,
            Some(worker) => readiness.with_worker(
                worker.progress(),
                self.wake.clone(),
                self.config.worker.poll,
            ),
        }
    }

    /// The HTTP side.
    pub fn app(&self, readiness: Readiness) -> axum::Router {
        let gate = self
            .wecom
            .as_ref()
            .map(|wecom| Gate::new(Arc::clone(wecom), self.clock.clone()));
        entry::app(self.state(readiness), gate)
    }

    /// Health and metrics alone, for a process without an HTTP side.
    pub fn ops_app(&self, readiness: Readiness) -> axum::Router {
        entry::ops_app(self.state(readiness))
    }

    fn state(&self, readiness: Readiness) -> AppState {
        AppState {
            pool: self.pool.clone(),
            wake: self.wake.clone(),
            token: self.config.api_token.clone().map(Arc::new),
            readiness,
            metrics: self.metrics.clone(),
        }
    }
}

/// Binds the HTTP address.
///
/// # Errors
/// Exit code 2, with the address: it is taken, or not ours.
pub async fn bind(address: SocketAddr) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).await.map_err(|error| {
        Failure::Usage(format!(
            "无法监听 {address}：{error}；换一个端口（--port 或 IIT_BIND）(can't listen on {address}, choose another port)"
        ))
    })
}

/// Serves until `stop`, then lets open requests finish.
///
/// # Errors
/// The listener broke.
pub async fn serve(
    listener: TcpListener,
    app: axum::Router,
    stop: CancellationToken,
) -> Result<(), Failure> {
    axum::serve(listener, app)
        .with_graceful_shutdown(stop.cancelled_owned())
        .await
        .map_err(|error| Failure::Outside(format!("HTTP 服务中断 the HTTP server ended: {error}")))
}

/// The parts of a process that run beside each other until it stops.
#[derive(Default)]
pub struct Parts {
    tasks: JoinSet<Result<(), Failure>>,
}

impl Parts {
    /// Adds a part.
    pub fn add(&mut self, part: impl Future<Output = Result<(), Failure>> + Send + 'static) {
        self.tasks.spawn(part);
    }

    /// Adds a part that can't fail.
    pub fn add_endless(&mut self, part: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(async move {
            part.await;
            Ok(())
        });
    }

    /// Waits for all parts; the first failure stops the others.
    ///
    /// # Errors
    /// The first failure.
    pub async fn join(mut self, stop: &CancellationToken) -> Result<(), Failure> {
        let mut outcome = Ok(());
        while let Some(ended) = self.tasks.join_next().await {
            let ended = ended.unwrap_or_else(|error| {
                Err(Failure::Outside(format!(
                    "内部部件中断 a part of the process ended: {error}"
                )))
            });
            if ended.is_err() {
                stop.cancel();
                outcome = outcome.and(ended);
            }
        }
        outcome
    }
}

/// The parts every long-lived process has: NOTIFY, and the private server kept up.
pub fn common_parts(
    parts: &mut Parts,
    wiring: &Wiring,
    database: &Arc<Database>,
    stop: &CancellationToken,
) {
    parts.add_endless(
        wiring
            .wake
            .clone()
            .run_notifier(wiring.pool.clone(), stop.clone()),
    );
    let (database, stop) = (Arc::clone(database), stop.clone());
    parts.add_endless(async move { database.server.keep_running(stop).await });
}
