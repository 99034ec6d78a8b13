//! `iit migrate`: bring the schema up to date. Every command that needs the database does so first; a
//! release step does it once, before the new processes start.

use std::process::ExitCode;

use super::{exit::CommandResult, output};
use crate::boot::{database::Database, logging, process};

/// Runs the command.
///
/// # Errors
/// Exit code 2 or 3 when there is no database.
pub fn run() -> CommandResult {
    logging::one_shot();
    process::block_on(async {
        let database = Database::open("migrate", 2).await?;
        let which = database.server.describe();
        database.close().await?;
        output::say(format_args!(
            "数据库结构已是最新 · the schema is up to date ({which})"
        ))?;
        Ok(ExitCode::SUCCESS)
    })
}
