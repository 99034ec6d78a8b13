//! One file of an export as a table: header, rows, and the line each row starts at.

use std::{collections::HashMap, path::Path};

use encoding_rs::{Encoding, GB18030, UTF_8};

use super::super::error::{EdcError, Warning};
use crate::adapters::decode;

/// Stands alone on a line after the file's own text; a quote left open would swallow it.
const END: &str = "\u{1}end of file\u{1}";

/// A delimited text file with a header.
#[derive(Debug)]
pub struct Table {
    place: String,
    file: String,
    /// Column names, trimmed; unique.
    pub header: Vec<String>,
    positions: HashMap<String, usize>,
    /// Rows that hold anything, each with as many cells as the header.
    pub rows: Vec<TableRow>,
    encoding: &'static Encoding,
}

/// One row and where it stands.
#[derive(Debug)]
pub struct TableRow {
    /// The line it starts at, from 1.
    pub line: u64,
    /// Its cells, untrimmed.
    pub cells: csv::StringRecord,
}

impl Table {
    /// Reads a file's bytes: UTF-8 with or without mark, UTF-16 with mark, or GB18030; separated by
    /// comma, semicolon, tab, `|` or `^`, whichever the header uses. `rename` puts header names in
    /// their standard form.
    ///
    /// # Errors
    /// [`EdcError::Faulty`] with the line: an undecodable byte, NUL, no header, a column twice, a row
    /// longer or shorter than the header, a quote that never closes.
    pub fn read(path: &Path, bytes: &[u8], rename: fn(&str) -> String) -> Result<Self, EdcError> {
        let place = path.display().to_string();
        let file = path
            .file_name()
            .map_or_else(|| place.clone(), |name| name.to_string_lossy().into_owned());
        let decoded = decode::decode(bytes).map_err(|bad| EdcError::Faulty {
            place: place.clone(),
            line: Some(bad.line),
            what: format!(
                "byte 0x{:02X} at column {} is {} text",
                bad.byte,
                bad.column,
                if bad.encoding == GB18030.name() {
                    "neither UTF-8 nor GB18030".to_owned()
                } else {
                    format!("not {}", bad.encoding)
                }
            ),
            remedy: "save the file as UTF-8 from its source, without converting it by hand"
                .to_owned(),
        })?;
        let mut table = Self {
            place,
            file,
            header: Vec::new(),
            positions: HashMap::new(),
            rows: Vec::new(),
            encoding: decoded.encoding,
        };
        if let Some(at) = decoded.text.find('\0') {
            let line = decoded.text[..at].matches('\n').count() as u64 + 1;
            return Err(table.fault(
                line,
                "holds a NUL character",
                "export the file again; text never holds NUL",
            ));
        }
        table.parse(decoded.text, rename)?;
        Ok(table)
    }

    fn parse(&mut self, mut text: String, rename: fn(&str) -> String) -> Result<(), EdcError> {
        let delimiter = delimiter(&text);
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(END);
        let mut lines = LineCounter::new(&text);
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .delimiter(delimiter)
            .from_reader(text.as_bytes());
        let mut row = csv::StringRecord::new();
        let mut closed = false;
        let mut last_line = 1;
        loop {
            let more = reader.read_record(&mut row).map_err(|e| {
                self.fault(
                    last_line,
                    &format!("cannot be read as rows ({e})"),
                    "export the file again",
                )
            })?;
            if !more {
                break;
            }
            let line = lines.at(row.position().map_or(0, |p| p.byte()));
            last_line = line;
            if row.len() == 1 && row.get(0) == Some(END) {
                closed = true;
                break;
            }
            if row.iter().all(|cell| cell.trim().is_empty()) {
                continue; // spreadsheet programs leave rows of bare separators behind
            }
            if self.header.is_empty() {
                self.set_header(line, &row, rename)?;
            } else if row.len() == self.header.len() {
                self.rows.push(TableRow {
                    line,
                    cells: row.clone(),
                });
            } else if row.iter().any(|cell| cell.contains(END)) {
                break;
            } else {
                return Err(self.fault(
                    line,
                    &format!("has {} cells where the header has {}", row.len(), self.header.len()),
                    "export the file again, or look for a separator or quote inside a cell that is not quoted",
                ));
            }
        }
        if !closed {
            return Err(self.fault(
                last_line,
                "a quote opened in this row never closes",
                "close it; a quote inside a cell is written twice",
            ));
        }
        if self.header.is_empty() {
            return Err(self.fault(
                1,
                "the file has no header",
                "export it again with its column names",
            ));
        }
        Ok(())
    }

    fn set_header(
        &mut self,
        line: u64,
        row: &csv::StringRecord,
        rename: fn(&str) -> String,
    ) -> Result<(), EdcError> {
        for name in row {
            let name = rename(name.trim());
            if name.is_empty() {
                return Err(self.fault(line, "a column has no name", "name it or delete it"));
            }
            if self
                .positions
                .insert(name.clone(), self.header.len())
                .is_some()
            {
                return Err(self.fault(
                    line,
                    &format!("column `{name}` stands twice"),
                    "keep one of them",
                ));
            }
            self.header.push(name);
        }
        Ok(())
    }

