//! One file per job kind: the front page of the program.
//!
//! | job | one step of it |
//! |---|---|
//! | [`intent`] | one inbound message → intents → next jobs |
//! | [`sop_step`] | one SOP node of one run |
//! | [`batch_qc`] | the plan of a QC request, or one page of it |
//! | [`react_step`] | one turn of one question |
//! | [`judge_step`] | one answer to a judgement that a tool call waits for |
//! | [`progress`] | a word to a person whose reply takes its time |
//! | [`cron_skill`] | one firing of a scheduled skill |
//! | [`deliver`] | one outbound message |
//! | [`card_update`] | one clicked card, which shows the choice |

pub mod batch_qc;
pub mod card_update;
pub mod common;
pub mod cron_skill;
pub mod deliver;
pub mod intent;
pub mod judge_step;
pub mod progress;
pub mod react_step;
pub mod sop_step;

use std::{collections::HashMap, future::Future, sync::Arc, time::Duration};

use anyhow::anyhow;
use futures::future::BoxFuture;

use crate::queue::{Job, JobError, Lease, Settled, Settlement, claim::ClaimedJob, worker::Handler};
use common::services::{Services, Shared};

pub use common::review;

/// Queues by the resource their jobs wait for. `iit worker --queues` takes a subset.
pub const QUEUES: [&str; 5] = ["chat", "llm", "edc", "vision", "deliver"];

/// Runs one attempt of a job kind.
pub trait Handle: Job {
    /// Does the work and settles it, or says why it did not.
    ///
    /// Hazard: an attempt may be cut off anywhere and run again; whatever must happen once belongs into
    /// the settlement.
    fn run(
        self,
        services: &Services,
        lease: &Lease,
    ) -> impl Future<Output = Result<Settled, JobError>> + Send;

    /// The job is given up: tells what waits for it, in the same transaction. No network here.
    fn bury(
        self,
        services: &Services,
        lease: &Lease,
        settlement: &mut Settlement,
        why: &str,
    ) -> impl Future<Output = Result<(), JobError>> + Send;
}

/// All job kinds by their stored names.
pub struct Jobs {
    services: Shared,
    kinds: HashMap<&'static str, Kind>,
}

struct Kind {
    timeout: Duration,
    run: Run,
    bury: Bury,
}

type Run = fn(Shared, ClaimedJob) -> BoxFuture<'static, Result<Settled, JobError>>;
type Bury = for<'a> fn(
    &'a Services,
    &'a ClaimedJob,
    &'a mut Settlement,
    &'a str,
) -> BoxFuture<'a, Result<(), JobError>>;

impl Jobs {
    /// The only place that names every job.
    #[must_use]
    pub fn register(services: Shared) -> Arc<Self> {
        let mut jobs = Self {
            services,
            kinds: HashMap::new(),
        };
        jobs.add::<intent::Intent>();
        jobs.add::<sop_step::SopStep>();
        jobs.add::<react_step::ReactStep>();
        jobs.add::<judge_step::JudgeStep>();
        jobs.add::<progress::Progress>();
        jobs.add::<batch_qc::BatchQc>();
        jobs.add::<cron_skill::CronSkill>();
        jobs.add::<deliver::Deliver>();
        jobs.add::<card_update::CardUpdate>();
        Arc::new(jobs)
    }

    fn add<J: Handle>(&mut self) {
        let kind = Kind {
            timeout: J::TIMEOUT,
            run: |services, job| {
                Box::pin(async move {
                    let payload = decode::<J>(&job)?;
                    payload.run(&services, &job.lease).await
                })
            },
            bury: |services, job, settlement, why| {
                Box::pin(async move {
                    // What can't be read has nobody waiting that could be told.
                    match decode::<J>(job) {
                        Ok(payload) => payload.bury(services, &job.lease, settlement, why).await,
                        Err(_) => Ok(()),
                    }
                })
            },
        };
        let replaced = self.kinds.insert(J::KIND, kind);
        debug_assert!(replaced.is_none(), "two jobs are called {}", J::KIND);
    }
}

/// Makes what waited for a dead job ready for it again, so that retrying the job does its work. `false`:
/// whoever waited was told and went on; the job is better left dead.
///
/// # Errors
/// The database failed.
pub async fn revive(
    conn: &mut sqlx::PgConnection,
    kind: &str,
    payload: &serde_json::Value,
) -> Result<bool, sqlx::Error> {
    fn read<J: Job>(payload: &serde_json::Value) -> Option<J> {
        serde_json::from_value(payload.clone()).ok()
    }
    match kind {
        intent::Intent::KIND => match read(payload) {
            Some(job) => intent::revive(conn, &job).await,
            None => Ok(true),
        },
        batch_qc::BatchQc::KIND => match read(payload) {
            Some(job) => batch_qc::revive(conn, &job).await,
            None => Ok(true),
        },
        deliver::Deliver::KIND => match read::<deliver::Deliver>(payload) {
            Some(job) => crate::store::outbox::revive(conn, job.outbox).await,
            None => Ok(true),
        },
        cron_skill::CronSkill::KIND => match read(payload) {
            Some(job) => cron_skill::revive(conn, &job).await,
            None => Ok(true),
        },
        // The run took `on_error` and went on.
        sop_step::SopStep::KIND => Ok(read::<sop_step::SopStep>(payload).is_none()),
        // The person was told that it came to nothing; they ask again.
        react_step::ReactStep::KIND => Ok(read::<react_step::ReactStep>(payload).is_none()),
        // The call was answered with an error, and the run that waited went on.
        judge_step::JudgeStep::KIND => Ok(read::<judge_step::JudgeStep>(payload).is_none()),
        _ => Ok(true),
    }
}

fn decode<J: Job>(job: &ClaimedJob) -> Result<J, JobError> {
    serde_json::from_value(job.payload.clone()).map_err(|error| {
        JobError::dead(anyhow!(
            "the payload of this `{}` job can't be read ({error}); cancel it, or retry it with a version that can",
            job.kind
        ))
    })
}

impl Handler for Jobs {
    fn timeout(&self, kind: &str) -> Duration {
        self.kinds
            .get(kind)
            .map_or(Duration::from_secs(60), |kind| kind.timeout)
    }

    fn run(&self, job: ClaimedJob) -> BoxFuture<'static, Result<Settled, JobError>> {
        match self.kinds.get(job.kind.as_str()) {
            Some(kind) => (kind.run)(Arc::clone(&self.services), job),
            None => {
                let error = anyhow!(
                    "no job is called `{}` in this version; retry it after an update with `iit queue retry`",
                    job.kind
                );
                Box::pin(async move { Err(JobError::Dead(error)) })
            }
        }
    }

    fn bury<'a>(
        &'a self,
        job: &'a ClaimedJob,
        settlement: &'a mut Settlement,
        why: &'a str,
    ) -> BoxFuture<'a, Result<(), JobError>> {
        match self.kinds.get(job.kind.as_str()) {
            Some(kind) => (kind.bury)(&self.services, job, settlement, why),
            None => Box::pin(async { Ok(()) }),
        }
    }
}
