//! How commands print: tables for people, JSON and CSV for programs. With `--format json` stdout holds
//! JSON and nothing else.

use std::{
    fmt::Display,
    io::{ErrorKind, Write},
};

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

/// Prints text and a line break to stdout. Everything a command prints goes through here.
///
/// A reader that has seen enough (`| head`) is no fault: the rest is dropped and the command ends with its
/// own exit code.
///
/// # Errors
/// Exit code 3: stdout can't be written, e.g. because the disk is full.
pub fn say(text: impl Display) -> Result<(), Failure> {
    print(format!("{text}\n").as_bytes())
}

/// Prints bytes to stdout as they are, see [`say`].
///
/// # Errors
/// As [`say`].
pub fn print(bytes: &[u8]) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(unwritable(error)),
        _ => Ok(()),
    }
}

/// Writes a line to stderr. Where nobody can be told, there is nobody to tell that to: errors are dropped.
pub fn warn(text: impl Display) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Prints JSON.
///
/// # Errors
/// As [`say`].
pub fn json<T: Serialize + ?Sized>(value: &T) -> Result<(), Failure> {
    say(serde_json::to_string_pretty(value).map_err(unwritable)?)
}

/// Prints rows as CSV with a header.
///
/// A cell that a spreadsheet would run as a formula gets an apostrophe in front: text from the EDC is not
/// ours to trust. These are cells beginning with `=`, `+`, `-`, `@` (or their full-width forms), a tab or
/// a line break. Numbers such as `-5` stay numbers. JSON output is never changed.
///
/// # Errors
/// As [`say`].
pub fn csv<T: Serialize>(rows: &[T]) -> Result<(), Failure> {
    print(&csv_bytes(rows).map_err(unwritable)?)
}

fn csv_bytes<T: Serialize>(rows: &[T]) -> anyhow::Result<Vec<u8>> {
    let mut plain = csv::Writer::from_writer(Vec::new());
    for row in rows {
        plain.serialize(row)?;
    }
    let plain = plain.into_inner()?;
    let mut safe = csv::Writer::from_writer(Vec::new());
    let cells = csv::ReaderBuilder::new()
        .has_headers(false)
        .from_reader(plain.as_slice());
    for row in cells.into_records() {
        safe.write_record(row?.iter().map(inert))?;
    }
    Ok(safe.into_inner()?)
}

/// The cell as no spreadsheet runs it.
fn inert(cell: &str) -> String {
    const STARTS: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];
    // `-inf` parses as a number too, but a spreadsheet takes it for a formula.
    let number = cell.parse::<f64>().is_ok_and(f64::is_finite);
    if cell.starts_with(STARTS) && !number {
        format!("'{cell}")
    } else {
        cell.to_owned()
    }
}

/// `01-701-1015 baseline #3`
#[must_use]
pub fn place(record: &str, event: Option<&str>, instance: Option<impl Display>) -> String {
    let mut place = record.to_owned();
    if let Some(event) = event {
        place.push(' ');
        place.push_str(event);
    }
    if let Some(instance) = instance {
        place.push_str(&format!(" #{instance}"));
    }
    place
}

/// The failure of whatever could not be printed.
pub fn unwritable(error: impl Display) -> Failure {
    Failure::Outside(format!(
        "输出写不出去：{error}；请检查磁盘空间或输出的去处 (the output can't be written, check the disk or where it goes)"
    ))
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        reason = "a failed expectation is the test's verdict"
    )]
    use super::*;

    #[test]
    fn cells_that_a_spreadsheet_would_run_get_an_apostrophe_and_numbers_stay() {
        #[derive(Serialize)]
        struct Row {
            text: &'static str,
            number: i32,
        }
        let texts = [
            "=HYPERLINK(\"http://x\",\"a,b\")",
            "+1+1",
            "-1-1",
            "@SUM(A1)",
            "\t=1",
            "\r=1",
            "＝1+1",
            "-inf",
            "-5",
            "+3.25",
            "-1e3",
            "a=b",
            "",
            "年龄<18岁",
        ];
        let rows = texts.map(|text| Row { text, number: -7 });
        let bytes = csv_bytes(&rows).unwrap();
        let cells: Vec<String> = csv::Reader::from_reader(bytes.as_slice())
            .into_records()
            .map(|row| {
                let row = row.unwrap();
                assert_eq!(&row[1], "-7");
                row[0].to_owned()
            })
            .collect();
        assert_eq!(
            cells,
            [
                "'=HYPERLINK(\"http://x\",\"a,b\")",
                "'+1+1",
                "'-1-1",
                "'@SUM(A1)",
                "'\t=1",
                "'\r=1",
                "'＝1+1",
                "'-inf",
                "-5",
                "+3.25",
                "-1e3",
                "a=b",
                "",
                "年龄<18岁",
            ]
        );
    }

    #[test]
    fn no_rows_are_no_header_and_no_fault() {
        assert_eq!(csv_bytes::<(i32, i32)>(&[]).unwrap(), b"");
    }

    #[test]
    fn a_place_names_what_there_is() {
        assert_eq!(place("P1", None, None::<u32>), "P1");
        assert_eq!(place("P1", Some("v2_arm_1"), Some(3)), "P1 v2_arm_1 #3");
    }
}
