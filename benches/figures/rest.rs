//! Memory of a worker that has nothing to do.

use std::time::Duration;

use anyhow::{Result, ensure};
use iit_manager::boot::cli::batch;

use crate::Bench;
use crate::place;
use crate::program::{self, Running};
use crate::report::{Figure, Target};

pub async fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let idle = Duration::from_secs(bench.amount(10, 1));
    let base = bench.place.database("rest").await?;
    place::demo(&base, &[]).await?;
    let worker = Running::start(program::iit(&bench.place, &base, &["worker"])).await?;
    tokio::time::sleep(idle).await;
    let fresh = worker.memory_mb("VmRSS")?;
    let batch = batch::request(&base.database.pool, "demo", None, None).await?;
    let done = batch::wait(&base.database.pool, batch).await?;
    ensure!(
        done.batch.failed == 0,
        "{} subjects could not be checked",
        done.batch.failed
    );
    tokio::time::sleep(idle).await;
    let after = worker.memory_mb("VmRSS")?;
    worker.stop().await?;
    base.drop().await?;
    Ok(vec![
        Figure::new("worker at rest", Target::Below(60.0), fresh, "MB RSS")
            .detail(format!("{after:.0} MB at rest again after the sample study"))
            .note(format!(
                "VmRSS of `iit worker` on all queues, {} s after its start; again so long after a QC of 306 subjects, \
                 whose data it keeps",
                idle.as_secs()
            )),
    ])
}
