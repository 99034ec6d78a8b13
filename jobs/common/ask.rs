//! One question to the model, by the journal: what was answered is never asked again, what was asked and
//! not answered is known to have perhaps been billed, and no budget is overdrawn.
//!
//! ```text
//! answered before?            use that answer
//! breaker open?               come back later, or go on without the model
//! row `asked`, transcript     committed                       crash from here on: "maybe billed"
//! reservation                 committed; no budget, no call
//! call                        in a task of its own: it outlives a lost lease
//! row `answered` / `failed`   committed                       crash from here on: the answer is used
//! reservation resolved        committed
//! ```

use std::time::Duration;

use anyhow::anyhow;
use sqlx::{PgConnection, PgPool};

use super::{model::Model, services::Services, until_noted::until_noted};
use crate::{
    adapters::llm::{ChatRequest, Format, LlmError, Reply, client::Answer},
    queue::{JobError, Lease, job::backoff},
    store::{
        db,
        llm::{
            calls::{self, Call, Failure, NewCall, Used},
            providers::{self, Admission, Trouble},
            spend::{self, DayLimits, Denied},
        },
        trace::{self, Entry},
    },
    types::ids::RunId,
};

/// Questions of one step at most, over all its attempts: beyond that something is wrong with us.
const MOST_ASKS: usize = 8;
/// How long a job waits for a breaker to close before it goes on without the model.
const PATIENCE: Duration = Duration::from_secs(10 * 60);
/// A breaker is looked at again after this long at the latest.
const LONGEST_SNOOZE: Duration = Duration::from_secs(60);
/// The shortest time a server that says "slow down" is left alone, whatever it asks for.
const SHORTEST_BUSY: Duration = Duration::from_secs(1);
/// How long a server that says "slow down" and not for how long is left alone.
const BUSY: Duration = Duration::from_secs(20);

/// A question, with what it is for.
pub struct Question<'a> {
    /// The study that pays.
    pub project: &'a str,
    /// The run that asks.
    pub run: RunId,
    /// Its step.
    pub step: i32,
    /// The thread it belongs to.
    pub thread: &'a str,
    /// What the transcript has to say before the question leaves.
    pub said: &'a [Entry],
    /// Which prompts these are.
    pub prompt_version: &'static str,
    /// The request.
    pub request: ChatRequest,
    /// Most calls and tokens of the run.
    pub run_limits: (i64, i64),
    /// Most of the day.
    pub day_limits: DayLimits,
}

/// What came of it.
pub enum Asked {
    /// An answer.
    Reply {
        /// What the model said.
        reply: Reply,
        /// Questions this step took.
        calls: i32,
        /// Tokens they used.
        tokens: i64,
    },
    /// The step has to do without the model, now and for good; why, for people, without its full stop.
    Unavailable(String),
}

