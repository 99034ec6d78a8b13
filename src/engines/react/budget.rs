//! Turns and tokens of one question. Both are counted from rows, so a crash gives none back. What the model
//! is told about itself, what was said before and the study's memory don't count; what it says and what tools
//! show it does.

use super::{
    texts::End,
    thread::{self, Said},
};

/// Most tokens of one answer.
const ANSWER_TOKENS: u32 = 1024;
/// In fewer nothing can be said.
const LEAST_ANSWER: u32 = 64;
/// With less than this left, the next turn is the last: a call and its result would leave no room to answer.
const ROOM_FOR_A_CALL: i64 = 1200;

/// What one question may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Turns.
    pub turns: usize,
    /// Tokens.
    pub tokens: i64,
}

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Another turn.
    Turn {
        /// It is the last, and this is the end when it does not answer. No tools are offered, so that it has to.
        last: Option<End>,
        /// Most tokens it may say.
        max_tokens: u32,
    },
    /// None.
    Stop(End),
}

/// Whether there is another turn after `said`; `completion`: tokens the model's answers to it took.
#[must_use]
pub fn next(said: &[Said], completion: i64, limits: Limits) -> Next {
    let turns = thread::turns(said);
    if turns >= limits.turns {
        return Next::Stop(End::OutOfTurns);
    }
    let left = limits.tokens - used(said, completion);
    let max_tokens = u32::try_from(left).unwrap_or(0).min(ANSWER_TOKENS);
    if max_tokens < LEAST_ANSWER {
        return Next::Stop(End::OverBudget);
    }
    // A study that allows little from the start still gets its look at the data.
    let little = left < ROOM_FOR_A_CALL && turns > 0;
    let last = match turns + 1 >= limits.turns {
        true => Some(End::OutOfTurns),
        false => little.then_some(End::OverBudget),
    };
    Next::Turn { last, max_tokens }
}

/// Tokens that count.
#[must_use]
pub fn used(said: &[Said], completion: i64) -> i64 {
    let shown: i64 = thread::results(said)
        .map(|given| estimated(&given.content))
        .sum();
    completion + shown
}

/// Tokens of a text, roughly, without the model's own tokeniser: three ASCII characters a token, and one for
/// any other character.
#[must_use]
pub fn estimated(text: &str) -> i64 {
    let ascii = text.bytes().filter(u8::is_ascii).count();
    let others = text.chars().filter(|c| !c.is_ascii()).count();
    i64::try_from(ascii.div_ceil(3) + others).unwrap_or(i64::MAX / 4)
}
