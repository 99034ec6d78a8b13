//! Logs go to stderr, one line an event: ids, never people, prompts or bodies. `RUST_LOG` sets the level.

use std::io::IsTerminal;

use tracing_subscriber::{EnvFilter, fmt, layer::SubscriberExt, util::SubscriberInitExt};

/// Starts logging at `usual` unless `RUST_LOG` says otherwise: text for a terminal, JSON for a log
/// collector. Called twice, the second call changes nothing.
pub fn start(usual: &str) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| {
        EnvFilter::new(format!("{usual},sqlx=warn,apalis_core=warn,hyper=warn"))
    });
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
