//! The real program as processes of its own, and a study whose runs take five steps.

use std::collections::BTreeMap;
use std::process::{Child, Command, ExitStatus, Output, Stdio};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::{Value, json};
use sqlx::{Connection, PgConnection};
use tempfile::TempDir;

use super::rig::{TestDb, eventually};

/// The lease of every worker process here, in seconds.
const LEASE_S: u64 = 2;
/// Records of the study; one run each.
pub const RECORDS: i64 = 3;
/// Steps of a run.
const STEPS: i64 = 5;

/// A study on disk, applied to a database.
pub struct Study {
    folder: TempDir,
    url: String,
}

impl Study {
    /// The project `kill` with its one skill, through the real commands.
    pub fn apply(db: &TestDb) -> Self {
        let study = Self {
            folder: TempDir::with_prefix("iit-kill-").unwrap(),
            url: db.url.clone(),
        };
        let path = study.folder.path();
        std::fs::create_dir(path.join("study")).unwrap();
        std::fs::write(path.join("study/metadata.csv"), METADATA).unwrap();
        std::fs::write(path.join("study/records.csv"), DATA).unwrap();
        std::fs::write(path.join("project.toml"), PROJECT).unwrap();
        std::fs::write(path.join("five_steps.json"), skill().to_string()).unwrap();
        study.succeed(&["project", "apply", "project.toml"]);
        study.succeed(&["skills", "apply", "--project", "kill", "five_steps.json"]);
        study
    }

    /// Asks for every record to be checked, by whatever worker there is.
    pub fn request_qc(&self) {
        self.succeed(&["qc", "--project", "kill", "--all"]);
    }

    /// Starts a worker process.
    pub fn worker(&self, queues: &str) -> Program {
        self.start(&["worker", "--queues", queues], &[])
    }

    /// Starts a long-lived process with these settings.
    pub fn start(&self, args: &[&str], settings: &[(&str, &str)]) -> Program {
        let mut command = command(&self.url);
        command
            .current_dir(self.folder.path())
            .env("IIT_LEASE_S", LEASE_S.to_string())
            .envs(settings.iter().copied())
            .args(args);
        Program {
            child: command.spawn().unwrap(),
        }
    }

    fn succeed(&self, args: &[&str]) {
        let output = command(&self.url)
            .current_dir(self.folder.path())
            .args(args)
            .output()
            .unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
    }
}

/// `iit` on that database, in an environment that says nothing else.
fn command(url: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iit"));
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if ["IIT_", "WECOM_", "LLM_", "PG"]
            .iter()
            .any(|prefix| name.starts_with(prefix))
        {
            command.env_remove(name);
        }
    }
    command
        .env("DATABASE_URL", url)
        .env("RUST_LOG", "error")
        .env("IIT_PROGRESS_AFTER_S", "0")
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    command
}

/// Runs a command in a folder where no settings lie about.
pub fn run(db: &TestDb, args: &[&str]) -> Output {
    command(&db.url)
        .current_dir(std::env::temp_dir())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .args(args)
        .output()
        .unwrap()
}

/// Starts a worker process with these settings beside its database.
pub fn worker_with(db: &TestDb, queues: &str, variables: &BTreeMap<&str, String>) -> Program {
    let mut command = command(&db.url);
    command
        .current_dir(std::env::temp_dir())
        .envs(variables)
        .env("IIT_LEASE_S", LEASE_S.to_string())
        .args(["worker", "--queues", queues]);
    Program {
        child: command.spawn().unwrap(),
    }
}

/// A process of ours, killed with the value.
pub struct Program {
    child: Child,
}

impl Program {
    /// A worker process on that database with more settings.
    pub fn worker(db: &TestDb, queues: &str, more: &[(&'static str, String)]) -> Self {
        let mut command = command(&db.url);
        command
            .current_dir(std::env::temp_dir())
            .env("IIT_LEASE_S", LEASE_S.to_string())
            .envs(more.iter().cloned())
            .args(["worker", "--queues", queues]);
        Self {
            child: command.spawn().unwrap(),
        }
    }

    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap());
        kill(pid, signal).unwrap();
    }

    /// As the kernel does when memory runs out.
    pub async fn kill(mut self) {
        self.signal(Signal::SIGKILL);
        self.exit().await;
    }

