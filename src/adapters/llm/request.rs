//! What is asked of a model. Only parameters every server knows are sent.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Who says a message. `system` and not `developer`: many servers refuse the latter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// What we tell the model to be.
    System,
    /// What we ask.
    User,
    /// What it said before.
    Assistant,
    /// What a tool it called gave back.
    Tool,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Who says it.
    pub role: Role,
    /// What is said.
    pub content: String,
    /// The tool calls an assistant's message asked for.
    pub tool_calls: Vec<ToolCall>,
    /// Of a tool's message: the call it answers.
    pub answers: Option<String>,
    /// An assistant's thinking, where its server wants it back with its tool calls.
    pub thinking: Option<String>,
}

impl Message {
    /// Plain text.
    #[must_use]
    pub fn text(role: Role, content: impl Into<String>) -> Self {
        Self {
            role,
            content: content.into(),
            tool_calls: Vec::new(),
            answers: None,
            thinking: None,
        }
    }

    /// What a tool gave back for the call `id`.
    #[must_use]
    pub fn tool(id: &str, content: impl Into<String>) -> Self {
        Self {
            answers: Some(id.to_owned()),
            ..Self::text(Role::Tool, content)
        }
    }

    fn body(&self) -> Value {
        let mut body = json!({ "role": self.role, "content": self.content });
        if !self.tool_calls.is_empty() {
            let calls: Vec<Value> = self.tool_calls.iter().map(ToolCall::body).collect();
            body["tool_calls"] = Value::Array(calls);
        }
        if let Some(id) = &self.answers {
            body["tool_call_id"] = json!(id);
        }
        if let Some(thinking) = &self.thinking {
            body["reasoning_content"] = json!(thinking);
        }
        body
    }
}

/// A tool call the model asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The model's name for this call; the answer must carry it.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Its arguments, JSON as the model wrote it: perhaps empty, perhaps broken.
    pub arguments: String,
}

impl ToolCall {
    fn body(&self) -> Value {
        // Some servers send no arguments as nothing at all, and refuse that when it comes back.
        let arguments = match self.arguments.trim() {
            "" => "{}",
            written => written,
        };
        json!({
            "id": self.id,
            "type": "function",
            "function": { "name": self.name, "arguments": arguments },
        })
    }
}

/// A tool the model may call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// Its name.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// JSON schema of its arguments.
    pub parameters: Value,
}

/// What form the answer shall have. It is checked in any case: some servers ignore this, a few then
/// answer with nothing.
#[derive(Debug, Clone, PartialEq)]
pub enum Format {
    /// Any text.
    Text,
    /// One JSON object.
    Json,
    /// JSON of this schema.
    Schema {
        /// What the schema is called.
        name: &'static str,
        /// JSON schema.
        schema: Value,
    },
}

/// One question.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatRequest {
    /// The conversation so far, oldest first.
    pub messages: Vec<Message>,
    /// Most tokens of the answer.
    pub max_tokens: u32,
    /// What form the answer shall have.
    pub format: Format,
    /// What the model may call; empty: nothing.
    pub tools: Vec<ToolSpec>,
}

impl ChatRequest {
    /// The request as it is sent to `model`.
    #[must_use]
    pub fn body(&self, model: &str) -> Value {
        let messages: Vec<Value> = self.messages.iter().map(Message::body).collect();
        let mut body = json!({
            "model": model,
            "messages": messages,
            "max_tokens": self.max_tokens,
            "temperature": 0,
            "stream": false,
        });
        match &self.format {
            Format::Text => {}
            Format::Json => body["response_format"] = json!({ "type": "json_object" }),
            Format::Schema { name, schema } => {
                body["response_format"] = json!({
                    "type": "json_schema",
                    "json_schema": { "name": name, "strict": true, "schema": schema },
                });
            }
        }
        if !self.tools.is_empty() {
            let tools: Vec<Value> = self
                .tools
                .iter()
                .map(|tool| {
                    json!({
                        "type": "function",
                        "function": {
                            "name": tool.name,
                            "description": tool.description,
                            "parameters": tool.parameters,
                        },
                    })
                })
                .collect();
            body["tools"] = Value::Array(tools);
        }
        body
    }

    /// SHA-256 of the request as it is sent, in hex: what was asked, without keeping it twice.
    #[must_use]
    pub fn hash(&self, model: &str) -> String {
        Sha256::digest(self.body(model).to_string())
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }

    /// How many tokens the prompt has at most, without the model's own tokeniser: three letters or blanks
    /// count as one, every digit and every sign as one (some models take digits one by one), any other
    /// character as two, and each message has a few of its own.
    #[must_use]
    pub fn prompt_tokens_at_most(&self) -> i64 {
        let said = self.messages.iter().map(|message| {
            let calls: i64 = message
                .tool_calls
                .iter()
                .map(|call| tokens_at_most(&call.arguments) + 16)
                .sum();
            let thinking = message.thinking.as_deref().map_or(0, tokens_at_most);
            tokens_at_most(&message.content) + calls + thinking + 8
        });
        let tools = self.tools.iter().map(|tool| {
            tokens_at_most(&tool.description) + tokens_at_most(&tool.parameters.to_string()) + 16
        });
        said.chain(tools).sum()
    }
}

fn tokens_at_most(text: &str) -> i64 {
    let (mut letters, mut signs, mut others) = (0_usize, 0, 0);
    for c in text.chars() {
        match c {
            'a'..='z' | 'A'..='Z' | ' ' => letters += 1,
            c if c.is_ascii() => signs += 1,
            _ => others += 1,
        }
    }
    i64::try_from(letters.div_ceil(3) + signs + 2 * others).unwrap_or(i64::MAX / 4)
}
