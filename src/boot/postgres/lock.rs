//! Two files decide who starts and who stops: `control.lock` is held while deciding, `users.lock`
//! is held, shared, by every process that uses the cluster. The kernel lets go of both when a
//! process dies, however it dies.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::error::PostgresError;

/// Held while starting or stopping.
#[derive(Debug)]
pub(super) struct Control {
    _file: File,
}

/// Waits until nobody else starts or stops this cluster.
pub(super) fn control(home: &Path) -> Result<Control, PostgresError> {
    let file = open(home, "control.lock")?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            tracing::info!("another iit starts or stops this Postgres; waiting for it");
            file.lock()
                .map_err(|e| PostgresError::folder("can't lock", home.join("control.lock"), e))?;
        }
        Err(TryLockError::Error(e)) => {
            return Err(PostgresError::folder(
                "can't lock",
                home.join("control.lock"),
                e,
            ));
        }
    }
    Ok(Control { _file: file })
}

/// One user of the cluster.
#[derive(Debug)]
pub(super) struct Membership {
    file: File,
}

impl Membership {
    /// Joins the users. Under the control lock, so it never waits.
    pub fn join(home: &Path, _held: &Control) -> Result<Self, PostgresError> {
        let file = open(home, "users.lock")?;
        file.lock_shared()
            .map_err(|e| PostgresError::folder("can't lock", home.join("users.lock"), e))?;
        Ok(Self { file })
    }

    /// Leaves the users; true when nobody is left. Nobody can join in between: that takes the
    /// control lock too.
    pub fn leave(self, _held: &Control) -> bool {
        self.file.unlock().is_ok() && self.file.try_lock().is_ok()
    }
}

fn open(home: &Path, name: &str) -> Result<File, PostgresError> {
    let path = home.join(name);
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path)
        .map_err(|e| PostgresError::folder("can't open", &path, e))
}
