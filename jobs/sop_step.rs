//! One SOP node of one run.
//!
//! The run's step number is the fence: a step that somebody committed before finds the number moved on
//! and ends without writing anything.

use std::{sync::Arc, time::Duration};

use anyhow::anyhow;
use serde::{Deserialize, Serialize};

use super::{
    Handle,
    common::{
        judgements, notice, proposals, reply, review,
        services::Services,
        soft_step::{self, Judged, Talk, Turn},
        steps::{self, RunSteps},
        study::{Study, edc_error},
        tool_step,
    },
};
use crate::{
    adapters::llm::ToolCall,
    engines::sop::{CompiledSkill, Decision, NodeOutcome, Notice, Walk},
    queue::{Job, JobError, Lease, NewJob, Outcome, Settled, Settlement},
    skills::Work,
    store::{
        batches,
        ledger::{self, Found},
        runs::{self, Run, RunState, Seen, Step},
        skills as skill_store, trace, unmapped_names,
    },
    tools::Judgement,
    types::{finding::Finding, ids::RunId},
};

/// A person's word on a review.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Review {
    /// It is as suspected: `on_fail`.
    Confirm,
    /// Nothing is wrong: `on_pass`.
    Dismiss,
}

/// Do step `step` of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SopStep {
    /// The run.
    pub run: RunId,
    /// The number this step will have; the fence.
    pub step: i32,
    /// A person's decision, when the run waits for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<Review>,
}

impl Job for SopStep {
    const KIND: &'static str = "sop_step";
    const QUEUE: &'static str = steps::EDC_QUEUE;
    const MAX_ATTEMPTS: i32 = 5;
    // Longer than the longest LLM_TIMEOUT_S.
    const TIMEOUT: Duration = Duration::from_secs(15 * 60);

    fn key(&self) -> Option<String> {
        Some(format!("{}/{}", self.run, self.step))
    }
}

/// A run with what it takes to do its next step.
struct AtHand {
    run: Run,
    study: Study,
    skill: Arc<CompiledSkill>,
    stored: skill_store::StoredSkill,
    walk: Walk,
}

/// What a step came to, before it is written.
struct Done {
    outcome: NodeOutcome,
    walk: Walk,
    data_version: Option<String>,
    site: Option<String>,
    notice: Option<Notice>,
    talk: Talk,
}

impl Done {
    fn of(outcome: NodeOutcome, walk: Walk) -> Self {
        Self {
            outcome,
            walk,
            data_version: None,
            site: None,
            notice: None,
            talk: Talk::default(),
        }
    }
}

/// Whether a step decided its node.
enum Came {
    /// It did.
    Done(Box<Done>),
    /// It did not: its tools are to be answered first, or its answer can't be used. Another step follows.
    Again {
        talk: Talk,
        more: More,
        data_version: Option<String>,
    },
}

/// Another step at the same node.
struct More {
    outcome: &'static str,
    note: String,
    /// Calls that a judgement answers first.
    waiting: Vec<(ToolCall, Judgement)>,
}

/// A step that leaves its node undecided: it is tried again, or a person is asked.
struct Undecided<'a> {
    state: RunState,
    outcome: &'static str,
    note: String,
    llm_calls: i32,
    seen: Seen<'a>,
}

