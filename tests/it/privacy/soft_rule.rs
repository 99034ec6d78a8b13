//! Soft rules over people whose records are full of themselves, in worker processes that log everything.

use std::collections::HashMap;
use std::fs::File;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::{Value, json};
use sqlx::Row as _;

use super::{
    assert_clean,
    person::Person,
    recorder::{Answer, Recorder, Request, says},
    study,
};
use crate::support::app::{TestApp, eventually};
use crate::support::binary::Iit;
use crate::support::fake_llm::Hold;
use crate::support::postgres::TestDb;

/// Of each run: repeats the prompt in an error, then says something of no use, then quotes the whole note.
/// Before `killed` there are errors only.
fn difficult(
    killed: &AtomicBool,
    asked: &Mutex<HashMap<String, usize>>,
    request: &Request,
) -> Answer {
    let run = request.key.split('/').next().unwrap().to_owned();
    let times = match killed.load(Ordering::SeqCst) {
        true => {
            let mut asked = asked.lock().unwrap();
            let times = asked.entry(run).or_default();
            *times += 1;
            *times
        }
        false => 1,
    };
    let messages = request.body["messages"].as_array().unwrap();
    let shown: String = messages
        .iter()
        .filter(|message| message["role"] == "user")
        .filter_map(|message| message["content"].as_str())
        .flat_map(str::lines)
        .find(|line| line.starts_with('{'))
        .unwrap()
        .to_owned();
    let data: Value = serde_json::from_str(&shown).unwrap();
    let note = data["rows"][0]["values"]["history"].as_str().unwrap();
    let placeholder = note.split_once('〕').unwrap().0;
    let somebody = format!("{placeholder}〕");
    match times {
        1 => {
            let echo = json!({ "error": { "message": request.all(), "code": request.all() } });
            (500, echo.to_string())
        }
        2 => says(&json!({ "content": format!("我看 {somebody} 没有问题：{note}") })),
        _ => {
            let verdict = json!({
                "verdict": "fail", "reason": format!("{somebody}的病史需要核对"),
                "evidence": [{ "record": data["record"], "event": null, "instance": null, "field": "history", "quote": note }],
            });
            says(&json!({ "content": verdict.to_string() }))
        }
    }
}

/// A server that is not to be asked.
async fn never_asked() -> Recorder {
    Recorder::start(None, |_| (500, String::new())).await
}

/// A worker that logs everything it can into a file of its own.
struct Worker {
    child: Child,
    log: std::path::PathBuf,
}

impl Worker {
    fn start(db: &TestDb, folder: &std::path::Path, no: u8, model: &Recorder) -> Self {
        let log = folder.join(format!("worker-{no}.log"));
        let child = Command::new(env!("CARGO_BIN_EXE_iit"))
            .current_dir(folder)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("DATABASE_URL", &db.url)
            .env("IIT_DATA_DIR", folder.join("data"))
            .env("IIT_LEASE_S", "2")
            .env("RUST_LOG", "trace")
            .env("RUST_BACKTRACE", "1")
            .envs(model.variables())
            .args(["worker", "--queues", "edc,llm,chat,deliver"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log).unwrap())
            .spawn()
            .unwrap();
        Self { child, log }
    }

