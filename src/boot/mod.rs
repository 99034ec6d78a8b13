//! Configuration, private Postgres, wiring, commands.

pub mod cli;
pub mod config;
pub mod database;
pub mod dotenv;
pub mod logging;
pub mod postgres;
pub mod process;
pub mod wiring;

use std::process::ExitCode;

/// Runs the program and returns its exit code.
#[must_use]
pub fn main() -> ExitCode {
    // One TLS provider for the whole process, before anything can build a client. An error means that
    // one is installed already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    cli::main()
}
