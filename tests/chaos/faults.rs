//! What is done to the processes: kills aimed at every phase of the step protocol, and between them
//! freezes, cuts, darkness, a crash of Postgres, and jobs delivered twice. All of it follows the seed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Result;
use nix::sys::signal::Signal;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use sqlx::PgPool;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::args::Size;
use crate::feeder::Flow;
use crate::fleet::Slot;
use crate::history::History;
use crate::place::Place;
use crate::statements::Statement;
use crate::traps::{Moment, Reached, Traps, Verdict};

/// How long a trap waits for somebody to come by.
const TRAP_WAITS: Duration = Duration::from_secs(6);

/// Traps in a row that nobody came to, after which the run is not worth going on with.
const MISSES: usize = 4;

/// Charged with so many deaths, a job is given up at the next.
const CHARGED: i32 = 2;

/// Where a process is when it is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    Claiming,
    BeforeTheAsk,
    Asked,
    Answered,
    Settling,
    Delivering,
    Receiving,
    Anywhere,
}

impl Phase {
    /// Those of the step protocol: each must have its share of the kills.
    pub const AIMED: [Self; 6] = [
        Self::Claiming,
        Self::BeforeTheAsk,
        Self::Asked,
        Self::Answered,
        Self::Settling,
        Self::Delivering,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Claiming => "claiming",
            Self::BeforeTheAsk => "before the ask",
            Self::Asked => "asked",
            Self::Answered => "answered",
            Self::Settling => "settling",
            Self::Delivering => "delivering",
            Self::Receiving => "receiving",
            Self::Anywhere => "anywhere, any process",
        }
    }

    /// The moments that belong to it, taken in turn.
    fn moments(self) -> &'static [Moment] {
        match self {
            // The lease is taken, and nobody will ever know by whom.
            Self::Claiming => &[
                Moment::After(Statement::Claim),
                Moment::Before(Statement::Claim),
            ],
            Self::BeforeTheAsk => &[Moment::Before(Statement::Ask)],
            Self::Asked => &[Moment::Asked],
            Self::Answered => &[Moment::After(Statement::Answer)],
            Self::Settling => &[Moment::BeforeSettled, Moment::AfterSettled],
            Self::Delivering => &[
                Moment::Delivered,
                Moment::Sending,
                Moment::Before(Statement::NoteSent),
            ],
            Self::Receiving => &[Moment::AfterReceived, Moment::BeforeReceived],
            Self::Anywhere => &[],
        }
    }
}

/// Everything else that goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Trouble {
    /// SIGSTOP past the lease, SIGCONT.
    Freeze,
    /// All connections of a process reset.
    Cut,
    /// Nothing comes through to Postgres, and nobody is told.
    Dark,
    /// Postgres stopped at once, and started.
    Crash,
    /// Jobs delivered once more, settled ones and ones under way.
    Repeat,
}

impl Trouble {
    pub const ALL: [Self; 5] = [
        Self::Freeze,
        Self::Cut,
        Self::Dark,
        Self::Crash,
        Self::Repeat,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Freeze => "worker frozen past its leases",
            Self::Cut => "connections reset",
            Self::Dark => "Postgres out of reach",
            Self::Crash => "Postgres crashed",
            Self::Repeat => "jobs delivered twice",
        }
    }
}

/// Settlements that must have come too late for their lease: without one the fence was not tried.
const LATE: usize = 2;
/// Freezes after which that is given up.
const MOST_FREEZES: usize = 80;
/// Where a freeze catches a process, and whether what it was sending comes through only after it thaws.
const FREEZES: [(Moment, bool); 8] = [
    (Moment::Before(Statement::OpenSettlement), true),
    (Moment::Asked, false),
    (Moment::Before(Statement::OpenSettlement), true),
    (Moment::After(Statement::Fence), false),
    (Moment::Delivered, false),
    (Moment::After(Statement::Answer), false),
    (Moment::BeforeSettled, true),
    (Moment::After(Statement::Claim), false),
];

/// What was done.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    pub kills: BTreeMap<Phase, usize>,
    pub troubles: BTreeMap<Trouble, usize>,
    /// Times that a worker was kept from hearing answers, each of which may cost it one call a slot.
    pub deafened: usize,
    /// Steps that were given to a second job on purpose.
    pub doubled: usize,
    /// Traps nobody came to.
    pub missed: usize,
}

impl Tally {
    pub fn killed(&self) -> usize {
        self.kills.values().sum()
    }
}

/// What the faults work on.
pub struct Faults {
    pub place: Arc<Place>,
    pub slots: Vec<Slot>,
    /// Which of the slots are workers.
    pub workers: std::ops::Range<usize>,
    pub traps: Traps,
    pub history: History,
    pub flow: Arc<Flow>,
    pub size: Size,
    pub lease: Duration,
    /// No more faults from here on.
    pub calm: CancellationToken,
}

