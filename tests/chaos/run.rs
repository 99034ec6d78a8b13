//! One run: everything is set up, messages come in, faults go on, and at the end the judge looks.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use tokio::net::TcpListener;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::args::{Args, Size};
use crate::fake_llm::FakeLlm;
use crate::fake_wecom::FakeWecom;
use crate::faults::{Faults, Phase, Tally, Trouble};
use crate::feeder::{self, Flow, Wanted};
use crate::fleet::{self, Fleet, Folders, Variables};
use crate::history::History;
use crate::oracle::{self, Check, Seen};
use crate::place::Place;
use crate::proxy::Line;
use crate::report::{self, Counts, Report};
use crate::study::{PROJECT, SKILL, Study};
use crate::traps::Traps;

/// Lease of the processes, in seconds.
const LEASE_S: u64 = 2;
/// What a model takes for an answer, about.
const THINKS: Duration = Duration::from_millis(60);
/// With nothing in the queue and answers missing, nothing will come any more.
const IDLE_WITHIN: Duration = Duration::from_secs(8);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Makes one run.
pub async fn run(args: &Args) -> Result<Report> {
    let size = args.size();
    let seed = args
        .seed
        .unwrap_or_else(|| u64::from(rand::random::<u32>()));
    let history = History::begin();
    let traps = Traps::default();
    let place = Arc::new(Place::make(size.durable).await?);
    // More than needed where messages go on until enough was done to the processes.
    let most = size.runs + if size.runs > 500 { 0 } else { 600 };
    if args.trace {
        place.trace().await?;
    }
    let study = Arc::new(Study::of(seed, most, size.steps));
    let folders = Folders {
        work: place.folder().join("study"),
        logs: logs()?,
    };
    std::fs::create_dir_all(&folders.work).context("making a folder")?;
    prepare(&place, &study, &folders.work).await?;

    let llm = FakeLlm::start(Arc::clone(&study), traps.clone(), history.clone(), THINKS).await?;
    let wecom = FakeWecom::start(traps.clone(), history.clone()).await?;
    let address = free_address().await?;
    let mut fleet = Fleet::new();
    let workers = 1..1 + args.workers;
    let roles = std::iter::once(("web".to_owned(), "web"))
        .chain((1..=args.workers).map(|n| (format!("worker {n}"), "worker")))
        .chain([("scheduler".to_owned(), "scheduler")]);
    for (slot, (name, role)) in roles.enumerate() {
        let line = Line::open(slot, &place.socket()?, traps.clone(), history.clone()).await?;
        let mut variables: Variables = wecom.variables(slot);
        let more = [
            ("DATABASE_URL", place.url_by(line.port())),
            ("IIT_BIND", address.clone()),
            ("IIT_LEASE_S", LEASE_S.to_string()),
            // What leaves is counted against what the seed says.
            ("IIT_PROGRESS_AFTER_S", "0".to_owned()),
            ("IIT_WORKER_CONCURRENCY", size.concurrency.to_string()),
            ("LLM_BASE_URL", llm.base(slot)),
            ("LLM_API_KEY", "chaos-key".to_owned()),
            ("LLM_MODEL", "fake-model".to_owned()),
        ];
        variables.extend(more.map(|(name, value)| (name.to_owned(), value)));
        fleet.add(&name, role, line, variables, &folders, &history)?;
    }

    let flow = Arc::new(Flow::default());
    let calm = CancellationToken::new();
    let faults = Faults {
        place: Arc::clone(&place),
        slots: fleet.slots.clone(),
        workers,
        traps: traps.clone(),
        history: history.clone(),
        flow: Arc::clone(&flow),
        size,
        lease: Duration::from_secs(LEASE_S),
        calm: calm.clone(),
    };
    let faults = tokio::spawn(faults.run(seed ^ 0xFA17));
    let wanted = Wanted {
        least: size.runs,
        most,
        window: size.window,
    };
    let feeding = tokio::spawn(feeder::feed(
        format!("http://{address}/wecom/callback"),
        wecom.sealer()?,
        wanted,
        Arc::clone(&flow),
        history.clone(),
        seed ^ 0xFEED,
    ));
    let stuck = until_at_rest(&place, &flow, &calm, size, args.patience, &history).await;
    calm.cancel();
    let tally = faults.await??;
    feeding.abort();
    let seconds = history.seconds();
    let fell = Arc::clone(&fleet.fell);
    let stopped = fleet.stop().await;
    let seen = Seen {
        messages: flow.sent.load(Ordering::Relaxed),
        calls: llm.calls(),
        odd_calls: llm.odd(),
        calls_allowed_beyond: size.concurrency * (tally.killed() + tally.deafened) + tally.doubled,
        delivered: wecom.delivered(),
        wire: history.wire().clone(),
    };
    let mut checks = vec![
        Check::of("everything comes to rest", stuck.into_iter().collect()),
        Check::of(
            "every process stops in order when it is asked to",
            stopped
                .err()
                .map(|error| format!("{error:#}"))
                .into_iter()
                .collect(),
        ),
        faults_were_made(&tally),
    ];
    checks.extend(oracle::judge(&place.pool, &study, &seen).await?);
    let passed = checks.iter().all(Check::holds);
    let mut counts = count(&place, &seen, &study).await?;
    counts.workers = args.workers;
    counts.concurrency = size.concurrency;
    counts.durable = size.durable;
    counts.callbacks = flow.posts.load(Ordering::Relaxed);
    counts.missed = tally.missed;
    counts.fell = fell.load(Ordering::Relaxed);
    if !passed || args.trace {
        place.keep_log(&folders.logs).await?;
    }
    if let Ok(place) = Arc::try_unwrap(place) {
        place.end().await?;
    }
    Ok(Report {
        seed,
        passed,
        seconds,
        counts,
        kills: report::kills(&tally),
        troubles: report::troubles(&tally),
        checks,
        logs: folders.logs,
        history: if passed { Vec::new() } else { history.lines() },
    })
}

