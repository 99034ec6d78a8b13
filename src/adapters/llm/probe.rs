//! Tries what an endpoint can do, with questions that hold no study's data.

use std::time::Instant;

use serde::Serialize;
use serde_json::{Value, json};

use super::{
    client::LlmClient,
    error::LlmError,
    image::Image,
    reply::Reply,
    request::{ChatRequest, Format, Message, Role, ToolSpec},
};

/// Enough for a few words and for a model that thinks first.
const MAX_TOKENS: u32 = 1024;
/// A red square, 64 by 64: some models take nothing smaller.
const RED: &[u8] = include_bytes!("red.png");
const TOOL: &str = "lookup_code";
/// What the tool says; no model knows it from elsewhere.
const CODE: &str = "7319";

/// Something an endpoint can do or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Skill {
    /// Answers in words.
    Text,
    /// Answers in JSON when told to.
    Json,
    /// Keeps to a JSON schema, even against the question.
    JsonSchema,
    /// Calls a tool.
    ToolCall,
    /// Goes on from what the tool said.
    ToolAnswer,
    /// Sees a picture.
    Image,
}

/// What came of a try.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It can.
    Works,
    /// It answered something else.
    Wrong,
    /// The server refused.
    Refused,
    /// No answer.
    Failed,
    /// Not tried.
    Skipped,
}

/// One try.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was tried.
    pub skill: Skill,
    /// What came of it.
    pub outcome: Outcome,
    /// How long it took, in milliseconds.
    pub ms: u64,
    /// Why, when it does not work.
    pub detail: Option<String>,
}

impl Finding {
    fn skipped(skill: Skill, why: &str) -> Self {
        Self {
            skill,
            outcome: Outcome::Skipped,
            ms: 0,
            detail: Some(why.to_owned()),
        }
    }
}

/// Tries everything, one after the other. When no answer comes to plain text nothing else is tried.
pub async fn probe(client: &LlmClient) -> Vec<Finding> {
    let (text, _) = attempt(client, Skill::Text, question(), is_text).await;
    let answers = matches!(text.outcome, Outcome::Works | Outcome::Wrong);
    let mut findings = vec![text];
    if !answers {
        let others = [
            Skill::Json,
            Skill::JsonSchema,
            Skill::ToolCall,
            Skill::ToolAnswer,
            Skill::Image,
        ];
        let skipped = others
            .map(|skill| Finding::skipped(skill, "纯文本无答复 (no answer even to plain text)"));
        findings.extend(skipped);
        return findings;
    }
    findings.push(json_object(client).await);
    findings.push(json_schema(client).await);
    findings.extend(tools(client).await);
    findings.push(image(client).await);
    findings
}

fn question() -> ChatRequest {
    ask(vec![
        Message::text(Role::System, "你是接口自检助手，回答尽量简短。"),
        Message::text(Role::User, "请只回答两个字：你好"),
    ])
}

fn ask(messages: Vec<Message>) -> ChatRequest {
    ChatRequest {
        messages,
        max_tokens: MAX_TOKENS,
        format: Format::Text,
        tools: Vec::new(),
    }
}

fn is_text(reply: &Reply) -> bool {
    !reply.text.trim().is_empty()
}

async fn json_object(client: &LlmClient) -> Finding {
    if !client.profile().json_object {
        return by_profile(client, Skill::Json);
    }
    let prompt = r#"请只输出这个 JSON 对象：{"ok": true}"#;
    let request = ChatRequest {
        format: Format::Json,
        ..ask(vec![Message::text(Role::User, prompt)])
    };
    let is_asked = |reply: &Reply| parsed(reply) == Some(json!({ "ok": true }));
    attempt(client, Skill::Json, request, is_asked).await.0
}

/// The question asks for something else than the schema allows: a server that ignores it is found out.
async fn json_schema(client: &LlmClient) -> Finding {
    if !client.profile().json_schema {
        return by_profile(client, Skill::JsonSchema);
    }
    let request = ChatRequest {
        format: Format::Schema {
            name: "probe",
            schema: json!({
                "type": "object",
                "properties": {
                    "station": { "type": "string", "enum": ["K7Q"] },
                    "level": { "type": "integer" },
                },
                "required": ["station", "level"],
                "additionalProperties": false,
            }),
        },
        ..ask(vec![Message::text(
            Role::User,
            "请用 JSON 描述天空的颜色。",
        )])
    };
    let keeps_to_it = |reply: &Reply| {
        let Some(Value::Object(object)) = parsed(reply) else {
            return false;
        };
        let level = object.get("level").and_then(Value::as_i64);
        object.len() == 2 && level.is_some() && object.get("station") == Some(&json!("K7Q"))
    };
    attempt(client, Skill::JsonSchema, request, keeps_to_it)
        .await
        .0
}