impl Faults {
    /// Goes on until it is to be calm; everything is up and thawed at the end.
    pub async fn run(self, seed: u64) -> Result<Tally> {
        let mut random = StdRng::seed_from_u64(seed);
        let mut tally = Tally::default();
        let (mut kills, mut troubles) = (Vec::new(), Vec::new());
        let (mut round, mut freezes) = (0, 0);
        let mut lasting = JoinSet::new();
        let mut rounds_of_troubles = 0;
        let mut missed = 0;
        while self
            .calm
            .run_until_cancelled(tokio::time::sleep(
                self.size.kill_every.mul_f64(random.random_range(0.7..1.3)),
            ))
            .await
            .is_some()
        {
            if kills.is_empty() {
                kills = Phase::AIMED.to_vec();
                kills.extend([Phase::Receiving, Phase::Anywhere]);
                kills.shuffle(&mut random);
                round += 1;
            }
            let Some(phase) = kills.pop() else { continue };
            if !self.kill(phase, round, &mut random).await? {
                tally.missed += 1;
                missed += 1;
                // Later, when there is other work about; but not for ever.
                kills.insert(0, phase);
                self.flow
                    .enough
                    .fetch_or(missed >= MISSES, Ordering::Relaxed);
                continue;
            }
            missed = 0;
            *tally.kills.entry(phase).or_default() += 1;
            if !tally.killed().is_multiple_of(self.size.trouble_every) {
                continue;
            }
            if troubles.is_empty() {
                troubles = Trouble::ALL.to_vec();
                troubles.push(Trouble::Freeze);
                troubles.shuffle(&mut random);
                rounds_of_troubles += 1;
            }
            if let Some(trouble) = troubles.pop() {
                if trouble == Trouble::Freeze {
                    freezes += 1;
                }
                self.make(trouble, freezes, &mut random, &mut tally, &mut lasting)
                    .await?;
            }
            let done = (round > self.size.rounds
                || (round == self.size.rounds && kills.is_empty()))
                && (rounds_of_troubles > 1 || troubles.is_empty());
            let late = self.history.wire().fenced_off >= LATE || freezes >= MOST_FREEZES;
            if done && !late {
                // Thawed, it may find its lease gone before it gets to the fence: then the next one.
                troubles.push(Trouble::Freeze);
                freezes = freezes.next_multiple_of(FREEZES.len());
            }
            self.flow.enough.fetch_or(done && late, Ordering::Relaxed);
        }
        self.traps.disarm();
        while let Some(ended) = lasting.join_next().await {
            ended?;
        }
        Ok(tally)
    }

    /// Kills one process in that phase; false when nobody came there.
    async fn kill(&self, phase: Phase, round: usize, random: &mut StdRng) -> Result<bool> {
        let moments = phase.moments();
        if moments.is_empty() {
            let slot = &self.slots[random.random_range(0..self.slots.len())];
            self.until_nobody_is_at_the_end().await;
            let killed = slot.signal(Signal::SIGKILL).await;
            if killed {
                self.history.note(format!("killed {}", slot.name));
            }
            return Ok(killed);
        }
        let moment = moments[(round - 1) % moments.len()];
        let Some(reached) = self.wait_at(moment).await else {
            self.history.note(format!(
                "nobody came to {} ({moment:?}) within {TRAP_WAITS:?}",
                phase.name()
            ));
            return Ok(false);
        };
        let slot = &self.slots[reached.slot];
        let killed = slot.signal(Signal::SIGKILL).await;
        self.history
            .note(format!("killed {} {}: {moment:?}", slot.name, phase.name()));
        reached.go(Verdict::Swallow);
        Ok(killed)
    }

