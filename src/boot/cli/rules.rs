//! `iit rules`: hard rules over plain files, without a database.

use super::exit::{CommandResult, Failure};

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Runs the command.
///
/// # Errors
/// See [`Failure`].
pub fn run(_args: Args) -> CommandResult {
    Err(Failure::Usage("not available yet".to_owned()))
}
