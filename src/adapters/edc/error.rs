//! What can go wrong with a study's data source, told apart by what a caller does next.

/// Why an EDC did not answer. Each reads as one sentence: what, where, what to do.
///
/// No message quotes a cell: only ids, column, form and event names.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EdcError {
    /// The study has no such record. Permanent for these ids; the others of the request were not returned.
    #[error(
        "the study has no record {}; check the id, or whether the record was deleted or renamed",
        quoted(records)
    )]
    NotFound {
        /// The ids asked for that do not exist, in the order asked.
        records: Vec<String>,
    },
    /// The system does not answer just now. Worth a retry.
    #[error("{place}: {what}; try again, and check that the system is up")]
    Unavailable {
        /// The file or address.
        place: String,
        /// What happened.
        what: String,
    },
    /// What the system holds cannot be read as a study. Permanent until somebody corrects it.
    #[error("{place}{}: {what}; {remedy}", line.map(|n| format!(" line {n}")).unwrap_or_default())]
    Faulty {
        /// The file or address.
        place: String,
        /// Line in the file, counted from 1; of a row over several lines, its first.
        line: Option<u64>,
        /// What is wrong there.
        what: String,
        /// What to do about it.
        remedy: String,
    },
}

impl EdcError {
    /// Whether the same request may succeed later without anybody correcting anything.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Unavailable { .. })
    }
}

fn quoted(records: &[String]) -> String {
    let shown: Vec<String> = records
        .iter()
        .take(10)
        .map(|id| format!("`{id}`"))
        .collect();
    let more = records.len().saturating_sub(shown.len());
    let tail = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    shown.join(", ") + &tail
}

/// Something odd in a study's data that does not stop it from being read; shown to the data manager.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// The file, by its name in the folder.
    pub file: String,
    /// One sentence.
    pub message: String,
}

impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.file, self.message)
    }
}