/// Asks, or finds the answer in the journal.
///
/// # Errors
/// Worth another attempt, or not yet: the queue comes back.
pub async fn ask(
    services: &Services,
    model: &Model,
    lease: &Lease,
    question: &Question<'_>,
) -> Result<Asked, JobError> {
    let before = {
        let mut conn = services.pool.acquire().await?;
        calls::of_step(&mut conn, question.run, question.step).await?
    };
    if !question.said.is_empty() && !before.is_empty() {
        return Err(stale());
    }
    settle_what_is_left(&services.pool, &before).await?;
    if let Some(call) = before.iter().find(|call| call.state == "answered") {
        return known(call, &before, question.request.max_tokens);
    }
    let asks = before.iter().filter(|call| call.counts()).count();
    if asks >= MOST_ASKS {
        return Ok(Asked::Unavailable(format!(
            "同一问题已向大模型提问 {asks} 次均无答复"
        )));
    }
    // A server that does not know the JSON mode refuses the first question; the next goes without.
    let mut request = question.request.clone();
    if before.iter().any(|call| call.refused) {
        request.format = Format::Text;
    }
    let prompt = request.prompt_tokens_at_most();
    let answer = i64::from(request.max_tokens);
    let mut conn = services.pool.acquire().await?;
    let (asked_so_far, used_so_far) = calls::of_run(&mut conn, question.run).await?;
    let (most_calls, most_tokens) = question.run_limits;
    if asked_so_far >= most_calls || used_so_far + prompt + answer > most_tokens {
        return Ok(Asked::Unavailable("这次运行的大模型额度已用完".to_owned()));
    }
    let probe = model.timeout + Duration::from_secs(5);
    let admission = providers::admit(&mut conn, &model.provider, probe).await?;
    let is_probe = admission == Admission::Probe;
    if let Admission::Open {
        wait,
        since,
        wants_person,
        reason,
    } = admission
    {
        if wants_person || since > PATIENCE {
            return Ok(Asked::Unavailable(format!("大模型暂停使用：{reason}")));
        }
        return Err(JobError::Snooze(wait.min(LONGEST_SNOOZE)));
    }
    let ask = i32::try_from(before.len())
        .unwrap_or(i32::MAX)
        .saturating_add(1);
    let new = NewCall {
        project: question.project,
        run: question.run,
        step: question.step,
        ask,
        request_hash: &model.client.hash(&request),
        prompt_version: question.prompt_version,
        provider: &model.provider,
        model: model.client.model(),
        tokens: prompt + answer,
        cost: model.price.of(prompt, answer),
        job: lease.job,
        attempt: lease.attempt,
    };
    drop(conn);
    let Some(call) = note(&services.pool, &new, question).await? else {
        // Another attempt, whose lease may be gone, was answered since we looked.
        return Err(stale());
    };
    if let Err(denied) = reserve(&services.pool, call, &question.day_limits).await? {
        let whose = match denied {
            Denied::Project => "本研究",
            Denied::All => "全部研究",
            // We stood still for so long that somebody else asks by now: nothing leaves.
            Denied::GivenUp => return Err(stale()),
        };
        let why = format!("{whose}今日的大模型额度已用完");
        let mut conn = services.pool.acquire().await?;
        let failure = Failure {
            error: "over budget",
            maybe_billed: false,
            refused: false,
        };
        calls::failed(&mut conn, call, failure).await?;
        if is_probe {
            providers::put_back_probe(&mut conn, &model.provider).await?;
        }
        drop(conn);
        settle(&services.pool, call).await?;
        return Ok(Asked::Unavailable(why));
    }
    let key = format!("{}/{}/{ask}", question.run, question.step);
    let json = request.format != Format::Text;
    match call_and_note(services, model, call, request, key).await? {
        Ok(answer) => {
            let earlier: i64 = before.iter().map(Call::tokens).sum();
            let tokens = answer
                .reply
                .usage
                .map_or(0, |used| used.prompt + used.completion);
            Ok(Asked::Reply {
                reply: answer.reply,
                calls: ask,
                tokens: earlier + tokens,
            })
        }
        Err(error) => no_answer(&error, json, lease.attempt, ask),
    }
}

/// Another attempt went on with this step since we looked. What it showed the model, and what it was answered,
/// is to be read first, since an answer is judged by what was shown.
fn stale() -> JobError {
    JobError::Snooze(Duration::ZERO)
}

/// An answer of an earlier attempt: used as it is, never asked for again.
fn known(call: &Call, all: &[Call], max_tokens: u32) -> Result<Asked, JobError> {
    let body = call.reply.as_deref().unwrap_or_default();
    let reply = Reply::read(body, max_tokens)
        .map_err(|error| JobError::dead(anyhow!("the stored answer can't be read: {error}")))?;
    Ok(Asked::Reply {
        reply,
        calls: i32::try_from(all.len()).unwrap_or(i32::MAX),
        tokens: all.iter().map(Call::tokens).sum(),
    })
}

