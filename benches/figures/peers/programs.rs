//! The peers' programs: built or installed once into the target folder, then run one measurement at a time.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;

use crate::cost::{Cost, Meter};
use crate::program::PATIENCE;

/// What has to be made before a contender can be run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Program {
    Graphile,
    Dbos,
    LangGraph,
}

/// The kinds of work. LangGraph has no queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Drain,
    Start,
    Steps,
}

/// What a drain or steps answer.
#[derive(Deserialize)]
pub struct Took {
    pub seconds: f64,
}

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/peers")
}

fn made() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("peers")
}

fn graphile() -> PathBuf {
    made().join("graphile/release/graphile-peer")
}

fn python() -> PathBuf {
    made().join("venv/bin/python")
}

/// Makes what `program` needs; quick when it was made before.
pub async fn prepare(program: Program) -> Result<()> {
    match program {
        Program::Graphile => {
            let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
            let mut build = Command::new(cargo);
            build
                .args(["build", "--release", "--locked", "--manifest-path"])
                .arg(sources().join("graphile/Cargo.toml"))
                .arg("--target-dir")
                .arg(made().join("graphile"));
            told(build).await.context("building benches/peers/graphile")
        }
        Program::Dbos | Program::LangGraph => {
            install().await.context("installing the Python peers")
        }
    }
}

/// A virtual environment with what requirements.txt pins.
async fn install() -> Result<()> {
    let wanted = tokio::fs::read_to_string(sources().join("python/requirements.txt")).await?;
    let stamp = made().join("venv/installed.txt");
    if tokio::fs::read_to_string(&stamp)
        .await
        .is_ok_and(|installed| installed == wanted)
    {
        return Ok(());
    }
    let mut venv = Command::new("python3");
    venv.args(["-m", "venv", "--clear"])
        .arg(made().join("venv"));
    told(venv).await?;
    let mut pip = Command::new(python());
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "-r",
    ])
    .arg(sources().join("python/requirements.txt"));
    told(pip).await?;
    Ok(tokio::fs::write(stamp, wanted).await?)
}

/// Runs a command whose progress the person who measures may see.
async fn told(mut command: Command) -> Result<()> {
    let shown = format!("{:?}", command.as_std());
    let status = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .status()
        .await
        .with_context(|| format!("{shown} could not be started"))?;
    ensure!(status.success(), "{shown} ended with {status}");
    Ok(())
}

/// The command of one measurement on the database at `url`.
pub fn command(program: Program, kind: Kind, url: &str, amount: usize, args: &[&str]) -> Command {
    let steps = crate::chain::STEPS.to_string();
    let amount = amount.to_string();
    let mut words: Vec<&str> = match (program, kind) {
        (Program::Graphile | Program::Dbos, Kind::Drain) => vec!["drain", "--jobs", &amount],
        (Program::Graphile | Program::Dbos, Kind::Start) => vec!["start", "--jobs", &amount],
        (Program::Graphile, Kind::Steps) => vec!["steps", "--runs", &amount, "--steps", &steps],
        (Program::Dbos, Kind::Steps) | (Program::LangGraph, _) => {
            vec!["--runs", &amount, "--steps", &steps]
        }
    };
    words.extend(["--url", url]);
    words.extend(args);
    let mut command = match program {
        Program::Graphile => Command::new(graphile()),
        Program::Dbos | Program::LangGraph => {
            let script = match (program, kind) {
                (Program::LangGraph, _) => "langgraph_steps.py",
                (_, Kind::Steps) => "dbos_steps.py",
                _ => "dbos_queue.py",
            };
            let mut python = Command::new(python());
            python.arg("-B").arg(sources().join("python").join(script));
            python
        }
    };
    command.args(words);
    command
}

/// Runs a measurement: the program says when its tables stand, is told to go on when the counters are
/// read, and answers with one line of JSON. The cost is that of each of `units`.
pub async fn run<T: DeserializeOwned>(
    mut command: Command,
    url: &str,
    units: usize,
) -> Result<(T, Cost)> {
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("PG")
            || name.starts_with("DBOS")
            || name.starts_with("LANG")
            || name == "DATABASE_URL"
        {
            command.env_remove(&*name);
        }
    }
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .context("starting a peer")?;
    let mut stdin = child.stdin.take().context("a peer without stdin")?;
    let mut lines = BufReader::new(child.stdout.take().context("a peer without stdout")?).lines();
    let mut stderr = child.stderr.take().context("a peer without stderr")?;
    let said = tokio::spawn(async move {
        let mut text = String::new();
        let _ = stderr.read_to_string(&mut text).await;
        text
    });
    let exchange = async {
        if lines.next_line().await?.as_deref() != Some("ready") {
            return Ok(None);
        }
        let meter = Meter::begin(url).await?;
        stdin.write_all(b"go\n").await?;
        let answer = lines.next_line().await?;
        anyhow::Ok(answer.map(|answer| (answer, meter)))
    };
    let exchanged = tokio::time::timeout(PATIENCE, exchange).await;
    let Ok(Some((answer, meter))) = exchanged.context("a peer did not end")? else {
        drop(stdin);
        child.wait().await?;
        bail!("a peer ended without an answer: {}", end_of(&said.await?));
    };
    let status = tokio::time::timeout(PATIENCE, child.wait()).await??;
    ensure!(
        status.success(),
        "a peer ended with {status}: {}",
        end_of(&said.await?)
    );
    let cost = meter.end(units).await?;
    Ok((serde_json::from_str(&answer)?, cost))
}

/// The end of what a program said: there its reason is.
fn end_of(text: &str) -> String {
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    lines[lines.len().saturating_sub(6)..].join(" | ")
}
