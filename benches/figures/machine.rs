//! The machine the figures hold on.

use std::fmt;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::Serialize;
use sqlx::{Connection, PgConnection};

use crate::place::{self, Place};
use crate::samples::Samples;

/// Syncs measured.
const SYNCS: usize = 200;

#[derive(Serialize)]
pub struct Machine {
    cpu: String,
    cores: usize,
    memory_gb: f64,
    postgres: String,
    file_system: String,
    fsync_p50_ms: f64,
    fsync_p95_ms: f64,
    commit_p50_ms: f64,
    commit_p95_ms: f64,
}

impl Machine {
    pub async fn look(place: &Place) -> Result<Self> {
        let folder = place.folder();
        let probe = folder.join("fsync-probe");
        let syncs = tokio::task::spawn_blocking(move || sync_times(&probe)).await??;
        let commits = commit_times(place).await?;
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let cpu = cpuinfo.lines().find(|line| line.starts_with("model name"));
        Ok(Self {
            cpu: cpu
                .and_then(|line| line.split_once(':'))
                .map_or_else(|| "unknown".to_owned(), |(_, name)| name.trim().to_owned()),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            memory_gb: kilobytes(&meminfo, "MemTotal").unwrap_or(f64::NAN) * 1024.0 / 1e9,
            postgres: place.settings().await?,
            file_system: file_system(folder),
            fsync_p50_ms: syncs.ms(50),
            fsync_p95_ms: syncs.ms(95),
            commit_p50_ms: commits.ms(50),
            commit_p95_ms: commits.ms(95),
        })
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} × {} cores, {:.1} GB memory; {}",
            self.cpu, self.cores, self.memory_gb, self.postgres
        )?;
        write!(
            f,
            "{}: write of 8 KB with fdatasync p50 {:.2} ms, p95 {:.2} ms; one row committed by Postgres, its log \
             flushed, p50 {:.2} ms, p95 {:.2} ms",
            self.file_system,
            self.fsync_p50_ms,
            self.fsync_p95_ms,
            self.commit_p50_ms,
            self.commit_p95_ms
        )
    }
}

/// The 1-minute load average.
pub fn load_average() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let first = text.split(' ').next().unwrap_or_default();
    first.parse().unwrap_or(f64::NAN)
}

/// A `Name:  123 kB` line of a file under /proc.
pub fn kilobytes(text: &str, name: &str) -> Option<f64> {
    let line = text
        .lines()
        .find(|line| line.split(':').next() == Some(name))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

fn sync_times(probe: &Path) -> Result<Samples> {
    let mut file = File::create(probe).context("making the fsync probe")?;
    let mut times: Vec<Duration> = Vec::with_capacity(SYNCS);
    for _ in 0..SYNCS {
        let begin = Instant::now();
        file.write_all(&[7; 8192])?;
        file.sync_data()?;
        times.push(begin.elapsed());
    }
    fs::remove_file(probe)?;
    Ok(Samples::new(times))
}

/// What everything durable waits for at least once: a row and the flush of its log, one after another.
async fn commit_times(place: &Place) -> Result<Samples> {
    let url = place.empty("commits").await?;
    let mut conn = PgConnection::connect(&url).await?;
    sqlx::query("CREATE TABLE probe (n int)")
        .execute(&mut conn)
        .await?;
    let mut times = Vec::with_capacity(SYNCS);
    for _ in 0..SYNCS {
        let begin = Instant::now();
        sqlx::query("INSERT INTO probe VALUES (1)")
            .execute(&mut conn)
            .await?;
        times.push(begin.elapsed());
    }
    conn.close().await?;
    place::remove(&url).await?;
    Ok(Samples::new(times))
}

/// Kind of the file system `folder` is on: the longest mount point above it.
fn file_system(folder: &Path) -> String {
    let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
    mounts
        .lines()
        .filter_map(|line| {
            let mut words = line.split(' ').skip(1);
            Some((words.next()?, words.next()?))
        })
        .filter(|(at, _)| folder.starts_with(at))
        .max_by_key(|(at, _)| at.len())
        .map_or_else(|| "unknown".to_owned(), |(_, kind)| kind.to_owned())
}
