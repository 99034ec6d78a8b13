//! `iit rules`: hard rules over plain files, without a database.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use chrono::NaiveDate;
use chrono_tz::Asia::Shanghai;
use serde::Serialize;
use serde_json::Value;

use super::exit::{CommandResult, Failure, found_something};
use crate::{
    adapters::edc::{
        EdcError, Warning,
        export::{Table, metadata},
    },
    engines::rules::{Outcome, RuleResult, RuleSet, Study},
    types::{clock::Clock, dictionary::Dictionary, rule::RuleSpec},
};

/// Longest line of a records file, in bytes; a longer one is no record.
const LINE_BYTES: u64 = 16 * 1024 * 1024;

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// 对记录逐条求值 · evaluate rules over records: one JSON line a record and rule.
    Eval(EvalArgs),
}

#[derive(Debug, clap::Args)]
struct EvalArgs {
    /// 规则文件：{id?, field, logic, message, severity?} 的数组 · a JSON array of rules.
    #[arg(long, value_name = "FILE")]
    rules: PathBuf,
    /// 记录文件，每行一个 JSON 对象 · one JSON object a line, with its `record_id`.
    #[arg(long, value_name = "FILE.jsonl")]
    records: PathBuf,
    /// 数据字典，决定字段类型 · a REDCap data dictionary, which types the values.
    #[arg(long, value_name = "metadata.csv")]
    dictionary: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// See [`Failure`].
pub fn run(args: Args) -> CommandResult {
    match args.command {
        Command::Eval(args) => eval(&args),
    }
}

/// One line of output.
#[derive(Serialize)]
struct Line<'a> {
    record: &'a str,
    rule: &'a str,
    outcome: &'static str,
    fields: Vec<&'a str>,
    message: &'a str,
}

fn eval(args: &EvalArgs) -> CommandResult {
    let specs = read_rules(&args.rules)?;
    let dictionary = args
        .dictionary
        .as_deref()
        .map(read_dictionary)
        .transpose()?;
    let study = Study {
        dictionary: dictionary.as_ref(),
        ..Study::default()
    };
    let rules = match RuleSet::compile(&specs, &study) {
        Ok(rules) => rules,
        Err(faults) => {
            for fault in faults {
                eprintln!("iit: {}: {fault}", args.rules.display());
            }
            return Ok(found_something());
        }
    };
    let today = Clock::system().now().with_timezone(&Shanghai).date_naive();
    let stdout = std::io::stdout().lock();
    let id_field = dictionary
        .as_ref()
        .and_then(Dictionary::record_id_field)
        .map_or("record_id", |field| field.name.as_str());
    let lines = Lines {
        rules: &rules,
        path: &args.records,
        id_field,
        today,
    };
    lines.evaluate(std::io::BufWriter::new(stdout))
}

fn read_rules(path: &Path) -> Result<Vec<RuleSpec>, Failure> {
    let usage = |what: String| Failure::Usage(format!("{}: {what}", path.display()));
    let bytes =
        std::fs::read(path).map_err(|e| usage(format!("can't be read ({e}); check the path")))?;
    let text = String::from_utf8(bytes).map_err(|e| {
        let line = line_at(e.as_bytes(), e.utf8_error().valid_up_to());
        Failure::Usage(format!(
            "{}:{line}: is not UTF-8; save the file as UTF-8",
            path.display()
        ))
    })?;
    let text = text.trim_start_matches('\u{feff}');
    let rules: Vec<Value> = serde_json::from_str(text).map_err(|e| {
        Failure::Usage(format!(
            "{}:{}: is no JSON array of rules ({})",
            path.display(),
            e.line(),
            reason(&e)
        ))
    })?;
    let mut specs = Vec::with_capacity(rules.len());
    let mut faults = Vec::new();
    for (at, rule) in rules.into_iter().enumerate() {
        match serde_json::from_value::<RuleSpec>(rule) {
            Ok(spec) => specs.push(spec),
            Err(e) => faults.push(format!("{}: rule #{}: {e}", path.display(), at + 1)),
        }
    }
    if faults.is_empty() {
        Ok(specs)
    } else {
        Err(Failure::Found(faults.join("\niit: ")))
    }
}

fn read_dictionary(path: &Path) -> Result<Dictionary, Failure> {
    let bytes = std::fs::read(path).map_err(|e| {
        Failure::Usage(format!(
            "{}: can't be read ({e}); check the path",
            path.display()
        ))
    })?;
    let usage = |e: EdcError| Failure::Usage(e.to_string());
    let table = Table::read(path, &bytes, metadata::column).map_err(usage)?;
    let mut warnings: Vec<Warning> = table.encoding_warning().into_iter().collect();
    let fields = metadata::fields(&table, &mut warnings).map_err(usage)?;
    for warning in warnings {
        eprintln!("iit: {warning}");
    }
    Ok(Dictionary::new(fields))
}

/// A file of records, one a line.
struct Lines<'a> {
    rules: &'a RuleSet,
    path: &'a Path,
    id_field: &'a str,
    today: NaiveDate,
}

