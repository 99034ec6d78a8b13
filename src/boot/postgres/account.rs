//! Which user the server runs as. Postgres refuses root, so root hands it to an unprivileged user.

use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use nix::unistd::{Uid, User};

use super::error::PostgresError;

/// The user that owns the data and runs the server.
#[derive(Debug, Clone)]
pub(super) struct Account {
    pub name: String,
    pub uid: u32,
    pub gid: u32,
    /// True when we are root and step down to this user for every program of the server.
    pub dropped: bool,
}

impl Account {
    /// Ourselves, or, as root: the owner of data that already exists, else `preferred`
    /// (`IIT_PG_USER`), else `postgres`, else `nobody`.
    pub fn choose(
        preferred: Option<&str>,
        existing_data: Option<&Path>,
    ) -> Result<Self, PostgresError> {
        let me = Uid::effective();
        if !me.is_root() {
            let user = User::from_uid(me).ok().flatten().ok_or_else(|| PostgresError::Account {
                why: format!(
                    "user id {me} has no entry in /etc/passwd, which initdb insists on (add one, e.g. with nss_wrapper)"
                ),
            })?;
            return Ok(Self::of(user, false));
        }
        let account = match preferred {
            Some(name) => Self::of(
                unprivileged(name).ok_or_else(|| PostgresError::Account {
                    why: format!("IIT_PG_USER={name} is no unprivileged user of this machine"),
                })?,
                true,
            ),
            None => {
                let owner = existing_data
                    .and_then(|data| std::fs::metadata(data).ok())
                    .and_then(|meta| User::from_uid(Uid::from_raw(meta.uid())).ok().flatten())
                    .filter(|user| !user.uid.is_root());
                Self::of(
                    owner
                        .or_else(|| unprivileged("postgres"))
                        .or_else(|| unprivileged("nobody"))
                        .ok_or_else(|| PostgresError::Account {
                            why: "neither `postgres` nor `nobody` exists".to_owned(),
                        })?,
                    true,
                )
            }
        };
        Ok(account)
    }

    fn of(user: User, dropped: bool) -> Self {
        Self {
            name: user.name,
            uid: user.uid.as_raw(),
            gid: user.gid.as_raw(),
            dropped,
        }
    }

    /// The name of the user that connects: ourselves.
    pub fn client(&self) -> String {
        if !self.dropped {
            return self.name.clone();
        }
        User::from_uid(Uid::effective())
            .ok()
            .flatten()
            .map_or_else(|| "root".to_owned(), |user| user.name)
    }

    /// A command that runs as this user, away from our own folder and environment: `PGDATA`,
    /// `PGOPTIONS`, `LC_ALL` and their kind would change what the server's programs do.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("LC_ALL", "C").env("TZ", "UTC");
        for kept in ["PATH", "LD_LIBRARY_PATH"] {
            if let Some(value) = std::env::var_os(kept) {
                command.env(kept, value);
            }
        }
        command.current_dir("/").stdin(Stdio::null());
        if self.dropped {
            // With a uid and as root, std also drops the supplementary groups.
            command.uid(self.uid).gid(self.gid);
        }
        command
    }

    /// Gives `path` to this user; nothing to do unless we are root.
    pub fn own(&self, path: &Path) -> Result<(), PostgresError> {
        if !self.dropped {
            return Ok(());
        }
        std::os::unix::fs::lchown(path, Some(self.uid), Some(self.gid))
            .map_err(|e| PostgresError::folder("can't hand over", path, e))
    }

    /// Whether this user may enter `dir`.
    pub fn can_enter(&self, dir: &Path) -> bool {
        let mut probe = self.command(Path::new("/bin/sh"));
        probe.args(["-c", "cd -- \"$1\"", "sh"]).arg(dir);
        matches!(probe.output(), Ok(Output { status, .. }) if status.success())
    }
}

fn unprivileged(name: &str) -> Option<User> {
    User::from_name(name)
        .ok()
        .flatten()
        .filter(|user| !user.uid.is_root())
}

/// Runs `command` to its end; its output in one line when it fails.
pub(super) fn run(what: &str, command: &mut Command) -> Result<String, PostgresError> {
    let failed = |detail: String| PostgresError::Command {
        what: what.to_owned(),
        detail,
    };
    let output = command.output().map_err(|e| {
        failed(format!(
            "{} did not start: {e}",
            command.get_program().to_string_lossy()
        ))
    })?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    if output.status.success() {
        return Ok(stdout.into_owned());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let said = last_lines(&format!("{stdout}\n{stderr}"), 6);
    Err(failed(format!("{said} ({})", output.status)))
}

/// The last `count` lines that say something, joined to one.
pub(super) fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty())
        .collect();
    lines[lines.len().saturating_sub(count)..].join("; ")
}