impl Handle for SopStep {
    async fn run(mut self, services: &Services, lease: &Lease) -> Result<Settled, JobError> {
        let started_at = services.clock.now();
        let Some(at_hand) = self.load(services).await? else {
            return steps::already_done(services, lease).await;
        };
        let waits = self.review.is_none()
            && matches!(
                at_hand.skill.work(&at_hand.walk),
                Some(Work::HumanReview { .. })
            );
        if waits {
            let ask =
                review::question(services, &at_hand.run, &at_hand.skill, &at_hand.walk).await?;
            match ask.answered_before {
                None => {
                    return self
                        .wait_for_review(services, lease, at_hand, ask.finding, started_at)
                        .await;
                }
                // The same person's word on the same data: asked once, not every night.
                Some(review) => self.review = Some(review),
            }
        }
        let mut done = match self.work(services, lease, &at_hand).await? {
            Came::Done(done) => *done,
            Came::Again {
                talk,
                more,
                data_version,
            } => {
                let seen = Seen {
                    data_version: data_version.as_deref(),
                    site: None,
                    tokens: talk.tokens,
                };
                return self
                    .do_more(services, lease, &at_hand, (talk, more), seen, started_at)
                    .await;
            }
        };
        if waits {
            done.outcome.note = done.outcome.note.map(|note| format!("沿用此前的{note}"));
        }
        let mut settlement = lease
            .settle(&services.pool, &services.wake, &Outcome::Done)
            .await?;
        let written = self
            .write(services, &mut settlement, lease, &at_hand, done, started_at)
            .await?;
        if !written {
            drop(settlement);
            return steps::already_done(services, lease).await;
        }
        Ok(settlement.commit().await?)
    }

    /// What the step needed never came: the node takes `on_error`, with a query in the ledger. A run
    /// whose skill can't even be read is given up, so that nothing waits for it for ever.
    async fn bury(
        self,
        services: &Services,
        lease: &Lease,
        settlement: &mut Settlement,
        why: &str,
    ) -> Result<(), JobError> {
        let started_at = services.clock.now();
        let at_hand = match self.load_on(services, settlement.conn()).await {
            Ok(Some(at_hand)) => at_hand,
            Ok(None) => return Ok(()),
            Err(JobError::Dead(_)) => return self.give_up(services, settlement, why).await,
            Err(other) => return Err(other),
        };
        let mut walk = at_hand.walk.clone();
        let sentence = format!("检查未能完成：{why}");
        let outcome = at_hand
            .skill
            .unavailable(&mut walk, &at_hand.run.record, &sentence)
            .map_err(JobError::dead)?;
        let done = Done::of(outcome, walk);
        self.write(services, settlement, lease, &at_hand, done, started_at)
            .await?;
        Ok(())
    }
}

impl SopStep {
    async fn load(&self, services: &Services) -> Result<Option<AtHand>, JobError> {
        let mut conn = services.pool.acquire().await?;
        self.load_on(services, &mut conn).await
    }

    /// The run and its skill's graph; `None` when this step is not to be done (any more).
    async fn load_on(
        &self,
        services: &Services,
        conn: &mut sqlx::PgConnection,
    ) -> Result<Option<AtHand>, JobError> {
        let Some(run) = runs::get(conn, self.run).await? else {
            return Err(JobError::Cancel("the run is gone".to_owned()));
        };
        let due = match run.status.as_str() {
            "running" => true,
            "waiting" => self.review.is_some(),
            _ => false,
        };
        if !due || run.step_no != self.step {
            return Ok(None);
        }
        let study = Study::load(services, conn, &run.project).await?;
        let stored = skill_store::version(conn, &run.project, &run.skill_type, run.skill_version)
            .await?
            .ok_or_else(|| JobError::dead(anyhow!("the run's skill version is gone")))?;
        let skill = services
            .skills
            .compiled(&study, &stored, None)
            .map_err(|fault| JobError::dead(anyhow!(fault)))?;
        let walk = match &run.walk {
            Some(walk) => serde_json::from_value(walk.clone()).map_err(JobError::dead)?,
            None => skill.begin(),
        };
        Ok(Some(AtHand {
            run,
            study,
            skill,
            stored,
            walk,
        }))
    }

    async fn give_up(
        &self,
        services: &Services,
        settlement: &mut Settlement,
        why: &str,
    ) -> Result<(), JobError> {
        let failed = RunState::Failed {
            final_state: "failed".to_owned(),
            error: why.to_owned(),
        };
        let seen = Seen::default();
        if runs::advance(settlement.conn(), self.run, self.step, &failed, 0, &seen).await? {
            stopped(services, settlement, self.run).await?;
        }
        Ok(())
    }

