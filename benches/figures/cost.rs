//! What a piece of work leaves in the database: rows, bytes of tables with their indexes, and WAL.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde::Serialize;
use sqlx::{Connection, PgConnection};

/// How long the backends of those who worked may take to go. Their counts are whole only then.
const LEAVING: Duration = Duration::from_secs(20);

/// What one step, or one job, costs.
#[derive(Clone, Copy, Serialize)]
pub struct Cost {
    /// Rows that stay.
    pub rows: f64,
    /// Row versions written: inserts and updates.
    pub written: f64,
    /// Growth of tables, TOAST and indexes.
    pub table_bytes: f64,
    /// Growth of the log, full-page images included.
    pub wal_bytes: f64,
}

impl Cost {
    pub fn text(&self) -> String {
        format!(
            "{:.1} rows, {:.0} B of tables, {:.0} B of WAL",
            self.rows, self.table_bytes, self.wal_bytes
        )
    }
}

/// The counters of one database.
struct Counted {
    inserted: i64,
    updated: i64,
    deleted: i64,
    bytes: i64,
    wal: i64,
}

/// Reads the counters of one database before and after.
pub struct Meter {
    url: String,
    before: Counted,
}

impl Meter {
    /// Begins behind a checkpoint, so that nobody pays for the pages of who came before.
    pub async fn begin(url: &str) -> Result<Self> {
        let mut conn = PgConnection::connect(url).await?;
        sqlx::query("CHECKPOINT").execute(&mut conn).await?;
        let before = count(&mut conn).await?;
        conn.close().await?;
        Ok(Self {
            url: url.to_owned(),
            before,
        })
    }

    /// The cost of each of `steps`, when everybody else has left the database.
    pub async fn end(self, steps: usize) -> Result<Cost> {
        let mut conn = PgConnection::connect(&self.url).await?;
        let begin = Instant::now();
        loop {
            let others: i64 = sqlx::query_scalar(
                "SELECT count(*) FROM pg_stat_activity
                 WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()",
            )
            .fetch_one(&mut conn)
            .await?;
            if others == 0 {
                break;
            }
            ensure!(
                begin.elapsed() < LEAVING,
                "{others} connections stayed open after the work"
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let after = count(&mut conn).await?;
        conn.close().await?;
        let before = self.before;
        #[allow(
            clippy::cast_precision_loss,
            reason = "counts and bytes are far below 2^52"
        )]
        let each = |total: i64| total as f64 / steps as f64;
        let inserted = after.inserted - before.inserted;
        Ok(Cost {
            rows: each(inserted - (after.deleted - before.deleted)),
            written: each(inserted + after.updated - before.updated),
            table_bytes: each(after.bytes - before.bytes),
            wal_bytes: each(after.wal - before.wal),
        })
    }
}

async fn count(conn: &mut PgConnection) -> Result<Counted> {
    let (inserted, updated, deleted, bytes, wal) = sqlx::query_as(
        "SELECT coalesce(sum(n_tup_ins), 0)::int8, coalesce(sum(n_tup_upd), 0)::int8,
                coalesce(sum(n_tup_del), 0)::int8, coalesce(sum(pg_total_relation_size(relid)), 0)::int8,
                (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::int8
         FROM pg_stat_user_tables",
    )
    .fetch_one(conn)
    .await?;
    Ok(Counted {
        inserted,
        updated,
        deleted,
        bytes,
        wal,
    })
}
