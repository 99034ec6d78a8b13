//! One turn of one question: the model's answer, or what it wants to see with the calls that show it.
//!
//! The run's step number is the fence, as with every run. A process that dies after the answer was stored
//! leaves it to be used; the tools then run again, which changes nothing, since they only read.

use std::time::Duration;

use anyhow::anyhow;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    Handle,
    common::{
        ask::{Asked, ask},
        consent, judgements, parts,
        questions::{self, THREAD},
        services::Services,
        steps::{self, LLM_QUEUE},
        study::Study,
        tool_calls::{self, outcomes},
        transcript::{self, entry},
    },
};
use crate::{
    adapters::llm::{ChatRequest, Format, ToolCall},
    engines::{
        react::{
            self, Decision, End, Limits, Next, PROMPT_VERSION, Said, calls, decide, texts, thread,
            verify::Evidence,
        },
        redaction::Redactor,
        router,
    },
    queue::{Job, JobError, Lease, NewJob, Outcome, Settled, Settlement},
    store::{
        chat_runs::{self, ChatRun},
        llm::calls as journal,
        runs::{self, RunState, Seen, Step},
        trace::{self, Entry},
        unmapped_names,
    },
    tools::{Effect, Judgement, registry::Caller},
    types::{ids::RunId, text::without_nul},
};

/// How long a person waits for a provider that holds everybody back.
const PATIENCE: Duration = Duration::from_secs(45);
/// Attempts of a turn that wait for a data source to come back.
const PATIENT_ATTEMPTS: i32 = 2;
/// What the step rows call a turn.
const NODE: &str = "turn";

/// Take turn `step` of a run of kind `react`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReactStep {
    /// The run.
    pub run: RunId,
    /// The number this step will have; the fence.
    pub step: i32,
}

impl Job for ReactStep {
    const KIND: &'static str = "react_step";
    const QUEUE: &'static str = LLM_QUEUE;
    const MAX_ATTEMPTS: i32 = 4;
    // Longer than the longest LLM_TIMEOUT_S.
    const TIMEOUT: Duration = Duration::from_secs(15 * 60);

    fn key(&self) -> Option<String> {
        Some(format!("{}/{}", self.run, self.step))
    }

    fn group(&self) -> Option<String> {
        Some(format!("react:{}", self.run))
    }
}

/// A question with what it takes to take its next turn.
struct AtHand {
    run: ChatRun,
    study: Study,
    said: Vec<Said>,
    completion: i64,
    limits: Limits,
}

/// What a turn came to.
struct Turn {
    came: Came,
    /// Rows it adds to the thread.
    said: Vec<Said>,
    /// For the step's row; ids and names only.
    note: Option<String>,
    llm_calls: i32,
    tokens: i64,
    data_version: Option<String>,
    /// Names of fields that nobody could map.
    unmapped: Vec<String>,
}

enum Came {
    /// Another turn follows; the step's outcome.
    On(&'static str),
    /// A judgement answers these calls; the last of them carries the run on.
    Waits(Vec<(ToolCall, Judgement)>),
    /// An answer, and its figures that stand nowhere.
    Answer(String, Vec<String>),
    /// A change was asked for.
    Change,
    /// It is given up.
    Stopped(End),
    /// There is no model for it; why.
    NoModel(String),
}

impl Turn {
    fn of(came: Came) -> Self {
        Self {
            came,
            said: Vec::new(),
            note: None,
            llm_calls: 0,
            tokens: 0,
            data_version: None,
            unmapped: Vec::new(),
        }
    }
}

impl Handle for ReactStep {
    async fn run(self, services: &Services, lease: &Lease) -> Result<Settled, JobError> {
        let started_at = services.clock.now();
        let Some(at_hand) = self.load(services).await? else {
            return steps::already_done(services, lease).await;
        };
        let turn = turn(services, lease, &at_hand).await?;
        let mut settlement = lease
            .settle(&services.pool, &services.wake, &Outcome::Done)
            .await?;
        let written = self
            .write(services, &mut settlement, lease, &at_hand, turn, started_at)
            .await?;
        if !written {
            drop(settlement);
            return steps::already_done(services, lease).await;
        }
        Ok(settlement.commit().await?)
    }

