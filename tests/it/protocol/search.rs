//! Searching passages: the functions in the database, and the order of what is found.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed expectation is the test's verdict"
)]

use iit_manager::engines::protocol::{Query, passages};
use iit_manager::store::protocol::{self, Added, Hits, NewDocument};
use iit_manager::types::protocol::{Media, Passage};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use sqlx::{PgConnection, PgPool};

use super::files::read;
use crate::support::postgres::TestDb;
use crate::support::study::StudyFolder;

const PROJECT: &str = "lung";

async fn project(db: &TestDb) -> StudyFolder {
    let study = StudyFolder::with_eligibility(PROJECT, []);
    crate::support::app::TestApp::apply_to(db, &study).await;
    study
}

fn document<'a>(name: &'a str, sha256: &'a str, passages: &'a [Passage]) -> NewDocument<'a> {
    NewDocument {
        name,
        label: Some("V1.0"),
        media: Media::Markdown,
        file_name: "protocol.md",
        sha256,
        bytes: 1,
        pages: None,
        passages,
    }
}

async fn add(pool: &PgPool, document: &NewDocument<'_>) -> (Added, i32) {
    let mut tx = pool.begin().await.unwrap();
    let added = protocol::add(&mut tx, PROJECT, document, "tester")
        .await
        .unwrap();
    tx.commit().await.unwrap();
    added
}

async fn ask(conn: &mut PgConnection, question: &str) -> Hits {
    let query = Query::of(question).unwrap();
    protocol::search(conn, PROJECT, &query.phrase, &query.terms, 5)
        .await
        .unwrap()
}

/// The sections found, `!` where the phrase stands word for word.
async fn sections(conn: &mut PgConnection, question: &str) -> String {
    let found = ask(conn, question).await.found.into_iter().map(|hit| {
        let mark = if hit.phrase { "!" } else { "" };
        format!(
            "{mark}{}",
            hit.passage
                .number
                .or(hit.passage.page.map(|p| p.to_string()))
                .unwrap_or(hit.passage.section)
        )
    });
    found.collect::<Vec<_>>().join(" ")
}

async fn demo(db: &TestDb) -> StudyFolder {
    let study = project(db).await;
    let text = std::fs::read(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/demo/protocol_V1.0.md"
    ))
    .unwrap();
    let found = passages(&read("protocol_V1.0.md", text).unwrap());
    add(&db.pool, &document("方案", "a", &found)).await;
    study
}

#[tokio::test]
async fn questions_as_people_ask_them_find_the_section_that_answers_them() {
    let db = TestDb::new().await;
    let _study = demo(&db).await;
    let mut conn = db.pool.acquire().await.unwrap();
    let questions = [
        ("访视窗口是多少天？", "5.2"),
        ("V4的窗口", "5.2"),
        ("±5天", "5.2"),
        ("±7 天", "5.2"),
        ("ＳＡＥ多久内要报告", "6.2"),
        ("sae", "6.2"),
        ("MMSE", "2.1"),
        ("入排标准里年龄要求是什么", "2.1"),
        ("间质性肺炎能入组吗", "2.2"),
        ("怀孕或妊娠可以参加吗", "2.2"),
        ("知情同意书什么时候签", "3.1"),
        ("未成年人由谁签字", "3.2"),
        ("81 mg", "1.2"),
        ("81mg", "1.2"),
        ("筛选期最长多少天", "2.3"),
        ("相关性怎么判断", "6.3"),
        ("5.3", "5.3"),
        ("剂量", "4.2"),
        ("偏离", "7"),
        ("主要终点", "1.3"),
    ];
    let mut told = Vec::new();
    for (question, section) in questions {
        let found = sections(&mut conn, question).await;
        let first = found
            .split(' ')
            .next()
            .unwrap_or_default()
            .trim_start_matches('!');
        told.push(format!(
            "{question} → {found}{}",
            if first == section { "" } else { "   ✗" }
        ));
    }
    let wrong = told.iter().filter(|line| line.ends_with('✗')).count();
    insta::assert_snapshot!(told.join("\n"));
    assert_eq!(wrong, 0, "{}", told.join("\n"));
}

