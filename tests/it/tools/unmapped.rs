//! Names nobody could map: kept, listed, mapped.

use iit_manager::store::{projects, unmapped_names};
use serde_json::json;

use crate::support::binary::Iit;
use crate::support::postgres::TestDb;
use crate::support::study::{StudyFolder, Subject};

#[tokio::test]
async fn a_name_is_counted_listed_and_gone_once_it_is_mapped() {
    let db = TestDb::new().await;
    let iit = Iit::on(&db);
    let study = StudyFolder::new("lung", [Subject::fit("P001")]);
    iit.ok(&["project", "apply", study.project_file().to_str().unwrap()])
        .await;
    let mut conn = db.pool.acquire().await.unwrap();
    let names = ["体能评分", "体能评分", "血型", " \0 ", ""].map(str::to_owned);
    unmapped_names::note(&mut conn, "lung", &names)
        .await
        .unwrap();
    unmapped_names::note(&mut conn, "lung", &names[..1])
        .await
        .unwrap();
    let listed = iit
        .json(&[
            "project",
            "unmapped",
            "--project",
            "lung",
            "--format",
            "json",
        ])
        .await;
    let counts: Vec<_> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|row| json!([row["name"], row["count"]]))
        .collect();
    assert_eq!(counts[..2], [json!(["体能评分", 2]), json!(["血型", 1])]);
    let table = iit.ok(&["project", "unmapped"]).await;
    assert!(
        table.contains("体能评分") && table.contains("lung"),
        "{table}"
    );

    let map = |alias: &'static str, field: &'static str| {
        ["project", "map", "--project", "lung", alias, field]
    };
    for (alias, field) in [("血型", "blood"), ("age", "ecog"), ("  ", "ecog")] {
        let ran = iit.run(&map(alias, field)).await;
        assert_eq!(ran.code, 2, "{ran:?}");
    }
    let ran = iit
        .run(&["project", "map", "--project", "nothing", "血型", "ecog"])
        .await;
    assert_eq!(ran.code, 2, "{ran:?}");
    iit.ok(&map("体能评分", "ecog")).await;
    assert!(iit.ok(&map("体能评分", "ecog")).await.contains("没有变化"));
    let project = projects::get(&mut conn, "lung").await.unwrap().unwrap();
    assert_eq!(project.aliases["体能评分"], "ecog");
    let listed = iit
        .json(&[
            "project",
            "unmapped",
            "--project",
            "lung",
            "--format",
            "json",
        ])
        .await;
    assert!(
        listed
            .as_array()
            .unwrap()
            .iter()
            .all(|row| row["name"] != "体能评分")
    );
    let audited: Vec<(String, String)> = sqlx::query_as(
        "SELECT action, entity_id FROM iit_audit_log WHERE entity = 'field_mapping' ORDER BY seq",
    )
    .fetch_all(&db.pool)
    .await
    .unwrap();
    assert_eq!(
        audited,
        [("field_mapping.added".to_owned(), "体能评分".to_owned())]
    );
}
