//! The server's own configuration files, written anew at every start.
//!
//! **Who may connect.** No TCP. The socket lies in a 0700 folder and is 0700 itself, and `peer` with
//! a map lets in exactly the user who runs `iit`: the kernel vouches for it, so there is no password
//! to keep, print or lose. As root, the server's own user is *not* on the map, so another daemon of
//! a shared account such as `nobody` gets no connection.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::Durability;
use super::cluster::{Cluster, NAME};
use super::error::PostgresError;

/// Writes the three files; see the module for what they say.
pub(super) fn write(cluster: &Cluster) -> Result<(), PostgresError> {
    let sync = match cluster.durability {
        Durability::Full => "on",
        Durability::TestOnly => "off",
    };
    // Error details quote the values of a row, which may be a patient's: `terse` leaves them out.
    let settings = format!(
        "# Written by iit at every start. Change a setting with ALTER SYSTEM, which is kept.\n\
             listen_addresses = ''\n\
             port = 5432\n\
             unix_socket_directories = {socket}\n\
             unix_socket_permissions = 0700\n\
             hba_file = {hba}\n\
             ident_file = {ident}\n\
             max_connections = {max}\n\
             timezone = 'UTC'\n\
             log_timezone = 'UTC'\n\
             lc_messages = 'C'\n\
             fsync = {sync}\n\
             full_page_writes = {sync}\n\
             synchronous_commit = on\n\
             log_error_verbosity = terse\n\
             logging_collector = on\n\
             log_directory = 'log'\n\
             log_filename = 'postgresql-%a.log'\n\
             log_rotation_age = 1d\n\
             log_rotation_size = 0\n\
             log_truncate_on_rotation = on\n",
        socket = setting_quoted(&cluster.socket),
        hba = setting_quoted(&cluster.home.join("pg_hba.conf")),
        ident = setting_quoted(&cluster.home.join("pg_ident.conf")),
        max = cluster.max_connections,
    );
    let client = cluster.account.client();
    for (name, text) in [
        ("postgresql.conf", settings),
        ("pg_hba.conf", format!("local all {NAME} peer map=iit\n")),
        (
            "pg_ident.conf",
            format!("iit \"{}\" {NAME}\n", client.replace('"', "\"\"")),
        ),
    ] {
        let path = cluster.home.join(name);
        fs::write(&path, text)
            .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(0o644)))
            .map_err(|e| PostgresError::folder("can't write", &path, e))?;
    }
    Ok(())
}

/// A value of postgresql.conf.
fn setting_quoted(path: &Path) -> String {
    format!("'{}'", path.to_string_lossy().replace('\'', "''"))
}

/// A word for the shell that pg_ctl hands its options to.
pub(super) fn shell_quoted(path: &Path) -> String {
    format!("'{}'", path.to_string_lossy().replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_in_a_path_stay_quotes() {
        assert_eq!(setting_quoted(Path::new("/a'b")), "'/a''b'");
        assert_eq!(shell_quoted(Path::new("/a'b")), "'/a'\\''b'");
    }
}
