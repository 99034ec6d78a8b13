//! The databases that tests get.

use sqlx::Row;

use crate::support::postgres::{TestCluster, TestDb};

#[tokio::test]
async fn two_tests_never_see_each_others_rows() {
    let (one, two) = tokio::join!(TestDb::new(), TestDb::new());
    sqlx::query("CREATE TABLE seen (n int)")
        .execute(&one.pool)
        .await
        .unwrap();
    let there: bool = sqlx::query_scalar("SELECT to_regclass('seen') IS NOT NULL")
        .fetch_one(&two.pool)
        .await
        .unwrap();
    assert!(!there);
}

#[tokio::test]
async fn a_connection_of_ours_has_the_schema_first_and_is_quiet() {
    let db = TestDb::new().await;
    let row = sqlx::query(
        "SELECT current_setting('search_path') AS path, current_setting('iit.quiet') AS quiet,
                current_setting('timezone') AS zone,
                to_regclass('iit_schema._sqlx_migrations') IS NOT NULL AS migrated",
    )
    .fetch_one(&db.pool)
    .await
    .unwrap();
    assert_eq!(row.get::<String, _>("path"), "iit_schema,public");
    assert_eq!(row.get::<String, _>("quiet"), "on");
    assert_eq!(row.get::<String, _>("zone"), "UTC");
    assert!(row.get::<bool, _>("migrated"));
}

#[tokio::test]
async fn what_was_committed_survives_an_immediate_restart() {
    let cluster = TestCluster::start().await;
    let db = TestDb::on(&cluster).await;
    sqlx::query("CREATE TABLE kept AS SELECT 1 AS n")
        .execute(&db.pool)
        .await
        .unwrap();
    cluster.restart_immediate().await;
    let pool = db.another_pool(1).await;
    let kept: i32 = sqlx::query_scalar("SELECT n FROM kept")
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!(kept, 1);
}
