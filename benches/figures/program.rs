//! `iit` as a process of its own.

use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::machine::kilobytes;
use crate::place::{Base, Place};

/// Nothing here takes this long; a wait beyond it fails instead of hanging.
pub const PATIENCE: Duration = Duration::from_secs(300);
/// Peaks shorter than this may be missed; the kernel's own high-water mark is what is read.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// The program on `base`, with no settings of the person who measures.
pub fn iit(place: &Place, base: &Base, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iit"));
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        let ours = ["IIT_", "WECOM_", "LLM_"];
        if ours.iter().any(|prefix| name.starts_with(prefix)) {
            command.env_remove(&*name);
        }
    }
    command
        .args(args)
        .env("DATABASE_URL", &base.url)
        .env_remove("RUST_LOG")
        // No .env of the repository.
        .current_dir(place.folder())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// A long-lived process that said it has started.
pub struct Running {
    child: Child,
    pid: i32,
}

impl Running {
    pub async fn start(mut command: Command) -> Result<Self> {
        let mut child = command.spawn().context("starting iit")?;
        let pid = pid_of(&child)?;
        let stderr = child.stderr.take().context("iit without stderr")?;
        let mut lines = BufReader::new(stderr).lines();
        let started = async {
            let mut said = Vec::new();
            while let Some(line) = lines.next_line().await? {
                if line.contains("process.started") {
                    return Ok(lines);
                }
                said.push(line);
            }
            bail!("iit ended at its start: {}", said.join(" | "))
        };
        let mut lines = tokio::time::timeout(PATIENCE, started).await??;
        // A full pipe would stop it.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Ok(Self { child, pid })
    }

    /// A line of its /proc/…/status, in MB of 10⁶ bytes.
    pub fn memory_mb(&self, name: &str) -> Result<f64> {
        memory_mb(self.pid, name).context("iit has gone")
    }

    pub async fn stop(mut self) -> Result<()> {
        kill(Pid::from_raw(self.pid), Signal::SIGTERM)?;
        let status = tokio::time::timeout(PATIENCE, self.child.wait()).await??;
        ensure!(status.success(), "iit ended with {status}");
        Ok(())
    }
}

/// A command that ran to its end.
pub struct Finished {
    pub seconds: f64,
    pub peak_mb: f64,
    pub stdout: Vec<u8>,
}

/// Runs a command to its end, looking at its memory.
pub async fn finish(mut command: Command) -> Result<Finished> {
    let begin = Instant::now();
    let child = command.spawn().context("starting iit")?;
    let pid = pid_of(&child)?;
    let watch = tokio::task::spawn_blocking(move || {
        let mut peak: f64 = 0.0;
        while let Some(now) = memory_mb(pid, "VmHWM") {
            peak = peak.max(now);
            std::thread::sleep(LOOK_EVERY);
        }
        peak
    });
    let output: Output = tokio::time::timeout(PATIENCE, child.wait_with_output()).await??;
    let seconds = begin.elapsed().as_secs_f64();
    ensure!(
        output.status.success(),
        "iit ended with {}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(Finished {
        seconds,
        peak_mb: watch.await?,
        stdout: output.stdout,
    })
}

fn pid_of(child: &Child) -> Result<i32> {
    let pid = child.id().context("iit ended at once")?;
    Ok(i32::try_from(pid)?)
}

/// `None` when the process is gone (a zombie has no memory lines).
fn memory_mb(pid: i32, name: &str) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    Some(kilobytes(&status, name)? * 1024.0 / 1e6)
}