    /// Ends it, and returns what it logged.
    fn end(mut self, signal: Signal) -> Vec<u8> {
        let pid = i32::try_from(self.child.id()).unwrap();
        kill(Pid::from_raw(pid), signal).unwrap();
        self.child.wait().unwrap();
        std::fs::read(&self.log).unwrap()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Every text a person, an operator or a log could be shown, whatever the table; what is stored to be put
/// back, and the transcript beside it, apart.
const SHOWN: [&str; 8] = [
    "SELECT COALESCE(string_agg(concat_ws(' ', error, reply, request_hash), ' '), '') FROM iit_llm_calls",
    "SELECT COALESCE(string_agg(concat_ws(' ', error, node), ' '), '') FROM iit_task_run",
    "SELECT COALESCE(string_agg(concat_ws(' ', note, outcome), ' '), '') FROM iit_task_step",
    "SELECT COALESCE(string_agg(concat_ws(' ', last_error, payload::text), ' '), '') FROM iit_jobs",
    "SELECT COALESCE(string_agg(text, ' '), '') FROM iit_outbox",
    "SELECT COALESCE(string_agg(message, ' '), '') FROM iit_pending_actions",
    "SELECT COALESCE(string_agg(reason, ' '), '') FROM iit_llm_providers",
    "SELECT COALESCE(string_agg(new::text, ' '), '') FROM iit_audit_log WHERE entity <> 'pending_action'",
];

#[tokio::test]
async fn nothing_of_anybody_leaves_over_errors_repairs_and_a_killed_worker() {
    let people = Person::several(3);
    let hold = Hold::default();
    let killed = Arc::new(AtomicBool::new(false));
    let (is_killed, asked) = (Arc::clone(&killed), Mutex::default());
    let model = Recorder::start(Some(hold.clone()), move |request| {
        difficult(&is_killed, &asked, request)
    })
    .await;
    let db = TestDb::new().await;
    let study = study(&people);
    TestApp::apply_to(&db, &study).await;
    let folder = tempfile::tempdir().unwrap();
    Iit::on(&db).ok(&["qc", "--project", "lung", "--all"]).await;

    let first = Worker::start(&db, folder.path(), 1, &model);
    hold.reached.notified().await;
    let mut logged = first.end(Signal::SIGKILL);
    killed.store(true, Ordering::SeqCst);
    let second = Worker::start(&db, folder.path(), 2, &model);
    eventually("the end of the batch", async || {
        sqlx::query("UPDATE iit_jobs SET run_at = now() WHERE state = 'available'")
            .execute(&db.pool)
            .await
            .unwrap();
        sqlx::query("UPDATE iit_llm_providers SET open_until = now() WHERE state <> 'closed'")
            .execute(&db.pool)
            .await
            .unwrap();
        let open: i64 =
            sqlx::query_scalar("SELECT count(*) FROM iit_task_run WHERE status = 'running'")
                .fetch_one(&db.pool)
                .await
                .unwrap();
        let ended: i64 =
            sqlx::query_scalar("SELECT count(*) FROM iit_batches WHERE state = 'done'")
                .fetch_one(&db.pool)
                .await
                .unwrap();
        (open == 0 && ended == 1).then_some(())
    })
    .await;
    logged.extend(second.end(Signal::SIGTERM));
    hold.open.notify_one();

    let requests = model.bytes();
    assert!(
        requests.len() >= 10,
        "errors and repairs were there: {}",
        requests.len()
    );
    for request in &requests {
        assert_clean("a request", request, &people);
    }
    let log = String::from_utf8_lossy(&logged);
    assert!(
        log.contains("TRACE") && log.contains("llm.call.failed"),
        "the log is whole"
    );
    assert_clean("a log", &logged, &people);
    for query in SHOWN {
        let text: String = sqlx::query_scalar(query).fetch_one(&db.pool).await.unwrap();
        assert_clean(query, text.as_bytes(), &people);
    }

    // And yet the quotes were compared with the notes themselves.
    let findings = sqlx::query("SELECT record, outcome, message, \"values\"::text AS quoted FROM iit_pending_actions ORDER BY record")
        .fetch_all(&db.pool)
        .await
        .unwrap();
    assert_eq!(findings.len(), 3);
    for (at, finding) in findings.iter().enumerate() {
        assert_eq!(finding.get::<String, _>("outcome"), "fail");
        assert!(
            finding.get::<String, _>("message").contains("〔"),
            "the reason names nobody"
        );
        let values: String = finding.get("quoted");
        assert!(
            values.contains(&people[at].name),
            "the quote is the note's own"
        );
    }
}

#[tokio::test]
async fn a_note_that_can_not_be_hidden_goes_to_a_person_and_not_out() {
    let people = Person::several(1);
    let model = never_asked().await;
    let db = TestDb::new().await;
    let study = study(&people);
    let records = std::fs::read_to_string(study.export().join("records.csv")).unwrap();
    let escaped: String = people[0]
        .name
        .encode_utf16()
        .map(|unit| format!("\\u{unit:04x}"))
        .collect();
    study.break_records(&records.replace("否认间质性肺炎", &escaped));
    let clock = iit_manager::types::clock::Clock::system();
    let app = TestApp::start_with(db, clock, &model.variables()).await;
    app.apply(&study).await;
    app.qc("lung", None).await;
    assert_eq!(model.bytes().len(), 0);
    assert_eq!(app.count("iit_llm_calls").await, 0);
    let finding = app.action("lung", "history/history").await;
    insta::assert_snapshot!(finding["message"].as_str().unwrap());
    app.stop().await;
}

#[tokio::test]
async fn without_the_table_of_placeholders_nothing_is_sent() {
    let people = Person::several(1);
    let model = never_asked().await;
    let db = TestDb::new().await;
    let clock = iit_manager::types::clock::Clock::system();
    let app = TestApp::start_with(db, clock, &model.variables()).await;
    app.apply(&study(&people)).await;
    for away in [
        "ALTER TABLE iit_placeholders RENAME TO iit_placeholders_away",
        // Readable, and closed to what would have to be written.
        "ALTER TABLE iit_placeholders_away RENAME TO iit_placeholders; ALTER TABLE iit_placeholders ADD CONSTRAINT closed CHECK (false)",
    ] {
        sqlx::raw_sql(away).execute(&app.db.pool).await.unwrap();
        app.post("/api/v1/projects/lung/qc", &json!({ "records": null }))
            .await;
        app.settled_at_once().await;
        assert_eq!(model.bytes().len(), 0, "{away}");
    }
    assert_eq!(
        app.count("iit_llm_calls").await,
        0,
        "no question without its placeholders"
    );
    assert_eq!(
        app.count("iit_task_run WHERE standing = 'clean'").await,
        0,
        "and no pass"
    );
    let errors = app
        .text("SELECT string_agg(last_error, ' ') FROM iit_jobs")
        .await
        .unwrap();
    assert_clean("the jobs' errors", errors.as_bytes(), &people);
    app.stop_with_dead(&["sop_step", "sop_step"]).await;
}
