//! One cluster on disk: made once, started, stopped, found running.
//!
//! ```text
//! <data dir>/pg15/            ours (as root: root's)
//!   control.lock              held while somebody decides to start or stop
//!   users.lock                held, shared, by every process that uses the cluster
//!   postgresql.conf …         written at each start
//!   data/                     the server user's, 0700
//!   run/                      the socket; the server user's, 0700
//! ```

use std::fs;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::account::{Account, last_lines, run};
use super::binaries::Installation;
use super::error::PostgresError;
use super::pidfile::{self, Server};
use super::settings;
use super::{Durability, Options};

/// How long a start may take; recovery after a crash of a large cluster is the long case.
const START_TIMEOUT_S: u32 = 180;
/// How long a fast stop may take before it counts as failed.
const STOP_TIMEOUT_S: u32 = 60;
/// How long the processes of a server that was killed may take to follow it.
const ORPHANS_GO_WITHIN: Duration = Duration::from_secs(20);
/// A Unix socket's path has 107 bytes at most; the server adds `/.s.PGSQL.5432.lock`.
const LONGEST_SOCKET_DIR: usize = 86;
/// The role and the database.
pub(super) const NAME: &str = "iit";

/// How a cluster is taken down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopMode {
    /// Ends connections, writes everything out.
    Fast,
    /// As a power cut would; the next start recovers.
    Immediate,
}

#[derive(Debug)]
pub(super) struct Cluster {
    pub home: PathBuf,
    pub data: PathBuf,
    pub socket: PathBuf,
    pub account: Account,
    pub installation: Installation,
    pub durability: Durability,
    pub max_connections: u32,
}

impl Cluster {
    /// Lays out the folders; starts nothing.
    pub fn prepare(
        options: &Options,
        account: Account,
        installation: Installation,
    ) -> Result<Self, PostgresError> {
        // The server's user has to pass through; what is secret in there has its own mode.
        let passable = if account.dropped { 0o711 } else { 0o700 };
        let home = options.data_dir.join(format!("pg{}", installation.major));
        for dir in [&options.data_dir, &home] {
            ensure_dir(dir, passable)?;
        }
        let home = home
            .canonicalize()
            .map_err(|e| PostgresError::folder("can't resolve", &home, e))?;
        if account.dropped && !account.can_enter(&home) {
            return Err(PostgresError::folder(
                "can't use",
                &home,
                format!(
                    "as root, Postgres runs as user {}, who may not enter it; set IIT_DATA_DIR to a folder under /var/lib or open the folders above it (chmod o+x)",
                    account.name
                ),
            ));
        }
        let socket = socket_dir(&home, &account);
        ensure_dir(&socket, 0o700)?;
        account.own(&socket)?;
        let owner = fs::symlink_metadata(&socket)
            .map_err(|e| PostgresError::folder("can't read", &socket, e))?;
        if !owner.is_dir() || owner.uid() != account.uid {
            return Err(PostgresError::folder(
                "can't use",
                &socket,
                "it belongs to somebody else; remove it",
            ));
        }
        Ok(Self {
            data: home.join("data"),
            home,
            socket,
            account,
            installation,
            durability: options.durability,
            max_connections: options.max_connections,
        })
    }

    pub fn state(&self) -> Server {
        pidfile::look(&self.data)
    }