    /// Asks it to stop and waits for its orderly end.
    pub async fn stop(self) {
        self.signal(Signal::SIGTERM);
        self.ended().await;
    }

    /// Waits for its orderly end.
    pub async fn ended(mut self) {
        let status = self.exit().await;
        assert!(status.success(), "{status}");
    }

    async fn exit(&mut self) -> ExitStatus {
        let mut status = None;
        eventually("the process ends", async || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        })
        .await;
        status.unwrap()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // A stopped process can't be ended any other way; one that has ended already doesn't mind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Holds every settlement that commits a certain step, from outside: the row's insert waits for a lock
/// that the gate's connection holds.
pub struct Gate {
    conn: PgConnection,
}

impl Gate {
    pub async fn at_step(db: &TestDb, step: i32) -> Self {
        Self::when(db, &format!("NEW.no = {step}")).await
    }

    /// The same of a run that answers a question, whatever its message's own run does.
    pub async fn at_turn(db: &TestDb, step: i32) -> Self {
        Self::when(db, &format!("NEW.no = {step} AND NEW.node = 'turn'")).await
    }

    /// Stops the steps whose row (`NEW`) is like that.
    pub async fn when(db: &TestDb, condition: &str) -> Self {
        let mut conn = PgConnection::connect(&db.url).await.unwrap();
        let trigger = format!(
            "CREATE FUNCTION gate() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN PERFORM pg_advisory_xact_lock_shared(4711); RETURN NEW; END $$;
             CREATE TRIGGER gate BEFORE INSERT ON iit_schema.iit_task_step
                 FOR EACH ROW WHEN ({condition}) EXECUTE FUNCTION gate();
             SELECT pg_advisory_lock(4711)"
        );
        sqlx::raw_sql(sqlx::AssertSqlSafe(trigger))
            .execute(&mut conn)
            .await
            .unwrap();
        Self { conn }
    }

    /// Lets them pass.
    pub async fn open(self) {
        self.conn.close().await.unwrap();
    }
}

/// Waits until that many connections wait for a lock of that kind.
pub async fn until_waiting(db: &TestDb, kind: &str, connections: i64) {
    eventually("connections wait for the lock", async || {
        let waiting: i64 = sqlx::query_scalar(
            "SELECT count(*) FROM pg_stat_activity
             WHERE datname = current_database() AND wait_event_type = 'Lock' AND wait_event = $1",
        )
        .bind(kind)
        .fetch_one(&db.pool)
        .await
        .unwrap();
        waiting == connections
    })
    .await;
}

/// Waits until `batches` requests are done.
pub async fn until_batches_done(db: &TestDb, batches: i64) {
    eventually("the requests are done", async || {
        let done: Result<i64, _> =
            sqlx::query_scalar("SELECT count(*) FROM iit_batches WHERE state = 'done'")
                .fetch_one(&db.pool)
                .await;
        // The server may be on its way up.
        matches!(done, Ok(done) if batches == done)
    })
    .await;
}

/// Waits until `batches` requests are at an end, whichever.
pub async fn until_batches_ended(db: &TestDb, batches: i64) {
    eventually("the requests are at an end", async || {
        super::rig::count(
            db,
            "SELECT count(*) FROM iit_batches WHERE state IN ('done', 'failed')",
        )
        .await
            == batches
    })
    .await;
}

/// Every row that is final once its request is done: steps, runs, jobs, the ledger's history.
pub async fn final_rows(db: &TestDb) -> Vec<String> {
    sqlx::query_scalar(
        "SELECT row FROM (
            SELECT s::text AS row FROM iit_task_step s
            UNION ALL SELECT r::text FROM iit_task_run r
            UNION ALL SELECT j::text FROM iit_jobs j
            UNION ALL SELECT h::text FROM iit_pending_action_history h) AS everything
         ORDER BY row",
    )
    .fetch_all(&db.pool)
    .await
    .unwrap()
}

