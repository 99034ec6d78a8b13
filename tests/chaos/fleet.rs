//! The processes under test: started, watched and started again, as a supervisor does it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::process::{Child, Command};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::history::History;
use crate::proxy::Line;

/// How long a supervisor waits before it starts a process again.
const RESTART_AFTER: Duration = Duration::from_millis(200);
/// How long an orderly end may take.
const STOP_WITHIN: Duration = Duration::from_secs(45);

/// One place a process runs in. Cheap to clone.
#[derive(Clone)]
pub struct Slot {
    pub name: String,
    pub line: Line,
    orders: mpsc::Sender<Order>,
}

struct Order(Signal, oneshot::Sender<bool>);

/// What a slot's process is told by its environment.
pub type Variables = BTreeMap<String, String>;

/// All of them.
pub struct Fleet {
    pub slots: Vec<Slot>,
    supervisors: JoinSet<Result<()>>,
    stop: CancellationToken,
    /// Processes that ended without having been killed.
    pub fell: Arc<AtomicUsize>,
}

impl Fleet {
    pub fn new() -> Self {
        Self {
            slots: Vec::new(),
            supervisors: JoinSet::new(),
            stop: CancellationToken::new(),
            fell: Arc::default(),
        }
    }

    /// Starts a process and keeps it running.
    pub fn add(
        &mut self,
        name: &str,
        role: &'static str,
        line: Line,
        variables: Variables,
        place: &Folders,
        history: &History,
    ) -> Result<()> {
        let (orders, taken) = mpsc::channel(8);
        let log = place.logs.join(format!("{name}.log"));
        fs::write(&log, "").with_context(|| format!("making {}", log.display()))?;
        let supervised = Supervised {
            name: name.to_owned(),
            role,
            variables,
            work: place.work.clone(),
            log,
            history: history.clone(),
            stop: self.stop.clone(),
            fell: Arc::clone(&self.fell),
        };
        self.supervisors.spawn(supervised.run(taken));
        self.slots.push(Slot {
            name: name.to_owned(),
            line,
            orders,
        });
        Ok(())
    }

    /// Asks all to stop and waits for their orderly ends.
    pub async fn stop(mut self) -> Result<()> {
        self.stop.cancel();
        while let Some(ended) = self.supervisors.join_next().await {
            ended??;
        }
        Ok(())
    }
}

impl Slot {
    /// Sends a signal; false when there is no process right now. After SIGKILL the process is gone.
    pub async fn signal(&self, signal: Signal) -> bool {
        let (done, answer) = oneshot::channel();
        self.orders.send(Order(signal, done)).await.is_ok() && answer.await.unwrap_or(false)
    }
}

/// Where processes work and where what they say is kept.
pub struct Folders {
    pub work: PathBuf,
    pub logs: PathBuf,
}

struct Supervised {
    name: String,
    role: &'static str,
    variables: Variables,
    work: PathBuf,
    log: PathBuf,
    history: History,
    stop: CancellationToken,
    fell: Arc<AtomicUsize>,
}

impl Supervised {
    async fn run(self, mut orders: mpsc::Receiver<Order>) -> Result<()> {
        while !self.stop.is_cancelled() {
            let mut child = self.start()?;
            self.until_gone(&mut child, &mut orders).await?;
            let pause = tokio::time::sleep(RESTART_AFTER);
            tokio::pin!(pause);
            loop {
                tokio::select! {
                    () = &mut pause => break,
                    Some(Order(_, done)) = orders.recv() => { let _ = done.send(false); }
                }
            }
        }
        Ok(())
    }

    fn start(&self) -> Result<Child> {
        let log = File::options().append(true).open(&self.log)?;
        let mut command = iit(&self.work);
        command
            .arg(self.role)
            .envs(&self.variables)
            .stderr(Stdio::from(log));
        command.spawn().context("starting iit")
    }

    async fn until_gone(
        &self,
        child: &mut Child,
        orders: &mut mpsc::Receiver<Order>,
    ) -> Result<()> {
        loop {
            tokio::select! {
                status = child.wait() => {
                    let status = status?;
                    // A process that a Postgres on its way up refused ends with 3; its supervisor tries again.
                    self.history.note(format!("{} ended by itself: {status}", self.name));
                    self.fell.fetch_add(1, Ordering::Relaxed);
                    return Ok(());
                }
                Some(Order(signal, done)) = orders.recv() => {
                    let sent = send(child, signal);
                    if signal == Signal::SIGKILL && sent {
                        child.wait().await?;
                        let _ = done.send(true);
                        return Ok(());
                    }
                    let _ = done.send(sent);
                }
                () = self.stop.cancelled() => return self.end(child).await,
            }
        }
    }

    async fn end(&self, child: &mut Child) -> Result<()> {
        send(child, Signal::SIGCONT);
        send(child, Signal::SIGTERM);
        let status = tokio::time::timeout(STOP_WITHIN, child.wait())
            .await
            .with_context(|| format!("{} did not stop when it was asked to", self.name))??;
        ensure!(status.success(), "{} stopped with {status}", self.name);
        Ok(())
    }
}

/// Only to a child that was not reaped: its number is still its own.
fn send(child: &Child, signal: Signal) -> bool {
    let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
    pid.is_some_and(|pid| kill(Pid::from_raw(pid), signal).is_ok())
}

/// The program in an environment that says nothing, in a folder without settings.
pub fn iit(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iit"));
    command.env_clear();
    for name in ["PATH", "HOME", "LD_LIBRARY_PATH", "TMPDIR"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command
        .env("IIT_DATA_DIR", folder.join("data"))
        .env("RUST_LOG", "warn")
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .kill_on_drop(true);
    command
}
