//! A job that takes its process down is found out, and costs none of its neighbours more than a rerun.

use std::{
    os::unix::process::ExitStatusExt,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use iit_manager::{
    queue::{JobError, NewJob, Outcome, Wake, claim, sweep::sweep, worker::Worker},
    store::db::{self, PoolSettings},
};
use nix::sys::signal::Signal;
use secrecy::SecretString;
use tokio::sync::{Notify, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::rig::{
    Desk, Handlers, LONG, NO_POLL, Process, QUEUE, TestDb, claim_by, claim_suspect, count,
    eventually, expire_leases, grouped, handler, job, number, numbered, put, row, settings, sql,
    sweep_ids, until_state, within,
};

/// Names the database to [`a_process_with_a_guilty_job`].
const URL: &str = "IIT_TEST_GUILTY_DATABASE";
/// Jobs that run beside the guilty one.
const NEIGHBOURS: usize = 10;

/// Not a test but a worker process of its own, which the test below starts.
#[tokio::test]
#[ignore = "started by a_job_that_aborts_its_process_…, as a process of its own"]
async fn a_process_with_a_guilty_job() {
    let Ok(url) = std::env::var(URL) else { return };
    let url = SecretString::from(url);
    let settings_ = PoolSettings {
        application_name: "guilty".to_owned(),
        max_connections: 8,
    };
    let pool = db::connect(&url, &settings_).await.unwrap();
    let wake = Wake::new(Uuid::new_v4());
    let desk = Desk {
        pool: pool.clone(),
        wake: wake.clone(),
    };
    let begun = Arc::new(Semaphore::new(0));
    let all_begun = Arc::clone(&begun);
    let handlers = Handlers::default()
        .on("guilty", move |job, _| {
            let begun = Arc::clone(&all_begun);
            async move {
                if job.lease.attempt == 1 {
                    let _all = begun.acquire_many(NEIGHBOURS as u32).await;
                }
                std::process::abort()
            }
        })
        .on("neighbour", move |job, desk| {
            begun.add_permits(1);
            async move {
                // The first time they are at work when it happens.
                if job.lease.attempt == 1 {
                    std::future::pending::<()>().await;
                }
                desk.done(&job).await
            }
        });
    let mut settings = settings(Duration::from_secs(1));
    settings.concurrency = NEIGHBOURS + 1;
    let worker = Worker::new(pool.clone(), pool, wake, handler(handlers, desk), settings);
    worker.run(&[QUEUE], CancellationToken::new()).await;
}

struct Guilty(Child);

impl Guilty {
    fn start(db: &TestDb) -> Self {
        let child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--ignored",
                "--exact",
                "queue::suspects::a_process_with_a_guilty_job",
            ])
            .env(URL, &db.url)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self(child)
    }
}