    /// Position of a column.
    #[must_use]
    pub fn position(&self, column: &str) -> Option<usize> {
        self.positions.get(column).copied()
    }

    /// Position of a column that must be there.
    ///
    /// # Errors
    /// [`EdcError::Faulty`] that names the column.
    pub fn require(&self, column: &str, remedy: &str) -> Result<usize, EdcError> {
        self.position(column)
            .ok_or_else(|| self.fault(1, &format!("has no column `{column}`"), remedy))
    }

    /// The trimmed cell under `column`; empty when there is no such column.
    #[must_use]
    pub fn cell<'r>(&self, row: &'r TableRow, column: &str) -> &'r str {
        self.position(column)
            .and_then(|at| row.cells.get(at))
            .map_or("", str::trim)
    }

    /// A fault at a line of this file.
    #[must_use]
    pub fn fault(&self, line: u64, what: &str, remedy: &str) -> EdcError {
        EdcError::Faulty {
            place: self.place.clone(),
            line: Some(line),
            what: what.to_owned(),
            remedy: remedy.to_owned(),
        }
    }

    /// A warning about this file.
    #[must_use]
    pub fn warning(&self, message: String) -> Warning {
        Warning {
            file: self.file.clone(),
            message,
        }
    }

    /// A warning when the encoding had to be guessed.
    #[must_use]
    pub fn encoding_warning(&self) -> Option<Warning> {
        (self.encoding != UTF_8).then(|| {
            self.warning(format!(
                "is not UTF-8 and was read as {}",
                self.encoding.name()
            ))
        })
    }
}

/// The separator that stands most often outside quotes in the first line; a comma when none does.
fn delimiter(text: &str) -> u8 {
    let header = text.trim_start().lines().next().unwrap_or_default();
    let mut counts = [(b',', 0_usize), (b';', 0), (b'\t', 0), (b'|', 0), (b'^', 0)];
    let mut quoted = false;
    for byte in header.bytes() {
        if byte == b'"' {
            quoted = !quoted;
        } else if !quoted && let Some(count) = counts.iter_mut().find(|(d, _)| *d == byte) {
            count.1 += 1;
        }
    }
    let mut best = counts[0];
    for count in counts {
        if count.1 > best.1 {
            best = count;
        }
    }
    best.0
}

/// Line numbers of growing byte offsets; the csv reader's own are off after blank lines and CRLF.
struct LineCounter<'t> {
    bytes: &'t [u8],
    offset: usize,
    line: u64,
}

impl<'t> LineCounter<'t> {
    fn new(text: &'t str) -> Self {
        Self {
            bytes: text.as_bytes(),
            offset: 0,
            line: 1,
        }
    }

    /// The line of the first byte at or after `offset` that is not a line end.
    fn at(&mut self, offset: u64) -> u64 {
        let target = usize::try_from(offset)
            .unwrap_or(usize::MAX)
            .min(self.bytes.len());
        while let Some(&byte) = self.bytes.get(self.offset) {
            if self.offset >= target && byte != b'\n' && byte != b'\r' {
                break;
            }
            self.line += u64::from(byte == b'\n');
            self.offset += 1;
        }
        self.line
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        reason = "a failed expectation is the test's verdict"
    )]

    use super::*;

    fn read(text: &str) -> Result<Table, EdcError> {
        Table::read(Path::new("data/t.csv"), text.as_bytes(), str::to_owned)
    }

    fn lines(text: &str) -> Vec<u64> {
        read(text)
            .unwrap()
            .rows
            .iter()
            .map(|row| row.line)
            .collect()
    }

    #[test]
    fn rows_know_their_line_over_quoted_breaks_blank_lines_and_either_line_end() {
        assert_eq!(lines("a,b\n1,\"x\ny\"\n2,z\n"), [2, 4]);
        assert_eq!(lines("a,b\r\n1,\"x\r\ny\"\r\n\r\n2,z"), [2, 5]);
        assert_eq!(lines("a,b\n\n,\n1,z\n"), [4]);
    }

    #[test]
    fn separators_are_taken_from_the_header_outside_its_quotes() {
        for text in [
            "a,b\n1,2",
            "a;b\n1;2",
            "a\tb\n1\t2",
            "a|b\n1|2",
            "a^b\n1^2",
            "\"a\",\"b\"\n1,2",
        ] {
            let table = read(text).unwrap();
            assert_eq!(table.header, ["a", "b"], "{text:?}");
            assert_eq!(table.cell(&table.rows[0], "b"), "2");
        }
        assert_eq!(read("id;\"x,y,z\"\n1;2").unwrap().header, ["id", "x,y,z"]);
    }

    #[test]
    fn a_file_that_is_no_table_is_refused_with_its_place() {
        let said: Vec<String> = [
            "",
            "a,b\n1\n",
            "a,b\n1,2,3\n",
            "a,b\n1,2\n3,\"open\n4,5\n",
            "a,b\n1,2\n3,\"4\"\n5,\"6",
            "a,a\n1,2",
            "a,\n1,2",
            "a,b\n1,\0",
        ]
        .iter()
        .map(|text| read(text).unwrap_err().to_string())
        .collect();
        insta::assert_snapshot!("no_table", said.join("\n"));
    }
}
