//! The command line as people and scripts meet it: the real binary, its output and its exit codes.

mod demo;
mod project_files;
mod rules_eval;
mod work;

use std::{
    fs,
    path::Path,
    process::{Command, Output, Stdio},
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{
    postgres::TestDb,
    study::{StudyFolder, Subject},
};

/// A database and a folder to run in, with nothing of this machine's settings.
struct Shell {
    db: TestDb,
    folder: TempDir,
}

impl Shell {
    async fn new() -> Self {
        Self {
            db: TestDb::new().await,
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = plain(self.path(), args);
        command.env("DATABASE_URL", &self.db.url);
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Runs what has to succeed and returns what it printed.
    fn succeeds(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", said(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Applies a study.
    fn apply(&self, study: &StudyFolder) {
        let (file, skills) = (study.project_file(), study.skills());
        self.succeeds(&["project", "apply", file.to_str().unwrap()]);
        self.succeeds(&[
            "skills",
            "apply",
            "--project",
            study.id(),
            skills.to_str().unwrap(),
        ]);
    }
}

/// A command without a database.
fn plain(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iit"));
    command
        .args(args)
        .current_dir(folder)
        .env_remove("RUST_LOG")
        .env_remove("DATABASE_URL")
        .env("IIT_DATA_DIR", folder.join("data"))
        .stdin(Stdio::null());
    command
}

/// Exit code and stderr, with the folder's name taken out.
fn said(output: &Output) -> String {
    format!(
        "exit {}\n{}",
        output.status.code().unwrap(),
        String::from_utf8_lossy(&output.stderr)
    )
}

fn refused_in_one_sentence(output: &Output, code: i32, parts: &[&str]) {
    let said = said(output);
    assert_eq!(output.status.code(), Some(code), "{said}");
    assert!(output.stdout.is_empty(), "{output:?}");
    assert_eq!(said.trim_end().lines().count(), 2, "{said}");
    for part in parts {
        assert!(said.contains(part), "{part}: {said}");
    }
}

/// Three subjects, one of them 16 years old.
fn study() -> StudyFolder {
    StudyFolder::with_eligibility(
        "lung",
        [
            Subject::fit("P001"),
            Subject::fit("P002").with("age", "16"),
            Subject::fit("P003"),
        ],
    )
}

// --- settings ---

#[test]
fn a_broken_env_file_stops_every_command_and_is_named_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let below = folder.path().join("below");
    fs::create_dir(&below).unwrap();
    let skills = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo/skills");
    let check = ["skills", "check", skills.to_str().unwrap()];
    for broken in [
        b"A=1\nSECRET=two words\nIIT_BIND=127.0.0.1:1\n".as_slice(),
        b"A=1\n# \xca\xfd\xbe\xdd\nIIT_BIND=127.0.0.1:1\n",
    ] {
        fs::write(folder.path().join(".env"), broken).unwrap();
        let output = plain(&below, &check).output().unwrap();
        refused_in_one_sentence(&output, 2, &[".env:2："]);
        assert!(!said(&output).contains("two words"));
        let help = plain(&below, &["--help"]).output().unwrap();
        assert_eq!(help.status.code(), Some(0));
    }
    fs::remove_file(folder.path().join(".env")).unwrap();
    assert_eq!(
        plain(&below, &check).output().unwrap().status.code(),
        Some(0)
    );
}

#[tokio::test]
async fn the_env_file_is_read_and_doctor_says_which_and_what_is_not_set() {
    let shell = Shell::new().await;
    fs::write(shell.path().join(".env"), "IIT_API_TOKEN='a b'\n").unwrap();
    let table = shell.succeeds(&["doctor"]);
    let row = |name: &str| {
        let row = table.lines().find(|line| line.contains(name)).unwrap();
        row.split('┆').nth(1).unwrap().trim().to_owned()
    };
    assert!(
        table.contains(shell.path().join(".env").to_str().unwrap()),
        "{table}"
    );
    assert_eq!(row("IIT_API_TOKEN"), "✓");
    assert_eq!(row("WECOM_*"), "–");
    assert_eq!(row("LLM_*"), "–");
    let study = study();
    shell.apply(&study);
    fs::remove_file(study.export().join("records.csv")).unwrap();
    let faulty = shell.run(&["doctor"]);
    assert_eq!(faulty.status.code(), Some(1), "{}", said(&faulty));
    assert!(String::from_utf8_lossy(&faulty.stdout).contains("records.csv"));
}

// --- output ---

#[tokio::test]
async fn a_reader_that_has_seen_enough_and_a_full_disk_are_no_panic() {
    let shell = Shell::new().await;
    let study = study();
    shell.apply(&study);
    fs::write(
        shell.path().join("rules.json"),
        json!([{"field": "age", "logic": {">=": [{"var": "age"}, 18]}}]).to_string(),
    )
    .unwrap();
    fs::write(
        shell.path().join("r.jsonl"),
        "{\"record_id\":\"1\",\"age\":20}\n",
    )
    .unwrap();
    let skills = study.skills();
    let commands: [&[&str]; 11] = [
        &["--help"],
        &["doctor"],
        &["migrate"],
        &["project", "list"],
        &["project", "list", "--format", "csv"],
        &["skills", "check", skills.to_str().unwrap()],
        &["pending", "list", "--project", "lung", "--format", "json"],
        &["queue", "depth"],
        &["qc", "--project", "lung", "--record", "P001", "--wait"],
        &["qc", "--project", "lung", "--record", "P001"],
        &[
            "rules",
            "eval",
            "--rules",
            "rules.json",
            "--records",
            "r.jsonl",
        ],
    ];
    for args in commands {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = shell.command(args).stdout(writer).output().unwrap();
        assert_eq!(said(&output), "exit 0\n", "{args:?}");
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let output = shell.command(args).stdout(full).output().unwrap();
        refused_in_one_sentence(&output, 3, &["输出写不出去"]);
    }
    // The verdict does not hang on who reads it, and stderr may be gone too.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let stderr = writer.try_clone().unwrap();
    let failing = [
        "qc",
        "--project",
        "lung",
        "--record",
        "P002",
        "--wait",
        "--fail-on",
        "error",
    ];
    let status = shell
        .command(&failing)
        .stdout(writer)
        .stderr(stderr)
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(1));
    let mut gone = shell.command(&["pending", "list", "--project", "nobody"]);
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    assert_eq!(gone.stderr(full).status().unwrap().code(), Some(2));
}

#[tokio::test]
async fn a_command_that_fails_prints_its_sentence_and_logs_only_when_asked() {
    let shell = Shell::new().await;
    let study = study();
    shell.apply(&study);
    fs::remove_file(study.export().join("records.csv")).unwrap();
    let qc = ["qc", "--project", "lung", "--all", "--wait"];
    let output = shell.run(&qc);
    refused_in_one_sentence(&output, 3, &["records.csv"]);
    let logged = shell.command(&qc).env("RUST_LOG", "warn").output().unwrap();
    assert_eq!(logged.status.code(), Some(3));
    assert!(
        said(&logged).contains("{\"timestamp\""),
        "{}",
        said(&logged)
    );
}

#[tokio::test]
async fn text_that_a_spreadsheet_would_run_is_made_harmless_in_csv_only() {
    let shell = Shell::new().await;
    let study = study();
    let file = fs::read_to_string(study.project_file()).unwrap();
    study.write_whole_project(&file.replace("研究 lung", "=1+1"));
    shell.apply(&study);
    let csv = shell.succeeds(&["project", "list", "--format", "csv"]);
    assert!(csv.contains(",'=1+1,"), "{csv}");
    let json: Value =
        serde_json::from_str(&shell.succeeds(&["project", "list", "--format", "json"])).unwrap();
    assert_eq!(json[0]["name"], "=1+1");
}