    /// The person is told, whatever broke.
    async fn bury(
        self,
        services: &Services,
        _lease: &Lease,
        settlement: &mut Settlement,
        why: &str,
    ) -> Result<(), JobError> {
        let Some(run) = chat_runs::get(settlement.conn(), self.run).await? else {
            return Ok(());
        };
        let failed = RunState::Failed {
            final_state: "failed".to_owned(),
            error: why.to_owned(),
        };
        let seen = Seen::default();
        if !runs::advance(settlement.conn(), run.id, self.step, &failed, 0, &seen).await? {
            return Ok(());
        }
        questions::answer(services, settlement, &run, texts::BROKEN, &[]).await
    }
}

impl ReactStep {
    /// The run and its thread; `None` when this step is not to be done (any more).
    async fn load(&self, services: &Services) -> Result<Option<AtHand>, JobError> {
        let mut conn = services.pool.acquire().await?;
        let Some(run) = chat_runs::get(&mut conn, self.run).await? else {
            return Err(JobError::Cancel("the run is gone".to_owned()));
        };
        if run.status != "running" || run.step_no != self.step {
            return Ok(None);
        }
        let study = Study::load(services, &mut conn, &run.project).await?;
        let said = transcript::read(&mut conn, run.id, THREAD).await?;
        if thread::question(&said).is_none() {
            return Err(JobError::dead(anyhow!("the transcript holds no question")));
        }
        let completion = journal::completion_before(&mut conn, run.id, self.step).await?;
        let limits = Limits {
            turns: usize::try_from(study.project.file.llm.react_max_iterations)
                .unwrap_or(usize::MAX),
            tokens: i64::from(study.project.file.llm.react_max_tokens),
        };
        Ok(Some(AtHand {
            run,
            study,
            said,
            completion,
            limits,
        }))
    }