impl Drop for Guilty {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn a_job_that_aborts_its_process_is_quarantined_and_all_its_neighbours_finish() {
    let db = TestDb::new().await;
    let mut neighbours = Vec::new();
    let mut guilty = 0;
    for n in 0..NEIGHBOURS {
        if n == NEIGHBOURS / 2 {
            guilty = put(&db, job("guilty")).await;
        }
        neighbours.push(put(&db, job("neighbour")).await);
    }
    let mut aborts = 0;
    let mut process = Guilty::start(&db);
    eventually("the guilty job is given up", async || {
        if let Some(status) = process.0.try_wait().unwrap() {
            assert_eq!(status.signal(), Some(Signal::SIGABRT as i32), "{status}");
            aborts += 1;
            process = Guilty::start(&db);
        }
        row(&db, guilty).await.state == "dead"
    })
    .await;
    assert_eq!(aborts, 4, "once in company, three times apart");
    let dead = row(&db, guilty).await;
    assert_eq!(dead.last_error.as_deref(), Some("crashed the worker"));
    assert_eq!(dead.crashes, 3);
    for id in neighbours {
        let done = until_state(&db, id, "done").await;
        assert_eq!((done.attempt, done.crashes), (2, 0));
    }
}

/// Makes suspects of `jobs` as a dying process would that held them all.
async fn suspected(db: &TestDb, jobs: Vec<NewJob>) -> Vec<i64> {
    let mut ids = Vec::new();
    for job in jobs {
        ids.push(put(db, job).await);
    }
    sql(db, "UPDATE iit_jobs SET suspect = true").await;
    ids
}

#[tokio::test]
async fn suspects_run_one_at_a_time_beside_usual_jobs_and_in_their_order() {
    let db = TestDb::new().await;
    let suspects = (0..4).map(|n| numbered("suspect", n)).collect();
    let suspects = suspected(&db, suspects).await;
    for _ in 0..6 {
        put(&db, job("usual")).await;
    }
    let gate = Arc::new(Semaphore::new(0));
    let at_once = Arc::new(AtomicUsize::new(0));
    let (begun, mut begins) = mpsc::unbounded_channel();
    let passing = Arc::clone(&gate);
    let handlers = Handlers::default().on("suspect", move |job, desk| {
        assert_eq!(
            at_once.fetch_add(1, Ordering::SeqCst),
            0,
            "another suspect runs"
        );
        begun.send(number(&job.payload)).unwrap();
        let (gate, at_once) = (Arc::clone(&passing), Arc::clone(&at_once));
        async move {
            gate.acquire().await.unwrap().forget();
            at_once.fetch_sub(1, Ordering::SeqCst);
            desk.done(&job).await
        }
    });
    let mut settings = settings(LONG);
    settings.concurrency = 4;
    let process = Process::start(&db, settings, handlers).await;
    for n in 0..4 {
        assert_eq!(within("a suspect begins", begins.recv()).await, Some(n));
        eventually("the usual jobs pass by", async || {
            count(
                &db,
                "SELECT count(*) FROM iit_jobs WHERE kind = 'usual' AND state <> 'done'",
            )
            .await
                == 0
        })
        .await;
        gate.add_permits(1);
    }
    for id in suspects {
        until_state(&db, id, "done").await;
    }
    process.stop().await;
}

/// With every slot busy and jobs waiting the claimer is never idle; suspects must get their turn.
#[tokio::test]
async fn a_suspect_gets_its_turn_while_usual_jobs_never_end() {
    let db = TestDb::new().await;
    let suspect = suspected(&db, vec![job("suspect")]).await[0];
    let usual = put(&db, job("endless")).await;
    let handlers = Handlers::default().on("endless", |job, desk| async move {
        // Each one leaves another, so that claims stay full.
        let mut settlement = job
            .lease
            .settle(&desk.pool, &desk.wake, &Outcome::Done)
            .await?;
        settlement.enqueue(super::rig::job("endless")).await?;
        Ok(settlement.commit().await?)
    });
    let process = Process::start(&db, settings(LONG), handlers).await;
    until_state(&db, usual, "done").await;
    until_state(&db, suspect, "done").await;
    process.stop().await;
}

#[tokio::test]
async fn a_suspect_at_the_head_of_its_group_holds_the_group_until_it_ran() {
    let db = TestDb::new().await;
    let head = suspected(&db, vec![grouped("head", "g")]).await[0];
    let next = put(&db, grouped("next", "g")).await;
    assert_eq!(claim_by(&db, Uuid::new_v4(), 9, LONG).await.len(), 0);
    let claimed = claim_suspect(&db).await.unwrap();
    assert_eq!(claimed.lease.job, head);
    assert_eq!(claim_by(&db, Uuid::new_v4(), 9, LONG).await.len(), 0);
    assert!(claim_suspect(&db).await.is_none());
    Desk::of(&db).done(&claimed).await.unwrap();
    assert_eq!(
        claim_by(&db, Uuid::new_v4(), 9, LONG).await[0].lease.job,
        next
    );
}

#[tokio::test]
async fn a_suspect_that_becomes_due_later_is_not_slept_past() {
    let db = TestDb::new().await;
    let id = suspected(&db, vec![job("later").after(Duration::from_millis(300))]).await[0];
    let mut conn = db.pool.acquire().await.unwrap();
    let outlook = claim::next_due(&mut conn, QUEUE).await.unwrap();
    assert_eq!(outlook.due, None);
    assert!(outlook.suspect_due.is_some_and(|due| due < NO_POLL));
    drop(conn);
    let process = Process::start(&db, settings(LONG), Handlers::default()).await;
    until_state(&db, id, "done").await;
    process.stop().await;
}

#[tokio::test]
async fn a_claimer_that_may_not_take_the_next_suspect_yet_keeps_quiet() {
    let db = TestDb::new().await;
    suspected(&db, vec![job("hangs"), job("waits")]).await;
    let (begun, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (begins, released) = (Arc::clone(&begun), Arc::clone(&release));
    let handlers = Handlers::default().on("hangs", move |job, desk| {
        let (begun, release) = (Arc::clone(&begun), Arc::clone(&release));
        async move {
            begun.notify_one();
            release.notified().await;
            desk.done(&job).await
        }
    });
    let mut settings = settings(LONG);
    settings.concurrency = 2;
    let process = Process::start(&db, settings, handlers).await;
    within("the first begins", begins.notified()).await;
    eventually("the claimer sleeps", async || {
        process.progress.slowest() > Some(Duration::from_millis(200))
    })
    .await;
    // Going round in circles, it would have begun a round within these 300 ms.
    eventually("it still does", async || {
        process.progress.slowest() > Some(Duration::from_millis(500))
    })
    .await;
    released.notify_one();
    eventually("the second ran", async || {
        count(&db, "SELECT count(*) FROM iit_jobs WHERE state = 'done'").await == 2
    })
    .await;
    process.stop().await;
}

#[tokio::test]
async fn a_job_that_was_alone_is_charged_and_one_of_many_is_only_suspected() {
    let db = TestDb::new().await;
    let alone = put(&db, job("work")).await;
    claim_by(&db, Uuid::new_v4(), 1, LONG).await;
    let mut many = Vec::new();
    for _ in 0..3 {
        many.push(put(&db, job("work")).await);
    }
    claim_by(&db, Uuid::new_v4(), 3, LONG).await;
    expire_leases(&db).await;
    let mut swept = sweep(&db.pool).await.unwrap();
    swept.sort_by_key(|job| job.id);
    let blamed: Vec<_> = swept.iter().map(|job| (job.id, job.blamed)).collect();
    assert_eq!(
        blamed,
        [
            (alone, true),
            (many[0], false),
            (many[1], false),
            (many[2], false)
        ]
    );
    for (id, crashes) in [(alone, 1), (many[0], 0), (many[1], 0), (many[2], 0)] {
        let row = row(&db, id).await;
        assert_eq!((row.crashes, row.suspect), (crashes, true));
    }
    assert_eq!(
        claim_by(&db, Uuid::new_v4(), 9, LONG).await.len(),
        0,
        "none is a usual job now"
    );
    // Lost again, apart as it was: it did it, or was hit by a rare chance.
    let suspect = claim_suspect(&db).await.unwrap();
    expire_leases(&db).await;
    assert_eq!(sweep_ids(&db).await, [suspect.lease.job]);
    assert_eq!(
        row(&db, suspect.lease.job).await.crashes,
        suspect.crashes + 1
    );
}

#[tokio::test]
async fn neighbours_whose_leases_run_out_at_different_times_do_not_blame_each_other() {
    let db = TestDb::new().await;
    let worker = Uuid::new_v4();
    let (first, second) = (put(&db, job("work")).await, put(&db, job("work")).await);
    claim_by(&db, worker, 2, LONG).await;
    for id in [first, second] {
        sqlx::query("UPDATE iit_jobs SET lease_expires_at = now() - interval '1 s' WHERE id = $1")
            .bind(id)
            .execute(&db.pool)
            .await
            .unwrap();
        assert_eq!(sweep_ids(&db).await, [id]);
        assert_eq!(row(&db, id).await.crashes, 0);
    }
}

#[tokio::test]
async fn a_suspect_that_lived_through_an_attempt_is_one_no_more() {
    let db = TestDb::new().await;
    let id = suspected(&db, vec![job("work")]).await[0];
    let claimed = claim_suspect(&db).await.unwrap();
    let again = Outcome::Retry {
        after: Duration::ZERO,
        why: "the EDC is away".to_owned(),
    };
    let retried: Result<_, JobError> = Desk::of(&db).settle(&claimed.lease, again).await;
    retried.unwrap();
    assert!(!row(&db, id).await.suspect);
    assert_eq!(claim_by(&db, Uuid::new_v4(), 1, LONG).await.len(), 1);
}