/// Questions of earlier attempts that nobody waits for any more: perhaps billed, and counted as spent.
async fn settle_what_is_left(pool: &PgPool, before: &[Call]) -> Result<(), sqlx::Error> {
    let lost: Vec<i64> = before
        .iter()
        .filter(|call| call.state == "asked" && !call.settled)
        .map(|call| call.id)
        .collect();
    if !lost.is_empty() {
        tracing::warn!(calls = ?lost, "llm.call.maybe_billed");
        metrics::counter!("iit_llm_maybe_billed_total").increment(lost.len() as u64);
        calls::lost(&mut *pool.acquire().await?, &lost).await?;
    }
    for call in before.iter().filter(|call| !call.settled) {
        settle(pool, call.id).await?;
    }
    Ok(())
}

/// The row and the transcript, committed before anything leaves.
async fn note(
    pool: &PgPool,
    new: &NewCall<'_>,
    question: &Question<'_>,
) -> Result<Option<i64>, JobError> {
    let mut tx = db::begin(pool).await?;
    // First the row: of two attempts at the same question the second waits here, and leaves the transcript
    // alone.
    let call = calls::asked(&mut tx, new).await.map_err(|error| {
        let same = error
            .as_database_error()
            .is_some_and(sqlx::error::DatabaseError::is_unique_violation);
        if same { stale() } else { error.into() }
    })?;
    if call.is_none() {
        return Ok(None);
    }
    if !question.said.is_empty() {
        let (run, step) = (question.run, question.step);
        trace::append(&mut tx, run, step, question.thread, question.said).await?;
    }
    tx.commit().await?;
    Ok(call)
}

async fn reserve(
    pool: &PgPool,
    call: i64,
    limits: &DayLimits,
) -> Result<Result<(), Denied>, sqlx::Error> {
    let mut tx = db::begin_unflushed(pool).await?;
    let held = spend::reserve(&mut tx, call, limits).await?;
    if held.is_ok() {
        tx.commit().await?;
    }
    Ok(held)
}

/// Resolves what an hour after it was asked nobody has resolved: the run ended another way.
///
/// # Errors
/// The database failed.
pub async fn settle_abandoned(pool: &PgPool) -> Result<usize, sqlx::Error> {
    let abandoned = calls::abandoned(&mut *pool.acquire().await?).await?;
    calls::lost(&mut *pool.acquire().await?, &abandoned).await?;
    for call in &abandoned {
        settle(pool, *call).await?;
    }
    Ok(abandoned.len())
}

async fn settle(pool: &PgPool, call: i64) -> Result<(), sqlx::Error> {
    let mut tx = db::begin_unflushed(pool).await?;
    spend::settle(&mut tx, call).await?;
    tx.commit().await
}

/// The call and the note of what came of it, in a task that goes on when this attempt is aborted: an answer
/// that was paid for is stored even when the lease was lost meanwhile.
async fn call_and_note(
    services: &Services,
    model: &Model,
    call: i64,
    request: ChatRequest,
    key: String,
) -> Result<Result<Answer, LlmError>, JobError> {
    let (client, provider, price) = (model.client.clone(), model.provider.clone(), model.price);
    let pool = services.pool.clone();
    let task = tokio::spawn(async move {
        let started = tokio::time::Instant::now();
        let outcome = client.chat(&request, &key).await;
        let name = if outcome.is_ok() {
            "answered"
        } else {
            "failed"
        };
        metrics::histogram!("iit_llm_call_seconds", "outcome" => name)
            .record(started.elapsed().as_secs_f64());
        let used = outcome.as_ref().ok().and_then(|answer| {
            let used = answer.reply.usage?;
            Some(Used {
                prompt: i32::try_from(used.prompt).unwrap_or(i32::MAX),
                completion: i32::try_from(used.completion).unwrap_or(i32::MAX),
                cost: price.of(used.prompt, used.completion),
            })
        });
        if let Some(used) = used {
            count(client.model(), used);
        }
        if let Err(error) = &outcome {
            tracing::warn!(call.id = call, %error, "llm.call.failed");
        }
        note_outcome(&pool, call, &outcome, used).await?;
        tell_breaker(
            &mut *pool.acquire().await?,
            &provider,
            outcome.as_ref().err(),
        )
        .await?;
        settle(&pool, call).await?;
        Ok::<_, sqlx::Error>(outcome)
    });
    match task.await {
        Ok(noted) => Ok(noted?),
        Err(error) => Err(JobError::retry(anyhow!("the call ended badly: {error}"))),
    }
}