/// What holds after any run of events, once all requests are done: each run at its end with each step
/// once, each finding once in the ledger, and every job settled.
pub async fn assert_nothing_lost_or_repeated(db: &TestDb, batches: i64) {
    let one = async |query: &'static str| -> i64 { super::rig::count(db, query).await };
    let runs = RECORDS * batches;
    assert_eq!(
        one("SELECT count(*) FROM iit_task_run WHERE status = 'done'").await,
        runs
    );
    assert_eq!(one("SELECT count(*) FROM iit_task_run").await, runs);
    let steps: Vec<Vec<i32>> =
        sqlx::query_scalar("SELECT array_agg(no ORDER BY no) FROM iit_task_step GROUP BY run_id")
            .fetch_all(&db.pool)
            .await
            .unwrap();
    assert_eq!(steps.len() as i64, runs);
    for numbers in steps {
        assert_eq!(numbers, (0..STEPS as i32).collect::<Vec<_>>());
    }
    // One record breaks the rule of the last step; each soft step leaves a query without a model.
    let findings: Vec<(String, i64)> = sqlx::query_as(
        "SELECT rule, count(*) FROM iit_pending_actions GROUP BY rule ORDER BY rule",
    )
    .fetch_all(&db.pool)
    .await
    .unwrap();
    let total: i64 = findings.iter().map(|(_, n)| n).sum();
    assert_eq!(total, RECORDS + 1, "{findings:?}");
    assert!(findings.contains(&("K-003".to_owned(), 1)), "{findings:?}");
    assert_eq!(
        one("SELECT count(*) FROM iit_pending_action_history WHERE from_status IS NULL").await,
        total,
        "each was opened once"
    );
    assert_eq!(
        one("SELECT count(*) FROM iit_jobs WHERE state <> 'done'").await,
        0
    );
    let expected = batches * (1 + 1 + RECORDS * (STEPS - 1));
    assert_eq!(
        one("SELECT count(*) FROM iit_jobs").await,
        expected,
        "plan, page, steps"
    );
    let counted: Vec<(i32, i32, i32)> =
        sqlx::query_as("SELECT total, done, failed FROM iit_batches")
            .fetch_all(&db.pool)
            .await
            .unwrap();
    for batch in counted {
        assert_eq!(batch, (RECORDS as i32, RECORDS as i32, 0));
    }
}

/// Attempts that committed each step number, over all runs.
pub async fn attempts_of_step(db: &TestDb, no: i32) -> Vec<i32> {
    sqlx::query_scalar("SELECT attempt FROM iit_task_step WHERE no = $1 ORDER BY attempt")
        .bind(no)
        .fetch_all(&db.pool)
        .await
        .unwrap()
}

const METADATA: &str = "field_name,form_name,section_header,field_type,field_label,select_choices_or_calculations,field_note,text_validation_type_or_show_slider_number,text_validation_min,text_validation_max,identifier,branching_logic,required_field,custom_alignment,question_number,matrix_group_name,matrix_ranking,field_annotation
record_id,baseline,,text,编号,,,,,,,,,,,,,
age,baseline,,text,年龄,,,integer,,,,,,,,,,
";
const DATA: &str = "record_id,age,baseline_complete\n1,40,2\n2,50,2\n3,90,2\n";
const PROJECT: &str = "id = \"kill\"\nname = \"kill\"\n\n[edc]\nkind = \"redcap_files\"\ndir = \"study\"\n\n[fields]\nrecord_id = \"record_id\"\n";

/// A hard node that the page does, a soft one without a model, and three hard ones, a job each.
fn skill() -> Value {
    let hard = |rule: &str, least: u32, most: u32, next: &str| {
        json!({
            "type": "hard_rule",
            "rules": [{
                "id": rule, "field": "age", "severity": "error", "message": rule,
                "logic": { "and": [
                    { ">=": [{ "var": "age" }, least] }, { "<=": [{ "var": "age" }, most] }] },
            }],
            "on_pass": next,
            "on_fail": "end_with_violation",
        })
    };
    json!({
        "name": "五步",
        "start_node": "first",
        "nodes": {
            "first": hard("K-000", 0, 120, "history"),
            "history": {
                "type": "soft_instruction", "instruction": "检查病史",
                "on_pass": "second", "on_fail": "second", "on_error": "second",
            },
            "second": hard("K-001", 0, 120, "third"),
            "third": hard("K-002", 0, 120, "fourth"),
            "fourth": hard("K-003", 18, 75, "end_success"),
        },
    })
}
