//! Readiness proves progress, not only life: a process whose claimers stand still is not ready.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use sqlx::PgPool;

use crate::{
    queue::{Wake, worker::Progress},
    store::db,
};

/// How long the database may take to answer before this process counts as not ready.
const PING_LIMIT: Duration = Duration::from_secs(2);

/// What readiness is asked of. Cheap to clone.
#[derive(Clone)]
pub struct Readiness {
    pool: PgPool,
    working: Option<Working>,
    draining: Arc<AtomicBool>,
}

#[derive(Clone)]
struct Working {
    progress: Progress,
    wake: Wake,
    limit: Duration,
}

impl Readiness {
    /// Of a process that only serves.
    #[must_use]
    pub fn of_web(pool: PgPool) -> Self {
        Self {
            pool,
            working: None,
            draining: Arc::default(),
        }
    }

    /// Also asks that every claimer went round within twice the poll interval and that LISTEN stands.
    #[must_use]
    pub fn with_worker(mut self, progress: Progress, wake: Wake, poll: Duration) -> Self {
        self.working = Some(Working {
            progress,
            wake,
            limit: poll * 2 + Duration::from_secs(1),
        });
        self
    }

    /// From now on this process is not ready: it finishes what it has.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    async fn database_fault(&self) -> Option<&'static str> {
        const SILENT: &str = "数据库没有应答 (database does not answer)";
        let asked = async {
            let mut conn = self.pool.acquire().await.map_err(|_| SILENT)?;
            db::ping(&mut conn).await.map_err(|_| SILENT)?;
            match db::is_current(&mut conn).await {
                Ok(true) => Ok(()),
                Ok(false) => Err("数据库结构不是最新，请运行 iit migrate (migrations are missing)"),
                Err(_) => Err(SILENT),
            }
        };
        match tokio::time::timeout(PING_LIMIT, asked).await {
            Ok(Ok(())) => None,
            Ok(Err(fault)) => Some(fault),
            // Alive, and yet nothing gets done: every connection is in use.
            Err(_) if self.pool.num_idle() == 0 && self.pool.size() >= self.max_connections() => {
                Some("数据库连接已用尽 (connection pool exhausted)")
            }
            Err(_) => Some(SILENT),
        }
    }

    fn max_connections(&self) -> u32 {
        self.pool.options().get_max_connections()
    }

    /// Nothing when ready, else why not.
    pub async fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if self.draining.load(Ordering::Relaxed) {
            faults.push("正在停止 (draining)".to_owned());
        }
        faults.extend(self.database_fault().await.map(str::to_owned));
        if let Some(working) = &self.working {
            match working.progress.slowest() {
                None => faults.push("尚未开始取任务 (no claim yet)".to_owned()),
                Some(age) if age > working.limit => faults.push(format!(
                    "已 {} 秒没有取任务 (claiming stands still)",
                    age.as_secs()
                )),
                Some(_) => {}
            }
            if !working.wake.is_listening() {
                faults.push("通知连接断开，靠轮询 (LISTEN is down)".to_owned());
            }
        }
        faults
    }
}
