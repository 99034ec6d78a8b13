//! Nothing that was asked or answered stands in any log, at any level, of any library.

use std::io;
use std::sync::{Arc, Mutex};

use iit_manager::adapters::llm::{ChatRequest, Message, Role, ToolCall};
use serde_json::json;
use tracing_subscriber::{fmt::MakeWriter, layer::SubscriberExt};

use super::scripts::failures;
use super::server::{Act, Server, http};
use super::{PERSONAL, client, config, question};

/// Everything that is logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn no_log_line_of_any_library_at_any_level_holds_a_word_of_prompt_or_answer() {
    let [name, id_number, phone] = PERSONAL;
    let request = ChatRequest {
        messages: vec![
            Message::text(Role::System, format!("研究者 {name}")),
            Message::text(Role::User, format!("{name} {id_number}")),
            Message {
                tool_calls: vec![ToolCall {
                    id: "a".to_owned(),
                    name: "f".to_owned(),
                    arguments: json!({ "phone": phone }).to_string(),
                }],
                thinking: Some(name.to_owned()),
                ..Message::text(Role::Assistant, "")
            },
            Message::tool("a", phone),
        ],
        ..question()
    };
    let mut scripts = failures();
    let good = format!(r#"{{"choices":[{{"message":{{"content":"{name}"}}}}]}}"#);
    scripts.push(("a good answer", http(200, &[], good.as_bytes())));
    for (script, bytes) in scripts {
        let log = Log::default();
        let layer = tracing_subscriber::fmt::layer().with_writer(log.clone());
        let subscriber = tracing_subscriber::registry().with(layer);
        let server = Server::start(Act::Says(bytes)).await;
        let client = client(&config(&server, &[("LLM_PROFILE", "deepseek")]));
        {
            // This test's runtime has one thread: whatever the call sets going logs here.
            let _here = tracing::subscriber::set_default(subscriber);
            let _ = client.chat(&request, "run/1/1").await;
        }
        let logged = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
        assert!(logged.contains("TRACE"), "{script}: the libraries do log");
        for personal in PERSONAL {
            assert!(!logged.contains(personal), "{script}: {logged}");
        }
        assert!(!logged.contains("secret-key"), "{script}: {logged}");
    }
}
