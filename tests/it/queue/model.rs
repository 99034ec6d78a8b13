//! The life of a job row against a model of it: any sequence of claims, settles, late settles, expiries,
//! sweeps, retries, pauses and cancellations leaves the rows where the model says, and never breaks a promise.

use std::time::Duration;

use iit_manager::queue::{
    Enqueued, JobError, NewJob, Outcome,
    cancel::{Cancelled, cancel},
    claim::ClaimedJob,
    control, depth, enqueue,
    guard::MAX_CRASHES,
    sweep::sweep,
};
use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};
use uuid::Uuid;

use super::rig::{Desk, LONG, QUEUE, TestDb, claim_by, claim_suspect_by, grouped, job, sql};

/// What may happen.
#[derive(Debug, Clone)]
enum Event {
    Enqueue {
        key: Option<u8>,
        group: Option<u8>,
        max_attempts: i32,
    },
    Claim {
        slots: usize,
    },
    ClaimSuspect,
    /// Of the nth lease ever given, live or stale.
    Settle {
        lease: prop::sample::Index,
        end: End,
    },
    /// The nth live lease runs out; then a sweep.
    Expire {
        lease: prop::sample::Index,
    },
    Sweep,
    RetryDead,
    Pause,
    Resume,
    /// The nth job ever enqueued.
    Cancel {
        job: prop::sample::Index,
    },
}

#[derive(Debug, Clone, Copy)]
enum End {
    Done,
    Retry,
    Snooze,
    Cancel,
    Dead,
}

impl End {
    fn outcome(self) -> Outcome {
        match self {
            Self::Done => Outcome::Done,
            Self::Retry => Outcome::Retry {
                after: Duration::ZERO,
                why: "again".to_owned(),
            },
            Self::Snooze => Outcome::Snooze(Duration::ZERO),
            Self::Cancel => Outcome::Cancel("unwanted".to_owned()),
            Self::Dead => Outcome::Dead("no use".to_owned()),
        }
    }
}

fn event() -> impl Strategy<Value = Event> {
    let end = prop_oneof![
        4 => Just(End::Done),
        3 => Just(End::Retry),
        1 => Just(End::Snooze),
        1 => Just(End::Cancel),
        1 => Just(End::Dead),
    ];
    let index = any::<prop::sample::Index>;
    prop_oneof![
        3 => (prop::option::of(0..3_u8), prop::option::of(0..2_u8), 1..4_i32)
            .prop_map(|(key, group, max_attempts)| Event::Enqueue { key, group, max_attempts }),
        4 => (1..4_usize).prop_map(|slots| Event::Claim { slots }),
        2 => Just(Event::ClaimSuspect),
        5 => (index(), end).prop_map(|(lease, end)| Event::Settle { lease, end }),
        2 => index().prop_map(|lease| Event::Expire { lease }),
        1 => Just(Event::Sweep),
        1 => Just(Event::RetryDead),
        1 => Just(Event::Pause),
        2 => Just(Event::Resume),
        2 => index().prop_map(|job| Event::Cancel { job }),
    ]
}

/// A job as the model sees it.
#[derive(Debug, Clone, PartialEq)]
struct Job {
    id: i64,
    state: &'static str,
    attempt: i32,
    crashes: i32,
    max_attempts: i32,
    key: Option<u8>,
    group: Option<u8>,
    token: Option<Uuid>,
    expired: bool,
    suspect: bool,
    worker: Option<Uuid>,
    lost_by: Option<Uuid>,
    asked_to_end: bool,
    /// Order of becoming due: claims go by due time, then id.
    due: u64,
}

#[derive(Default)]
struct Model {
    jobs: Vec<Job>,
    clock: u64,
    paused: bool,
}

impl Model {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    fn unfinished(job: &Job) -> bool {
        matches!(job.state, "available" | "running")
    }

    fn standing(&self, key: Option<u8>) -> Option<i64> {
        let key = key?;
        let found = self
            .jobs
            .iter()
            .find(|j| j.key == Some(key) && Self::unfinished(j));
        found.map(|j| j.id)
    }

