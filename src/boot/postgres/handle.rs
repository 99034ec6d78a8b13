//! What a process holds while it uses the database.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use secrecy::SecretString;
use sqlx::migrate::MigrateDatabase;
use tokio_util::sync::CancellationToken;

use super::account::Account;
use super::cluster::{self, Cluster, NAME, StopMode};
use super::error::PostgresError;
use super::lock::{self, Control, Membership};
use super::pidfile::Server;
use super::{Options, binaries};

/// How often [`Handle::keep_running`] looks whether the server is still there.
const WATCH_EVERY: Duration = Duration::from_secs(1);

/// This process's share of the database. While it lives, the private server is not stopped by
/// others; [`Handle::stop`] (or dropping it) lets go, and the last to let go stops the server.
#[derive(Debug)]
pub struct Handle {
    url: SecretString,
    private: Option<Arc<Private>>,
}

#[derive(Debug)]
struct Private {
    cluster: Cluster,
    /// `None` once this process has let go.
    membership: Mutex<Option<Membership>>,
}

/// Finds or starts the database of this user; see the module for how.
///
/// Safe to call from several processes at once: one starts the server, the others wait and share it.
///
/// # Errors
/// [`PostgresError`], one sentence with what to do about it.
pub async fn ensure(options: &Options) -> Result<Handle, PostgresError> {
    if let Some(url) = &options.database_url {
        tracing::info!("Postgres: DATABASE_URL");
        return Ok(Handle {
            url: url.clone(),
            private: None,
        });
    }
    let options = options.clone();
    let (private, control) = blocking(move || Private::open(&options)).await?;
    let url = private.url();
    let handle = Handle {
        url: SecretString::from(url.clone()),
        private: Some(Arc::new(private)),
    };
    handle.create_database(&url).await?;
    drop(control);
    Ok(handle)
}

impl Handle {
    /// Where to connect. The private server's holds no secret, an outside one's may.
    #[must_use]
    pub fn url(&self) -> &SecretString {
        &self.url
    }

    /// Whether this is the private server, not `DATABASE_URL`.
    #[must_use]
    pub fn is_private(&self) -> bool {
        self.private.is_some()
    }

    /// One line on what was chosen, for `iit doctor` and the log.
    #[must_use]
    pub fn describe(&self) -> String {
        match &self.private {
            None => "DATABASE_URL".to_owned(),
            Some(private) => private.describe(),
        }
    }

    /// Starts the private server again if somebody else took it down; true if it had to. Does
    /// nothing after [`Handle::stop`] and for an outside database.
    ///
    /// # Errors
    /// When it can't be started.
    pub async fn restart_if_down(&self) -> Result<bool, PostgresError> {
        let Some(private) = self.private.clone() else {
            return Ok(false);
        };
        blocking(move || private.restart_if_down()).await
    }

    /// Keeps the private server running until `stopping`: a long-lived process runs this beside its
    /// work, so that a crashed server comes back without a person.
    pub async fn keep_running(&self, stopping: CancellationToken) {
        if self.private.is_none() {
            return;
        }
        let mut every = tokio::time::interval(WATCH_EVERY);
        every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while stopping.run_until_cancelled(every.tick()).await.is_some() {
            match self.restart_if_down().await {
                Ok(true) => tracing::warn!("postgres.restarted: it had gone down"),
                Ok(false) => {}
                Err(error) => tracing::error!(%error, "postgres.restart.failed"),
            }
        }
    }

    /// Lets go; the last process to do so stops the private server and waits until it is gone.
    /// Close pools first, or their connections are cut.
    ///
    /// # Errors
    /// When the server can't be stopped; it is then left running and the next `iit` finds it.
    pub async fn stop(mut self) -> Result<(), PostgresError> {
        let Some(private) = self.private.take() else {
            return Ok(());
        };
        blocking(move || private.let_go()).await
    }

    /// Takes the private server down at once as a crash would, or in order, whoever else uses it.
    /// For tests of what happens then; [`Handle::restart_if_down`] brings it back.
    ///
    /// # Errors
    /// When it can't be stopped.
    pub async fn take_down(&self, mode: StopMode) -> Result<(), PostgresError> {
        let Some(private) = self.private.clone() else {
            return Ok(());
        };
        blocking(move || {
            let _control = lock::control(&private.cluster.home)?;
            private.cluster.stop(mode)
        })
        .await
    }

    async fn create_database(&self, url: &str) -> Result<(), PostgresError> {
        let answer = async {
            if !sqlx::Postgres::database_exists(url).await? {
                sqlx::Postgres::create_database(url).await?;
            }
            Ok(())
        };
        answer.await.map_err(|source| PostgresError::Connect {
            socket: self
                .private
                .as_ref()
                .map(|p| p.cluster.socket.clone())
                .unwrap_or_default(),
            source,
        })
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // The way out of an error or a panic; the orderly one is `stop`.
        if let Some(private) = self.private.take()
            && let Err(error) = private.let_go()
        {
            tracing::error!(%error, "postgres.stop.failed");
        }
    }
}

impl Private {
    /// Picks the programs, starts the server unless it runs, joins its users. The control lock comes
    /// back still held: the database has to be made under it too.
    fn open(options: &Options) -> Result<(Self, Control), PostgresError> {
        let clusters = cluster::existing(&options.data_dir);
        let account = Account::choose(
            options.run_as.as_deref(),
            clusters.last().map(|(_, data)| data.as_path()),
        )?;
        let installation = binaries::resolve(options, &account, &clusters)?;
        let cluster = Cluster::prepare(options, account, installation)?;
        let control = lock::control(&cluster.home)?;
        let membership = Membership::join(&cluster.home, &control)?;
        let private = Self {
            cluster,
            membership: Mutex::new(Some(membership)),
        };
        let started = private.cluster.start()?;
        tracing::info!(
            "Postgres: {}{}",
            private.describe(),
            if started { "" } else { ", already running" }
        );
        Ok((private, control))
    }

    fn url(&self) -> String {
        let socket = self.cluster.socket.to_string_lossy();
        let socket: String = socket
            .bytes()
            .map(|b| match b {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' => {
                    char::from(b).to_string()
                }
                _ => format!("%{b:02X}"),
            })
            .collect();
        format!("postgres://{NAME}@{socket}:5432/{NAME}?sslmode=disable")
    }

    fn describe(&self) -> String {
        let Cluster {
            installation,
            account,
            data,
            ..
        } = &self.cluster;
        let whose = if account.dropped {
            format!(", run as user {}", account.name)
        } else {
            String::new()
        };
        format!(
            "private {} from {} ({}), data in {}{whose}",
            installation.version,
            installation.bin.display(),
            installation.found,
            data.display()
        )
    }

    fn restart_if_down(&self) -> Result<bool, PostgresError> {
        if matches!(self.cluster.state(), Server::Ready(_)) {
            return Ok(false);
        }
        let _control = lock::control(&self.cluster.home)?;
        let membership = self
            .membership
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if membership.is_none() {
            return Ok(false);
        }
        self.cluster.start()
    }

    fn let_go(&self) -> Result<(), PostgresError> {
        let control = lock::control(&self.cluster.home)?;
        let membership = self
            .membership
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if membership.is_some_and(|m| m.leave(&control)) {
            self.cluster.stop(StopMode::Fast)?;
        }
        Ok(())
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, PostgresError> + Send + 'static,
) -> Result<T, PostgresError> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|panic| {
            Err(PostgresError::Command {
                what: "managing the private Postgres".to_owned(),
                detail: panic.to_string(),
            })
        })
}
