//! The schema, up and down, and the tables as the design documents write to them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed expectation is the test's verdict"
)]

use iit_manager::store::db::MIGRATOR;
use iit_manager::types::clock::Clock;
use serde_json::json;
use sqlx::{Connection, PgConnection, PgPool};

use crate::support::app::TestApp;
use crate::support::postgres::TestDb;
use crate::support::study::{StudyFolder, Subject};

/// Everything that makes up the schema, one line a thing.
async fn schema(pool: &PgPool) -> Vec<String> {
    sqlx::query_scalar(
        "SELECT line FROM (
           SELECT 'column ' || table_name || '.' || column_name || ' ' || data_type || ' ' || is_nullable || ' '
                  || COALESCE(column_default, '') AS line
           FROM information_schema.columns WHERE table_schema = 'iit_schema'
           UNION ALL
           SELECT 'constraint ' || c.conrelid::regclass || '.' || c.conname || ' ' || pg_get_constraintdef(c.oid)
           FROM pg_constraint c JOIN pg_namespace n ON n.oid = c.connamespace WHERE n.nspname = 'iit_schema'
           UNION ALL
           SELECT 'index ' || indexdef FROM pg_indexes WHERE schemaname = 'iit_schema'
           UNION ALL
           SELECT 'trigger ' || pg_get_triggerdef(t.oid)
           FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace
           WHERE n.nspname = 'iit_schema' AND NOT t.tgisinternal
           UNION ALL
           SELECT 'function ' || CASE WHEN p.prokind = 'f' THEN pg_get_functiondef(p.oid) END
           FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = 'iit_schema'
         ) AS parts WHERE line NOT LIKE '%\\_sqlx\\_migrations%' ORDER BY line",
    )
    .fetch_all(pool)
    .await
    .unwrap()
}

#[tokio::test]
async fn down_takes_everything_away_and_up_again_is_the_same_schema() {
    let db = TestDb::new().await;
    let first = schema(&db.pool).await;
    assert!(first.len() > 200, "{}", first.len());
    MIGRATOR.undo(&db.pool, 0).await.unwrap();
    assert_eq!(schema(&db.pool).await, Vec::<String>::new());
    MIGRATOR.run(&db.pool).await.unwrap();
    assert_eq!(schema(&db.pool).await, first);
}

#[tokio::test]
async fn down_works_with_data_in_every_table() {
    let study = StudyFolder::with_eligibility("lung", [Subject::fit("P001").with("age", "16")]);
    let app = TestApp::with(&study).await;
    app.ask("ZhangSan", "质控 P001").await;
    let db = app.stop().await;
    MIGRATOR.undo(&db.pool, 0).await.unwrap();
    assert_eq!(schema(&db.pool).await, Vec::<String>::new());
}

/// The statement of the design documents, byte for byte.
const FIELD_MAPPING: &str =
    "INSERT INTO iit_field_mapping (project_id, alias_name, actual_name) VALUES
('project-uuid', 'age', 'age_calculated'),
('project-uuid', '年龄', 'age_calculated'),
('project-uuid', 'ecog', 'ecog_score'),
('project-uuid', '既往史', 'medical_history_text'),
('project-uuid', 'history', 'medical_history_text');";

#[tokio::test]
async fn the_documents_field_mapping_runs_as_written_and_their_skill_uses_it() {
    let study = StudyFolder::new(
        "project-uuid",
        [Subject::fit("P001"), Subject::fit("P002").with("age", "17")],
    );
    let rename = |name: &str, pairs: &[(&str, &str)]| {
        let path = study.export().join(name);
        let mut text = std::fs::read_to_string(&path).unwrap();
        for (from, to) in pairs {
            text = text.replace(from, to);
        }
        crate::support::study::replace(&path, &text);
    };
    rename(
        "metadata.csv",
        &[
            ("\nage,", "\nage_calculated,"),
            ("\necog,", "\necog_score,"),
            ("\nhistory,", "\nmedical_history_text,"),
        ],
    );
    rename(
        "records.csv",
        &[(
            "record_id,age,ecog,history",
            "record_id,age_calculated,ecog_score,medical_history_text",
        )],
    );
    let toml = std::fs::read_to_string(study.project_file()).unwrap();
    study.write_whole_project(
        &toml
            .replace("age = \"age\"", "age = \"age_calculated\"")
            .replace("\"岁数\" = \"age\"", "\"岁数\" = \"age_calculated\""),
    );
    // Migrated anew: the search path of a database does not come with a copy of it.
    let db = TestDb::new().await;
    MIGRATOR.undo(&db.pool, 0).await.unwrap();
    MIGRATOR.run(&db.pool).await.unwrap();
    let app = TestApp::start_on(db, Clock::system()).await;
    app.apply(&study).await;

    // A connection as psql would open it, with nothing of ours set.
    let mut plain = PgConnection::connect(&app.db.url).await.unwrap();
    sqlx::raw_sql(FIELD_MAPPING)
        .execute(&mut plain)
        .await
        .unwrap();
    plain.close().await.unwrap();

    let skill = format!("{}/tests/data/skills/v26.json", env!("CARGO_MANIFEST_DIR"));
    study.write_skill_file("v26.json", &std::fs::read_to_string(skill).unwrap());
    let ran = crate::support::binary::Iit::on(&app.db)
        .run(&[
            "skills",
            "apply",
            "--project",
            "project-uuid",
            &study.skills().display().to_string(),
        ])
        .await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let reply = app.ask("ZhangSan", "质控 P002").await;
    assert!(
        reply.contains("年龄<18岁") && reply.contains("17"),
        "{reply}"
    );
    app.settled().await;
    let row = app.ledger("project-uuid", "record=P002").await.remove(0);
    assert_eq!(row["outcome"], "fail");
    assert_eq!(
        row["values"],
        json!([{ "field": "age_calculated", "value": "17" }])
    );
    app.ask("ZhangSan", "质控 P001").await;
    let run = app.runs_of("P001").await.remove(0);
    assert_eq!(run["steps"][0]["outcome"], "pass");

    // Applying the project file again leaves what others put into the table.
    app.apply_project(&study).await;
    assert_eq!(app.count("iit_field_mapping").await, 6);
    app.stop().await;
}

#[tokio::test]
async fn a_field_of_the_dictionary_beats_an_alias_of_the_same_name() {
    let study = StudyFolder::with_eligibility("lung", [Subject::fit("P001").with("age", "16")]);
    let app = TestApp::with(&study).await;
    sqlx::query("INSERT INTO iit_field_mapping (project_id, alias_name, actual_name) VALUES ('lung', 'age', 'ecog')")
        .execute(&app.db.pool)
        .await
        .unwrap();
    let reply = app.ask("ZhangSan", "质控 P001").await;
    assert!(reply.contains("年龄<18岁（age=16）"), "{reply}");
    app.stop().await;
}
