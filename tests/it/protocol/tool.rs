//! `search_protocol` as a model calls it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed expectation is the test's verdict"
)]

use std::sync::Arc;
use std::time::Duration;

use iit_manager::adapters::dify::{DifyClient, DifyConfig};
use iit_manager::adapters::edc::EdcPool;
use iit_manager::boot::cli::protocol::Prepared;
use iit_manager::store::{projects, projects::Project, reader};
use iit_manager::tools::registry::{Caller, Registry};
use iit_manager::tools::{Observation, Scope, Snapshot, ToolError};
use iit_manager::types::clock::Clock;
use iit_manager::types::project::{ProtocolConfig, ProtocolKind};
use sqlx::PgPool;

use super::dify::{FakeDify, client, passages};
use crate::support::app::TestApp;
use crate::support::postgres::TestDb;
use crate::support::study::{StudyFolder, Subject};

struct Rig {
    db: TestDb,
    _study: StudyFolder,
    project: Project,
    data: Snapshot,
    reader: PgPool,
}

impl Rig {
    async fn new() -> Self {
        let db = TestDb::new().await;
        let study = StudyFolder::with_eligibility("lung", [Subject::fit("P001")]);
        TestApp::apply_to(&db, &study).await;
        let mut conn = db.pool.acquire().await.unwrap();
        let project = projects::get(&mut conn, "lung").await.unwrap().unwrap();
        drop(conn);
        let edc = EdcPool::default().open(&project.file.edc).unwrap();
        let data = Snapshot::read(&*edc, &Clock::system()).await.unwrap();
        let reader = reader::pool(&db.pool);
        Self {
            db,
            _study: study,
            project,
            data,
            reader,
        }
    }

    async fn call(
        &self,
        dify: Option<DifyClient>,
        arguments: &str,
    ) -> Result<Observation, ToolError> {
        let registry = Registry::standard(dify.map(Arc::new));
        let scope = Scope {
            project: &self.project,
            data: &self.data,
            record: None,
            today: chrono::NaiveDate::from_ymd_opt(2026, 1, 1).unwrap(),
            reader: &self.reader,
        };
        registry
            .call(Caller::React, None, &scope, "search_protocol", arguments)
            .await
    }

    async fn store(&self) {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/demo/protocol_V1.0.md");
        let prepared = Prepared::read(std::path::Path::new(file), Some("方案"), None).unwrap();
        prepared.store(&self.db.pool, "lung").await.unwrap();
    }
}

#[tokio::test]
async fn the_model_gets_passages_to_cite_within_bounds_and_is_told_when_there_are_none() {
    let rig = Rig::new().await;
    let nothing = rig.call(None, r#"{"query": "访视窗口"}"#).await.unwrap();
    assert!(nothing.notes[0].contains("iit protocol add"), "{nothing:?}");
    rig.store().await;
    let seen = rig
        .call(None, r#"{"query": "V4 访视窗口", "top_k": 2}"#)
        .await
        .unwrap();
    assert_eq!(seen.sources[0], "《方案》V1.0 §5.2");
    insta::assert_json_snapshot!(
        serde_json::json!({"value": seen.value, "notes": seen.notes, "sources": seen.sources})
    );
    let missed = rig.call(None, r#"{"query": "奥希替尼"}"#).await.unwrap();
    assert_eq!(missed.sources, Vec::<String>::new());
    insta::assert_snapshot!(missed.notes.join("\n"));
    for top_k in ["1000000", "-3", "0", "1e300", "2.5", "null"] {
        let seen = rig
            .call(None, &format!(r#"{{"query": "访视", "top_k": {top_k}}}"#))
            .await
            .unwrap();
        let rows = seen.value["passages"].as_array().unwrap().len();
        assert!((1..=8).contains(&rows), "{top_k}: {rows}");
        assert!(seen.value.to_string().len() < 8 * 1024);
    }
    rig.reader.close().await;
}

#[tokio::test]
async fn arguments_that_cannot_be_used_are_told_and_never_widen_the_study() {
    let rig = Rig::new().await;
    rig.store().await;
    for arguments in [
        "{}",
        "[]",
        "7",
        "{\"query\": \"\"}",
        "{\"query\": \"？！\"}",
        "{\"query\": {}}",
        "{\"q\": \"x\"}",
        r#"{"query": "窗口", "project": "other"}"#,
        "{\"query\": \"a",
        r#"{"query": "窗口", "top_k": "many"}"#,
    ] {
        let refused = rig.call(None, arguments).await;
        assert!(
            matches!(refused, Err(ToolError::Arguments(_))),
            "{arguments}: {refused:?}"
        );
    }
    let odd = format!(
        r#"{{"query": "{}\u0000'; DROP TABLE x; -- 访视"}}"#,
        "%_\\\\"
    );
    rig.call(None, &odd).await.unwrap();
    rig.reader.close().await;
}

#[tokio::test]
async fn the_project_decides_where_is_searched_and_whether_its_questions_may_leave() {
    let mut rig = Rig::new().await;
    rig.store().await;
    let server = FakeDify::start(passages(&["Dify 的一段"])).await;
    let near = || Some(client(&server.base, Duration::from_secs(30)));
    let far = || {
        let config = DifyConfig::from_lookup(|name| match name {
            "DIFY_BASE_URL" => Some("https://dify.invalid".to_owned()),
            "DIFY_API_KEY" => Some("k".to_owned()),
            "DIFY_DATASET_ID" => Some("ds".to_owned()),
            _ => None,
        });
        Some(DifyClient::new(config.unwrap().unwrap()).unwrap())
    };
    let question = r#"{"query": "访视窗口", "top_k": 1}"#;
    let source = |seen: Result<Observation, ToolError>| match seen {
        Ok(seen) => seen.sources[0].clone(),
        Err(ToolError::Unavailable(why)) => why,
        Err(other) => panic!("{other:?}"),
    };
    let of = |kind| ProtocolConfig {
        kind,
        dataset_id: None,
    };
    let mut told = Vec::new();
    for (kind, dify) in [
        (None, None),
        (None, near()),
        (None, far()),
        (Some(ProtocolKind::Builtin), near()),
        (Some(ProtocolKind::Dify), None),
        (Some(ProtocolKind::Dify), near()),
        (Some(ProtocolKind::Dify), far()),
    ] {
        let host = dify.as_ref().map_or("-".to_owned(), |d| {
            if d.config().is_external() {
                "far"
            } else {
                "near"
            }
            .to_owned()
        });
        rig.project.file.protocol = of(kind);
        told.push(format!(
            "{kind:?} {host}: {}",
            source(rig.call(dify, question).await)
        ));
    }
    // Allowed by name; the host is none, so nothing leaves here either.
    rig.project.file.llm.allow_hosts = vec!["DIFY.invalid".to_owned()];
    told.push(format!(
        "allowed: {}",
        source(rig.call(far(), question).await)
    ));
    insta::assert_snapshot!(told.join("\n"));
    assert_eq!(server.asked().len(), 2);
    rig.reader.close().await;
}
