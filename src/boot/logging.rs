//! Logs go to stderr, one line an event: ids, never people, prompts or bodies. `RUST_LOG` sets the level.

use std::io::IsTerminal;

use tracing_subscriber::{EnvFilter, fmt, layer::SubscriberExt, util::SubscriberInitExt};

/// Logging of a process that stays (async-openai is kept quiet: it logs bodies it can't read): at `usual` unless `RUST_LOG` says otherwise, as text for a terminal
/// and JSON for a log collector. Called twice, the second call changes nothing.
pub fn start(usual: &str) {
    with_filter(&format!(
        "{usual},sqlx=warn,apalis_core=warn,hyper=warn,async_openai=off"
    ));
}

/// Logging of a command that answers and ends: nothing unless `RUST_LOG` asks for it. What such a command
/// has to say stands in its output and in the sentence it fails with.
pub fn one_shot() {
    with_filter("off");
}

fn with_filter(usual: &str) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(usual));
    let registry = tracing_subscriber::registry().with(filter);
    let started = if std::io::stderr().is_terminal() {
        registry
            .with(fmt::layer().with_writer(std::io::stderr).compact())
            .try_init()
    } else {
        registry
            .with(fmt::layer().json().with_writer(std::io::stderr))
            .try_init()
    };
    if started.is_err() {
        tracing::debug!("logging was started before");
    }
}