async fn tools(client: &LlmClient) -> [Finding; 2] {
    if !client.profile().tools {
        return [Skill::ToolCall, Skill::ToolAnswer].map(|skill| by_profile(client, skill));
    }
    let prompt = format!("请调用工具 {TOOL} 查询单词 bluebird 的代码，然后告诉我这个代码。");
    let mut request = ChatRequest {
        tools: vec![ToolSpec {
            name: TOOL.to_owned(),
            description: "查询一个单词的代码。".to_owned(),
            parameters: json!({
                "type": "object",
                "properties": { "word": { "type": "string", "description": "要查询的单词" } },
                "required": ["word"],
            }),
        }],
        ..ask(vec![Message::text(Role::User, prompt)])
    };
    let asks_for_it = |reply: &Reply| {
        let asks = |call: &super::ToolCall| {
            let word = call.object().and_then(|args| args.get("word").cloned());
            call.name == TOOL && word == Some(json!("bluebird"))
        };
        !reply.tool_calls.is_empty() && reply.tool_calls.iter().all(asks)
    };
    let (mut called, reply) = attempt(client, Skill::ToolCall, request.clone(), asks_for_it).await;
    let as_text = |reply: &Reply| reply.tool_calls.is_empty() && reply.text.contains(TOOL);
    if called.detail.is_none() && reply.as_ref().is_some_and(as_text) {
        let why = "调用写成了文字，服务端可能未启用工具解析 (the call came as text: the server may need its tool parser switched on)";
        called.detail = Some(why.to_owned());
    }
    let reply = reply.filter(|_| called.outcome == Outcome::Works);
    let Some(reply) = reply else {
        let why = "没有可回答的调用 (there is no call to answer)";
        return [called, Finding::skipped(Skill::ToolAnswer, why)];
    };
    let results: Vec<Message> = reply
        .tool_calls
        .iter()
        .map(|call| Message::tool(&call.id, json!({ "code": CODE }).to_string()))
        .collect();
    request.messages.push(Message {
        tool_calls: reply.tool_calls,
        thinking: reply.thinking,
        ..Message::text(Role::Assistant, reply.text)
    });
    request.messages.extend(results);
    let tells_it = |reply: &Reply| reply.tool_calls.is_empty() && reply.text.contains(CODE);
    let (answered, _) = attempt(client, Skill::ToolAnswer, request, tells_it).await;
    [called, answered]
}

async fn image(client: &LlmClient) -> Finding {
    if !client.profile().images {
        return by_profile(client, Skill::Image);
    }
    let images = Image::read(RED).into_iter().collect();
    let request = ask(vec![Message::about(
        images,
        "图片是什么颜色？只回答一个词。",
    )]);
    let sees_it = |reply: &Reply| {
        let said = reply.text.to_lowercase();
        said.contains('红') || said.contains("red")
    };
    attempt(client, Skill::Image, request, sees_it).await.0
}

fn by_profile(client: &LlmClient, skill: Skill) -> Finding {
    let why = format!(
        "配置 {0} 注明不支持 (the profile {0} says so)",
        client.profile().name
    );
    Finding::skipped(skill, &why)
}

fn parsed(reply: &Reply) -> Option<Value> {
    serde_json::from_str(reply.text.trim()).ok()
}

/// Asks once, and judges the answer; it comes along whatever it is like.
async fn attempt(
    client: &LlmClient,
    skill: Skill,
    request: ChatRequest,
    is_right: impl Fn(&Reply) -> bool,
) -> (Finding, Option<Reply>) {
    let started = Instant::now();
    let answer = client.chat(&request, "iit-llm-check").await;
    let ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let (outcome, detail) = match &answer {
        Ok(answer) if answer.reply.truncated => (
            Outcome::Wrong,
            Some(format!(
                "{MAX_TOKENS} tokens 内未答完 (cut off before it was done)"
            )),
        ),
        Ok(answer) if is_right(&answer.reply) => (Outcome::Works, None),
        Ok(_) => (Outcome::Wrong, None),
        Err(error @ (LlmError::Refused { .. } | LlmError::Invalid { .. })) => {
            (Outcome::Refused, Some(error.to_string()))
        }
        Err(error) => (Outcome::Failed, Some(error.to_string())),
    };
    let finding = Finding {
        skill,
        outcome,
        ms,
        detail,
    };
    (finding, answer.ok().map(|answer| answer.reply))
}