#[tokio::test]
async fn what_the_documents_do_not_speak_of_is_not_found() {
    let db = TestDb::new().await;
    let _study = demo(&db).await;
    let mut conn = db.pool.acquire().await.unwrap();
    for question in ["奥希替尼", "V99", "±11天", "HER2"] {
        let hits = ask(&mut conn, question).await;
        assert!(hits.searched > 10);
        let whole: Vec<_> = hits
            .found
            .iter()
            .filter(|hit| hit.phrase || hit.share > 0.5)
            .collect();
        assert!(whole.is_empty(), "{question}: {whole:?}");
    }
}

#[tokio::test]
async fn word_for_word_comes_first_and_a_heading_counts_more_than_a_mention() {
    let db = TestDb::new().await;
    let _study = project(&db).await;
    let passage = |section: &str, text: &str| Passage {
        number: None,
        section: section.to_owned(),
        page: None,
        text: text.to_owned(),
    };
    let all = [
        passage("提到", "记录访视的日期，另见时间窗口"),
        passage("逐字", "应当遵守访视窗口的规定"),
        passage("剂量调整", "可暂停给药"),
        passage("别处", "必要时进行剂量调整"),
        passage("甲", "无关的文字"),
        passage("乙", "也无关"),
    ];
    add(&db.pool, &document("d", "1", &all)).await;
    let mut conn = db.pool.acquire().await.unwrap();
    assert!(sections(&mut conn, "访视窗口").await.starts_with("!逐字"));
    assert_eq!(sections(&mut conn, "剂量调整").await, "!剂量调整 !别处");
    assert_eq!(sections(&mut conn, "遵").await, "!逐字");
}

#[tokio::test]
async fn a_new_version_replaces_the_old_one_the_same_file_changes_nothing_and_all_is_audited() {
    let db = TestDb::new().await;
    let _study = project(&db).await;
    let passage = |text: &str| {
        [Passage {
            number: Some("5.2".to_owned()),
            section: "5.2 访视窗口".to_owned(),
            page: Some(3),
            text: text.to_owned(),
        }]
    };
    let (old, new) = (passage("允许 ±3 天"), passage("允许 ±5 天"));
    assert_eq!(
        add(&db.pool, &document("方案", "1", &old)).await,
        (Added::New, 1)
    );
    assert_eq!(
        add(&db.pool, &document("方案", "1", &old)).await,
        (Added::Unchanged, 1)
    );
    let second = NewDocument {
        label: None,
        ..document("方案", "2", &new)
    };
    assert_eq!(add(&db.pool, &second).await, (Added::Replaced, 2));
    let mut conn = db.pool.acquire().await.unwrap();
    let hits = ask(&mut conn, "访视窗口").await;
    let told: Vec<String> = hits
        .found
        .iter()
        .map(|h| format!("{} {}", h.passage.citation(), h.passage.text))
        .collect();
    assert_eq!(told, ["《方案》（第 2 次入库） §5.2 允许 ±5 天"]);
    assert!(
        ask(&mut conn, "±3天")
            .await
            .found
            .iter()
            .all(|hit| !hit.phrase)
    );

    assert!(
        protocol::remove(&mut conn, PROJECT, "方案", "tester")
            .await
            .unwrap()
    );
    assert!(
        !protocol::remove(&mut conn, PROJECT, "方案", "tester")
            .await
            .unwrap()
    );
    assert_eq!(ask(&mut conn, "访视窗口").await, Hits::default());
    // Both versions are still there, and coming back is a third.
    assert_eq!(
        add(&db.pool, &document("方案", "1", &old)).await,
        (Added::New, 3)
    );
    let audit: Vec<String> = sqlx::query_scalar(
        "SELECT action FROM iit_audit_log WHERE entity = 'protocol_document' ORDER BY seq",
    )
    .fetch_all(&mut *conn)
    .await
    .unwrap();
    assert_eq!(
        audit,
        [
            "protocol.added",
            "protocol.replaced",
            "protocol.removed",
            "protocol.added"
        ]
    );
    let kept: i64 = sqlx::query_scalar("SELECT count(*) FROM iit_protocol_passages")
        .fetch_one(&mut *conn)
        .await
        .unwrap();
    assert_eq!(kept, 3);
}

