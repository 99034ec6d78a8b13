//! A QC request from the command line, and the wait for it.

use std::{collections::HashSet, io::IsTerminal, time::Duration};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use sqlx::PgPool;

use super::{exit::Failure, project::actor};
use crate::{
    boot::database::query_failed,
    jobs::batch_qc,
    queue::Wake,
    store::{
        batches::{self, Batch, NewBatch},
        ledger,
        results::{self, RunResult},
    },
    types::{
        finding::{Finding, Severity},
        ids::BatchId,
    },
};

/// How often a waiting command looks at the counts.
const LOOK_EVERY: Duration = Duration::from_millis(150);

/// What people see until it is known how many records there are.
const PLANNING: &str = "{spinner} 正在规划… planning…  {elapsed}";
/// What they see from then on.
const WORKING: &str = "{bar:32} {pos}/{len} 例  发现 {msg}  {elapsed}  剩余 {eta}";

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner())
}

/// Before the plan is made there is no total: a bar of 0 out of 0 would look finished.
fn show(bar: &ProgressBar, total: i32, settled: i32, findings: i32) {
    if total == 0 {
        bar.tick();
        return;
    }
    if bar.length().is_none() {
        bar.set_style(style(WORKING));
    }
    bar.set_length(u64::try_from(total).unwrap_or(0));
    bar.set_position(u64::try_from(settled).unwrap_or(0));
    bar.set_message(findings.to_string());
}

/// Queues a QC request and wakes the workers.
///
/// # Errors
/// The database failed.
pub async fn request(
    pool: &PgPool,
    project: &str,
    skill: Option<&str>,
    records: Option<&[String]>,
) -> Result<BatchId, Failure> {
    let requested = async {
        let mut tx = pool.begin().await?;
        let new = NewBatch {
            project,
            skill,
            records,
            reply_to: None,
            requested_by: &actor(),
        };
        let id = batch_qc::request(&mut tx, &new).await?;
        tx.commit().await?;
        Ok::<_, anyhow::Error>(id)
    };
    let id = requested
        .await
        .map_err(|error| query_failed(format!("{error:#}")))?;
    Wake::notify_once(pool, &[batch_qc::queue_of_requests()]).await;
    Ok(id)
}

/// A finished batch.
pub struct Finished {
    /// Counts.
    pub batch: Batch,
    /// What its runs came to.
    pub results: Vec<RunResult>,
    /// Fingerprints of the findings that a person dismissed.
    dismissed: HashSet<String>,
}

impl Finished {
    /// All findings, in the order of records, rules and places.
    #[must_use]
    pub fn findings(&self) -> Vec<&Finding> {
        let mut findings: Vec<&Finding> =
            self.results.iter().flat_map(|run| &run.findings).collect();
        findings.sort_by(|a, b| {
            (&a.record, &a.rule, &a.event, a.instance, &a.field)
                .cmp(&(&b.record, &b.rule, &b.event, b.instance, &b.field))
        });
        findings
    }

    /// Whether there is a finding of at least that severity which nobody dismissed.
    #[must_use]
    pub fn has_undismissed(&self, least: Severity) -> bool {
        self.findings().iter().any(|finding| {
            finding.severity >= least
                && !self
                    .dismissed
                    .contains(&finding.fingerprint(&self.batch.project))
        })
    }
}

/// Waits until a batch is finished, with a progress bar when a person looks on.
///
/// # Errors
/// The database failed, or the batch could not be done.
pub async fn wait(pool: &PgPool, id: BatchId) -> Result<Finished, Failure> {
    let bar = ProgressBar::with_draw_target(
        None,
        if std::io::stderr().is_terminal() {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        },
    );
    bar.set_style(style(PLANNING));
    let mut ticks = tokio::time::interval(LOOK_EVERY);
    let batch = loop {
        ticks.tick().await;
        let mut conn = pool.acquire().await.map_err(query_failed)?;
        let batch = batches::get(&mut conn, id)
            .await
            .map_err(query_failed)?
            .ok_or_else(|| query_failed(format!("batch {id} is gone")))?;
        show(&bar, batch.total, batch.done + batch.failed, batch.findings);
        if !matches!(batch.state.as_str(), "planning" | "running") {
            break batch;
        }
    };
    bar.finish_and_clear();
    if batch.state != "done" {
        return Err(Failure::Outside(format!(
            "质控未能完成：{} (the batch {})",
            batch
                .error
                .as_deref()
                .or(batch.note.as_deref())
                .unwrap_or("原因未知"),
            batch.state
        )));
    }
    let mut conn = pool.acquire().await.map_err(query_failed)?;
    let results = results::runs(&mut conn, id).await.map_err(query_failed)?;
    let records: Vec<String> = results.iter().map(|run| run.record.clone()).collect();
    let dismissed = ledger::dismissed(&mut conn, &batch.project, &records)
        .await
        .map_err(query_failed)?
        .into_iter()
        .collect();
    Ok(Finished {
        batch,
        results,
        dismissed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn until_the_plan_is_made_there_is_no_bar_that_could_look_full() {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        show(&bar, 0, 0, 0);
        assert_eq!(bar.length(), None);
        show(&bar, 306, 50, 7);
        assert_eq!((bar.length(), bar.position()), (Some(306), 50));
        assert_eq!(bar.message(), "7");
    }
}
