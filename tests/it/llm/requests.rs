//! What leaves for which server, and what never does.

use iit_manager::adapters::llm::{
    ChatRequest, Format, Image, LlmError, Message, Role, ToolCall, ToolSpec,
};
use serde_json::{Value, json};

use super::server::Server;
use super::{client, config, question};

const ALL: [&str; 9] = [
    "deepseek",
    "qwen",
    "openai-reasoning",
    "openai",
    "ollama",
    "vllm",
    "llamacpp",
    "minimal",
    "generic",
];
/// Every field that may leave, by whom it is for.
const ALLOWED: [&str; 12] = [
    "model",
    "messages",
    "max_tokens",
    "max_completion_tokens",
    "temperature",
    "stream",
    "response_format",
    "tools",
    "thinking",
    "enable_thinking",
    "reasoning_effort",
    "chat_template_kwargs",
];

/// The body that leaves for a server of this profile.
async fn sent(profile: &str, request: &ChatRequest) -> Value {
    let server = Server::says(r#"{"choices":[{"message":{"content":"好"}}]}"#).await;
    let client = client(&config(&server, &[("LLM_PROFILE", profile)]));
    client
        .chat(request, "run/1/1")
        .await
        .unwrap_or_else(|error| panic!("{profile}: {error}"));
    let log = server.log();
    assert!(log[0].head.starts_with("post /v1/chat/completions "));
    assert!(log[0].head.contains("authorization: bearer secret-key"));
    assert!(log[0].head.contains("idempotency-key: run/1/1"));
    log[0].body.clone()
}

fn call(id: &str, arguments: &str) -> ToolCall {
    ToolCall {
        id: id.to_owned(),
        name: "f".to_owned(),
        arguments: arguments.to_owned(),
    }
}

fn calling(calls: &[ToolCall]) -> Message {
    Message {
        tool_calls: calls.to_vec(),
        ..Message::text(Role::Assistant, "")
    }
}

fn user(text: &str) -> Message {
    Message::text(Role::User, text)
}

fn schema() -> ChatRequest {
    ChatRequest {
        format: Format::Schema {
            name: "verdict",
            schema: json!({ "type": "object" }),
        },
        messages: vec![Message::text(Role::System, "只答 JSON。"), user("请回答。")],
        ..question()
    }
}

#[tokio::test]
async fn a_question_that_wants_json_leaves_as_each_server_takes_it() {
    let mut all = serde_json::Map::new();
    for profile in ALL {
        let body = sent(profile, &schema()).await;
        for field in body.as_object().unwrap().keys() {
            assert!(ALLOWED.contains(&field.as_str()), "{profile}: {field}");
        }
        all.insert(profile.to_owned(), body);
    }
    insta::assert_json_snapshot!(all);
}

#[tokio::test]
async fn thinking_is_switched_off_only_where_json_is_wanted_or_nothing_else_works() {
    for profile in ALL {
        let body = sent(profile, &question()).await;
        let switches: Vec<&String> = body
            .as_object()
            .unwrap()
            .keys()
            .filter(|field| ALLOWED[8..].contains(&field.as_str()))
            .collect();
        let wanted: &[&str] = if profile == "qwen" {
            &["enable_thinking"]
        } else {
            &[]
        };
        assert_eq!(switches, wanted, "{profile}");
        assert_eq!(body.get("response_format"), None, "{profile}");
    }
}

#[tokio::test]
async fn json_mode_is_left_out_where_no_message_says_json() {
    let request = ChatRequest {
        format: Format::Json,
        ..question()
    };
    assert_eq!(sent("generic", &request).await.get("response_format"), None);
    let mut request = request;
    request.messages[0].content = "用 Json 回答".to_owned();
    let body = sent("generic", &request).await;
    assert_eq!(body["response_format"], json!({ "type": "json_object" }));
}

#[tokio::test]
async fn thinking_goes_back_where_it_is_wanted_and_only_with_tool_calls() {
    let thought = |message: Message| Message {
        thinking: Some("想".to_owned()),
        ..message
    };
    let request = ChatRequest {
        messages: vec![
            user("一"),
            thought(Message::text(Role::Assistant, "答")),
            user("二"),
            thought(calling(&[call("a", "{}")])),
            Message::tool("a", "结果"),
        ],
        ..question()
    };
    for profile in ALL.into_iter().filter(|profile| *profile != "minimal") {
        let body = sent(profile, &request).await;
        let back: Vec<bool> = body["messages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|message| message.get("reasoning_content").is_some())
            .collect();
        let last = profile == "deepseek";
        assert_eq!(back, [false, false, false, last, false], "{profile}");
    }
}

#[tokio::test]
async fn a_conversation_with_tools_leaves_with_arguments_that_every_server_can_read() {
    let request = ChatRequest {
        messages: vec![
            user("P001 的年龄？"),
            calling(&[call("a", ""), call("b", "{broken"), call("c", "{\"x\": 1}")]),
            Message::tool("c", "1"),
            Message::tool("a", ""),
            Message::tool("b", "参数不是 JSON"),
            user("好"),
        ],
        tools: vec![ToolSpec {
            name: "f".to_owned(),
            description: "查".to_owned(),
            parameters: json!({ "type": "object" }),
        }],
        ..question()
    };
    insta::assert_json_snapshot!(sent("generic", &request).await);
}

#[tokio::test]
async fn a_picture_leaves_as_a_data_url_in_front_of_its_question_and_text_stays_a_string() {
    let image = Image::read(b"\x89PNG\r\n\x1a\n...").unwrap();
    let request = ChatRequest {
        messages: vec![
            Message::text(Role::System, "看图。"),
            Message::about(vec![image.clone(), image.clone()], "是什么？"),
            Message::text(Role::Assistant, "化验单。"),
            Message::about(vec![image], ""),
        ],
        ..question()
    };
    insta::assert_json_snapshot!(sent("qwen", &request).await["messages"]);
    assert!(request.prompt_tokens_at_most() > 3 * 16_000);
}

#[tokio::test]
async fn where_no_system_role_is_known_it_stands_in_front_of_the_first_question() {
    let request = ChatRequest {
        messages: vec![
            Message::text(Role::System, "你是助手。"),
            user("一"),
            Message::text(Role::Assistant, "答"),
            user("二"),
        ],
        ..question()
    };
    assert_eq!(
        sent("minimal", &request).await["messages"],
        json!([
            { "role": "user", "content": "你是助手。\n\n一" },
            { "role": "assistant", "content": "答" },
            { "role": "user", "content": "二" },
        ])
    );
}

#[tokio::test]
async fn a_conversation_no_server_takes_is_refused_here_with_its_place_and_nothing_leaves() {
    let answered = || [calling(&[call("a", "{}")]), Message::tool("a", "结果")];
    let image = || vec![Image::read(b"\xff\xd8\xff").unwrap()];
    let cases: Vec<(&str, Vec<Message>)> = vec![
        ("generic", vec![]),
        ("generic", vec![Message::text(Role::System, "你是助手。")]),
        ("generic", vec![user(" \n")]),
        (
            "generic",
            vec![user("一"), Message::text(Role::Assistant, " ")],
        ),
        ("generic", vec![user("一"), Message::tool("a", "患者张三")]),
        ("generic", vec![user("一"), calling(&[call("a", "{}")])]),
        (
            "generic",
            vec![user("一"), calling(&[call("a", "{}")]), user("二")],
        ),
        (
            "generic",
            vec![
                user("一"),
                calling(&[call("a", "{}"), call("b", "{}")]),
                Message::tool("a", ""),
            ],
        ),
        (
            "generic",
            vec![
                user("一"),
                calling(&[call("a", "{}"), call("b", "{}")]),
                Message::tool("a", ""),
                Message::tool("a", ""),
            ],
        ),
        (
            "generic",
            vec![
                user("一"),
                calling(&[call("a", "{}")]),
                Message::tool("b", ""),
            ],
        ),
        (
            "generic",
            vec![user("一"), calling(&[call("a", "{}"), call("a", "{}")])],
        ),
        ("generic", vec![user("一"), calling(&[call("", "{}")])]),
        (
            "generic",
            [&[user("一")], &answered()[..], &[Message::tool("a", "")]].concat(),
        ),
        (
            "generic",
            vec![
                user("一"),
                Message {
                    tool_calls: vec![call("a", "{}")],
                    ..user("二")
                },
            ],
        ),
        (
            "generic",
            vec![
                user("一"),
                Message {
                    images: image(),
                    ..Message::text(Role::Assistant, "答")
                },
            ],
        ),
        ("deepseek", vec![Message::about(image(), "看")]),
    ];
    let mut sentences = Vec::new();
    for (profile, messages) in cases {
        let server = Server::says("{}").await;
        let client = client(&config(&server, &[("LLM_PROFILE", profile)]));
        let request = ChatRequest {
            messages,
            ..question()
        };
        let error = client.chat(&request, "run/1/1").await.unwrap_err();
        assert!(matches!(error, LlmError::Invalid { .. }), "{error}");
        assert!(!error.maybe_billed());
        assert_eq!(server.log().len(), 0);
        sentences.push(error.to_string());
    }
    insta::assert_snapshot!(sentences.join("\n"));
}

#[tokio::test]
async fn a_server_that_is_known_to_have_no_tools_is_not_asked_with_them() {
    let server = Server::says("{}").await;
    let client = client(&config(&server, &[("LLM_PROFILE", "minimal")]));
    let request = ChatRequest {
        tools: vec![ToolSpec {
            name: "f".to_owned(),
            description: String::new(),
            parameters: json!({}),
        }],
        ..question()
    };
    let error = client.chat(&request, "run/1/1").await.unwrap_err();
    assert!(error.to_string().contains("minimal"), "{error}");
    assert_eq!(server.log().len(), 0);
}

#[tokio::test]
async fn the_hash_is_of_what_leaves_and_differs_with_the_server() {
    let server = Server::says("{}").await;
    let of = |profile, request: &ChatRequest| {
        client(&config(&server, &[("LLM_PROFILE", profile)])).hash(request)
    };
    assert_eq!(of("qwen", &schema()), of("qwen", &schema()));
    assert_eq!(of("qwen", &schema()).len(), 64);
    assert_ne!(of("qwen", &schema()), of("openai", &schema()));
    assert_ne!(of("qwen", &schema()), of("qwen", &question()));
}
