//! The text of a notice.

use crate::types::finding::Finding;

/// Most findings a notice lists one by one.
const LISTED: usize = 20;

/// A notice to be put into the outbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// WeCom users or groups of the project file; empty: the study's coordinators.
    pub to: Vec<String>,
    /// The text with its placeholders filled in.
    pub text: String,
}

/// Fills `{record}` and `{findings}` in, in one pass: a record id or a message that looks like a
/// placeholder is left as it is.
pub(super) fn render(template: &str, record: &str, findings: &[Finding]) -> String {
    let mut text = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(at) = rest.find('{') {
        let (before, tail) = rest.split_at(at);
        text.push_str(before);
        rest = if let Some(after) = tail.strip_prefix("{record}") {
            text.push_str(record);
            after
        } else if let Some(after) = tail.strip_prefix("{findings}") {
            text.push_str(&list(findings));
            after
        } else {
            text.push('{');
            tail.get(1..).unwrap_or_default()
        };
    }
    text.push_str(rest);
    text
}

fn list(findings: &[Finding]) -> String {
    if findings.is_empty() {
        return "本次未记录问题".to_owned();
    }
    let mut lines: Vec<String> = findings
        .iter()
        .take(LISTED)
        .enumerate()
        .map(|(at, finding)| format!("{}. {}", at + 1, finding.message))
        .collect();
    if findings.len() > LISTED {
        lines.push(format!("…共 {} 条", findings.len()));
    }
    lines.join("\n")
}