    /// Does the node the run stands at.
    async fn work(
        &self,
        services: &Services,
        lease: &Lease,
        at_hand: &AtHand,
    ) -> Result<Came, JobError> {
        let skill = &at_hand.skill;
        let mut walk = at_hand.walk.clone();
        let record = &at_hand.run.record;
        let work = skill
            .work(&walk)
            .ok_or_else(|| JobError::dead(anyhow!("the run stands at a node its skill lacks")))?;
        let done = match work {
            Work::HardRule { .. } => self.check(services, at_hand).await?,
            Work::SoftInstruction { instruction, tools } => {
                let (study, run) = (&at_hand.study, &at_hand.run);
                let rule = soft_step::Rule { instruction, tools };
                let judged =
                    soft_step::judge(services, lease, study, run, skill, &walk, &rule).await?;
                return take_judgement(skill, walk, record, judged);
            }
            Work::Tool { tool, args } => {
                let (study, run) = (&at_hand.study, &at_hand.run);
                let judged =
                    tool_step::call(services, lease, study, run, skill, &walk, (tool, args))
                        .await?;
                return take_judgement(skill, walk, record, judged);
            }
            Work::HumanReview { .. } => {
                let decision = match self.review {
                    Some(Review::Confirm) => Decision::Confirm,
                    Some(Review::Dismiss) => Decision::Dismiss,
                    None => return Err(JobError::dead(anyhow!("a review without a decision"))),
                };
                let mut outcome = skill.decide(&mut walk, decision).map_err(JobError::dead)?;
                // The ledger row of the review is what was decided; nothing about it is "fixed".
                outcome.rules_checked.clear();
                Done::of(outcome, walk)
            }
            Work::Notify { .. } => {
                let mut conn = services.pool.acquire().await?;
                let found: Vec<Finding> = runs::steps(&mut conn, at_hand.run.id)
                    .await?
                    .into_iter()
                    .flat_map(|step| step.findings)
                    .collect();
                let (notice, outcome) = skill
                    .notify(&mut walk, record, &found)
                    .map_err(JobError::dead)?;
                let mut done = Done::of(outcome, walk);
                done.notice = Some(notice);
                done
            }
        };
        Ok(Came::Done(Box::new(done)))
    }

    /// Reads the record as it is now and decides the hard node.
    async fn check(&self, services: &Services, at_hand: &AtHand) -> Result<Done, JobError> {
        let ids = [at_hand.run.record.clone()];
        let extract = at_hand.study.edc.records(&ids).await.map_err(edc_error)?;
        let record = extract
            .records
            .first()
            .ok_or_else(|| JobError::dead(anyhow!("the EDC returned no record")))?;
        let skill = services
            .skills
            .compiled(&at_hand.study, &at_hand.stored, Some(&extract.dictionary))
            .map_err(|fault| JobError::dead(anyhow!(fault)))?;
        let mut walk = at_hand.walk.clone();
        let outcome = skill
            .check(&mut walk, record, at_hand.study.today)
            .map_err(JobError::dead)?;
        let mut done = Done::of(outcome, walk);
        done.data_version = Some(extract.fingerprint.clone());
        done.site = at_hand.study.site_of(record);
        Ok(done)
    }

