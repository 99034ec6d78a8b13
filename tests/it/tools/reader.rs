//! The reader can't write, whatever it is told, and sees one study.

use iit_manager::store::reader;
use sqlx::{AssertSqlSafe, Executor, PgPool};

use crate::support::app::TestApp;
use crate::support::binary::Iit;
use crate::support::postgres::{TestCluster, TestDb};
use crate::support::study::{StudyFolder, Subject};

/// The code the database refuses with.
async fn refusal(reader: &PgPool, before: &[&str], statement: &str) -> String {
    let mut tx = reader.begin().await.unwrap();
    for statement in before {
        tx.execute(AssertSqlSafe(*statement)).await.unwrap();
    }
    match tx.execute(AssertSqlSafe(statement)).await {
        Ok(_) => "done".to_owned(),
        Err(error) => error
            .as_database_error()
            .and_then(|error| error.code().map(std::borrow::Cow::into_owned))
            .unwrap_or_else(|| error.to_string()),
    }
}

#[tokio::test]
async fn no_statement_writes_even_when_the_session_is_told_that_it_may() {
    let db = TestDb::new().await;
    let reader = reader::pool(&db.pool);
    assert_eq!(reader::fault(&reader).await, None);
    let writes = [
        "INSERT INTO iit_projects (id, name, timezone, config) VALUES ('x', 'x', 'UTC', '{}')",
        "INSERT INTO iit_pending_actions (id) VALUES (gen_random_uuid())",
        "INSERT INTO iit_jobs (queue, kind, payload) VALUES ('x', 'x', '{}')",
        "UPDATE iit_pending_actions SET status = 'closed'",
        "DELETE FROM iit_task_run",
        "TRUNCATE iit_pending_actions",
        "CREATE TABLE iit_schema.x (a int)",
        "CREATE TABLE public.x (a int)",
        "DROP TABLE iit_projects",
        "ALTER TABLE iit_pending_actions DISABLE ROW LEVEL SECURITY",
        "CREATE ROLE iit_other",
        "SELECT id FROM iit_pending_actions FOR UPDATE",
    ];
    for statement in writes {
        let code = refusal(&reader, &[], statement).await;
        assert!(
            matches!(code.as_str(), "25006" | "42501"),
            "{statement}: {code}"
        );
        // Not only the session's habit: the role's rights.
        let told = ["SET TRANSACTION READ WRITE", "RESET ROLE"];
        let code = refusal(&reader, &told, statement).await;
        assert_eq!(code, "42501", "{statement}");
    }
    let mut conn = reader.acquire().await.unwrap();
    for statement in ["SET default_transaction_read_only = off", "RESET ROLE"] {
        conn.execute(statement).await.unwrap();
    }
    let error = conn
        .execute(
            "INSERT INTO iit_projects (id, name, timezone, config) VALUES ('x', 'x', 'UTC', '{}')",
        )
        .await
        .unwrap_err();
    assert_eq!(
        error.as_database_error().unwrap().code().as_deref(),
        Some("42501")
    );
}

#[tokio::test]
async fn secrets_and_what_belongs_to_no_study_cannot_be_read() {
    let db = TestDb::new().await;
    let reader = reader::pool(&db.pool);
    for table in [
        "iit_wecom_tokens",
        "iit_jobs",
        "iit_inbox",
        "iit_outbox",
        "iit_members",
        "iit_audit_log",
    ] {
        let code = refusal(&reader, &[], &format!("SELECT * FROM {table}")).await;
        assert_eq!(code, "42501", "{table}");
    }
    let code = refusal(
        &reader,
        &["SET LOCAL statement_timeout = 50"],
        "SELECT pg_sleep(10)",
    )
    .await;
    assert_eq!(code, "57014");
    let limit: String = sqlx::query_scalar("SHOW statement_timeout")
        .fetch_one(&reader)
        .await
        .unwrap();
    assert_eq!(limit, "5s");
}

#[tokio::test]
async fn a_query_that_forgets_the_study_finds_nothing_of_any() {
    let app = TestApp::start().await;
    for id in ["lung", "liver"] {
        let study = StudyFolder::with_eligibility(id, [Subject::fit("P001").with("age", "16")]);
        app.apply(&study).await;
        app.qc(id, None).await;
    }
    let reader = reader::pool(&app.db.pool);
    let counts = async |project: Option<&str>| {
        let mut tx = match project {
            Some(project) => reader::begin(&reader, project).await.unwrap(),
            None => reader.begin().await.unwrap(),
        };
        let mut counts = Vec::new();
        for table in [
            "iit_projects",
            "iit_pending_actions",
            "iit_task_run",
            "iit_batches",
        ] {
            let count = format!("SELECT count(*) FROM {table}");
            let count: i64 = sqlx::query_scalar(AssertSqlSafe(count))
                .fetch_one(&mut *tx)
                .await
                .unwrap();
            counts.push(count);
        }
        counts
    };
    assert_eq!(counts(None).await, [0, 0, 0, 0]);
    assert_eq!(counts(Some("nothing")).await, [0, 0, 0, 0]);
    assert_eq!(counts(Some("lung")).await, [1, 1, 1, 1]);
    // A connection that comes back to the pool has forgotten the study.
    for _ in 0..8 {
        assert_eq!(counts(None).await, [0, 0, 0, 0]);
    }
    // The program itself sees everything, as before.
    let all: i64 = sqlx::query_scalar("SELECT count(*) FROM iit_pending_actions")
        .fetch_one(&app.db.pool)
        .await
        .unwrap();
    assert_eq!(all, 2);
    app.stop().await;
}

#[tokio::test]
async fn without_the_role_nothing_is_read_and_the_doctor_says_what_to_do() {
    let cluster = TestCluster::start().await;
    let db = TestDb::on(&cluster).await;
    let gone = "ALTER ROLE iit_reader RENAME TO somebody_else";
    db.pool.execute(gone).await.unwrap();
    let reader = reader::pool(&db.pool);
    let fault = reader::fault(&reader).await.expect("there is no such role");
    assert!(fault.contains("iit_reader"), "{fault}");
    reader::begin(&reader, "lung").await.unwrap_err();
    let doctor = Iit::on(&db).run(&["doctor"]).await;
    assert_eq!(doctor.code, 1, "{doctor:?}");
    assert!(
        doctor
            .stdout
            .contains("SELECT iit_schema.iit_grant_reader()"),
        "{doctor:?}"
    );
    // What the doctor says to do is enough.
    let granted: bool = sqlx::query_scalar("SELECT iit_schema.iit_grant_reader()")
        .fetch_one(&db.pool)
        .await
        .unwrap();
    assert!(granted);
    assert_eq!(reader::fault(&reader).await, None);
}
