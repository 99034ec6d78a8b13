//! A request as a server of a given profile takes it. Nothing is sent but what is named here and the further
//! fields of the profile.

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::{
    profile::{Profile, ThinkingBack},
    request::{ChatRequest, Format, Message, Role, ToolCall, ToolSpec},
};

/// The body of `request` to `model`.
#[must_use]
pub fn body(request: &ChatRequest, model: &str, profile: &Profile) -> Value {
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(model));
    body.insert("messages".to_owned(), messages(request, profile));
    let limit = profile.max_tokens.name().to_owned();
    body.insert(limit, json!(request.max_tokens));
    body.insert("stream".to_owned(), json!(false));
    if profile.temperature {
        body.insert("temperature".to_owned(), json!(0));
    }
    if let Some(format) = response_format(request, profile) {
        body.insert("response_format".to_owned(), format);
    }
    if !request.tools.is_empty() {
        let tools: Vec<Value> = request.tools.iter().map(tool).collect();
        body.insert("tools".to_owned(), Value::Array(tools));
    }
    body.extend(profile.always.clone());
    if request.format != Format::Text {
        body.extend(profile.json.clone());
    }
    Value::Object(body)
}

/// SHA-256 of a body, in hex: what was asked, without keeping it twice.
pub(super) fn hash(body: &Value) -> String {
    Sha256::digest(body.to_string())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// The closest form of answer the server knows. What comes back is checked in any case.
fn response_format(request: &ChatRequest, profile: &Profile) -> Option<Value> {
    match &request.format {
        Format::Schema { name, schema } if profile.json_schema => Some(json!({
            "type": "json_schema",
            "json_schema": { "name": name, "strict": true, "schema": schema },
        })),
        Format::Schema { .. } | Format::Json if profile.json_object && speaks_of_json(request) => {
            Some(json!({ "type": "json_object" }))
        }
        _ => None,
    }
}

fn speaks_of_json(request: &ChatRequest) -> bool {
    let mut said = request.messages.iter().map(|message| &message.content);
    said.any(|content| content.to_ascii_lowercase().contains("json"))
}

fn messages(request: &ChatRequest, profile: &Profile) -> Value {
    if profile.system_role {
        let said = request.messages.iter().map(|m| message(m, "", profile));
        return said.collect();
    }
    let (system, others): (Vec<&Message>, Vec<&Message>) = request
        .messages
        .iter()
        .partition(|message| message.role == Role::System);
    let mut preface: String = system
        .iter()
        .map(|message| format!("{}\n\n", message.content))
        .collect();
    let said = others.into_iter().map(|other| {
        let preface = match other.role {
            Role::User => std::mem::take(&mut preface),
            _ => String::new(),
        };
        message(other, &preface, profile)
    });
    said.collect()
}

fn message(message: &Message, preface: &str, profile: &Profile) -> Value {
    let text = format!("{preface}{}", message.content);
    // Plain text stays a plain string: servers of text models refuse lists.
    let content = if message.images.is_empty() {
        json!(text)
    } else {
        let images = message
            .images
            .iter()
            .map(|image| json!({ "type": "image_url", "image_url": { "url": image.data_url() } }));
        let text = (!text.trim().is_empty()).then(|| json!({ "type": "text", "text": text }));
        images.chain(text).collect()
    };
    let mut body = json!({ "role": message.role, "content": content });
    if !message.tool_calls.is_empty() {
        body["tool_calls"] = message.tool_calls.iter().map(call).collect();
    }
    if let Some(id) = &message.answers {
        body["tool_call_id"] = json!(id);
    }
    let wants_thinking = match profile.thinking_back {
        ThinkingBack::Always => true,
        ThinkingBack::WithTools => !message.tool_calls.is_empty(),
        ThinkingBack::Never => false,
    };
    if let Some(thinking) = message.thinking.as_ref().filter(|_| wants_thinking) {
        body["reasoning_content"] = json!(thinking);
    }
    body
}

fn call(call: &ToolCall) -> Value {
    // Servers that read the arguments of earlier calls refuse the whole conversation when these are no object.
    // What was wrong with them stands in the answer to the call.
    let arguments = match call.object() {
        Some(_) => call.arguments.as_str(),
        None => "{}",
    };
    json!({
        "id": call.id,
        "type": "function",
        "function": { "name": call.name, "arguments": arguments },
    })
}

fn tool(tool: &ToolSpec) -> Value {
    json!({
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
        },
    })
}