    /// Somebody at that moment, while no job is under way that the program would rightly give up after one
    /// more death.
    async fn wait_at(&self, moment: Moment) -> Option<Reached> {
        let until = Instant::now() + TRAP_WAITS;
        loop {
            let reached = self.traps.arm(moment);
            let within = tokio::time::timeout_at(until, reached);
            let Some(Ok(Ok(reached))) = self.calm.run_until_cancelled(within).await else {
                self.traps.disarm();
                return None;
            };
            if !self.is_anybody_at_the_end().await {
                return Some(reached);
            }
            reached.go(Verdict::Pass);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until nobody is at the end of its tether, for a trouble that strikes blindly.
    async fn until_nobody_is_at_the_end(&self) {
        let waiting = async {
            while self.is_anybody_at_the_end().await {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let _ = tokio::time::timeout(TRAP_WAITS, waiting).await;
    }

    /// Whether a job is under way that one more death would use up. A job that was there at three deaths,
    /// running apart, is guilty by the program's rule, and to give it up is right; here it would only have
    /// been unlucky, so that nobody is struck so often.
    async fn is_anybody_at_the_end(&self) -> bool {
        let found = sqlx::query_scalar(
            "SELECT EXISTS (SELECT 1 FROM iit_jobs
                            WHERE state = 'running' AND (crashes >= $1 OR attempt >= max_attempts))",
        )
        .bind(CHARGED)
        .fetch_one(&self.place.pool)
        .await;
        // A server that is down says nothing of it.
        matches!(found, Ok(true))
    }

    fn a_worker(&self, random: &mut StdRng) -> Slot {
        self.slots[random.random_range(self.workers.clone())].clone()
    }

    async fn make(
        &self,
        trouble: Trouble,
        freezes: usize,
        random: &mut StdRng,
        tally: &mut Tally,
        lasting: &mut JoinSet<()>,
    ) -> Result<()> {
        self.until_nobody_is_at_the_end().await;
        match trouble {
            Trouble::Freeze => {
                let past = self.lease.mul_f64(random.random_range(1.6..2.6));
                let (moment, late) = FREEZES[(freezes - 1) % FREEZES.len()];
                let Some(reached) = self.wait_at(moment).await else {
                    self.history
                        .note(format!("nobody came to be frozen at {moment:?}"));
                    tally.missed += 1;
                    return Ok(());
                };
                let slot = self.slots[reached.slot].clone();
                slot.signal(Signal::SIGSTOP).await;
                self.history.note(format!(
                    "froze {} for {past:.1?}: {moment:?}{}",
                    slot.name,
                    if late {
                        ", held back until it thaws"
                    } else {
                        ""
                    }
                ));
                let history = self.history.clone();
                let held = if late {
                    Some(reached)
                } else {
                    reached.go(Verdict::Pass);
                    None
                };
                lasting.spawn(async move {
                    tokio::time::sleep(past).await;
                    if let Some(held) = held {
                        // Its answer is there when the process wakes, before the process finds its lease gone.
                        held.go(Verdict::Pass);
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                    slot.signal(Signal::SIGCONT).await;
                    history.note(format!("thawed {}", slot.name));
                });
                tally.deafened += 1;
            }
            Trouble::Cut => {
                let slot = self.a_worker(random);
                slot.line.cut();
                self.history
                    .note(format!("reset the connections of {}", slot.name));
                tally.deafened += 1;
            }
            Trouble::Dark => {
                let slot = self.a_worker(random);
                let dark = self.lease.mul_f64(random.random_range(0.5..1.8));
                slot.line.dark(true);
                self.history.note(format!(
                    "Postgres out of reach of {} for {dark:.1?}",
                    slot.name
                ));
                let history = self.history.clone();
                lasting.spawn(async move {
                    tokio::time::sleep(dark).await;
                    slot.line.dark(false);
                    history.note(format!("Postgres in reach of {} again", slot.name));
                });
                tally.deafened += 1;
            }
            Trouble::Crash => {
                self.history.note("Postgres crashes");
                let pause = Duration::from_millis(random.random_range(0..1000));
                self.place.crash(pause).await?;
                self.history.note("Postgres is up again");
                tally.deafened += self.workers.len();
            }
            Trouble::Repeat => match repeat(&self.place.pool).await {
                Ok((settled, under_way)) => {
                    self.history.note(format!(
                        "{settled} settled jobs and {under_way} under way delivered once more"
                    ));
                    tally.doubled += under_way;
                }
                Err(error) => self.history.note(format!("no job repeated: {error}")),
            },
        }
        *tally.troubles.entry(trouble).or_default() += 1;
        Ok(())
    }
}

/// Delivers some jobs a second time: settled ones as they were, and steps under way without their key, so
/// that two jobs with good leases do the same step.
async fn repeat(pool: &PgPool) -> Result<(usize, usize)> {
    let settled = sqlx::query(
        "INSERT INTO iit_jobs (queue, kind, payload, priority, job_key, group_key, max_attempts)
         SELECT queue, kind, payload, priority, job_key, group_key, max_attempts
         FROM (SELECT * FROM iit_jobs WHERE state = 'done' ORDER BY random() LIMIT 4) AS again
         ON CONFLICT DO NOTHING",
    )
    .execute(pool)
    .await?;
    let under_way = sqlx::query(
        "INSERT INTO iit_jobs (queue, kind, payload, priority, max_attempts)
         SELECT queue, kind, payload, priority, max_attempts
         FROM (SELECT * FROM iit_jobs WHERE state IN ('available', 'running') AND kind = 'sop_step'
               ORDER BY random() LIMIT 2) AS again",
    )
    .execute(pool)
    .await?;
    let count = |rows: u64| usize::try_from(rows).unwrap_or(usize::MAX);
    Ok((
        count(settled.rows_affected()),
        count(under_way.rows_affected()),
    ))
}
