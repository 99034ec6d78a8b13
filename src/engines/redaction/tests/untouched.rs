//! What must pass as it is: a model that can't see a dose, a date or a code judges blindly.

use super::{redact, stranger};

const SENTENCES: &str = include_str!("../../../../tests/data/redaction/clinical_sentences.txt");

#[test]
fn clinical_sentences_pass_untouched() {
    let redactor = stranger();
    let changed: Vec<String> = SENTENCES
        .lines()
        .map(|line| (line, redact(&redactor, line)))
        .filter(|(line, redacted)| line != redacted)
        .map(|(line, redacted)| format!("{line}\n    {redacted}"))
        .collect();
    assert!(SENTENCES.lines().count() >= 200);
    assert!(changed.is_empty(), "\n{}", changed.join("\n"));
}

#[test]
fn all_of_them_at_once_pass_as_well() {
    assert_eq!(redact(&stranger(), SENTENCES), SENTENCES);
}