    /// Makes sure a server takes connections. The caller holds the control lock. Returns whether it
    /// had to be started.
    pub fn start(&self) -> Result<bool, PostgresError> {
        let deadline = Instant::now() + Duration::from_secs(START_TIMEOUT_S.into());
        loop {
            match self.state() {
                Server::Ready(_) => return Ok(false),
                Server::Busy(_) if Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(50));
                }
                Server::Busy(pid) => {
                    return Err(PostgresError::Command {
                        what: format!("waiting for the Postgres that runs as process {pid}"),
                        detail: format!("it was not ready after {START_TIMEOUT_S} s"),
                    });
                }
                Server::Stale => self.remove_stale_pid_file()?,
                Server::Down => break,
            }
        }
        self.initialise()?;
        settings::write(self)?;
        let mut start = self.account.command(&self.installation.program("pg_ctl"));
        start
            .args(["start", "--silent", "--wait"])
            .arg(format!("--timeout={START_TIMEOUT_S}"))
            .arg("-D")
            .arg(&self.data)
            .arg("-l")
            .arg(self.data.join("startup.log"))
            .arg("-o")
            .arg(format!(
                "-c config_file={}",
                settings::shell_quoted(&self.home.join("postgresql.conf"))
            ));
        // pg_ctl starts the server in a session of its own: the terminal's Ctrl-C does not reach it.
        run("starting Postgres", &mut start).map_err(|error| match error {
            PostgresError::Command { what, detail } => PostgresError::Command {
                what,
                detail: format!("{}; {detail}", self.said()),
            },
            other => other,
        })?;
        Ok(true)
    }

    /// Takes the server down and waits until it is gone; fine if there is none.
    pub fn stop(&self, mode: StopMode) -> Result<(), PostgresError> {
        if matches!(self.state(), Server::Down | Server::Stale) {
            return Ok(());
        }
        let mode = match mode {
            StopMode::Fast => "fast",
            StopMode::Immediate => "immediate",
        };
        let mut stop = self.account.command(&self.installation.program("pg_ctl"));
        stop.args(["stop", "--silent", "--wait", "--mode", mode])
            .arg(format!("--timeout={STOP_TIMEOUT_S}"))
            .arg("-D")
            .arg(&self.data);
        match run("stopping Postgres", &mut stop) {
            // It went by itself between the look and the stop.
            Err(_) if matches!(self.state(), Server::Down | Server::Stale) => Ok(()),
            other => other.map(drop),
        }
    }

    /// The end of what the server wrote, with where to read more.
    fn said(&self) -> String {
        let newest = fs::read_dir(self.data.join("log"))
            .into_iter()
            .flatten()
            .flatten()
            .max_by_key(|entry| entry.metadata().and_then(|m| m.modified()).ok())
            .map(|entry| entry.path());
        [Some(self.data.join("startup.log")), newest]
            .into_iter()
            .flatten()
            .map(|log| {
                let text = fs::read(&log).unwrap_or_default();
                let end = last_lines(&String::from_utf8_lossy(&text), 3);
                format!("{}: {end}", log.display())
            })
            .collect::<Vec<_>>()
            .join("; ")
    }

    fn initialise(&self) -> Result<(), PostgresError> {
        if self.data.join("PG_VERSION").is_file() {
            self.check_owner()?;
            return self.check_major();
        }
        // A start that was killed half-way leaves this folder, never a half-made `data`.
        let unfinished = self.home.join("data.new");
        if unfinished.exists() {
            fs::remove_dir_all(&unfinished)
                .map_err(|e| PostgresError::folder("can't remove", &unfinished, e))?;
        }
        ensure_dir(&unfinished, 0o700)?;
        self.account.own(&unfinished)?;
        let mut initdb = self.account.command(&self.installation.program("initdb"));
        initdb
            .arg("-D")
            .arg(&unfinished)
            .args(["-U", NAME, "--auth=peer", "--locale=C.UTF-8"])
            .args(["--encoding=UTF8", "--no-instructions"]);
        if self.durability == Durability::TestOnly {
            initdb.arg("--no-sync");
        }
        run("initdb", &mut initdb)?;
        fs::rename(&unfinished, &self.data)
            .map_err(|e| PostgresError::folder("can't rename to", &self.data, e))
    }

    fn check_owner(&self) -> Result<(), PostgresError> {
        let owner = fs::metadata(&self.data)
            .map_err(|e| PostgresError::folder("can't read", &self.data, e))?
            .uid();
        if owner == self.account.uid {
            return Ok(());
        }
        Err(PostgresError::folder(
            "can't use",
            &self.data,
            format!(
                "it belongs to user id {owner}, but Postgres would run as {}; set IIT_PG_USER to its owner, or chown -R it",
                self.account.name
            ),
        ))
    }

    fn check_major(&self) -> Result<(), PostgresError> {
        let version = self.data.join("PG_VERSION");
        let text = fs::read_to_string(&version)
            .map_err(|e| PostgresError::folder("can't read", &version, e))?;
        match text.trim().parse::<u32>() {
            Ok(have) if have == self.installation.major => Ok(()),
            Ok(have) => Err(PostgresError::MajorMismatch {
                data: self.data.clone(),
                have,
                found: self.installation.version.clone(),
            }),
            Err(_) => Err(PostgresError::folder(
                "can't use",
                &version,
                "it holds no version; restore the folder from a backup",
            )),
        }
    }

    /// The server itself refuses to start while the pid in its file lives, whatever that process
    /// is, or while backends of the old server are left. They go by themselves; then the file may.
    fn remove_stale_pid_file(&self) -> Result<(), PostgresError> {
        let path = self.data.join("postmaster.pid");
        let deadline = Instant::now() + ORPHANS_GO_WITHIN;
        while pidfile::has_orphans(&self.account, &self.data) {
            if Instant::now() > deadline {
                return Err(PostgresError::folder(
                    "can't start from",
                    &self.data,
                    "its server is gone but some of its processes still run; end them and try again",
                ));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        tracing::info!(path = %path.display(), "postgres.stale_pid_file.removed");
        // The socket's lock holds the same pid, and no other server uses this folder.
        for left_behind in [
            self.socket.join(".s.PGSQL.5432.lock"),
            self.socket.join(".s.PGSQL.5432"),
            path,
        ] {
            match fs::remove_file(&left_behind) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                    return Err(PostgresError::folder("can't remove", &left_behind, e));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// The clusters under `data_dir` that hold data: (major, folder), lowest first.
pub(super) fn existing(data_dir: &Path) -> Vec<(u32, PathBuf)> {
    let mut found: Vec<(u32, PathBuf)> = fs::read_dir(data_dir)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let major = entry
                .file_name()
                .to_str()?
                .strip_prefix("pg")?
                .parse()
                .ok()?;
            let data = entry.path().join("data");
            data.join("PG_VERSION").is_file().then_some((major, data))
        })
        .collect();
    found.sort();
    found
}

/// `home/run`, or, when that is too long for a socket, a short name that the same home always gets.
fn socket_dir(home: &Path, account: &Account) -> PathBuf {
    let beside = home.join("run");
    if beside.as_os_str().len() <= LONGEST_SOCKET_DIR {
        return beside;
    }
    use sha2::{Digest, Sha256};
    use std::os::unix::ffi::OsStrExt;
    let digest = Sha256::digest(home.as_os_str().as_bytes());
    let short: String = digest.iter().take(6).map(|b| format!("{b:02x}")).collect();
    let root = if account.dropped && Path::new("/run").is_dir() {
        "/run"
    } else {
        "/tmp"
    };
    Path::new(root).join(format!("iit-{}-{short}", account.uid))
}

/// Creates `dir` with `mode`; of one that exists and is ours, adds the bits that are missing to pass
/// through.
fn ensure_dir(dir: &Path, mode: u32) -> Result<(), PostgresError> {
    let made = fs::DirBuilder::new().recursive(true).mode(mode).create(dir);
    made.map_err(|e| {
        PostgresError::folder(
            "can't create",
            dir,
            format!("{e}; set IIT_DATA_DIR to a folder you may write"),
        )
    })?;
    let have = fs::metadata(dir)
        .map_err(|e| PostgresError::folder("can't read", dir, e))?
        .permissions()
        .mode()
        & 0o777;
    let want = if mode == 0o711 { have | 0o111 } else { have };
    if want != have {
        fs::set_permissions(dir, fs::Permissions::from_mode(want))
            .map_err(|e| PostgresError::folder("can't open up", dir, e))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_home_gets_a_short_socket_that_is_always_the_same() {
        let account = Account {
            name: "a".into(),
            uid: 1000,
            gid: 1000,
            dropped: false,
        };
        let short = Path::new("/home/a/.local/share/iit/pg15");
        assert_eq!(socket_dir(short, &account), short.join("run"));
        let long = PathBuf::from(format!("/home/{}/pg15", "x".repeat(90)));
        let dir = socket_dir(&long, &account);
        assert!(dir.as_os_str().len() < 40, "{dir:?}");
        assert_eq!(dir, socket_dir(&long, &account));
        assert_ne!(dir, socket_dir(&long.join("y"), &account));
    }
}
