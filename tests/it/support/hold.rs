//! A moment between two jobs: a queue held, so that a test can change the world in between.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed expectation is the test's verdict"
)]

use super::app::{TestApp, eventually};

impl TestApp {
    /// From now on jobs of this queue are written but not due.
    pub async fn hold_queue(&self, queue: &'static str) {
        let statement = format!(
            "CREATE FUNCTION hold_{queue}() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN NEW.run_at := now() + interval '1 hour'; RETURN NEW; END $$;
             CREATE TRIGGER hold_{queue} BEFORE INSERT ON iit_jobs FOR EACH ROW
             WHEN (NEW.queue = '{queue}') EXECUTE FUNCTION hold_{queue}()"
        );
        sqlx::raw_sql(sqlx::AssertSqlSafe(statement))
            .execute(&self.db.pool)
            .await
            .unwrap();
    }

    /// Makes the held jobs due; those they lead to are held again.
    pub async fn release_held(&self, queue: &'static str) {
        sqlx::query("UPDATE iit_jobs SET run_at = now() WHERE queue = $1 AND state = 'available'")
            .bind(queue)
            .execute(&self.db.pool)
            .await
            .unwrap();
        self.wiring.wake().queues([queue.to_owned()]);
    }

    /// Ends [`TestApp::hold_queue`].
    pub async fn release_queue(&self, queue: &'static str) {
        let statement = format!("DROP TRIGGER hold_{queue} ON iit_jobs");
        sqlx::raw_sql(sqlx::AssertSqlSafe(statement))
            .execute(&self.db.pool)
            .await
            .unwrap();
        self.release_held(queue).await;
    }

    /// Waits until `count` jobs were written to a queue, whatever became of them.
    pub async fn wait_for_jobs(&self, queue: &str, count: i64) {
        eventually(&format!("job {count} on {queue}"), async || {
            let found: i64 = sqlx::query_scalar("SELECT count(*) FROM iit_jobs WHERE queue = $1")
                .bind(queue)
                .fetch_one(&self.db.pool)
                .await
                .unwrap();
            (found >= count).then_some(())
        })
        .await;
    }
}
