//! Databases for tests.
//!
//! [`TestDb::new`] gives a migrated database of its own on a private cluster that all tests of this
//! process share. The cluster is made by the program's own module with nothing ever synced, and
//! `DATABASE_URL` is not looked at: a test never touches a database that somebody cares about.
//! [`TestCluster::start`] gives a whole cluster to a test that takes it down.
//!
//! A cluster ends with the process that made it, however that ends: a small shell waits on a pipe
//! from us, and when the pipe closes it ends the server and removes the folder. It is in a process
//! group of its own, so Ctrl-C and a runner's time limit don't reach it first.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use iit_manager::boot::postgres::{self, Durability, Handle, Options, StopMode};
use iit_manager::store::db::{self, MIGRATOR, PoolSettings};
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPoolOptions};
use sqlx::{AssertSqlSafe, Connection, PgPool};
use tokio::sync::OnceCell;

/// A migrated database of one test, dropped when the value is.
pub struct TestDb {
    /// Connected as the program connects: same search path, same settings.
    pub pool: PgPool,
    /// For processes that the test starts, e.g. as `DATABASE_URL`.
    pub url: String,
    name: String,
    admin_url: String,
}

impl TestDb {
    /// On the cluster that the tests of this process share.
    pub async fn new() -> Self {
        Self::on(shared_cluster().await).await
    }

    /// On a cluster of the test's own.
    pub async fn on(cluster: &TestCluster) -> Self {
        let template = cluster.template().await;
        let name = format!("test_{}", uuid::Uuid::new_v4().simple());
        let mut admin = connect(&cluster.url_of("postgres")).await;
        let version: i32 = sqlx::query_scalar("SELECT current_setting('server_version_num')::int4")
            .fetch_one(&mut admin)
            .await
            .unwrap();
        // Copying files beats writing them through the log, and needs no sync here.
        let strategy = if version >= 150_000 {
            "STRATEGY file_copy"
        } else {
            ""
        };
        execute(
            &mut admin,
            format!("CREATE DATABASE {name} TEMPLATE {template} {strategy}"),
        )
        .await;
        admin.close().await.unwrap();
        let url = cluster.url_of(&name);
        let settings = PoolSettings {
            application_name: "iit test".to_owned(),
            max_connections: 8,
        };
        let pool = db::connect(&SecretString::from(url.clone()), &settings)
            .await
            .unwrap();
        Self {
            pool,
            url,
            name,
            admin_url: cluster.url_of("postgres"),
        }
    }

    /// A second pool, as another process would have.
    pub async fn another_pool(&self, max_connections: u32) -> PgPool {
        PgPoolOptions::new()
            .max_connections(max_connections)
            .connect_with(
                db::connect_options(&SecretString::from(self.url.clone()), "iit test 2").unwrap(),
            )
            .await
            .unwrap()
    }
}

impl Drop for TestDb {
    fn drop(&mut self) {
        let (name, admin_url) = (self.name.clone(), self.admin_url.clone());
        // A thread with a runtime of its own: this one's may be the test's and busy ending.
        let dropping = std::thread::spawn(move || {
            tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .map(|runtime| {
                    runtime.block_on(async {
                        if let Ok(mut admin) = PgConnection::connect(&admin_url).await {
                            let drop = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
                            let _ = sqlx::query(AssertSqlSafe(drop)).execute(&mut admin).await;
                        }
                    });
                })
        });
        // What is left behind goes with the cluster.
        let _ = dropping.join();
    }
}

/// A cluster of its own, in a temporary folder, gone when the value or the process is.
pub struct TestCluster {
    // Before the folder: the server stops, then what it wrote is removed.
    handle: Handle,
    folder: TestFolder,
    template: OnceCell<String>,
}

impl TestCluster {
    /// Makes and starts one.
    pub async fn start() -> Self {
        let folder = TestFolder::new();
        let handle = postgres::ensure(&folder.options()).await.unwrap();
        Self {
            handle,
            folder,
            template: OnceCell::new(),
        }
    }

    /// Takes the server down as a crash would and starts it again on the same socket. Connections
    /// break; committed data stays.
    pub async fn restart_immediate(&self) {
        self.take_down(StopMode::Immediate).await;
        self.bring_back().await;
    }

    /// Takes the server down and leaves it so.
    pub async fn take_down(&self, mode: StopMode) {
        self.handle.take_down(mode).await.unwrap();
    }

    /// Starts it after [`TestCluster::take_down`].
    pub async fn bring_back(&self) {
        assert!(self.handle.restart_if_down().await.unwrap());
    }

    /// Where it lives: what to name as `IIT_DATA_DIR` for a process that should share it.
    pub fn folder(&self) -> &TestFolder {
        &self.folder
    }

