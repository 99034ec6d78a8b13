//! The life of the process: its runtime, and the signals that end it.

use std::{future::Future, time::Duration};

use tokio::{
    signal::unix::{SignalKind, signal},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use super::cli::exit::Failure;

/// Signals closer together than this are one.
const SAME_SIGNAL: Duration = Duration::from_secs(1);

/// Runs `work` on a runtime of its own.
///
/// # Errors
/// What `work` fails with, or that no runtime can be made.
pub fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Outside(format!("无法启动 can't start the runtime: {error}")))?
        .block_on(work)
}

/// A token that SIGINT and SIGTERM cancel: the first asks for an orderly end, a second ends at once.
///
/// # Errors
/// Signals can't be caught.
pub fn stop_on_signals() -> Result<CancellationToken, Failure> {
    let failed = |error| Failure::Outside(format!("无法接收信号 can't catch signals: {error}"));
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let stop = CancellationToken::new();
    let asked = stop.clone();
    tokio::spawn(async move {
        let mut first: Option<Instant> = None;
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            match first {
                None => {
                    tracing::info!("process.stopping");
                    asked.cancel();
                    first = Some(Instant::now());
                }
                // One Ctrl-C can arrive twice, by the terminal and by a supervisor.
                Some(at) if at.elapsed() < SAME_SIGNAL => {}
                Some(_) => std::process::exit(130),
            }
        }
    });
    Ok(stop)
}
