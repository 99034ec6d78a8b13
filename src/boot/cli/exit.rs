//! Exit codes: 0 fine, 1 the work found something wrong, 2 wrong use or configuration, 3 an outside
//! system failed.

use std::process::ExitCode;

/// Why a command did not do what was asked. Each is one sentence: what, where, what to do.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The work found something wrong (a faulty skill, a broken chain). Exit code 1.
    #[error("{0}")]
    Found(String),
    /// Wrong use or configuration. Exit code 2.
    #[error("{0}")]
    Usage(String),
    /// An outside system failed. Exit code 3.
    #[error("{0}")]
    Outside(String),
}

impl Failure {
    /// The process exit code.
    #[must_use]
    pub fn code(&self) -> u8 {
        match self {
            Self::Found(_) => 1,
            Self::Usage(_) => 2,
            Self::Outside(_) => 3,
        }
    }
}

/// What a command returns: its exit code, or one sentence for stderr and the code that goes with it.
pub type CommandResult = Result<ExitCode, Failure>;

/// Exit code 1 without a sentence of its own: the output already says what was found.
#[must_use]
pub fn found_something() -> ExitCode {
    ExitCode::from(1)
}
