//! Calls that were made before, and tools that keep failing.

use std::collections::HashSet;

use serde_json::Value;

use super::thread::{self, Asked, Said};
use crate::{
    adapters::llm::{Reply, ToolCall},
    types::text::without_nul,
};

/// Calls of one turn at most; what is beyond is refused.
pub const MOST_A_TURN: usize = 8;

/// A call by what it asks, however its arguments are written.
#[must_use]
pub fn canonical(call: &ToolCall) -> String {
    let written = call.arguments.trim();
    let arguments = match written {
        "" => "{}".to_owned(),
        written => match serde_json::from_str::<Value>(written) {
            Ok(value) => sorted(&value),
            Err(_) => written.to_owned(),
        },
    };
    format!("{} {arguments}", call.name)
}

/// JSON with its members in one order and its numbers in one spelling; absent and `null` are the same.
fn sorted(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let mut members: Vec<(&String, &Value)> = members
                .iter()
                .filter(|(_, value)| !value.is_null())
                .collect();
            members.sort_by_key(|(name, _)| *name);
            let members: Vec<String> = members
                .into_iter()
                .map(|(name, value)| format!("{}:{}", Value::from(name.as_str()), sorted(value)))
                .collect();
            format!("{{{}}}", members.join(","))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(sorted).collect();
            format!("[{}]", items.join(","))
        }
        Value::Number(number) => match number.as_f64() {
            Some(n) if n.fract() == 0.0 && n.abs() < 1e15 => format!("{n:.0}"),
            _ => number.to_string(),
        },
        Value::String(text) => Value::from(text.trim()).to_string(),
        other => other.to_string(),
    }
}

/// Why each call of a turn is refused before it is made; `None`: it may be made.
#[must_use]
pub fn refusals(said: &[Said], turn: &[ToolCall]) -> Vec<Option<String>> {
    let mut made: HashSet<String> = thread::calls(said).map(canonical).collect();
    turn.iter()
        .enumerate()
        .map(|(at, call)| {
            if at >= MOST_A_TURN {
                return Some(format!("一次最多调用 {MOST_A_TURN} 个工具，这一个没有执行"));
            }
            if made.insert(canonical(call)) {
                return None;
            }
            Some(
                "同样的调用已经做过，没有再次执行；请使用前面的结果，换参数，或直接回答".to_owned(),
            )
        })
        .collect()
}

/// Gives each call of a turn an id that no other call of the thread has: servers repeat them, and some give
/// none.
#[must_use]
pub fn with_own_ids(said: &[Said], mut turn: Vec<ToolCall>) -> Vec<ToolCall> {
    let mut taken: HashSet<String> = thread::calls(said).map(|call| call.id.clone()).collect();
    let nth = thread::turns(said) + 1;
    for (at, call) in (1..).zip(&mut turn) {
        if !taken.insert(call.id.clone()) {
            call.id = format!("call_{nth}_{at}");
            taken.insert(call.id.clone());
        }
    }
    turn
}

/// The model's message as the thread keeps it.
#[must_use]
pub fn asked(said: &[Said], reply: &Reply, wanted: Vec<ToolCall>) -> Asked {
    let clean = |text: &str| without_nul(text).0;
    let calls = with_own_ids(said, wanted)
        .into_iter()
        .map(|call| ToolCall {
            id: clean(&call.id),
            name: clean(&call.name),
            arguments: clean(&call.arguments),
        })
        .collect();
    Asked {
        text: clean(&reply.text),
        thinking: reply.thinking.as_deref().map(clean),
        calls,
    }
}

/// Whether two calls in a row failed, in one turn or over turns; a refused call counts.
#[must_use]
pub fn keep_failing(said: &[Said]) -> bool {
    let ok: Vec<bool> = thread::results(said).map(|given| given.ok).collect();
    ok.windows(2).any(|two| two == [false, false])
}
