//! What a message wants: read at once where it can be read in one way only, else put to the model within the
//! routing deadline, else read by keywords.
//!
//! The question is step 0 of a run of kind `intent` whose id is the message's, a repair is step 1. Both go by
//! the journal, so a crash after the answer asks nothing again. An answer that comes after the deadline is
//! journaled like any other and used for nothing.

use tokio::time::{Instant, timeout_at};

use super::{
    ask::{Asked, Question, ask},
    model::Model,
    services::Services,
    study::Study,
    understood::{Fallback, Talk, Turn, Understood},
};
use crate::{
    adapters::llm::{ChatRequest, Format},
    engines::redaction::Redactor,
    engines::router::{
        self, Conversation,
        model::{
            self as reading, ANSWER_TOKENS, Claim, Context, Opening, PROMPT_VERSION, Said, TRIES,
            schema,
        },
    },
    queue::{JobError, Lease},
    store::{
        chat_runs::{self, ChatRun},
        db,
        inbox::Message,
        llm::calls::{self, Call},
        trace::{self, Entry},
    },
    types::{ids::RunId, text::without_nul},
};

/// The thread of the transcript, and the node of the steps.
pub(super) const THREAD: &str = "route";
/// Questions of one step, when the first was turned away or met a fault that passes.
const ASKS: usize = 2;

/// Understands `text`, which `message` brought.
///
/// # Errors
/// The database failed, or the lease is gone. Never because of the model.
pub async fn understand(
    services: &Services,
    lease: &Lease,
    study: &Study,
    message: &Message,
    text: &str,
    known: &Conversation<'_>,
) -> Result<Understood, JobError> {
    let by_keyword = |talk| Understood {
        routing: router::keyword::route(text, known),
        talk,
    };
    let Some(model) = &services.model else {
        return Ok(by_keyword(None));
    };
    if let Some(routing) = router::certain::read(text, known) {
        count("certain", "");
        return Ok(Understood {
            routing,
            talk: None,
        });
    }
    if model.may_see(&study.project.file.llm).is_err() {
        count("keyword", Fallback::NotAllowed.as_str());
        return Ok(by_keyword(None));
    }
    let mut talk = Talk {
        run: RunId(message.id.0),
        steps: Vec::new(),
        replies: Vec::new(),
        why: None,
        started_at: services.clock.now(),
    };
    let until = Instant::now() + services.conversation.routing_deadline;
    let Ok(redactor) = services.redactor(study).await else {
        // What is personal can't be told, so nothing is sent.
        count("keyword", Fallback::Withheld.as_str());
        return Ok(by_keyword(None));
    };
    let asking = Asking {
        services,
        lease,
        study,
        model: &model.for_intents(),
        message,
        text,
        known,
        until,
        redactor: &redactor,
    };
    let claims = match timeout_at(until, asking.claims(&mut talk)).await {
        Ok(claims) => claims?,
        Err(_) => Err(Fallback::Deadline),
    };
    match claims {
        Ok(claims) => {
            count("model", "");
            let threshold = services.conversation.router_threshold;
            Ok(Understood {
                routing: reading::believe(&claims, text, known, threshold),
                talk: Some(talk),
            })
        }
        Err(why) => {
            tracing::warn!(message.id = %message.id, reason = why.as_str(), "router.fallback");
            count("keyword", why.as_str());
            talk.fall_back(why);
            Ok(by_keyword(Some(talk)))
        }
    }
}

fn count(by: &'static str, reason: &'static str) {
    metrics::counter!("iit_router_messages_total", "by" => by, "reason" => reason).increment(1);
}

struct Asking<'a> {
    services: &'a Services,
    lease: &'a Lease,
    study: &'a Study,
    model: &'a Model,
    message: &'a Message,
    text: &'a str,
    known: &'a Conversation<'a>,
    until: Instant,
    redactor: &'a Redactor,
}

/// An answer: its text, `None` when it was cut off.
type Heard = (Option<String>, Turn);