    /// Who may be claimed, in order.
    fn claimable(&self, suspects: bool) -> Vec<i64> {
        if self.paused {
            return Vec::new();
        }
        let blocked = |job: &Job| {
            job.group.is_some()
                && self.jobs.iter().any(|other| {
                    other.group == job.group
                        && Self::unfinished(other)
                        && (other.id < job.id || other.state == "running")
                })
        };
        let mut ready: Vec<&Job> = self
            .jobs
            .iter()
            .filter(|j| j.state == "available" && j.suspect == suspects && !blocked(j))
            .collect();
        ready.sort_by_key(|j| (j.due, j.id));
        ready.into_iter().map(|j| j.id).collect()
    }

    fn of(&mut self, id: i64) -> &mut Job {
        self.jobs.iter_mut().find(|j| j.id == id).unwrap()
    }

    /// Ends an attempt; `false` when the lease is not the live one.
    fn settle(&mut self, id: i64, token: Uuid, end: End) -> bool {
        let due = self.tick();
        let job = self.of(id);
        if job.state != "running" || job.token != Some(token) {
            return false;
        }
        (job.token, job.worker, job.expired) = (None, None, false);
        job.state = match end {
            End::Done => "done",
            End::Cancel => "cancelled",
            End::Dead => "dead",
            End::Retry | End::Snooze => "available",
        };
        if job.state == "available" {
            (job.due, job.suspect) = (due, false);
        }
        if let End::Snooze = end {
            job.attempt -= 1;
        }
        true
    }

    /// Who is put back, and who of them is charged with the crash.
    fn sweep(&mut self) -> Vec<(i64, bool)> {
        let due = self.tick();
        let before = self.jobs.clone();
        let lost = self
            .jobs
            .iter_mut()
            .filter(|j| j.state == "running" && j.expired);
        let mut swept = Vec::new();
        for job in lost {
            let neighbour = |other: &Job| {
                other.id != job.id
                    && job.worker.is_some()
                    && (other.worker == job.worker || other.lost_by == job.worker)
            };
            let blamed = job.suspect || !before.iter().any(neighbour);
            job.lost_by = job.worker.take();
            (job.state, job.token, job.expired, job.due) = ("available", None, false, due);
            job.suspect = true;
            job.crashes += i32::from(blamed);
            swept.push((job.id, blamed));
        }
        swept
    }

    fn retry_dead(&mut self) -> Vec<i64> {
        let due = self.tick();
        let jobs = self.jobs.clone();
        let mut retried = Vec::new();
        for job in self.jobs.iter_mut().filter(|j| j.state == "dead") {
            let superseded = job.key.is_some()
                && jobs.iter().any(|other| {
                    other.key == job.key
                        && other.id != job.id
                        && (Self::unfinished(other) || (other.state == "dead" && other.id > job.id))
                });
            if !superseded {
                (job.state, job.attempt, job.crashes, job.due) = ("available", 0, 0, due);
                (job.suspect, job.lost_by, job.asked_to_end) = (false, None, false);
                retried.push(job.id);
            }
        }
        retried
    }
}

/// One run of events against the database and the model at once.
struct Trial<'a> {
    db: &'a TestDb,
    desk: Desk,
    model: Model,
    leases: Vec<ClaimedJob>,
}

