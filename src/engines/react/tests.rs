#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed expectation is the test's verdict"
)]

mod any_answer;
mod figures;
mod turns;

use super::thread::{Asked, Given, Question, Said};
use crate::adapters::llm::{Reply, ToolCall};

fn call(id: &str, name: &str, arguments: &str) -> ToolCall {
    ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
    }
}

fn calls(of: &[ToolCall]) -> Said {
    Said::Calls(Asked {
        text: String::new(),
        thinking: None,
        calls: of.to_vec(),
    })
}

fn given(id: &str, content: &str) -> Said {
    Said::Result(Given {
        id: id.to_owned(),
        name: "search_records".to_owned(),
        ok: true,
        content: content.to_owned(),
        ..Given::default()
    })
}

fn failed(id: &str) -> Said {
    Said::Result(Given {
        id: id.to_owned(),
        ok: false,
        content: "查询超时".to_owned(),
        ..Given::default()
    })
}

fn question(text: &str) -> Said {
    Said::Question(Question {
        text: text.to_owned(),
        ..Question::default()
    })
}

fn says(text: &str) -> Reply {
    Reply {
        text: text.to_owned(),
        tool_calls: Vec::new(),
        thinking: None,
        truncated: false,
        usage: None,
    }
}

fn today() -> chrono::NaiveDate {
    chrono::NaiveDate::from_ymd_opt(2026, 11, 30).unwrap()
}