/// What the processes say is kept until the next run.
fn logs() -> Result<PathBuf> {
    let folder =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("chaos-{}", std::process::id()));
    std::fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    Ok(folder)
}

async fn free_address() -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    Ok(listener.local_addr()?.to_string())
}

/// The schema and the study, by the program's own commands.
async fn prepare(place: &Place, study: &Study, folder: &Path) -> Result<()> {
    study.write(folder)?;
    let skill = format!("{SKILL}.json");
    for args in [
        &["project", "apply", "project.toml"][..],
        &["skills", "apply", "--project", PROJECT, &skill],
    ] {
        let output = fleet::iit(folder)
            .args(args)
            .env("DATABASE_URL", place.url())
            .stderr(Stdio::piped())
            .output()
            .await?;
        ensure!(
            output.status.success(),
            "{args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(())
}

/// How far things are.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct Census {
    steps: i64,
    answered: i64,
    finished: i64,
    unfinished_jobs: i64,
}

async fn census(place: &Place) -> Result<Census, sqlx::Error> {
    let (steps, answered, finished, unfinished_jobs) = sqlx::query_as(
        "SELECT (SELECT count(*) FROM iit_task_step),
                (SELECT count(*) FROM iit_inbox WHERE status IN ('answered', 'failed')),
                (SELECT count(*) FROM iit_outbox WHERE state <> 'queued'),
                (SELECT count(*) FROM iit_jobs WHERE state IN ('available', 'running'))",
    )
    .fetch_one(&place.pool)
    .await?;
    Ok(Census {
        steps,
        answered,
        finished,
        unfinished_jobs,
    })
}

/// Waits until all is done, calling the faults off when little is left; says what is stuck instead.
async fn until_at_rest(
    place: &Place,
    flow: &Flow,
    calm: &CancellationToken,
    size: Size,
    patience: Duration,
    history: &History,
) -> Option<String> {
    let bar = ProgressBar::new(size.runs as u64).with_style(
        ProgressStyle::with_template(
            "{elapsed_precise} [{bar:40}] {pos}/{len} messages answered {msg}",
        )
        .unwrap_or_else(|_| ProgressStyle::default_bar()),
    );
    let mut last = Census::default();
    let mut moved = Instant::now();
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        // The server may be on its way up.
        let Ok(now) = census(place).await else {
            continue;
        };
        let finished = usize::try_from(now.finished).unwrap_or(0);
        let sent = flow.sent.load(Ordering::Relaxed);
        flow.finished.store(finished, Ordering::Relaxed);
        bar.set_length(sent.max(size.runs) as u64);
        bar.set_position(finished as u64);
        bar.set_message(format!("· {} steps", now.steps));
        if now != last {
            (last, moved) = (now, Instant::now());
        }
        let all_sent = flow.all_sent.load(Ordering::Relaxed);
        // The last few are not enough to aim at.
        if all_sent && sent - finished.min(sent) <= size.window / 4 && !calm.is_cancelled() {
            history.note("no more faults");
            calm.cancel();
        }
        if all_sent && finished >= sent && now.unfinished_jobs == 0 {
            bar.finish_and_clear();
            return None;
        }
        let idle = now.unfinished_jobs == 0 && sent > finished && moved.elapsed() > IDLE_WITHIN;
        if idle || moved.elapsed() > patience {
            bar.finish_and_clear();
            let left = sent - finished.min(sent);
            return Some(format!(
                "{left} of {sent} messages are not answered, {} jobs unfinished, {}",
                now.unfinished_jobs,
                if idle {
                    "and nothing is in the queue".to_owned()
                } else {
                    format!("and nothing moved for {patience:?}")
                }
            ));
        }
    }
}

/// A run in which too little went wrong proves nothing.
fn faults_were_made(tally: &Tally) -> Check {
    let all = tally.killed();
    let phases = Phase::AIMED.into_iter().filter_map(|phase| {
        let kills = tally.kills.get(&phase).copied().unwrap_or(0);
        (kills == 0 || kills < all / 10)
            .then(|| format!("{} of {all} kills {}", kills, phase.name()))
    });
    let troubles = Trouble::ALL
        .into_iter()
        .filter(|trouble| !tally.troubles.contains_key(trouble))
        .map(|trouble| format!("never: {}", trouble.name()));
    Check::of(
        "every phase has a tenth of the kills, and every trouble came",
        phases.chain(troubles).collect(),
    )
}

async fn count(place: &Place, seen: &Seen, study: &Study) -> Result<Counts> {
    let (unknown, rescued, most_attempts): (i64, i64, i32) = sqlx::query_as(
        "SELECT (SELECT count(*) FROM iit_outbox WHERE state = 'unknown'),
                (SELECT COALESCE(sum(crashes), 0)::int8 FROM iit_jobs),
                (SELECT COALESCE(max(attempt), 0) FROM iit_jobs)",
    )
    .fetch_one(&place.pool)
    .await?;
    Ok(Counts {
        runs: seen.messages,
        steps: study.steps(),
        lease_s: LEASE_S,
        calls: seen.calls.len(),
        most_calls: seen.messages * study.steps() + seen.calls_allowed_beyond,
        delivered: seen.delivered.len(),
        unknown,
        rescued,
        fenced_off: seen.wire.fenced_off,
        most_attempts,
        ..Counts::default()
    })
}
