//! Configuration, private Postgres, wiring, commands.

pub mod cli;
pub mod postgres;

use std::process::ExitCode;

/// Runs the program and returns its exit code.
#[must_use]
pub fn main() -> ExitCode {
    cli::main()
}
