//! The model's adapter against servers as they are: over real TCP, byte for byte.

mod check;
mod deadlines;
mod quiet;
mod refusals;
mod replies;
mod requests;
mod scripts;
mod server;

use iit_manager::adapters::llm::{
    ChatRequest, Format, LlmClient, LlmConfig, LlmError, Message, Role, client::Answer,
};

use server::Server;

/// Personal data, as it must not turn up anywhere.
const PERSONAL: [&str; 3] = ["患者张三", "110101199003078515", "13800138000"];

/// The settings for `server`, and more.
fn config(server: &Server, more: &[(&str, &str)]) -> LlmConfig {
    let base = server.base();
    let mut settings = vec![
        ("LLM_BASE_URL", base.as_str()),
        ("LLM_MODEL", "model-1"),
        ("LLM_API_KEY", "secret-key"),
        ("LLM_TIMEOUT_S", "30"),
    ];
    settings.extend(more);
    LlmConfig::from_lookup(|name| {
        let setting = settings.iter().find(|(key, _)| *key == name);
        setting.map(|(_, value)| (*value).to_owned())
    })
    .unwrap()
    .unwrap()
}

fn client(config: &LlmConfig) -> LlmClient {
    // Another test may have been first.
    let _ = rustls::crypto::ring::default_provider().install_default();
    LlmClient::new(config).unwrap()
}

fn question() -> ChatRequest {
    ChatRequest {
        messages: vec![
            Message::text(Role::System, "你是助手。"),
            Message::text(Role::User, "请回答。"),
        ],
        max_tokens: 100,
        format: Format::Text,
        tools: Vec::new(),
    }
}

async fn ask(server: &Server) -> Result<Answer, LlmError> {
    client(&config(server, &[]))
        .chat(&question(), "run/1/1")
        .await
}