impl Asking<'_> {
    /// The model's reading; the inner error says why there is none.
    async fn claims(&self, talk: &mut Talk) -> Result<Result<Vec<Claim>, Fallback>, JobError> {
        // Not flushed by itself: the question's own commit is, before anything leaves.
        let mut tx = db::begin_unflushed(&self.services.pool).await?;
        chat_runs::begin(&mut tx, &self.run()).await?;
        tx.commit().await?;
        let mut conn = self.services.pool.acquire().await?;
        let run = chat_runs::get(&mut conn, talk.run).await?;
        if !run.is_some_and(|run| run.status == "running" && run.step_no == 0) {
            return Ok(Err(Fallback::Over));
        }
        let mut said = trace::thread(&mut conn, talk.run, THREAD).await?;
        // A repair that was under way goes on where it was.
        let repairs = said.iter().filter(|entry| entry.kind == "correction");
        for no in 0..repairs.count() {
            let before = calls::of_step(&mut conn, talk.run, step_of(no)).await?;
            talk.steps.push(Turn {
                outcome: "invalid_reply",
                calls: i32::try_from(before.len()).unwrap_or(i32::MAX),
                tokens: before.iter().map(Call::tokens).sum(),
            });
        }
        drop(conn);
        let replies = said.iter().filter(|entry| entry.kind == "reply");
        talk.replies = replies.map(|entry| entry.content.clone()).collect();
        let mut new = Vec::new();
        if said.is_empty() {
            new = self.opening();
            said.clone_from(&new);
        }
        for no in talk.steps.len()..TRIES {
            let (text, mut turn) = match self.asked(no, &said, &new).await? {
                Ok(heard) => heard,
                Err(why) => return Ok(Err(why)),
            };
            let claims = match &text {
                Some(text) => reading::read(text, self.text, self.known),
                None => Err("回答被截断了，请缩短".to_owned()),
            };
            let reply = text.unwrap_or_default();
            talk.replies.push(reply.clone());
            match claims {
                Ok(claims) => {
                    turn.outcome = "understood";
                    talk.steps.push(turn);
                    return Ok(Ok(claims));
                }
                Err(why) => {
                    talk.steps.push(turn);
                    new = vec![
                        Entry::new("reply", reply),
                        Entry::new("correction", reading::correction(&why)),
                    ];
                    said.extend(new.iter().cloned());
                }
            }
        }
        Ok(Err(Fallback::Unusable))
    }

    fn run(&self) -> ChatRun {
        ChatRun {
            id: RunId(self.message.id.0),
            project: self.study.id().to_owned(),
            kind: "intent".to_owned(),
            status: "running".to_owned(),
            step_no: 0,
            record: None,
            message: Some(self.message.id),
            message_part: None,
            asked_by: Some(self.message.sender.clone()),
            parent: None,
            parent_step: None,
            tokens: 0,
        }
    }

    fn opening(&self) -> Vec<Entry> {
        let context = Context {
            conversation: self.known,
            now: self.services.clock.now(),
            today: self.study.today,
        };
        let opening = Opening::new(self.text, &context);
        vec![
            Entry::new("system", opening.system),
            Entry::new("history", opening.context),
            Entry::new("question", opening.message),
        ]
    }

    /// Puts the question of a step; a fault that passes soon is waited for, where the deadline allows.
    async fn asked(
        &self,
        no: usize,
        said: &[Entry],
        new: &[Entry],
    ) -> Result<Result<Heard, Fallback>, JobError> {
        let mut new = new;
        for again in (0..ASKS).rev() {
            let question = self.question(no, said, new);
            let wait = match ask(self.services, self.model, self.lease, &question).await {
                Ok(Asked::Reply {
                    reply,
                    hidden,
                    calls,
                    tokens,
                }) => {
                    // What the person wrote is looked for in it.
                    let text =
                        (!reply.truncated).then(|| hidden.restore(&without_nul(&reply.text).0));
                    let turn = Turn {
                        outcome: "invalid_reply",
                        calls,
                        tokens,
                    };
                    return Ok(Ok((text, turn)));
                }
                Ok(Asked::Unavailable(_)) => return Ok(Err(Fallback::Withheld)),
                Err(JobError::Snooze(wait)) => wait,
                Err(JobError::Retry { after, .. }) => after.unwrap_or_default(),
                Err(JobError::Dead(_)) => return Ok(Err(Fallback::Unusable)),
                Err(error) => return Err(error),
            };
            if again == 0 || Instant::now() + wait >= self.until {
                break;
            }
            tokio::time::sleep(wait).await;
            let mut conn = self.services.pool.acquire().await?;
            let run = question.run;
            if !calls::of_step(&mut conn, run, question.step)
                .await?
                .is_empty()
            {
                // The transcript went in with the question that was noted.
                new = &[];
            }
        }
        Ok(Err(Fallback::Unavailable))
    }

    fn question<'q>(&'q self, no: usize, said: &[Entry], new: &'q [Entry]) -> Question<'q> {
        let limits = &self.study.project.file.llm;
        Question {
            project: self.study.id(),
            run: RunId(self.message.id.0),
            step: step_of(no),
            thread: THREAD,
            said: new,
            prompt_version: PROMPT_VERSION,
            request: ChatRequest {
                messages: reading::render(&self.message.id.to_string(), &parts(said)),
                max_tokens: ANSWER_TOKENS,
                // A few servers held to a form answer with nothing: the repair is free of it.
                format: if no == 0 {
                    Format::Schema {
                        name: schema::NAME,
                        schema: schema::schema(),
                    }
                } else {
                    Format::Text
                },
                tools: Vec::new(),
            },
            run_limits: (
                i64::from(limits.run_max_calls),
                i64::from(limits.run_max_tokens),
            ),
            day_limits: self.model.day_limits(limits),
            redactor: self.redactor,
        }
    }
}

pub(super) fn step_of(no: usize) -> i32 {
    i32::try_from(no).unwrap_or(i32::MAX)
}

fn parts(said: &[Entry]) -> Vec<Said<'_>> {
    said.iter()
        .filter_map(|entry| {
            let text = entry.content.as_str();
            match entry.kind.as_str() {
                "system" => Some(Said::System(text)),
                "history" => Some(Said::Context(text)),
                "question" => Some(Said::Message(text)),
                "reply" => Some(Said::Reply(text)),
                "correction" => Some(Said::Correction(text)),
                _ => None,
            }
        })
        .collect()
}
