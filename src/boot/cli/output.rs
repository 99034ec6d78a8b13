//! How commands print: tables for people, JSON and CSV for programs. With `--format json` stdout holds
//! JSON and nothing else.

use std::io::Write;

use clap::ValueEnum;
use comfy_table::{ContentArrangement, Table, presets::UTF8_FULL_CONDENSED};
use serde::Serialize;

use super::exit::Failure;

/// Output formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Table,
    /// For programs; an array.
    Json,
    /// For spreadsheets.
    Csv,
}

/// A table with these headings.
#[must_use]
pub fn table(headings: &[&str]) -> Table {
    let mut table = Table::new();
    table
        .load_style(UTF8_FULL_CONDENSED)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(headings.iter().copied());
    table
}

/// Prints JSON.
///
/// # Errors
/// Stdout is closed.
pub fn json<T: Serialize + ?Sized>(value: &T) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(written)?;
    writeln!(std::io::stdout().lock(), "{text}").map_err(written)
}

/// Prints rows as CSV with a header.
///
/// # Errors
/// Stdout is closed.
pub fn csv<T: Serialize>(rows: &[T]) -> Result<(), Failure> {
    let mut writer = csv::Writer::from_writer(std::io::stdout().lock());
    for row in rows {
        writer.serialize(row).map_err(written)?;
    }
    writer.flush().map_err(written)
}

fn written(error: impl std::fmt::Display) -> Failure {
    Failure::Outside(format!("输出写不出去 the output can't be written: {error}"))
}