impl Trial<'_> {
    async fn happen(&mut self, event: &Event) {
        match event {
            Event::Enqueue {
                key,
                group,
                max_attempts,
            } => {
                self.enqueue(*key, *group, *max_attempts).await;
            }
            Event::Claim { slots } => {
                let worker = Uuid::new_v4();
                let claimed = claim_by(self.db, worker, *slots, LONG).await;
                let mut expected = self.model.claimable(false);
                expected.truncate(*slots);
                self.claimed(claimed, &expected, worker).await;
            }
            Event::ClaimSuspect => {
                let worker = Uuid::new_v4();
                let claimed = claim_suspect_by(self.db, worker).await;
                let mut expected = self.model.claimable(true);
                expected.truncate(1);
                self.claimed(claimed.into_iter().collect(), &expected, worker)
                    .await;
            }
            Event::Settle { lease, end } if !self.leases.is_empty() => {
                let claimed = self.leases[lease.index(self.leases.len())].clone();
                self.settle(&claimed, *end).await;
            }
            Event::Expire { lease } => {
                let live: Vec<i64> = self
                    .model
                    .jobs
                    .iter()
                    .filter(|j| j.state == "running")
                    .map(|j| j.id)
                    .collect();
                if !live.is_empty() {
                    let id = live[lease.index(live.len())];
                    sqlx::query("UPDATE iit_jobs SET lease_expires_at = clock_timestamp() - interval '1 s' WHERE id = $1")
                        .bind(id)
                        .execute(&self.db.pool)
                        .await
                        .unwrap();
                    self.model.of(id).expired = true;
                }
            }
            Event::Sweep => {
                let mut swept: Vec<(i64, bool)> = sweep(&self.db.pool)
                    .await
                    .unwrap()
                    .into_iter()
                    .map(|job| (job.id, job.blamed))
                    .collect();
                swept.sort_unstable();
                assert_eq!(swept, self.model.sweep());
            }
            Event::RetryDead => {
                let all: Vec<i64> = self.model.jobs.iter().map(|j| j.id).collect();
                let mut conn = self.db.pool.acquire().await.unwrap();
                let mut retried: Vec<i64> = depth::retry(&mut conn, &all)
                    .await
                    .unwrap()
                    .into_iter()
                    .map(|(_, id)| id)
                    .collect();
                retried.sort_unstable();
                assert_eq!(retried, self.model.retry_dead());
            }
            Event::Pause => {
                let mut conn = self.db.pool.acquire().await.unwrap();
                let paused = control::pause(&mut conn, &[QUEUE.to_owned()], "ops").await;
                assert_eq!(paused.unwrap().is_empty(), self.model.paused);
                self.model.paused = true;
            }
            Event::Resume => {
                let mut conn = self.db.pool.acquire().await.unwrap();
                let resumed = control::resume(&mut conn, &[QUEUE.to_owned()]).await;
                assert_eq!(!resumed.unwrap().is_empty(), self.model.paused);
                self.model.paused = false;
            }
            Event::Cancel { job } if !self.model.jobs.is_empty() => {
                let job = job.index(self.model.jobs.len());
                self.cancel(job).await;
            }
            Event::Settle { .. } | Event::Cancel { .. } => {}
        }
    }

    async fn enqueue(&mut self, key: Option<u8>, group: Option<u8>, max_attempts: i32) {
        let new = NewJob {
            key: key.map(|k| k.to_string()),
            max_attempts,
            ..group.map_or_else(|| job("work"), |g| grouped("work", &g.to_string()))
        };
        let mut conn = self.db.pool.acquire().await.unwrap();
        let enqueued = enqueue(&mut conn, new).await.unwrap();
        match self.model.standing(key) {
            Some(standing) => assert_eq!(enqueued, Enqueued::Duplicate(standing)),
            None => {
                let due = self.model.tick();
                assert!(matches!(enqueued, Enqueued::New(_)), "{enqueued:?}");
                self.model.jobs.push(Job {
                    id: enqueued.id(),
                    state: "available",
                    attempt: 0,
                    crashes: 0,
                    max_attempts,
                    key,
                    group,
                    token: None,
                    expired: false,
                    suspect: false,
                    worker: None,
                    lost_by: None,
                    asked_to_end: false,
                    due,
                });
            }
        }
    }

    async fn cancel(&mut self, job: usize) {
        let id = self.model.jobs[job].id;
        let cancelled = cancel(&self.db.pool, &self.desk.wake, id, "no use").await;
        let job = &mut self.model.jobs[job];
        let settlement = match (cancelled.unwrap(), job.state) {
            (Cancelled::ToSettle(claimed, settlement), "available") => {
                assert_eq!(claimed.lease.job, id);
                job.state = "cancelled";
                settlement
            }
            (Cancelled::WasDead(settlement), "dead") => {
                job.state = "cancelled";
                settlement
            }
            (Cancelled::Asked(settlement), "running") => {
                job.asked_to_end = true;
                settlement
            }
            (Cancelled::Nothing, "done" | "cancelled") => return,
            (_, state) => panic!("a {state} job"),
        };
        settlement.commit().await.unwrap();
    }

    /// Notes a claim, and buries as the guard does what may not run again.
    async fn claimed(&mut self, claimed: Vec<ClaimedJob>, expected: &[i64], worker: Uuid) {
        let ids: Vec<i64> = claimed.iter().map(|c| c.lease.job).collect();
        assert_eq!(ids, expected);
        for one in claimed {
            let job = self.model.of(one.lease.job);
            job.attempt += 1;
            (job.state, job.token) = ("running", Some(one.lease.token));
            job.worker = Some(worker);
            assert_eq!((one.lease.attempt, one.crashes), (job.attempt, job.crashes));
            assert_eq!(one.cancelled.is_some(), job.asked_to_end);
            let beyond = one.lease.attempt > one.lease.max_attempts || one.crashes >= MAX_CRASHES;
            if job.asked_to_end {
                self.settle(&one, End::Cancel).await;
            } else if beyond {
                self.settle(&one, End::Dead).await;
            }
            self.leases.push(one);
        }
    }

    async fn settle(&mut self, claimed: &ClaimedJob, end: End) {
        // The guard buries what has no attempt left instead of retrying it.
        let end = match end {
            End::Retry if claimed.lease.attempt >= claimed.lease.max_attempts => End::Dead,
            other => other,
        };
        let settled = self.desk.settle(&claimed.lease, end.outcome()).await;
        match self
            .model
            .settle(claimed.lease.job, claimed.lease.token, end)
        {
            true => assert!(settled.is_ok(), "{settled:?}"),
            false => assert!(matches!(settled, Err(JobError::LostLease)), "{settled:?}"),
        }
    }

    /// The rows are where the model says; and what must hold whatever the model says.
    async fn check(&self) {
        type Row = (i64, String, i32, i32, Option<Uuid>, bool, Option<Uuid>);
        let rows: Vec<Row> = sqlx::query_as(
            "SELECT id, state, attempt, crashes, lease_token, suspect, lost_by FROM iit_jobs ORDER BY id",
        )
        .fetch_all(&self.db.pool)
        .await
        .unwrap();
        let expected: Vec<Row> = self
            .model
            .jobs
            .iter()
            .map(|j| {
                let state = j.state.to_owned();
                (
                    j.id, state, j.attempt, j.crashes, j.token, j.suspect, j.lost_by,
                )
            })
            .collect();
        assert_eq!(rows, expected);
        for job in &self.model.jobs {
            // A crash may use up the last attempt; the claim after it runs nothing: it buries, or cancels what
            // an operator asked to end meanwhile.
            assert!(job.attempt <= job.max_attempts + 1, "{job:?}");
            let ended_unrun = matches!(job.state, "dead" | "cancelled");
            assert!(ended_unrun || job.attempt <= job.max_attempts, "{job:?}");
        }
    }
}

/// The model is deterministic, so one database serves all cases, emptied before each.
#[test]
fn any_sequence_of_events_leaves_the_rows_where_the_model_says() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let db = runtime.block_on(TestDb::new());
    let config = Config {
        cases: 40,
        max_shrink_iters: 200,
        failure_persistence: None,
        ..Config::default()
    };
    let events = prop::collection::vec(event(), 1..40);
    TestRunner::new(config)
        .run(&events, |events| {
            runtime.block_on(async {
                sql(&db, "DELETE FROM iit_jobs").await;
                sql(&db, "DELETE FROM iit_queues").await;
                let mut trial = Trial {
                    db: &db,
                    desk: Desk::of(&db),
                    model: Model::default(),
                    leases: Vec::new(),
                };
                for event in &events {
                    trial.happen(event).await;
                    trial.check().await;
                }
            });
            Ok(())
        })
        .unwrap();
    runtime.block_on(async move { drop(db) });
}
