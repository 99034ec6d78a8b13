//! Whether a data folder has a live server, read from its `postmaster.pid`.
//!
//! A pid alone proves nothing: after a crash and a reboot, or in a new container, the number may
//! belong to anything. A server is ours when its command line names our data folder.

use std::fs;
use std::path::Path;

use super::account::Account;

/// What stands behind a data folder right now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Server {
    /// No server.
    Down,
    /// No server, but the pid file of one that died, and perhaps processes of it.
    Stale,
    /// A server that does not take connections yet, or no more.
    Busy(i32),
    /// A server that takes connections.
    Ready(i32),
}

/// Looks at `data/postmaster.pid`.
pub(super) fn look(data: &Path) -> Server {
    let Ok(text) = fs::read_to_string(data.join("postmaster.pid")) else {
        return Server::Down;
    };
    let mut lines = text.lines();
    let pid = lines.next().and_then(|l| l.trim().parse::<i32>().ok());
    let Some(pid) = pid.filter(|pid| *pid > 0) else {
        return Server::Stale;
    };
    // Of a killed server that nobody has collected yet the command line is empty.
    let command_line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    if !serves(&command_line, data) {
        return Server::Stale;
    }
    // Line 8 is the server's own word on its state.
    match lines.nth(6).map(str::trim) {
        Some("ready") => Server::Ready(pid),
        _ => Server::Busy(pid),
    }
}

fn serves(command_line: &[u8], data: &Path) -> bool {
    use std::os::unix::ffi::OsStrExt;
    let args: Vec<&[u8]> = command_line.split(|b| *b == 0).collect();
    args.windows(2)
        .any(|pair| matches!(pair, [b"-D", dir] if *dir == data.as_os_str().as_bytes()))
}

/// Whether backends of a dead server still run in `data`. The account asks, since only it (or a
/// fully privileged root) may read where its processes are.
pub(super) fn has_orphans(account: &Account, data: &Path) -> bool {
    let mut scan = account.command(Path::new("/bin/sh"));
    scan.args(["-c", "for p in /proc/[0-9]*; do readlink \"$p/cwd\"; done"]);
    scan.output().is_ok_and(|output| {
        String::from_utf8_lossy(&output.stdout)
            .lines()
            .any(|dir| Path::new(dir) == data)
    })
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        reason = "a failed expectation is the test's verdict"
    )]

    use super::*;

    #[test]
    fn a_pid_that_belongs_to_something_else_is_stale() {
        let dir = tempfile::tempdir().unwrap();
        let ourselves = std::process::id();
        fs::write(
            dir.path().join("postmaster.pid"),
            format!("{ourselves}\n/data\n0\n5432\n/run\n\n 1 2\nready   \n"),
        )
        .unwrap();
        assert_eq!(look(dir.path()), Server::Stale);
    }

    #[test]
    fn a_dead_or_unreadable_pid_is_stale_and_no_file_means_down() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(look(dir.path()), Server::Down);
        for damaged in [
            "",
            "\n",
            "x",
            "-1\n",
            "0\n",
            "99999999999999\n",
            "4194999\n",
        ] {
            fs::write(dir.path().join("postmaster.pid"), damaged).unwrap();
            assert_eq!(look(dir.path()), Server::Stale, "{damaged:?}");
        }
    }

    #[test]
    fn a_server_is_known_by_its_data_folder() {
        let data = Path::new("/var/lib/iit/pg15/data");
        assert!(serves(
            b"/usr/bin/postgres\0-D\0/var/lib/iit/pg15/data\0",
            data
        ));
        assert!(!serves(b"/usr/bin/postgres\0-D\0/other\0", data));
        assert!(!serves(b"vi\0/var/lib/iit/pg15/data\0", data));
    }
}
