//! Copies an installation to where the server's user can read it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A Postgres takes some 40 MB; a folder far beyond that is a whole environment that happens to
/// hold one.
const LARGEST: u64 = 400 * 1024 * 1024;

/// Copies `bin`'s installation (`bin`, `lib`, `share` side by side) to `target`, readable by all,
/// and returns the copy's bin folder. A finished earlier copy is used again.
pub(super) fn world_readable_copy(bin: &Path, target: &Path) -> Result<PathBuf, String> {
    let name = bin.file_name().ok_or("its folder has no name")?;
    let copied = target.join(name);
    if copied.is_dir() {
        return Ok(copied);
    }
    let prefix = bin.parent().ok_or("its folder stands alone")?;
    if !prefix.join("lib").is_dir() || !prefix.join("share").is_dir() {
        return Err("it has no lib and share beside it to copy along".to_owned());
    }
    let failed = |e: std::io::Error| format!("copying it to {} failed: {e}", target.display());
    let parent = target.parent().ok_or("there is nowhere to copy it to")?;
    fs::create_dir_all(parent).map_err(failed)?;
    fs::set_permissions(parent, fs::Permissions::from_mode(0o755)).map_err(failed)?;
    let unfinished = tempdir_beside(target).map_err(failed)?;
    let mut budget = LARGEST;
    let mut copy = || -> std::io::Result<()> {
        for part in [name, "lib".as_ref(), "share".as_ref()] {
            copy_tree(&prefix.join(part), &unfinished.join(part), &mut budget)?;
        }
        fs::rename(&unfinished, target)
    };
    let outcome = copy();
    if outcome.is_err() {
        let _ = fs::remove_dir_all(&unfinished);
        // Somebody else may have finished the same copy first.
        if copied.is_dir() {
            return Ok(copied);
        }
    }
    outcome.map_err(failed)?;
    Ok(copied)
}

/// A fresh, world-readable folder beside `target`, to be renamed to it when complete.
pub(super) fn tempdir_beside(target: &Path) -> std::io::Result<PathBuf> {
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", uuid::Uuid::new_v4().simple()));
    let dir = target.with_file_name(name);
    fs::create_dir(&dir)?;
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o755))?;
    Ok(dir)
}

fn copy_tree(from: &Path, to: &Path, budget: &mut u64) -> std::io::Result<()> {
    let meta = fs::symlink_metadata(from)?;
    if meta.is_symlink() {
        return std::os::unix::fs::symlink(fs::read_link(from)?, to);
    }
    if meta.is_dir() {
        fs::create_dir(to)?;
        fs::set_permissions(to, fs::Permissions::from_mode(0o755))?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            copy_tree(&entry.path(), &to.join(entry.file_name()), budget)?;
        }
        return Ok(());
    }
    *budget = budget
        .checked_sub(meta.len())
        .ok_or_else(|| std::io::Error::other("it is far larger than a Postgres"))?;
    fs::copy(from, to)?;
    let mode = 0o644 | (meta.permissions().mode() & 0o111);
    fs::set_permissions(to, fs::Permissions::from_mode(mode))
}