async fn finds(conn: &mut PgConnection, text: &str, phrase: &str) -> bool {
    sqlx::query_scalar("SELECT iit_protocol_vector('', $1) @@ iit_protocol_phrase($2)")
        .bind(text)
        .bind(phrase)
        .fetch_one(conn)
        .await
        .unwrap()
}

#[tokio::test]
async fn a_phrase_finds_what_says_it_whatever_the_width_and_case_and_nothing_else() {
    let db = TestDb::new().await;
    let mut conn = db.pool.acquire().await.unwrap();
    for (text, phrase, found) in [
        ("访视窗口为±3天", "窗口", true),
        ("访视窗口为±3天", "口为", true),
        ("访视窗口为±3天", "视口", false),
        ("访视窗口为±3天", "窗口访视", false),
        ("访视窗口为 ± 3 天", "±3天", true),
        ("访视窗口为±30天", "±3天", false),
        ("访视窗口为3天", "±3天", false),
        ("年龄≥18岁", "≥18", true),
        ("年龄≤18岁", "≥18", false),
        ("Ｖ３访视", "v3", true),
        ("V30 访视", "V3", false),
        ("ECOG 0-1 分", "ecog", true),
        ("ECOG评分", "ＥＣＯＧ评分", true),
        ("目  录", "目录", true),
        ("见5.2.1节", "5.2", true),
        ("见15.2节", "5.2", false),
        ("年", "年", true),
        ("每年一次", "年", true),
        ("血红蛋白 μg/L", "μg", true),
        ("血红蛋白 µg/L", "μg", true),
        ("𠮷野家", "𠮷野", true),
        ("", "年", false),
        ("a'b\\c:1 & | ! ( )", "b\\c", true),
    ] {
        assert_eq!(
            finds(&mut conn, text, phrase).await,
            found,
            "{text} / {phrase}"
        );
    }
}

#[tokio::test]
async fn any_text_is_taken_apart_without_error_and_finds_each_of_its_own_parts() {
    let db = TestDb::new().await;
    let mut conn = db.pool.acquire().await.unwrap();
    let mut runner = TestRunner::deterministic();
    // Anything at all is a vector and a query.
    for _ in 0..150 {
        let text = "\\PC{0,80}".new_tree(&mut runner).unwrap().current();
        finds(&mut conn, &text, &text).await;
    }
    // And what was cut out of a text between characters that stand alone is found in it.
    for _ in 0..150 {
        let text = "[甲乙丙丁访视窗口±≥]{1,30}"
            .new_tree(&mut runner)
            .unwrap()
            .current();
        let chars: Vec<char> = text.chars().collect();
        let (from, to) = (0..chars.len(), 0..=chars.len())
            .new_tree(&mut runner)
            .unwrap()
            .current();
        let part: String = chars[from.min(to)..from.max(to)].iter().collect();
        if !part.is_empty() {
            assert!(finds(&mut conn, &text, &part).await, "{part} in {text}");
        }
        let other = "[甲乙丙丁访视窗口±≥]{1,4}"
            .new_tree(&mut runner)
            .unwrap()
            .current();
        assert_eq!(
            finds(&mut conn, &text, &other).await,
            text.contains(&other),
            "{other} in {text}"
        );
    }
}

#[tokio::test]
async fn the_reader_sees_the_documents_of_its_own_study_and_changes_none() {
    let db = TestDb::new().await;
    let _study = demo(&db).await;
    let reader = iit_manager::store::reader::pool(&db.pool);
    let mut tx = iit_manager::store::reader::begin(&reader, PROJECT)
        .await
        .unwrap();
    assert!(!ask(&mut tx, "访视窗口").await.found.is_empty());
    let refused = sqlx::query("DELETE FROM iit_protocol_passages")
        .execute(&mut *tx)
        .await
        .unwrap_err();
    let code = refused
        .as_database_error()
        .and_then(|e| e.code().map(|c| c.into_owned()));
    assert!(
        ["42501", "25006"].contains(&code.as_deref().unwrap_or_default()),
        "{refused}"
    );
    drop(tx);
    let mut other = iit_manager::store::reader::begin(&reader, "other")
        .await
        .unwrap();
    assert_eq!(ask(&mut other, "访视窗口").await, Hits::default());
    drop(other);
    reader.close().await;
}
