//! What comes back when the model did answer, however oddly its server says so.

use iit_manager::adapters::llm::{Reply, ToolCall, reply::Usage};
use serde_json::{Value, json};

use super::ask;
use super::server::{Act, Server, http};

async fn read(body: &str) -> Reply {
    let server = Server::says(body).await;
    ask(&server)
        .await
        .unwrap_or_else(|e| panic!("{body}: {e}"))
        .reply
}

/// The only choice has this message.
fn with(message: Value) -> String {
    json!({ "choices": [{ "message": message, "finish_reason": "stop" }] }).to_string()
}

fn calling(calls: Value) -> String {
    with(json!({ "content": null, "tool_calls": calls }))
}

fn call(arguments: Value) -> Value {
    json!([{ "id": "a", "type": "function", "function": { "name": "f", "arguments": arguments } }])
}

#[tokio::test]
async fn a_body_is_read_however_little_or_much_its_server_says_around_it() {
    for body in [
        // Nothing but the answer: no id, no object, no usage, no finish_reason.
        r#"{"choices":[{"message":{"content":"好"}}]}"#,
        // Blank lines that kept the connection alive.
        "\n\n\r\n  \n{\"choices\":[{\"message\":{\"content\":\"好\"}}]}\n\n",
        "\u{feff}{\"choices\":[{\"message\":{\"content\":\"好\"}}]}",
        // Words and numbers no enum knows.
        r#"{"id":7,"object":null,"created":1700000000.25,"service_tier":"on_demand","choices":[{"index":"0","finish_reason":"","message":{"role":"model","content":"好","refusal":null}}],"error":null}"#,
        r#"{"choices":[{"finish_reason":"eos_token","message":{"content":"好"}}],"usage":null}"#,
        // A list of parts.
        r#"{"choices":[{"message":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"想"}]},{"type":"text","text":"好"}]}}]}"#,
    ] {
        let reply = read(body).await;
        assert_eq!(
            (reply.text.as_str(), reply.truncated),
            ("好", false),
            "{body}"
        );
        assert_eq!((reply.usage, reply.tool_calls.len()), (None, 0), "{body}");
    }
}

#[tokio::test]
async fn saying_nothing_is_an_answer_without_text() {
    for content in [json!(null), json!(""), json!("  \n"), json!([]), json!({})] {
        let reply = read(&with(json!({ "content": content }))).await;
        assert_eq!(reply.text.trim(), "", "{content}");
    }
    assert_eq!(read(&with(json!({}))).await.text, "");
}

#[tokio::test]
async fn a_body_that_only_claims_to_be_zipped_is_read_as_it_is() {
    let body = with(json!({ "content": "好" }));
    let bytes = http(200, &[("content-encoding", "gzip")], body.as_bytes());
    let server = Server::start(Act::Says(bytes)).await;
    assert_eq!(ask(&server).await.unwrap().reply.text, "好");
}

#[tokio::test]
async fn the_body_is_kept_byte_for_byte_and_the_request_id_beside_it() {
    let body = r#"{ "choices":[ {"message":{"content":"好\u0000\"\\"}} ], "n":1.10 }"#;
    let bytes = http(
        200,
        &[("x-request-id", "req-7")],
        format!("\n\n{body}\n").as_bytes(),
    );
    let server = Server::start(Act::Says(bytes)).await;
    let answer = ask(&server).await.unwrap();
    assert_eq!(answer.body, body);
    assert_eq!(answer.request_id.as_deref(), Some("req-7"));
    // A stored answer is read the same.
    assert_eq!(Reply::read(&answer.body, 100).unwrap(), answer.reply);
}

#[tokio::test]
async fn an_answer_that_was_cut_off_is_marked_whatever_the_server_calls_it() {
    for (finish, used) in [
        ("length", 3),
        ("max_tokens", 3),
        ("content_filter", 3),
        ("stop", 100),
        ("tool_calls", 101),
    ] {
        let body = json!({
            "choices": [{ "finish_reason": finish, "message": { "content": "好", "tool_calls": call(json!("{}")) } }],
            "usage": { "prompt_tokens": 7, "completion_tokens": used },
        });
        assert!(read(&body.to_string()).await.truncated, "{finish} {used}");
    }
    let torn = call(json!("{\"record\": \"P0"));
    assert!(read(&calling(torn)).await.truncated);
    let whole = read(&calling(call(json!("{\"record\":\"P001\"}")))).await;
    assert!(!whole.truncated);
}

#[tokio::test]
async fn usage_is_known_whole_or_not_at_all() {
    for (usage, wanted) in [
        (
            json!({ "prompt_tokens": 7.0, "completion_tokens": 2, "total_tokens": "?" }),
            Some((7, 2)),
        ),
        (json!({ "prompt_tokens": 7 }), None),
        (json!({ "prompt_tokens": -1, "completion_tokens": 2 }), None),
        (
            json!({ "prompt_tokens": "7", "completion_tokens": 2 }),
            None,
        ),
        (json!([]), None),
    ] {
        let body = json!({ "choices": [{ "message": { "content": "好" } }], "usage": usage });
        let wanted = wanted.map(|(prompt, completion)| Usage { prompt, completion });
        assert_eq!(read(&body.to_string()).await.usage, wanted, "{usage}");
    }
}