    /// Writes the step: run, step row, ledger, notice, next job. `false`: somebody committed it before,
    /// and the caller must roll back.
    async fn write(
        &self,
        services: &Services,
        settlement: &mut Settlement,
        lease: &Lease,
        at_hand: &AtHand,
        done: Done,
        started_at: chrono::DateTime<chrono::Utc>,
    ) -> Result<bool, JobError> {
        let run = &at_hand.run;
        let state = steps::state_of(&done.walk);
        let findings = i32::try_from(done.outcome.findings.len()).unwrap_or(i32::MAX);
        let seen = Seen {
            data_version: done.data_version.as_deref(),
            site: done.site.as_deref(),
            tokens: done.talk.tokens,
        };
        if !runs::advance(
            settlement.conn(),
            run.id,
            self.step,
            &state,
            findings,
            &seen,
        )
        .await?
        {
            return Ok(false);
        }
        let clean = matches!(&state, RunState::Ended { standing, .. } if standing == "clean");
        let outcomes = [done.outcome];
        let step = RunSteps {
            run: run.id,
            skill_type: &run.skill_type,
            record: &run.record,
            first: self.step,
            outcomes: &outcomes,
            clean,
            llm_calls: done.talk.calls,
        };
        steps::write(settlement.conn(), &run.project, &[step], lease, started_at).await?;
        self.note(services, settlement, at_hand, &done.talk).await?;
        if let Some(notice) = &done.notice {
            let file = &at_hand.study.project.file;
            notice::tell(services, settlement, file, &notice.to, &notice.text).await?;
        }
        if state.is_running() {
            self.go_on(settlement, lease, &at_hand.skill, &done.walk)
                .await?;
        } else {
            stopped(services, settlement, run.id).await?;
        }
        Ok(true)
    }

    /// Opens the settlement of a step that leaves its node undecided, with the run and the step's row
    /// written. `None`: somebody committed it before.
    async fn settle_undecided(
        &self,
        services: &Services,
        lease: &Lease,
        at_hand: &AtHand,
        step: Undecided<'_>,
        started_at: chrono::DateTime<chrono::Utc>,
    ) -> Result<Option<Settlement>, JobError> {
        let run = at_hand.run.id;
        let mut settlement = lease
            .settle(&services.pool, &services.wake, &Outcome::Done)
            .await?;
        if !runs::advance(
            settlement.conn(),
            run,
            self.step,
            &step.state,
            0,
            &step.seen,
        )
        .await?
        {
            return Ok(None);
        }
        let row = Step {
            run,
            no: self.step,
            node: at_hand.walk.node().unwrap_or_default().to_owned(),
            outcome: step.outcome.to_owned(),
            note: Some(step.note),
            findings: Vec::new(),
            attempt: lease.attempt,
            job: Some(lease.job),
            started_at,
            committed_at: None,
            llm_calls: step.llm_calls,
        };
        runs::append_steps(settlement.conn(), &[row]).await?;
        Ok(Some(settlement))
    }

    /// The node is not decided yet: that was a step, and the next one goes on, at once or when the judgements
    /// it waits for have ended.
    async fn do_more(
        &self,
        services: &Services,
        lease: &Lease,
        at_hand: &AtHand,
        (talk, more): (Talk, More),
        seen: Seen<'_>,
        started_at: chrono::DateTime<chrono::Utc>,
    ) -> Result<Settled, JobError> {
        let walk = &at_hand.walk;
        let waits = !more.waiting.is_empty();
        let step = Undecided {
            state: match waits {
                true => RunState::Waiting {
                    node: walk.node().unwrap_or_default().to_owned(),
                    walk: serde_json::to_value(walk).unwrap_or_default(),
                },
                false => steps::state_of(walk),
            },
            outcome: more.outcome,
            note: more.note,
            llm_calls: talk.calls,
            seen,
        };
        let settling = self.settle_undecided(services, lease, at_hand, step, started_at);
        let Some(mut settlement) = settling.await? else {
            return steps::already_done(services, lease).await;
        };
        self.note(services, &mut settlement, at_hand, &talk).await?;
        if waits {
            let parent = judgements::Parent {
                project: &at_hand.run.project,
                run: self.run,
                step: self.step,
                thread: &talk.thread,
            };
            judgements::begin(&mut settlement, &parent, more.waiting, lease.priority).await?;
        } else {
            self.go_on(&mut settlement, lease, &at_hand.skill, walk)
                .await?;
        }
        Ok(settlement.commit().await?)
    }