    /// The URL of one of its databases.
    pub fn url_of(&self, database: &str) -> String {
        let options: PgConnectOptions = self.handle.url().expose_secret().parse().unwrap();
        use sqlx::ConnectOptions;
        options.database(database).to_url_lossy().to_string()
    }

    /// The database that test databases are copied from: named by what the migrations say.
    async fn template(&self) -> &str {
        self.template
            .get_or_init(|| async {
                let mut hash = Sha256::new();
                for migration in MIGRATOR.iter() {
                    hash.update(migration.version.to_be_bytes());
                    hash.update(&*migration.checksum);
                }
                let digest: String = hash
                    .finalize()
                    .iter()
                    .take(8)
                    .map(|b| format!("{b:02x}"))
                    .collect();
                let name = format!("template_{digest}");
                let mut admin = connect(&self.url_of("postgres")).await;
                execute(&mut admin, format!("CREATE DATABASE {name}")).await;
                let settings = PoolSettings {
                    application_name: "iit test".to_owned(),
                    max_connections: 1,
                };
                let pool = db::connect(&SecretString::from(self.url_of(&name)), &settings)
                    .await
                    .unwrap();
                db::migrate(&pool).await.unwrap();
                pool.close().await;
                execute(
                    &mut admin,
                    format!("ALTER DATABASE {name} IS_TEMPLATE true ALLOW_CONNECTIONS false"),
                )
                .await;
                admin.close().await.unwrap();
                name
            })
            .await
    }
}

/// A temporary data folder whose keeper outlives this process by a moment: it ends whatever server
/// runs there and removes the folder.
pub struct TestFolder {
    path: PathBuf,
    keeper: Child,
}

impl TestFolder {
    /// Makes one where every user can pass through, since as root the server is another user.
    pub fn new() -> Self {
        let base = [std::env::temp_dir(), "/tmp".into(), "/var/tmp".into()]
            .into_iter()
            .find(|dir| is_passable(dir))
            .unwrap();
        let path = base
            .canonicalize()
            .unwrap()
            .join(format!("iit-test-{}", uuid::Uuid::new_v4().simple()));
        std::fs::create_dir(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o711)).unwrap();
        let keeper = Command::new("/bin/sh")
            .args(["-c", KEEPER, "keeper"])
            .arg(&path)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .unwrap();
        Self { path, keeper }
    }

    /// Options for a private Postgres in here that nobody needs afterwards.
    pub fn options(&self) -> Options {
        Options {
            database_url: None,
            data_dir: self.path.clone(),
            durability: Durability::TestOnly,
            ..Options::from_env()
        }
    }

    /// The process id of the server that runs in here, by its pid file.
    pub fn server_pid(&self) -> Option<i32> {
        Self::server_pid_in(&self.path)
    }

    /// The same for a folder that another process made.
    pub fn server_pid_in(folder: &Path) -> Option<i32> {
        let clusters = std::fs::read_dir(folder).ok()?;
        clusters
            .flatten()
            .find_map(|c| std::fs::read_to_string(c.path().join("data/postmaster.pid")).ok())
            .map(|text| text.lines().next().unwrap().trim().parse().unwrap())
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

/// Waits for the pipe to close, then crashes the servers under `$1` and removes it. Twice, since a
/// start may have been under way.
const KEEPER: &str = r#"
PATH="$PATH:/usr/bin:/bin"
read -r _
sweep() {
    for pid in "$1"/pg*/data/postmaster.pid; do
        [ -f "$pid" ] && kill -QUIT "$(head -n 1 "$pid")"
    done
    rm -rf "$1"
}
sweep "$1"
tries=0
while [ -e "$1" ] && [ "$tries" -lt 50 ]; do sleep 0.1; sweep "$1"; tries=$((tries + 1)); done
"#;

fn is_passable(dir: &Path) -> bool {
    dir.ancestors().all(|d| {
        std::fs::metadata(d).is_ok_and(|m| m.is_dir() && m.permissions().mode() & 0o001 != 0)
    })
}

async fn shared_cluster() -> &'static TestCluster {
    static SHARED: OnceCell<TestCluster> = OnceCell::const_new();
    SHARED.get_or_init(TestCluster::start).await
}

async fn connect(url: &str) -> PgConnection {
    tokio::time::timeout(Duration::from_secs(30), PgConnection::connect(url))
        .await
        .unwrap()
        .unwrap()
}

async fn execute(connection: &mut PgConnection, sql: String) {
    sqlx::query(AssertSqlSafe(sql))
        .execute(connection)
        .await
        .unwrap();
}