    /// Writes the turn: run, step, transcript, and the next job or the answer. `false`: somebody committed it
    /// before, and the caller must roll back.
    async fn write(
        &self,
        services: &Services,
        settlement: &mut Settlement,
        lease: &Lease,
        at_hand: &AtHand,
        turn: Turn,
        started_at: chrono::DateTime<chrono::Utc>,
    ) -> Result<bool, JobError> {
        let run = &at_hand.run;
        let (state, outcome) = state_of(&turn.came);
        let seen = Seen {
            data_version: turn.data_version.as_deref(),
            site: None,
            tokens: turn.tokens,
        };
        if !runs::advance(settlement.conn(), run.id, self.step, &state, 0, &seen).await? {
            return Ok(false);
        }
        let row = Step {
            run: run.id,
            no: self.step,
            node: NODE.to_owned(),
            outcome: outcome.to_owned(),
            note: turn.note,
            findings: Vec::new(),
            attempt: lease.attempt,
            job: Some(lease.job),
            started_at,
            committed_at: None,
            llm_calls: turn.llm_calls,
        };
        runs::append_steps(settlement.conn(), &[row]).await?;
        unmapped_names::note(settlement.conn(), &run.project, &turn.unmapped).await?;
        let mut said = at_hand.said.clone();
        let mut rows: Vec<Entry> = turn.said.iter().map(entry).collect();
        said.extend(turn.said);
        let mut chips = Vec::new();
        let text = match turn.came {
            Came::On(_) => {
                trace::append(settlement.conn(), run.id, self.step, THREAD, &rows).await?;
                let next = Self {
                    run: run.id,
                    step: self.step + 1,
                };
                let next = NewJob::of(&next)?.priority(lease.priority);
                settlement.enqueue(next).await?;
                return Ok(true);
            }
            Came::Waits(waiting) => {
                trace::append(settlement.conn(), run.id, self.step, THREAD, &rows).await?;
                let parent = judgements::Parent {
                    project: &run.project,
                    run: run.id,
                    step: self.step,
                    thread: THREAD,
                };
                judgements::begin(settlement, &parent, waiting, lease.priority).await?;
                return Ok(true);
            }
            Came::Answer(text, unverified) => {
                texts::answer(&text, &unverified, &said, at_hand.study.zone())
            }
            Came::Change => {
                let asked = thread::question(&said).map_or("", |question| &question.text);
                chips = parts::chips_of(&consent::wants_change(asked));
                let seen = thread::results(&said).any(|given| given.ok);
                texts::change(router::texts::write_goes_through_sop(), seen)
            }
            Came::Stopped(end) => {
                if end == End::ToolsFail {
                    let question = thread::question(&at_hand.said);
                    questions::hand_over(services, settlement, run, &at_hand.study, question)
                        .await?;
                }
                end.text().to_owned()
            }
            Came::NoModel(why) => texts::no_model(&why),
        };
        rows.push(Entry::new("note", text.clone()));
        trace::append(settlement.conn(), run.id, self.step, THREAD, &rows).await?;
        questions::answer(services, settlement, run, &text, &chips).await?;
        Ok(true)
    }
}

/// Takes the turn, short of writing it.
async fn turn(services: &Services, lease: &Lease, at_hand: &AtHand) -> Result<Turn, JobError> {
    let AtHand {
        run, study, said, ..
    } = at_hand;
    // A judgement that came to nothing is a call that failed, too.
    if calls::keep_failing(said) {
        return Ok(Turn::of(Came::Stopped(End::ToolsFail)));
    }
    let (last, max_tokens) = match react::next(said, at_hand.completion, at_hand.limits) {
        Next::Stop(end) => return Ok(Turn::of(Came::Stopped(end))),
        Next::Turn { last, max_tokens } => (last, max_tokens),
    };
    let redactor = match services.redactor(study).await {
        Ok(redactor) => redactor,
        Err(JobError::Retry { why, after }) if lease.attempt <= PATIENT_ATTEMPTS => {
            return Err(JobError::Retry { why, after });
        }
        // Nothing may be sent, and nothing could be looked up either.
        Err(error) => {
            tracing::warn!(run.id = %run.id, %error, "react.no_data");
            return Ok(Turn::of(Came::Stopped(End::ToolsFail)));
        }
    };
    let (reply, hidden, llm_calls, tokens) = match model_says(
        services,
        lease,
        at_hand,
        &redactor,
        last.is_some(),
        max_tokens,
    )
    .await?
    {
        Asked::Unavailable(why) => return Ok(Turn::of(Came::NoModel(why))),
        Asked::Reply {
            reply,
            hidden,
            calls,
            tokens,
        } => (reply, hidden, calls, tokens),
    };
    let writes = |name: &str| services.tools.effect(name) == Some(Effect::Propose);
    let mut turn = Turn {
        llm_calls,
        tokens,
        ..Turn::of(Came::Change)
    };
    let said_now = || Said::Reply(without_nul(&reply.text).0);
    match react::decide(&reply, last.is_some(), writes) {
        Decision::WishesWrite => turn.said.push(said_now()),
        Decision::Calls(wanted) => {
            let asked = calls::asked(said, &reply, wanted);
            let refused = calls::refusals(said, &asked.calls);
            // The transcript keeps what the model wrote; the tools get what it means.
            let meant = tool_calls::meant(&asked.calls, &hidden);
            let who = tool_calls::As {
                caller: Caller::React,
                listed: None,
                record: run.record.as_deref(),
            };
            let made = tool_calls::make(services, lease, study, who, &meant, &refused).await?;
            turn.note = Some(outcomes(&made.given, &made.waiting));
            turn.data_version = made.data_version;
            turn.unmapped = made.unmapped;
            turn.said.push(Said::Calls(asked));
            turn.said.extend(made.given.into_iter().map(Said::Result));
            let all: Vec<Said> = said.iter().chain(&turn.said).cloned().collect();
            turn.came = match (calls::keep_failing(&all), made.waiting.is_empty()) {
                (true, _) => Came::Stopped(End::ToolsFail),
                (false, true) => Came::On("turn"),
                (false, false) => Came::Waits(made.waiting),
            };
        }
        Decision::Correct(why) => {
            turn.said.push(said_now());
            turn.came = match last {
                Some(end) => Came::Stopped(end),
                None => {
                    turn.said.push(Said::Correction(decide::correction(&why)));
                    turn.note = Some(why);
                    Came::On("invalid_reply")
                }
            };
        }
        Decision::Answer(text) => {
            let text = without_nul(&text).0;
            // A placeholder's number is no figure.
            let unverified = Evidence::of(said, study.today).unverified(&hidden.mask(&text));
            let was_told = said
                .iter()
                .any(|one| matches!(one, Said::Correction(text) if decide::is_about_figures(text)));
            turn.said.push(Said::Reply(text.clone()));
            let reader = run.asked_by.as_deref();
            let may_see = study.project.file.may_see_identifiers(reader);
            let text = hidden.shown(&text, may_see);
            turn.came = if unverified.is_empty() || was_told || last.is_some() {
                Came::Answer(text, unverified)
            } else {
                let correction = decide::figures_correction(&unverified);
                turn.said.push(Said::Correction(correction));
                turn.note = Some(format!("{} 个数字没有出处", unverified.len()));
                Came::On("figures_unverified")
            };
        }
    }
    Ok(turn)
}

/// Asks the model, or finds what it said.
async fn model_says(
    services: &Services,
    lease: &Lease,
    at_hand: &AtHand,
    redactor: &Redactor,
    last: bool,
    max_tokens: u32,
) -> Result<Asked, JobError> {
    let (run, study) = (&at_hand.run, &at_hand.study);
    let Some(model) = &services.model else {
        return Ok(Asked::Unavailable("尚未配置大模型".to_owned()));
    };
    let limits = &study.project.file.llm;
    if let Err(why) = model.may_see(limits) {
        return Ok(Asked::Unavailable(why));
    }
    let tools = match last {
        true => Vec::new(),
        false => services.tools.specs(Caller::React, None),
    };
    let question = super::common::ask::Question {
        project: study.id(),
        run: run.id,
        step: run.step_no,
        thread: THREAD,
        // The thread's rows are there before the step begins.
        said: &[],
        prompt_version: PROMPT_VERSION,
        request: ChatRequest {
            messages: react::prompt::render(&run.id.to_string(), &at_hand.said, last),
            max_tokens,
            format: Format::Text,
            tools,
        },
        run_limits: (
            i64::from(limits.run_max_calls),
            i64::from(limits.run_max_tokens),
        ),
        day_limits: model.day_limits(limits),
        redactor,
    };
    match ask(services, model, lease, &question).await {
        Err(JobError::Snooze(wait)) if !wait.is_zero() => {
            let mut conn = services.pool.acquire().await?;
            let waited = chat_runs::age(&mut conn, run.id).await?;
            if waited + wait > PATIENCE {
                return Ok(Asked::Unavailable("大模型暂时繁忙".to_owned()));
            }
            Err(JobError::Snooze(wait))
        }
        other => other,
    }
}

/// The run's state and the step's outcome.
fn state_of(came: &Came) -> (RunState, &'static str) {
    let ended = |final_state: &str, standing: &str| RunState::Ended {
        final_state: final_state.to_owned(),
        standing: standing.to_owned(),
    };
    match came {
        Came::On(outcome) => {
            let state = RunState::At {
                node: NODE.to_owned(),
                walk: json!({}),
            };
            (state, outcome)
        }
        Came::Waits(_) => {
            let state = RunState::Waiting {
                node: NODE.to_owned(),
                walk: json!({}),
            };
            (state, "turn")
        }
        Came::Answer(_, unverified) if unverified.is_empty() => {
            (ended("answered", "clean"), "answer")
        }
        Came::Answer(..) => (ended("answered", "review"), "answer"),
        Came::Change => (ended("wishes_write", "incomplete"), "wishes_write"),
        Came::Stopped(End::ToolsFail) => (ended(End::ToolsFail.as_str(), "review"), "gave_up"),
        Came::Stopped(end) => (ended(end.as_str(), "incomplete"), "gave_up"),
        Came::NoModel(_) => (ended("no_model", "incomplete"), "gave_up"),
    }
}
