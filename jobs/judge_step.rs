//! One answer to one judgement that a tool call of another run waits for.
//!
//! The step number is the fence. An answer that was stored before a kill is used and not asked for again, and
//! the answer to the waiting call is written with the step that brought it, or not at all.

use std::time::Duration;

use anyhow::anyhow;
use serde::{Deserialize, Serialize};

use super::{
    Handle,
    common::{
        ask::{Asked, Question, ask},
        judgements::{self, Brief, THREAD},
        services::Services,
        steps::{self, LLM_QUEUE},
        study::Study,
        tool_calls, transcript,
    },
};
use crate::{
    adapters::llm::{ChatRequest, Format},
    engines::{
        causality::{self, Assessment, PROMPT_VERSION},
        react::{Given, Said},
        soft::{self, Data, TRIES},
    },
    queue::{Job, JobError, Lease, NewJob, Outcome, Settled, Settlement},
    store::{
        chat_runs::{self, ChatRun},
        judgements as store,
        runs::{self, RunState, Seen, Step},
        trace::{self, Entry},
    },
    types::{ids::RunId, text::without_nul},
};

/// Most tokens of one answer.
const ANSWER_TOKENS: u32 = 1024;
/// How long a person who asked waits for a provider that holds everybody back.
const PATIENCE: Duration = Duration::from_secs(90);
/// What the step rows call it.
const NODE: &str = "judge";

/// Do step `step` of a run of kind `judge`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct JudgeStep {
    /// The run.
    pub run: RunId,
    /// The number this step will have; the fence.
    pub step: i32,
}

impl Job for JudgeStep {
    const KIND: &'static str = "judge_step";
    const QUEUE: &'static str = LLM_QUEUE;
    const MAX_ATTEMPTS: i32 = 4;
    // Longer than the longest LLM_TIMEOUT_S.
    const TIMEOUT: Duration = Duration::from_secs(15 * 60);

    fn key(&self) -> Option<String> {
        Some(format!("{}/{}", self.run, self.step))
    }
}

/// A judgement with what it takes to do its next step.
struct AtHand {
    run: ChatRun,
    study: Study,
    brief: Brief,
    /// What was said so far.
    said: Vec<Said>,
    /// What the model was shown.
    data: Data,
    /// A person waits for the run that waits for this.
    for_person: bool,
}

/// What a step came to.
struct Done {
    came: Came,
    rows: Vec<Entry>,
    calls: i32,
    tokens: i64,
}

enum Came {
    /// An answer that may be shown.
    Assessed(Assessment),
    /// The model gets another try; one sentence why.
    Again(String),
    /// There is no answer; one sentence why.
    Unavailable(String),
}

impl Handle for JudgeStep {
    async fn run(self, services: &Services, lease: &Lease) -> Result<Settled, JobError> {
        let started_at = services.clock.now();
        let Some(at_hand) = self.load(services).await? else {
            return steps::already_done(services, lease).await;
        };
        let done = judge(services, lease, &at_hand).await?;
        let mut settlement = lease
            .settle(&services.pool, &services.wake, &Outcome::Done)
            .await?;
        let written = self
            .write(&mut settlement, lease, &at_hand, done, started_at)
            .await?;
        if !written {
            drop(settlement);
            return steps::already_done(services, lease).await;
        }
        Ok(settlement.commit().await?)
    }

    /// The call is answered with an error, so that the run that waits goes on.
    async fn bury(
        self,
        _services: &Services,
        lease: &Lease,
        settlement: &mut Settlement,
        why: &str,
    ) -> Result<(), JobError> {
        let Some(run) = chat_runs::get(settlement.conn(), self.run).await? else {
            return Ok(());
        };
        let brief = brief_of(store::brief(settlement.conn(), run.id).await?)?;
        let failed = RunState::Failed {
            final_state: "failed".to_owned(),
            error: why.to_owned(),
        };
        let seen = Seen::default();
        if !runs::advance(settlement.conn(), run.id, self.step, &failed, 0, &seen).await? {
            return Ok(());
        }
        let given = tool_calls::failed(&brief.call, "评估没有完成");
        judgements::answer(settlement, &run, &brief, given, lease.priority).await
    }
}