    /// Appends what was said to the transcript, and writes what tools proposed.
    async fn note(
        &self,
        services: &Services,
        settlement: &mut Settlement,
        at_hand: &AtHand,
        talk: &Talk,
    ) -> Result<(), JobError> {
        if !talk.said.is_empty() {
            let (thread, said) = (&talk.thread, &talk.said);
            trace::append(settlement.conn(), self.run, self.step, thread, said).await?;
        }
        let (run, file) = (&at_hand.run, &at_hand.study.project.file);
        unmapped_names::note(settlement.conn(), &run.project, &talk.unmapped).await?;
        proposals::write(
            services,
            settlement,
            file,
            run.id,
            &run.skill_type,
            &talk.proposals,
        )
        .await
    }

    /// Enqueues the step after this one.
    async fn go_on(
        &self,
        settlement: &mut Settlement,
        lease: &Lease,
        skill: &CompiledSkill,
        walk: &Walk,
    ) -> Result<(), JobError> {
        let next = SopStep {
            run: self.run,
            step: self.step + 1,
            review: None,
        };
        let queue = steps::queue_for(skill, walk);
        settlement
            .enqueue(NewJob::of(&next)?.on_queue(queue).priority(lease.priority))
            .await?;
        Ok(())
    }

    /// Puts the run to rest at a `human_review` node: a ledger row asks for the decision, and no worker
    /// waits.
    async fn wait_for_review(
        &self,
        services: &Services,
        lease: &Lease,
        at_hand: AtHand,
        finding: Finding,
        started_at: chrono::DateTime<chrono::Utc>,
    ) -> Result<Settled, JobError> {
        let run = &at_hand.run;
        let step = Undecided {
            state: RunState::Waiting {
                node: at_hand.walk.node().unwrap_or_default().to_owned(),
                walk: serde_json::to_value(&at_hand.walk).unwrap_or_default(),
            },
            outcome: "waiting",
            note: "等待人工复核".to_owned(),
            llm_calls: 0,
            seen: Seen::default(),
        };
        let settling = self.settle_undecided(services, lease, &at_hand, step, started_at);
        let Some(mut settlement) = settling.await? else {
            return steps::already_done(services, lease).await;
        };
        let found = Found {
            run: run.id,
            skill_type: &run.skill_type,
            finding: &finding,
            waits: true,
        };
        let records = std::slice::from_ref(&run.record);
        ledger::lock_records(settlement.conn(), &run.project, records).await?;
        ledger::record(settlement.conn(), &run.project, &[found]).await?;
        stopped(services, &mut settlement, run.id).await?;
        Ok(settlement.commit().await?)
    }
}

/// Takes the branch a judgement asks for.
fn take_judgement(
    skill: &CompiledSkill,
    mut walk: Walk,
    record: &str,
    judged: Judged,
) -> Result<Came, JobError> {
    let outcome = match judged.turn {
        Turn::Decided(found) => skill.conclude(&mut walk, found),
        Turn::Unavailable(why) => skill.unavailable(&mut walk, record, &why),
        Turn::Again {
            outcome,
            note,
            waiting,
        } => {
            return Ok(Came::Again {
                talk: judged.talk,
                more: More {
                    outcome,
                    note,
                    waiting,
                },
                data_version: judged.data_version,
            });
        }
    };
    let mut done = Done::of(outcome.map_err(JobError::dead)?, walk);
    done.talk = judged.talk;
    done.data_version = judged.data_version;
    Ok(Came::Done(Box::new(done)))
}

/// The run does not run any more: its batch counts it, and answers when it was the last.
async fn stopped(
    services: &Services,
    settlement: &mut Settlement,
    run: RunId,
) -> Result<(), JobError> {
    if let Some(batch) = batches::run_stopped(settlement.conn(), run).await? {
        reply::finish_batch(services, settlement, batch).await?;
    }
    Ok(())
}
