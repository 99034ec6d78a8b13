//! The real program as a process of its own, on a database of the test's.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed expectation is the test's verdict"
)]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use super::postgres::TestDb;

/// `iit` with nothing in its environment but this database, in an empty folder.
pub struct Iit {
    url: String,
    folder: TempDir,
}

/// What a command came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Iit {
    pub fn on(db: &TestDb) -> Self {
        Self {
            url: db.url.clone(),
            folder: TempDir::with_prefix("iit-cli-").unwrap(),
        }
    }

    /// Runs a command to its end; the other tasks of the test go on meanwhile.
    pub async fn run(&self, args: &[&str]) -> Ran {
        let mut command = Command::new(env!("CARGO_BIN_EXE_iit"));
        command.args(args).current_dir(self.folder.path());
        command.env_clear();
        for name in ["PATH", "HOME", "LD_LIBRARY_PATH"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command
            .env("DATABASE_URL", &self.url)
            .env("IIT_DATA_DIR", self.folder.path().join("data"))
            .env("USER", "tester");
        let output = tokio::task::spawn_blocking(move || command.output());
        Ran::from(output.await.unwrap().unwrap())
    }

    /// Runs a command that must succeed and prints JSON.
    pub async fn json(&self, args: &[&str]) -> Value {
        let ran = self.run(args).await;
        assert_eq!(ran.code, 0, "{args:?}: {ran:?}");
        serde_json::from_str(&ran.stdout).unwrap_or_else(|e| panic!("{args:?}: {e}: {ran:?}"))
    }

    /// Runs a command that must succeed.
    pub async fn ok(&self, args: &[&str]) -> String {
        let ran = self.run(args).await;
        assert_eq!(ran.code, 0, "{args:?}: {ran:?}");
        ran.stdout
    }

    /// Another `DATABASE_URL` from now on.
    pub fn use_url(&mut self, url: &str) {
        url.clone_into(&mut self.url);
    }

    /// The empty folder it runs in.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

impl Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// The one sentence of a refusal.
    pub fn refusal(&self) -> &str {
        assert_eq!(self.stdout, "", "a refusal prints nothing on stdout");
        let sentence = self.stderr.trim_end();
        assert!(
            !sentence.is_empty() && !sentence.contains('\n'),
            "{sentence}"
        );
        sentence
    }
}