impl JudgeStep {
    /// The run and its thread; `None` when this step is not to be done (any more).
    async fn load(&self, services: &Services) -> Result<Option<AtHand>, JobError> {
        let mut conn = services.pool.acquire().await?;
        let Some(run) = chat_runs::get(&mut conn, self.run).await? else {
            return Err(JobError::Cancel("the run is gone".to_owned()));
        };
        if run.kind != "judge" || run.status != "running" || run.step_no != self.step {
            return Ok(None);
        }
        let brief = brief_of(store::brief(&mut conn, run.id).await?)?;
        let study = Study::load(services, &mut conn, &run.project).await?;
        let said = transcript::read(&mut conn, run.id, THREAD).await?;
        let data = said.iter().find_map(|one| match one {
            Said::Data(json) => serde_json::from_str(json).ok(),
            _ => None,
        });
        let data =
            data.ok_or_else(|| JobError::dead(anyhow!("the transcript holds no readable data")))?;
        let for_person = match run.parent {
            Some(parent) => chat_runs::get(&mut conn, parent).await?.is_some(),
            None => false,
        };
        Ok(Some(AtHand {
            run,
            study,
            brief,
            said,
            data,
            for_person,
        }))
    }

    /// Writes the step: run, step row, transcript, and the next job or the answer to who waits. `false`:
    /// somebody committed it before, and the caller must roll back.
    async fn write(
        &self,
        settlement: &mut Settlement,
        lease: &Lease,
        at_hand: &AtHand,
        done: Done,
        started_at: chrono::DateTime<chrono::Utc>,
    ) -> Result<bool, JobError> {
        let AtHand { run, brief, .. } = at_hand;
        let (state, outcome, note) = standing(&done.came, brief)?;
        let seen = Seen {
            tokens: done.tokens,
            ..Seen::default()
        };
        if !runs::advance(settlement.conn(), run.id, self.step, &state, 0, &seen).await? {
            return Ok(false);
        }
        let row = Step {
            run: run.id,
            no: self.step,
            node: NODE.to_owned(),
            outcome: outcome.to_owned(),
            note,
            findings: Vec::new(),
            attempt: lease.attempt,
            job: Some(lease.job),
            started_at,
            committed_at: None,
            llm_calls: done.calls,
        };
        runs::append_steps(settlement.conn(), &[row]).await?;
        if !done.rows.is_empty() {
            trace::append(settlement.conn(), run.id, self.step, THREAD, &done.rows).await?;
        }
        let given = match done.came {
            Came::Again(_) => {
                let next = Self {
                    run: run.id,
                    step: self.step + 1,
                };
                let next = NewJob::of(&next)?.priority(lease.priority);
                settlement.enqueue(next).await?;
                return Ok(true);
            }
            Came::Assessed(assessment) => given(at_hand, &assessment),
            Came::Unavailable(why) => {
                tool_calls::failed(&brief.call, &format!("{why}，未能评估因果关系"))
            }
        };
        judgements::answer(settlement, run, brief, given, lease.priority).await?;
        Ok(true)
    }
}

