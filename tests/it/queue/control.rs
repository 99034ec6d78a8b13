//! Pauses and limits: they hold in every process, from their commit on, and lift at once.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use iit_manager::queue::{NewJob, Wake, control, enqueue_many};
use tokio::sync::{Semaphore, mpsc};
use uuid::Uuid;

use super::rig::{
    Desk, Handlers, LONG, PATIENCE, Process, QUEUE, TestDb, claim_by, claim_suspect, count,
    eventually, grouped, job, put, settings, sql, until_state, within,
};

async fn pause(db: &TestDb, queue: &str) {
    let mut conn = db.pool.acquire().await.unwrap();
    let queues = [queue.to_owned()];
    assert_eq!(
        control::pause(&mut conn, &queues, "cli:ops").await.unwrap(),
        queues
    );
}

async fn resume(db: &TestDb, queue: &str) {
    let mut conn = db.pool.acquire().await.unwrap();
    let queues = [queue.to_owned()];
    assert_eq!(control::resume(&mut conn, &queues).await.unwrap(), queues);
    Wake::notify_once(&db.pool, &queues).await;
}

async fn limit(db: &TestDb, max: Option<i32>) {
    let mut conn = db.pool.acquire().await.unwrap();
    control::limit(&mut conn, QUEUE, max).await.unwrap();
    Wake::notify_once(&db.pool, &[QUEUE.to_owned()]).await;
}

async fn put_many(db: &TestDb, n: usize) {
    let jobs: Vec<NewJob> = (0..n).map(|_| job("work")).collect();
    let mut conn = db.pool.acquire().await.unwrap();
    enqueue_many(&mut conn, &jobs).await.unwrap();
}

async fn all_done(db: &TestDb) -> bool {
    count(db, "SELECT count(*) FROM iit_jobs WHERE state <> 'done'").await == 0
}

/// Handlers that wait at a gate, count how many are in at once, and the most that ever were.
struct Crowd {
    gate: Arc<Semaphore>,
    most: Arc<AtomicUsize>,
    inside: Arc<AtomicUsize>,
    begins: mpsc::UnboundedReceiver<()>,
    begun: mpsc::UnboundedSender<()>,
}

impl Crowd {
    fn new() -> Self {
        let (begun, begins) = mpsc::unbounded_channel();
        Self {
            gate: Arc::new(Semaphore::new(0)),
            most: Arc::default(),
            inside: Arc::default(),
            begins,
            begun,
        }
    }

    fn handlers(&self) -> Handlers {
        let (gate, most, inside, begun) = (
            Arc::clone(&self.gate),
            Arc::clone(&self.most),
            Arc::clone(&self.inside),
            self.begun.clone(),
        );
        Handlers::default().on("work", move |job, desk| {
            let (gate, inside) = (Arc::clone(&gate), Arc::clone(&inside));
            let now = inside.fetch_add(1, Ordering::SeqCst) + 1;
            most.fetch_max(now, Ordering::SeqCst);
            begun.send(()).unwrap();
            async move {
                gate.acquire().await.unwrap().forget();
                inside.fetch_sub(1, Ordering::SeqCst);
                desk.done(&job).await
            }
        })
    }

