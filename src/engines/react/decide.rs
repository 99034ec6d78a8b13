//! What the model's answer asks for.

use serde_json::Value;

use crate::adapters::llm::{Reply, ToolCall};

/// What an answer asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It answers the question with this text; its figures are still to be checked.
    Answer(String),
    /// It wants to see these.
    Calls(Vec<ToolCall>),
    /// It can't be used; one sentence why, for the model.
    Correct(String),
    /// It asks for a tool that would change something: a person's wish to be led to the SOP.
    WishesWrite,
}

/// Reads an answer. `last`: no tools were offered. `writes`: whether a tool of that name proposes changes.
#[must_use]
pub fn decide(reply: &Reply, last: bool, writes: impl Fn(&str) -> bool) -> Decision {
    if reply.truncated {
        return Decision::Correct("回答被截断了，请缩短".to_owned());
    }
    if !reply.tool_calls.is_empty() {
        if reply.tool_calls.iter().any(|call| writes(&call.name)) {
            return Decision::WishesWrite;
        }
        if last {
            return Decision::Correct("已不能再调用工具，请用已有的结果回答".to_owned());
        }
        return Decision::Calls(reply.tool_calls.clone());
    }
    let text = without_thinking(&reply.text).trim();
    if text.is_empty() {
        return Decision::Correct("回答是空的".to_owned());
    }
    if is_a_call_in_words(text) {
        return Decision::Correct(
            "写成文字的工具调用不会执行，JSON 也不是给人看的回答；请真正调用工具，或用中文直接回答"
                .to_owned(),
        );
    }
    Decision::Answer(text.to_owned())
}

/// The text after the thoughts some models write before it.
fn without_thinking(text: &str) -> &str {
    let text = text.trim_start();
    match text.strip_prefix("<think>") {
        Some(thought) => thought
            .split_once("</think>")
            .map_or("", |(_, answer)| answer),
        None => text,
    }
}

/// A server without tools lets its model write the call as text. People must not read that as an answer, and
/// it is not acted on: nothing says where in the text the data ends.
fn is_a_call_in_words(text: &str) -> bool {
    let marks = ["<tool_call>", "<|tool", "<function="];
    if marks.iter().any(|mark| text.contains(mark))
        || (text.contains("\"name\"") && text.contains("\"arguments\""))
    {
        return true;
    }
    let bare = text
        .strip_prefix("```")
        .and_then(|rest| rest.strip_suffix("```"))
        .map_or(text, |inside| {
            inside.trim_start_matches(|c: char| c.is_ascii_alphabetic())
        });
    let Ok(value) = serde_json::from_str::<Value>(bare.trim()) else {
        return false;
    };
    value.is_object() || value.is_array()
}

/// What the model is told about an answer that can't be used.
#[must_use]
pub fn correction(why: &str) -> String {
    format!("上一条回答不能用：{why}。")
}

const FIGURES: &str = "上一条回答里有工具结果中没有的数字：";

/// What the model is told about figures nobody gave it.
#[must_use]
pub fn figures_correction(figures: &[String]) -> String {
    format!(
        "{FIGURES}{}。请用工具计算或查到它们，或去掉它们，再完整回答一次；不要自己计算，也不要提到这次更正。",
        figures.join("、")
    )
}

/// Whether a correction is about figures: it is made once.
#[must_use]
pub fn is_about_figures(correction: &str) -> bool {
    correction.starts_with(FIGURES)
}