/// What was paid for is noted even if the database is away for a moment.
async fn note_outcome(
    pool: &PgPool,
    call: i64,
    outcome: &Result<Answer, LlmError>,
    used: Option<Used>,
) -> Result<(), sqlx::Error> {
    let note = || async {
        let mut conn = pool.acquire().await?;
        match outcome {
            Ok(answer) => calls::answered(&mut conn, call, &answer.body, used).await,
            Err(error) => {
                let failure = Failure {
                    error: &error.to_string(),
                    maybe_billed: error.maybe_billed(),
                    refused: matches!(error, LlmError::Refused { .. }),
                };
                calls::failed(&mut conn, call, failure).await
            }
        }
    };
    until_noted(note, |error| {
        tracing::warn!(call.id = call, %error, "llm.note.again");
    })
    .await
}

/// What a call used, for the metrics page.
fn count(model: &str, used: Used) {
    for (kind, n) in [("prompt", used.prompt), ("completion", used.completion)] {
        metrics::counter!("iit_llm_tokens_total", "model" => model.to_owned(), "type" => kind)
            .increment(u64::try_from(n).unwrap_or(0));
    }
    #[expect(clippy::cast_precision_loss, reason = "prices are far below 2^52")]
    let yuan = used.cost as f64 / 1e6;
    metrics::gauge!("iit_llm_cost_cny_total", "model" => model.to_owned()).increment(yuan);
}

async fn tell_breaker(
    conn: &mut PgConnection,
    provider: &str,
    error: Option<&LlmError>,
) -> Result<(), sqlx::Error> {
    let Some(error) = error else {
        return providers::works(conn, provider).await;
    };
    let trouble = match error {
        LlmError::NoCredit(_) | LlmError::BadKey(_) => Trouble::WantsPerson,
        LlmError::RateLimited(_) => Trouble::Busy(busy(error.retry_after())),
        LlmError::NotSent { .. } | LlmError::NoAnswer { .. } | LlmError::Trouble(_) => {
            Trouble::Failing
        }
        // Nothing left, so nothing was learnt.
        LlmError::Invalid { .. } => return providers::put_back_probe(conn, provider).await,
        // The server answers; it is the question or the answer that is wrong.
        _ => return providers::works(conn, provider).await,
    };
    if providers::failed(conn, provider, &trouble, &error.to_string()).await? {
        tracing::error!(provider, %error, "llm.breaker.opened");
        metrics::counter!("iit_llm_breaker_opened_total").increment(1);
    }
    Ok(())
}

/// How long a server that asks to slow down is left alone.
fn busy(retry_after: Option<Duration>) -> Duration {
    retry_after.unwrap_or(BUSY).max(SHORTEST_BUSY)
}

/// How a call without an answer, the `ask`th of its step, ends the attempt.
fn no_answer(error: &LlmError, json: bool, attempt: i32, ask: i32) -> Result<Asked, JobError> {
    match error {
        LlmError::Refused { .. } if json => Err(JobError::Snooze(Duration::ZERO)),
        LlmError::NoCredit(_)
        | LlmError::BadKey(_)
        | LlmError::Refused { .. }
        | LlmError::Invalid { .. } => Ok(Asked::Unavailable(error.to_string())),
        // The breaker holds everybody back, and its patience ends it; this uses up no attempt.
        LlmError::RateLimited(_) => {
            let wait = busy(error.retry_after());
            Err(JobError::Snooze(wait.min(LONGEST_SNOOZE)))
        }
        LlmError::NotSent { .. } => Err(JobError::Snooze(backoff(ask))),
        _ => {
            let asked_for = error.retry_after().unwrap_or_default();
            Err(JobError::Retry {
                why: error.clone().into(),
                after: Some(backoff(attempt).max(asked_for.min(LONGEST_SNOOZE))),
            })
        }
    }
}