impl Lines<'_> {
    fn usage(&self, what: &str) -> Failure {
        Failure::Usage(format!("{}: {what}", self.path.display()))
    }

    /// Evaluates every line that is a record; a line that is none is said on stderr and loses nothing else.
    fn evaluate(&self, mut out: impl Write) -> CommandResult {
        let unreadable =
            |e: std::io::Error| self.usage(&format!("can't be read ({e}); check the path"));
        let unwritable =
            |e: std::io::Error| Failure::Outside(format!("the output can't be written ({e})"));
        let mut reader = BufReader::new(File::open(self.path).map_err(unreadable)?);
        let mut line = Vec::new();
        let (mut number, mut good, mut bad) = (0_u64, 0_u64, 0_u64);
        while read_line(&mut reader, &mut line).map_err(unreadable)? {
            number += 1;
            match self.record(&line) {
                Ok(None) => {}
                Ok(Some((id, record))) => {
                    good += 1;
                    match self.write(&id, &record, &mut out) {
                        // Whoever reads the output has seen enough.
                        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => {
                            return Ok(ExitCode::SUCCESS);
                        }
                        other => other.map_err(unwritable)?,
                    }
                }
                Err(what) => {
                    bad += 1;
                    eprintln!("iit: {}:{number}: {what}", self.path.display());
                }
            }
        }
        out.flush().map_err(unwritable)?;
        if bad > 0 {
            return Err(self.usage(&format!(
                "{bad} line(s) hold no record and were left out, {good} were evaluated; correct them and run again"
            )));
        }
        Ok(ExitCode::SUCCESS)
    }

    fn record(&self, line: &[u8]) -> Result<Option<(String, Value)>, String> {
        let Some(record) = parse_line(line)? else {
            return Ok(None);
        };
        let id = ["record_id", self.id_field]
            .into_iter()
            .find_map(|key| match record.get(key) {
                Some(Value::String(id)) => Some(id.trim().to_owned()).filter(|id| !id.is_empty()),
                Some(Value::Number(id)) => Some(id.to_string()),
                _ => None,
            });
        match id {
            Some(id) => Ok(Some((id, record))),
            None => Err("has no `record_id`; give each record its id".to_owned()),
        }
    }

    fn write(&self, id: &str, record: &Value, out: &mut impl Write) -> std::io::Result<()> {
        for result in self.rules.evaluate_json(record, self.today) {
            write_line(self.rules, id, &result, out)?;
        }
        Ok(())
    }
}

/// Reads the next line, at most [`LINE_BYTES`] of it; `false` at the end of the file.
fn read_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> std::io::Result<bool> {
    line.clear();
    let read = reader.by_ref().take(LINE_BYTES).read_until(b'\n', line)?;
    if line.len() as u64 == LINE_BYTES && !line.ends_with(b"\n") {
        skip_line(reader)?;
    }
    Ok(read > 0)
}

/// `None` for an empty line.
fn parse_line(line: &[u8]) -> Result<Option<Value>, String> {
    if line.len() as u64 == LINE_BYTES && !line.ends_with(b"\n") {
        return Err(format!(
            "is longer than {LINE_BYTES} bytes, which no record is"
        ));
    }
    let line = line
        .strip_prefix(b"\xef\xbb\xbf")
        .unwrap_or(line)
        .trim_ascii_end();
    let text = std::str::from_utf8(line).map_err(|e| {
        format!(
            "is not UTF-8 from byte {} on; save the file as UTF-8",
            e.valid_up_to() + 1
        )
    })?;
    if text.trim().is_empty() {
        return Ok(None);
    }
    if text.contains('\0') {
        return Err("holds a NUL character; export the record again".to_owned());
    }
    let record: Value =
        serde_json::from_str(text).map_err(|e| format!("is not valid JSON ({})", reason(&e)))?;
    if !record.is_object() {
        return Err("is no JSON object; write one record as {\"record_id\": …} a line".to_owned());
    }
    if has_nul(&record) {
        return Err("holds a NUL character; export the record again".to_owned());
    }
    Ok(Some(record))
}

/// Whether any text of the record holds U+0000; written `\u0000` it passes the parser.
fn has_nul(record: &Value) -> bool {
    match record {
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(has_nul),
        Value::Object(map) => map
            .iter()
            .any(|(key, value)| key.contains('\0') || has_nul(value)),
        _ => false,
    }
}

fn skip_line(reader: &mut impl BufRead) -> std::io::Result<()> {
    loop {
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            return Ok(());
        }
        if let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
            reader.consume(end + 1);
            return Ok(());
        }
        let length = buffer.len();
        reader.consume(length);
    }
}

fn write_line(
    rules: &RuleSet,
    record: &str,
    result: &RuleResult,
    out: &mut impl Write,
) -> std::io::Result<()> {
    let all = || {
        rules
            .fields_of(result.rule_index)
            .iter()
            .map(AsRef::as_ref)
            .collect()
    };
    let (outcome, fields): (_, Vec<&str>) = match &result.outcome {
        Outcome::Pass => ("pass", all()),
        Outcome::Fail => ("fail", all()),
        Outcome::NotEvaluable { fields, .. } => {
            ("not_evaluable", fields.iter().map(AsRef::as_ref).collect())
        }
        // Nothing was decided here either; the message says why nobody is asked.
        Outcome::Hidden | Outcome::FormNotOpened => (
            "not_evaluable",
            result
                .values
                .iter()
                .map(|value| value.field.as_str())
                .collect(),
        ),
    };
    let line = Line {
        record,
        rule: rules.label(result.rule_index).unwrap_or_default(),
        outcome,
        fields,
        message: &result.message,
    };
    serde_json::to_writer(&mut *out, &line)?;
    out.write_all(b"\n")
}

/// serde's reason without its own "at line 1 column 7", which counts inside one line of the file.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    match text.strip_suffix(&place) {
        Some(what) => format!("{what} at column {}", error.column()),
        None => text,
    }
}

fn line_at(bytes: &[u8], offset: usize) -> usize {
    bytes
        .iter()
        .take(offset)
        .filter(|byte| **byte == b'\n')
        .count()
        + 1
}
