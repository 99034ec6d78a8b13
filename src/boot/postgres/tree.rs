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
    let mode = if meta.permissions().mode() & 0o111 == 0 {
        0o644
    } else {
        0o755
    };
    fs::set_permissions(to, fs::Permissions::from_mode(mode))
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        reason = "a failed expectation is the test's verdict"
    )]

    use super::*;

    fn installation(root: &Path) -> PathBuf {
        for dir in ["bin", "lib", "share"] {
            fs::create_dir_all(root.join(dir)).unwrap();
        }
        let program = root.join("bin/postgres");
        fs::write(&program, "#!").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
        std::os::unix::fs::symlink("postgres", root.join("bin/postmaster")).unwrap();
        fs::write(root.join("share/secret"), "x").unwrap();
        fs::set_permissions(root.join("share/secret"), fs::Permissions::from_mode(0o600)).unwrap();
        root.join("bin")
    }

    #[test]
    fn a_copy_is_whole_and_readable_by_all() {
        let dir = tempfile::tempdir().unwrap();
        let bin = installation(&dir.path().join("from"));
        let copied = world_readable_copy(&bin, &dir.path().join("to/15")).unwrap();
        assert_eq!(copied, dir.path().join("to/15/bin"));
        let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(copied.join("postgres")), 0o755);
        assert_eq!(mode(dir.path().join("to/15/share/secret")), 0o644);
        assert_eq!(
            fs::read_link(copied.join("postmaster")).unwrap(),
            Path::new("postgres")
        );
        let again = world_readable_copy(&bin, &dir.path().join("to/15")).unwrap();
        assert_eq!(again, copied);
    }

    #[test]
    fn a_bin_folder_that_stands_alone_is_not_copied() {
        let dir = tempfile::tempdir().unwrap();
        let bin = installation(dir.path());
        fs::remove_dir_all(dir.path().join("share")).unwrap();
        let refusal = world_readable_copy(&bin, &dir.path().join("to/15")).unwrap_err();
        assert!(refusal.contains("no lib and share"), "{refusal}");
        assert!(!dir.path().join("to").exists());
    }
}
