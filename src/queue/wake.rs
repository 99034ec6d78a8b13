//! Telling workers that there is something to do, in three layers: at once inside this process; other
//! processes by one coalesced NOTIFY after the commit; and a poll as the safety net.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use sqlx::{PgPool, postgres::PgListener};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// The LISTEN/NOTIFY channel. Payload: `queue@process`, or `*` for all queues.
pub const CHANNEL: &str = "iit_jobs";

/// Wakes the workers of queues. Cheap to clone.
#[derive(Clone, Default)]
pub struct Wake(Arc<Inner>);

#[derive(Default)]
struct Inner {
    process: Uuid,
    local: Mutex<HashMap<String, Arc<Notify>>>,
    pending: Mutex<BTreeSet<String>>,
    send: Notify,
    reconnected: Notify,
    listening: std::sync::atomic::AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each change under these locks is a single insert, take or read: a panic leaves them whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Wake {
    /// For one process, known by a new id at every boot, never by its host name.
    #[must_use]
    pub fn new(process: Uuid) -> Self {
        Self(Arc::new(Inner {
            process,
            ..Inner::default()
        }))
    }

    /// Says that `queues` have a new or again-available job. Call it after the commit.
    pub fn queues(&self, queues: impl IntoIterator<Item = String>) {
        let mut any = false;
        for queue in queues {
            any = true;
            self.local(&queue).notify_one();
            lock(&self.0.pending).insert(queue);
        }
        if any {
            self.0.send.notify_one();
        }
    }

    fn local(&self, queue: &str) -> Arc<Notify> {
        Arc::clone(lock(&self.0.local).entry(queue.to_owned()).or_default())
    }

    fn all_local(&self) {
        for notify in lock(&self.0.local).values() {
            notify.notify_one();
        }
    }

    /// Waits until `queue` is woken; a wake before the call is not lost.
    pub async fn wait(&self, queue: &str) {
        self.local(queue).notified().await;
    }

    /// Waits until the LISTEN connection came back after a loss.
    pub async fn reconnected(&self) {
        self.0.reconnected.notified().await;
    }

    /// Whether the LISTEN connection stands.
    #[must_use]
    pub fn is_listening(&self) -> bool {
        self.0.listening.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Sends what piled up while the last NOTIFY was under way, as one statement; at the stop, what is
    /// left. Several may run beside each other. A NOTIFY that fails is dropped: the poll finds the rows.
    pub async fn run_notifier(self, pool: PgPool, stop: CancellationToken) {
        loop {
            let stopped = tokio::select! {
                () = stop.cancelled() => true,
                () = self.0.send.notified() => false,
            };
            self.notify_pending(&pool).await;
            if stopped {
                return;
            }
        }
    }

    /// Tells the other processes now what [`Wake::queues`] was told, for a process that runs no notifier.
    pub async fn notify_pending(&self, pool: &PgPool) {
        let payloads: Vec<String> = std::mem::take(&mut *lock(&self.0.pending))
            .into_iter()
            .map(|queue| format!("{queue}@{}", self.0.process))
            .collect();
        if !payloads.is_empty() {
            notify(pool, &payloads).await;
        }
    }

    /// Wakes the workers of `queues` in all processes, once, from a process that runs no notifier. A
    /// NOTIFY that fails is dropped: the poll finds the rows.
    pub async fn notify_once(pool: &PgPool, queues: &[String]) {
        if !queues.is_empty() {
            let payloads: Vec<String> = queues.iter().map(|queue| format!("{queue}@")).collect();
            notify(pool, &payloads).await;
        }
    }

    /// Listens until `stop`. Any error counts as a lost connection: back off, connect again, and then
    /// wake everything, since notifications were lost.
    pub async fn run_listener(self, pool: PgPool, stop: CancellationToken) {
        let mut pause = Duration::from_millis(100);
        loop {
            let listener = tokio::select! {
                () = stop.cancelled() => return,
                listener = Self::listen(&pool) => listener,
            };
            match listener {
                Ok(listener) => {
                    pause = Duration::from_millis(100);
                    self.set_listening(true);
                    self.0.reconnected.notify_one();
                    self.all_local();
                    tokio::select! {
                        () = stop.cancelled() => return,
                        () = self.receive(listener) => {}
                    }
                    self.set_listening(false);
                }
                Err(error) => tracing::warn!(%error, "queue.listen.failed"),
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
            pause = (pause * 2).min(Duration::from_secs(5));
        }
    }

    fn set_listening(&self, listening: bool) {
        self.0
            .listening
            .store(listening, std::sync::atomic::Ordering::Relaxed);
    }

    async fn listen(pool: &PgPool) -> Result<PgListener, sqlx::Error> {
        let mut listener = PgListener::connect_with(pool).await?;
        listener.listen(CHANNEL).await?;
        Ok(listener)
    }

    /// Hands on notifications until the connection is lost.
    async fn receive(&self, mut listener: PgListener) {
        let own = self.0.process.to_string();
        loop {
            match listener.try_recv().await {
                Ok(Some(notification)) => match notification.payload().split_once('@') {
                    Some((_, process)) if process == own => {}
                    Some((queue, _)) => self.local(queue).notify_one(),
                    None => self.all_local(),
                },
                Ok(None) => {
                    tracing::warn!("queue.listen.lost");
                    return;
                }
                Err(error) => {
                    tracing::warn!(%error, "queue.listen.lost");
                    return;
                }
            }
        }
    }
}

async fn notify(pool: &PgPool, payloads: &[String]) {
    let sent = sqlx::query!(
        r#"SELECT pg_notify($1, payload) AS "sent: ()" FROM UNNEST($2::text[]) AS t(payload)"#,
        CHANNEL,
        payloads,
    )
    .fetch_all(pool)
    .await;
    if let Err(error) = sent {
        tracing::debug!(%error, "queue.notify.failed");
    }
}
