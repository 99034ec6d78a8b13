//! What came of understanding a message, written with it: the run's steps, what was said, and its end.

use chrono::{DateTime, Utc};

use super::understand::{THREAD, step_of};
use crate::{
    engines::router::Routing,
    queue::{JobError, Lease, Settlement},
    store::{
        chat_runs,
        inbox::Message,
        runs::{self, RunState, Seen, Step},
        trace::{self, Entry},
    },
    types::ids::RunId,
};

/// A message understood, and what is to be written about it.
pub struct Understood {
    /// What it wants.
    pub routing: Routing,
    pub(super) talk: Option<Talk>,
}

/// What was asked and answered, to be written with the message.
pub(super) struct Talk {
    pub run: RunId,
    pub steps: Vec<Turn>,
    /// Every answer of the run so far, those an earlier attempt heard included.
    pub replies: Vec<String>,
    pub why: Option<Fallback>,
    pub started_at: DateTime<Utc>,
}

/// What came of one step.
pub(super) struct Turn {
    pub outcome: &'static str,
    pub calls: i32,
    pub tokens: i64,
}

/// Why the keyword router decided although there is a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fallback {
    /// The study's data may not go to this model.
    NotAllowed,
    /// No answer within the routing deadline.
    Deadline,
    /// The provider is in trouble, refuses, or is left alone for a while.
    Unavailable,
    /// A budget is used up, or the breaker waits for a person.
    Withheld,
    /// No answer that could be used, the repair included.
    Unusable,
    /// The run ended another way: a person took the message up again.
    Over,
}

impl Fallback {
    /// The word in metrics and step rows.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotAllowed => "not_allowed",
            Self::Deadline => "deadline",
            Self::Unavailable => "unavailable",
            Self::Withheld => "withheld",
            Self::Unusable => "unusable",
            Self::Over => "over",
        }
    }
}

impl Talk {
    pub fn fall_back(&mut self, why: Fallback) {
        self.why = Some(why);
        // After two answers that can't be used, the second step is the end.
        if why != Fallback::Unusable || self.steps.is_empty() {
            self.steps.push(Turn {
                outcome: "fallback",
                calls: 0,
                tokens: 0,
            });
        }
    }
}

impl Understood {
    /// Writes the run's steps and its end, in the settlement that writes what was understood.
    ///
    /// # Errors
    /// The database failed.
    pub async fn write(&self, settlement: &mut Settlement, lease: &Lease) -> Result<(), JobError> {
        let talk = match &self.talk {
            Some(talk) if talk.why != Some(Fallback::Over) => talk,
            _ => return Ok(()),
        };
        let conn = settlement.conn();
        // The run is begun unless the deadline passed before it could be.
        if chat_runs::get(conn, talk.run).await?.is_none() {
            return Ok(());
        }
        let kept = trace::thread(conn, talk.run, THREAD).await?;
        let heard = kept.iter().filter(|entry| entry.kind == "reply").count();
        let missing = talk.replies.iter().skip(heard);
        let mut said: Vec<Entry> = missing
            .map(|text| Entry::new("reply", text.clone()))
            .collect();
        let note = talk
            .why
            .map(|why| format!("改由关键词识别：{}", why.as_str()));
        said.extend(note.clone().map(|note| Entry::new("note", note)));
        let last = talk.steps.len().saturating_sub(1);
        trace::append(conn, talk.run, step_of(last), THREAD, &said).await?;
        let rows: Vec<Step> = talk
            .steps
            .iter()
            .enumerate()
            .map(|(no, turn)| Step {
                run: talk.run,
                no: step_of(no),
                node: THREAD.to_owned(),
                outcome: turn.outcome.to_owned(),
                note: note.clone().filter(|_| no == last),
                findings: Vec::new(),
                attempt: lease.attempt,
                job: Some(lease.job),
                started_at: talk.started_at,
                committed_at: None,
                llm_calls: turn.calls,
            })
            .collect();
        runs::append_steps(conn, &rows).await?;
        for (no, turn) in talk.steps.iter().enumerate() {
            let seen = Seen {
                tokens: turn.tokens,
                ..Seen::default()
            };
            let to = if no < last {
                RunState::At {
                    node: THREAD.to_owned(),
                    walk: serde_json::Value::Null,
                }
            } else {
                RunState::Ended {
                    final_state: turn.outcome.to_owned(),
                    standing: "clean".to_owned(),
                }
            };
            let moved = runs::advance(conn, talk.run, step_of(no), &to, 0, &seen).await?;
            if !moved {
                return Err(JobError::LostLease);
            }
        }
        Ok(())
    }
}

/// Ends the run of a message that is given up.
///
/// # Errors
/// The database failed.
pub async fn give_up(
    settlement: &mut Settlement,
    message: &Message,
    why: &str,
) -> Result<(), JobError> {
    let failed = RunState::Failed {
        final_state: "failed".to_owned(),
        error: why.to_owned(),
    };
    let run = RunId(message.id.0);
    runs::advance(settlement.conn(), run, 0, &failed, 0, &Seen::default()).await?;
    Ok(())
}
