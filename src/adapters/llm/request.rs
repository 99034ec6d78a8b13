//! What is asked of a model, said the same way whoever answers.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::image::Image;

/// What a picture counts for at most.
const IMAGE_TOKENS: i64 = 16_384;

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
    /// Pictures a person's message shows.
    pub images: Vec<Image>,
    /// The tool calls an assistant's message asked for.
    pub tool_calls: Vec<ToolCall>,
    /// Of a tool's message: the call it answers.
    pub answers: Option<String>,
    /// An assistant's thinking; it goes back to servers that want it.
    pub thinking: Option<String>,
}

impl Message {
    /// Plain text.
    #[must_use]
    pub fn text(role: Role, content: impl Into<String>) -> Self {
        Self {
            role,
            content: content.into(),
            images: Vec::new(),
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

    /// A person's question about pictures.
    #[must_use]
    pub fn about(images: Vec<Image>, content: impl Into<String>) -> Self {
        Self {
            images,
            ..Self::text(Role::User, content)
        }
    }
}

/// A tool call the model asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The model's name for this call; the answer must carry it.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Its arguments, JSON as the model wrote it, perhaps broken; none at all are read as `{}`.
    pub arguments: String,
}

impl ToolCall {
    /// The arguments, when they are the JSON object they have to be.
    #[must_use]
    pub fn object(&self) -> Option<serde_json::Map<String, Value>> {
        serde_json::from_str(&self.arguments).ok()
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
    /// How many tokens the prompt has at most, without the model's own tokeniser: three letters or blanks
    /// count as one, every digit and every sign as one (some models take digits one by one), any other
    /// character as two, and each message has a few of its own. A picture counts as much as servers make of
    /// the largest they take.
    #[must_use]
    pub fn prompt_tokens_at_most(&self) -> i64 {
        let said = self.messages.iter().map(|message| {
            let calls: i64 = message
                .tool_calls
                .iter()
                .map(|call| tokens_at_most(&call.arguments) + 16)
                .sum();
            let thinking = message.thinking.as_deref().map_or(0, tokens_at_most);
            let images = i64::try_from(message.images.len()).unwrap_or(i64::MAX / 1_000_000);
            tokens_at_most(&message.content) + calls + thinking + images * IMAGE_TOKENS + 8
        });
        let tools = self.tools.iter().map(|tool| {
            tokens_at_most(&tool.description) + tokens_at_most(&tool.parameters.to_string()) + 16
        });
        let schema = match &self.format {
            Format::Schema { schema, .. } => tokens_at_most(&schema.to_string()) + 16,
            Format::Text | Format::Json => 0,
        };
        said.chain(tools).sum::<i64>() + schema
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
