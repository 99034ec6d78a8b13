//! Whole requests: every string, and the last look at the body.

use serde_json::json;

use super::{field, flagged, redactor_of, stranger};
use crate::{
    adapters::llm::{
        self, ChatRequest, Format, Message, Role, ToolCall, ToolSpec, profile::Profile,
    },
    engines::redaction::{Hidden, Kind, NotSealed, Redactor, seal},
};

fn request(messages: Vec<Message>) -> ChatRequest {
    ChatRequest {
        messages,
        max_tokens: 10,
        format: Format::Json,
        tools: Vec::new(),
    }
}

/// As a server that knows schemas takes it.
fn sent(request: &ChatRequest) -> serde_json::Value {
    llm::body(request, "m", &Profile::named("openai").unwrap())
}

fn body(request: &ChatRequest) -> String {
    sent(request).to_string()
}

fn knows(name: &str) -> Redactor {
    redactor_of(
        &[field("record_id", "编号"), flagged("pname", "姓名")],
        &[&["P1", name]],
    )
}

#[test]
fn every_part_of_a_request_is_redacted() {
    let mut calls = Message::text(Role::Assistant, "先查〔姓名1〕，电话 13812345678");
    calls.thinking = Some("蔺相如是谁".to_owned());
    calls.tool_calls = vec![ToolCall {
        id: "call_1".to_owned(),
        name: "search".to_owned(),
        arguments: r#"{"name":"\u853a\u76f8\u5982","phone":13812345678,"n":3}"#.to_owned(),
    }];
    let mut asked = request(vec![
        Message::text(Role::System, "你协助蔺相如的研究"),
        Message::text(Role::User, "蔺相如怎么样了"),
        calls,
        Message::tool(
            "call_1",
            r#"{"rows":[{"pname":"蔺相如","note":"蔺相如之妻 a@b.cn"}]}"#,
        ),
    ]);
    asked.tools = vec![ToolSpec {
        name: "search".to_owned(),
        description: "如蔺相如".to_owned(),
        parameters: json!({ "type": "object", "enum": ["蔺相如"] }),
    }];
    asked.format = Format::Schema {
        name: "s",
        schema: json!({ "enum": ["蔺相如"] }),
    };
    let mut hidden = Hidden::default();
    let sealed = seal(&asked, body, &knows("蔺相如"), &mut hidden).unwrap();
    let body = body(&sealed);
    for value in ["蔺相如", "13812345678", "a@b.cn", "853a"] {
        assert!(!body.contains(value), "{value}: {body}");
    }
    // This server does not get the model's thoughts back, another one would.
    let thinking = sealed.messages.iter().find_map(|m| m.thinking.as_deref());
    assert_eq!(thinking, Some("〔姓名1〕是谁"));
    insta::assert_json_snapshot!(sent(&sealed));
}

#[test]
fn arguments_without_anything_personal_go_back_as_the_model_wrote_them() {
    let mut calls = Message::text(Role::Assistant, "");
    let written = r#"{ "b" : 1.50, "a":"x" }"#;
    calls.tool_calls = vec![ToolCall {
        id: "c".into(),
        name: "t".into(),
        arguments: written.into(),
    }];
    let sealed = seal(
        &request(vec![calls]),
        body,
        &stranger(),
        &mut Hidden::default(),
    )
    .unwrap();
    assert_eq!(sealed.messages[0].tool_calls[0].arguments, written);
}

#[test]
fn a_value_that_hides_in_escapes_is_not_sent() {
    // Text within text within text, as a tool's result that quotes JSON may have it.
    for escaped in [
        r"\u853a\u76f8\u5982",
        r"\\u853a\\u76f8\\u5982",
        r"\\\\u853a\\\\u76f8\\\\u5982",
    ] {
        let asked = request(vec![Message::text(Role::Tool, format!("结果 {escaped}"))]);
        let refused = seal(&asked, body, &knows("蔺相如"), &mut Hidden::default()).unwrap_err();
        assert!(matches!(refused, NotSealed::Left(Kind::Name)), "{escaped}");
        assert!(!refused.to_string().contains("蔺"), "{refused}");
    }
    let asked = request(vec![Message::text(Role::User, r"\u0031\u0033812345678")]);
    let refused = seal(&asked, body, &stranger(), &mut Hidden::default());
    assert!(matches!(refused, Err(NotSealed::Left(Kind::Phone))));
}

#[test]
fn a_value_where_no_text_should_be_is_not_sent() {
    let mut calls = Message::text(Role::Assistant, "");
    calls.tool_calls = vec![ToolCall {
        id: "蔺相如".into(),
        name: "t".into(),
        arguments: "{}".into(),
    }];
    let refused = seal(
        &request(vec![calls]),
        body,
        &knows("蔺相如"),
        &mut Hidden::default(),
    );
    assert!(matches!(refused, Err(NotSealed::Left(Kind::Name))));
}

#[test]
fn the_same_request_is_sealed_the_same_after_a_crash() {
    let redactor = knows("蔺相如");
    let asked = request(vec![
        Message::text(Role::User, "张三与蔺相如"),
        Message::text(Role::User, "患者张三，〔姓名1〕"),
    ]);
    let mut hidden = Hidden::default();
    let first = seal(&asked, body, &redactor, &mut hidden).unwrap();
    let mut reloaded = Hidden::of(hidden.fresh().to_vec());
    let again = seal(&asked, body, &redactor, &mut reloaded).unwrap();
    assert_eq!(body(&first), body(&again));
    assert!(reloaded.fresh().is_empty());
    assert!(
        !first.messages[0].content.contains("张三"),
        "told in the second, hidden in the first"
    );
}

#[test]
fn what_only_stands_free_once_its_neighbour_is_hidden_is_hidden_as_well() {
    let mut hidden = Hidden::default();
    let redactor = knows("蔺相如");
    let text = "出生2000-01-012000-01-01〔";
    let shown = redactor.redact(text, &mut hidden).unwrap();
    assert_eq!(redactor.left_in(&shown, &hidden), None, "{shown}");
    assert_eq!(hidden.restore(&shown), text);
}

#[test]
fn a_call_that_a_model_writes_as_text_names_nobody_and_the_next_request_leaves() {
    for name in ["search_records", "aggregate"] {
        let mut asked = request(vec![
            Message::text(Role::User, "最近入组的女性平均年龄是多少"),
            Message::text(
                Role::Assistant,
                format!("```json\n{{\"name\": \"{name}\", \"arguments\": {{}}}}\n```"),
            ),
            Message::text(Role::User, "请用工具调用，不要写成文字"),
        ]);
        asked.tools = vec![ToolSpec {
            name: name.to_owned(),
            description: "查询".to_owned(),
            parameters: json!({ "type": "object" }),
        }];
        let sealed = seal(&asked, body, &knows("蔺相如"), &mut Hidden::default());
        assert_eq!(
            sealed.map(|sealed| sealed == asked).ok(),
            Some(true),
            "{name}"
        );
    }
}