/// Asks, and looks at the answer.
async fn judge(services: &Services, lease: &Lease, at_hand: &AtHand) -> Result<Done, JobError> {
    let without = |why: String| Done {
        came: Came::Unavailable(why),
        rows: Vec::new(),
        calls: 0,
        tokens: 0,
    };
    let (run, study, scale) = (&at_hand.run, &at_hand.study, at_hand.brief.scale);
    let Some(model) = &services.model else {
        return Ok(without("尚未配置大模型".to_owned()));
    };
    let limits = &study.project.file.llm;
    if let Err(why) = model.may_see(limits) {
        return Ok(without(why));
    }
    let corrections = at_hand
        .said
        .iter()
        .filter(|one| matches!(one, Said::Correction(_)))
        .count();
    let redactor = services.redactor(study).await?;
    let question = Question {
        project: study.id(),
        run: run.id,
        step: run.step_no,
        thread: THREAD,
        // The thread's rows are there before the step begins.
        said: &[],
        prompt_version: PROMPT_VERSION,
        request: ChatRequest {
            messages: soft::render(&run.id.to_string(), &at_hand.said),
            max_tokens: ANSWER_TOKENS,
            format: match corrections {
                0 => Format::Json,
                _ => Format::Text,
            },
            tools: Vec::new(),
        },
        run_limits: (
            i64::from(limits.run_max_calls),
            i64::from(limits.run_max_tokens),
        ),
        day_limits: model.day_limits(limits),
        redactor: &redactor,
    };
    let (reply, hidden, calls, tokens) = match ask(services, model, lease, &question).await {
        Err(JobError::Snooze(wait)) if at_hand.for_person && !wait.is_zero() => {
            let mut conn = services.pool.acquire().await?;
            let waited = chat_runs::age(&mut conn, run.id).await?;
            if waited + wait > PATIENCE {
                return Ok(without("大模型暂时繁忙".to_owned()));
            }
            return Err(JobError::Snooze(wait));
        }
        Err(error) => return Err(error),
        Ok(Asked::Unavailable(why)) => return Ok(without(why)),
        Ok(Asked::Reply {
            reply,
            hidden,
            calls,
            tokens,
        }) => (reply, hidden, calls, tokens),
    };
    let answer = without_nul(&reply.text).0;
    let judged = if reply.truncated {
        Err("回答被截断了，请缩短".to_owned())
    } else {
        causality::judge(&answer, scale, &at_hand.data, &hidden)
    };
    let mut rows = vec![Entry::new("reply", answer)];
    let came = match judged {
        Ok(assessment) => Came::Assessed(assessment),
        Err(why) if corrections + 1 < TRIES => {
            rows.push(Entry::new("correction", soft::correction(&why)));
            Came::Again(why)
        }
        Err(why) => {
            let reason = format!("大模型 {TRIES} 次回答均不能用（{why}）");
            Came::Assessed(causality::unable(&reason))
        }
    };
    Ok(Done {
        came,
        rows,
        calls,
        tokens,
    })
}

/// The answer to the call.
fn given(at_hand: &AtHand, assessment: &Assessment) -> Given {
    let AtHand { run, brief, .. } = at_hand;
    let record = run.record.clone().unwrap_or_default();
    let (scale, event) = (brief.scale, &brief.event);
    let shown = assessment.shown(scale, &record, event);
    Given {
        id: brief.call.id.clone(),
        name: brief.call.name.clone(),
        ok: true,
        content: without_nul(&shown.to_string()).0,
        record_count: 1,
        ruling: Some(assessment.ruling(scale, &record, event)),
        records: vec![record],
        ..Given::default()
    }
}

/// The run's state, the step's outcome, and its note.
fn standing(
    came: &Came,
    brief: &Brief,
) -> Result<(RunState, &'static str, Option<String>), JobError> {
    let ended = |final_state: &str, standing: &str| RunState::Ended {
        final_state: final_state.to_owned(),
        standing: standing.to_owned(),
    };
    Ok(match came {
        Came::Again(why) => {
            let state = RunState::At {
                node: NODE.to_owned(),
                walk: serde_json::to_value(brief).map_err(JobError::dead)?,
            };
            (state, "invalid_reply", Some(why.clone()))
        }
        Came::Assessed(assessment) if assessment.is_decided(brief.scale) => {
            (ended("assessed", "clean"), "pass", None)
        }
        Came::Assessed(_) => (ended("unable", "review"), "not_evaluable", None),
        Came::Unavailable(why) => (ended("no_model", "incomplete"), "error", Some(why.clone())),
    })
}

fn brief_of(stored: Option<serde_json::Value>) -> Result<Brief, JobError> {
    let stored = stored.unwrap_or(serde_json::Value::Null);
    serde_json::from_value(stored)
        .map_err(|_| JobError::dead(anyhow!("what this judgement is about can't be read")))
}