    async fn begin(&mut self, n: usize) {
        for _ in 0..n {
            within("one begins", self.begins.recv()).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_paused_queue_begins_nothing_lets_others_go_on_and_resumes_at_once() {
    let db = TestDb::new().await;
    put(&db, job("work")).await;
    put(&db, job("work").on_queue("llm")).await;
    sql(
        &db,
        "UPDATE iit_jobs SET suspect = true WHERE queue = 'edc'",
    )
    .await;
    pause(&db, QUEUE).await;
    assert!(claim_suspect(&db).await.is_none());
    sql(&db, "UPDATE iit_jobs SET suspect = false").await;
    assert_eq!(claim_by(&db, Uuid::new_v4(), 9, LONG).await.len(), 0);
    let process = Process::start(&db, settings(LONG), Handlers::default()).await;
    eventually("the claimer sleeps", async || {
        process.progress.slowest() > Some(Duration::from_millis(300))
    })
    .await;
    let waiting = put(&db, job("work")).await;
    process.wake.queues([QUEUE.to_owned()]);
    eventually("it looked, and sleeps again", async || {
        process.progress.slowest() > Some(Duration::from_millis(300))
    })
    .await;
    assert_eq!(
        count(
            &db,
            "SELECT count(*) FROM iit_jobs WHERE state = 'available'"
        )
        .await,
        3
    );
    resume(&db, QUEUE).await;
    until_state(&db, waiting, "done").await;
    process.stop().await;
}

#[tokio::test]
async fn a_pause_keeps_its_first_time_and_name_and_shows_in_the_settings() {
    let db = TestDb::new().await;
    let mut conn = db.pool.acquire().await.unwrap();
    assert_eq!(control::settings(&mut conn).await.unwrap(), []);
    let (llm, edc) = (["llm".to_owned()], ["edc".to_owned(), "llm".to_owned()]);
    control::pause(&mut conn, &llm, "first").await.unwrap();
    let set = control::settings(&mut conn).await.unwrap();
    assert_eq!(
        control::pause(&mut conn, &edc, "second").await.unwrap(),
        ["edc"]
    );
    let again = control::settings(&mut conn).await.unwrap();
    assert_eq!(again[1], set[0]);
    assert_eq!(again[1].paused_by.as_deref(), Some("first"));
    control::limit(&mut conn, "llm", Some(2)).await.unwrap();
    assert_eq!(control::resume(&mut conn, &edc).await.unwrap().len(), 2);
    let left = control::settings(&mut conn).await.unwrap();
    assert_eq!((left.len(), left[0].max_running), (1, Some(2)));
    assert_eq!(control::resume(&mut conn, &edc).await.unwrap(), [""; 0]);
    assert!(control::limit(&mut conn, "llm", Some(0)).await.is_err());
}

#[tokio::test]
async fn what_runs_when_its_queue_is_paused_finishes_and_a_paused_worker_stops_at_once() {
    let db = TestDb::new().await;
    let mut crowd = Crowd::new();
    put_many(&db, 4).await;
    let mut settings = settings(LONG);
    settings.concurrency = 2;
    let process = Process::start(&db, settings, crowd.handlers()).await;
    crowd.begin(2).await;
    pause(&db, QUEUE).await;
    crowd.gate.add_permits(4);
    eventually("the running ones are done", async || {
        count(&db, "SELECT count(*) FROM iit_jobs WHERE state = 'done'").await == 2
    })
    .await;
    let asked = std::time::Instant::now();
    process.stop().await;
    assert!(asked.elapsed() < PATIENCE / 4);
    assert_eq!(
        count(
            &db,
            "SELECT count(*) FROM iit_jobs WHERE state = 'available' AND attempt = 0"
        )
        .await,
        2
    );
}

/// The head of a group stands in a paused queue: order is kept, and nothing is wedged afterwards.
#[tokio::test]
async fn a_paused_head_holds_its_group_and_lets_it_go_when_resumed() {
    let db = TestDb::new().await;
    put(&db, grouped("head", "g").on_queue("llm")).await;
    let next = put(&db, grouped("next", "g")).await;
    pause(&db, "llm").await;
    assert_eq!(claim_by(&db, Uuid::new_v4(), 9, LONG).await.len(), 0);
    let free = put(&db, grouped("other", "h")).await;
    let claimed = claim_by(&db, Uuid::new_v4(), 9, LONG).await;
    assert_eq!(claimed[0].lease.job, free);
    resume(&db, "llm").await;
    let mut conn = db.pool.acquire().await.unwrap();
    let head = iit_manager::queue::claim::claim(
        &mut conn,
        "llm",
        Uuid::new_v4(),
        1,
        LONG,
        iit_manager::queue::claim::Bound::START,
    );
    let head = head.await.unwrap().0.remove(0);
    Desk::of(&db).done(&head).await.unwrap();
    assert_eq!(
        claim_by(&db, Uuid::new_v4(), 9, LONG).await[0].lease.job,
        next
    );
}

/// No poll in this test: the end of a job in one process makes the other claim.
#[tokio::test]
async fn a_limit_is_never_exceeded_by_processes_that_race_and_all_work_gets_done() {
    const LIMIT: usize = 3;
    let db = TestDb::new().await;
    limit(&db, Some(LIMIT as i32)).await;
    put_many(&db, 60).await;
    sql(&db, "UPDATE iit_jobs SET suspect = true WHERE id % 10 = 0").await;
    let mut crowd = Crowd::new();
    let mut settings = settings(LONG);
    settings.concurrency = 4;
    let mut processes = Vec::new();
    for _ in 0..3 {
        processes.push(Process::start(&db, settings.clone(), crowd.handlers()).await);
    }
    crowd.begin(LIMIT).await;
    assert_eq!(crowd.inside.load(Ordering::SeqCst), LIMIT);
    crowd.gate.add_permits(60);
    eventually("all are done", async || all_done(&db).await).await;
    assert_eq!(crowd.most.load(Ordering::SeqCst), LIMIT);
    for process in processes {
        process.stop().await;
    }
}

#[tokio::test]
async fn a_claimer_at_the_limit_keeps_quiet_and_a_lifted_limit_is_used_at_once() {
    let db = TestDb::new().await;
    put_many(&db, 5).await;
    sql(&db, "UPDATE iit_jobs SET suspect = true WHERE id = 5").await;
    limit(&db, Some(1)).await;
    let mut crowd = Crowd::new();
    let mut settings = settings(LONG);
    settings.concurrency = 5;
    let process = Process::start(&db, settings, crowd.handlers()).await;
    crowd.begin(1).await;
    for quiet in [200, 500] {
        eventually("the claimer sleeps", async || {
            process.progress.slowest() > Some(Duration::from_millis(quiet))
        })
        .await;
    }
    assert_eq!(crowd.inside.load(Ordering::SeqCst), 1);
    limit(&db, None).await;
    crowd.begin(4).await;
    crowd.gate.add_permits(5);
    eventually("all are done", async || all_done(&db).await).await;
    process.stop().await;
}

#[tokio::test]
async fn a_limit_below_what_runs_lets_it_finish_and_then_holds() {
    let db = TestDb::new().await;
    put_many(&db, 4).await;
    let mut crowd = Crowd::new();
    let mut settings = settings(LONG);
    settings.concurrency = 3;
    // What began before the limit does not wake for it; the poll does.
    settings.poll = Duration::from_millis(100);
    let process = Process::start(&db, settings, crowd.handlers()).await;
    crowd.begin(3).await;
    limit(&db, Some(1)).await;
    crowd.gate.add_permits(2);
    eventually("two are done", async || {
        count(&db, "SELECT count(*) FROM iit_jobs WHERE state = 'done'").await == 2
    })
    .await;
    assert_eq!(
        crowd.inside.load(Ordering::SeqCst),
        1,
        "one runs, so none begins"
    );
    crowd.gate.add_permits(2);
    eventually("all are done", async || all_done(&db).await).await;
    process.stop().await;
}