#[tokio::test]
async fn no_arguments_are_an_empty_object_and_what_is_broken_stays_to_be_told() {
    for (arguments, wanted) in [
        (json!(""), "{}"),
        (json!(" \n"), "{}"),
        (json!(null), "{}"),
        (json!("null"), "{}"),
        (json!({ "record": "P001" }), r#"{"record":"P001"}"#),
        (json!("{\"record\": \"P001\"}"), "{\"record\": \"P001\"}"),
        (json!("{record: P001}"), "{record: P001}"),
    ] {
        let reply = read(&calling(call(arguments.clone()))).await;
        assert_eq!(reply.tool_calls[0].arguments, wanted, "{arguments}");
        assert!(!reply.truncated, "{arguments}");
    }
    for (arguments, usable) in [
        ("{}", true),
        ("{record: P001}", false),
        ("[1]", false),
        ("\"x\"", false),
    ] {
        let reply = read(&calling(call(json!(arguments)))).await;
        assert_eq!(
            reply.tool_calls[0].object().is_some(),
            usable,
            "{arguments}"
        );
    }
}

#[tokio::test]
async fn calls_without_type_or_id_or_with_the_same_id_are_each_a_call_of_their_own() {
    let function = json!({ "name": " f ", "arguments": "{}" });
    let body = calling(json!([
        { "function": function },
        { "id": "", "function": function },
        { "id": "a", "function": function },
        { "id": "a", "type": "function", "function": function },
        { "id": 5, "function": function },
        { "id": "b", "function": { "arguments": "{}" } },
        { "id": "c", "function": { "name": " " } },
        { "id": "d" },
        null,
    ]));
    let calls = read(&body).await.tool_calls;
    assert_eq!(calls.len(), 5);
    assert!(
        calls
            .iter()
            .all(|call| call.name == "f" && !call.id.is_empty())
    );
    let mut ids: Vec<&str> = calls.iter().map(|call| call.id.as_str()).collect();
    assert_eq!(ids[2], "a");
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 5);
    // The same places in the next answer of the conversation have other ids.
    let next = read(&body.replacen("{}", "{\\\"x\\\":1}", 1))
        .await
        .tool_calls;
    assert_ne!(next[0].id, calls[0].id);
    // The same answer has the same.
    assert_eq!(read(&body).await.tool_calls, calls);
}

#[tokio::test]
async fn a_call_in_the_old_form_is_a_call() {
    let body = with(json!({ "content": null, "function_call": { "name": "f", "arguments": "" } }));
    let calls = read(&body).await.tool_calls;
    let [
        ToolCall {
            name, arguments, ..
        },
    ] = calls.as_slice()
    else {
        panic!("{calls:?}");
    };
    assert_eq!((name.as_str(), arguments.as_str()), ("f", "{}"));
    let none = with(json!({ "content": "好", "function_call": null, "tool_calls": null }));
    assert_eq!(read(&none).await.tool_calls, []);
}

#[tokio::test]
async fn a_call_that_the_model_wrote_as_text_is_text() {
    let text = "```json\n{\"name\": \"f\", \"arguments\": {\"record\": \"P001\"}}\n```";
    let reply = read(&with(json!({ "content": text, "tool_calls": [] }))).await;
    assert_eq!((reply.text.as_str(), reply.tool_calls.len()), (text, 0));
}

#[tokio::test]
async fn thinking_is_kept_apart_from_the_answer() {
    for (message, thought, text) in [
        (
            json!({ "content": "好", "reasoning_content": "想" }),
            Some("想"),
            "好",
        ),
        (
            json!({ "content": "好", "reasoning": "想" }),
            Some("想"),
            "好",
        ),
        (
            json!({ "content": "好", "reasoning_content": "" }),
            None,
            "好",
        ),
        (
            json!({ "content": "\n<think>\n想\n</think>\n\n好" }),
            Some("\n想\n"),
            "好",
        ),
        (
            json!({ "content": "<think>\n\n</think>\n\n好" }),
            None,
            "好",
        ),
        (
            json!({ "content": "说 <think> 这个词" }),
            None,
            "说 <think> 这个词",
        ),
    ] {
        let reply = read(&with(message.clone())).await;
        assert_eq!(
            (reply.thinking.as_deref(), reply.text.as_str()),
            (thought, text),
            "{message}"
        );
        assert!(!reply.truncated);
    }
    let endless = read(&with(json!({ "content": "<think>想来想去" }))).await;
    assert_eq!((endless.text.as_str(), endless.truncated), ("", true));
}
