//! The private Postgres over its life: shared, adopted, crashed, watched.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use iit_manager::boot::postgres::{self, Durability, Handle, Options, StopMode};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, Uid, getsid};
use secrecy::ExposeSecret;
use sqlx::{Connection, PgConnection, Row};
use tokio_util::sync::CancellationToken;

use crate::support::postgres::{TestCluster, TestFolder};

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

/// Not a test of its own: makes a cluster as tests do and waits to be killed.
#[tokio::test]
#[ignore = "run by another test as a process of its own"]
async fn test_process() {
    if std::env::var_os("IIT_TEST_CLUSTER").is_none() {
        return;
    }
    let cluster = TestCluster::start().await;
    println!("holding {}", cluster.folder().path().display());
    std::future::pending::<()>().await;
}

/// Another process that uses the cluster of a folder.
struct SecondProcess {
    child: Child,
    stdin: Option<ChildStdin>,
    /// Kept open: a closed one would fail what it prints at its end.
    _stdout: BufReader<ChildStdout>,
    /// What it says it holds; for [`second_process`], when the server was started.
    held: String,
}

impl SecondProcess {
    fn spawn(folder: &Path) -> Child {
        Self::run("postgres::second_process", "IIT_TEST_DATA_DIR", folder)
    }

    fn run(test: &str, variable: &str, value: &Path) -> Child {
        Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "--nocapture"])
            .arg(test)
            .env(variable, value)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Waits until it holds the cluster.
    fn holding(mut child: Child) -> Self {
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let held = stdout
            .by_ref()
            .lines()
            .map_while(Result::ok)
            .find_map(|line| Some(line.split_once("holding ")?.1.to_owned()))
            .expect("the second process ends without the cluster");
        Self {
            stdin: child.stdin.take(),
            child,
            _stdout: stdout,
            held,
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

#[tokio::test]
async fn a_second_process_shares_the_server_and_the_last_one_stops_it() {
    let folder = TestFolder::new();
    let first = postgres::ensure(&folder.options()).await.unwrap();
    let second = SecondProcess::start(folder.path());
    assert_eq!(second.held, server_start(&first).await);
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
    let started = owner.held.clone();
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
        assert_eq!(process.held, processes[0].held);
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
async fn the_cluster_of_a_test_process_that_is_killed_vanishes() {
    let child = SecondProcess::run("postgres::test_process", "IIT_TEST_CLUSTER", "1".as_ref());
    let process = SecondProcess::holding(child);
    let folder = std::path::PathBuf::from(&process.held);
    let server = TestFolder::server_pid_in(&folder).unwrap();
    process.kill();
    let gone = async {
        let mut looks = tokio::time::interval(Duration::from_millis(20));
        // A killed server that nobody has collected yet has no command line any more.
        let runs = || std::fs::read(format!("/proc/{server}/cmdline")).is_ok_and(|c| !c.is_empty());
        while folder.exists() || runs() {
            looks.tick().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), gone)
        .await
        .unwrap();
}
