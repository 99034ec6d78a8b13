//! Results as large as a model can use. What is cut is counted and said: a list that ends without a word
//! would be taken for the whole.

use serde_json::Value;

use crate::types::text::ellipsis;

/// Most rows of a result unless fewer are asked for.
pub const MOST_ROWS: usize = 50;
/// Most bytes of the rows of a result, as JSON.
pub const MOST_BYTES: usize = 6 * 1024;
/// Most characters of one value.
const MOST_CHARS: usize = 600;

/// The rows that fit, at least one; the rest is left out.
#[must_use]
pub fn rows(rows: Vec<Value>, most: usize) -> Vec<Value> {
    let mut bytes = 0;
    rows.into_iter()
        .take(most)
        .enumerate()
        .take_while(|(at, row)| {
            bytes += row.to_string().len() + 1;
            *at == 0 || bytes <= MOST_BYTES
        })
        .map(|(_, row)| row)
        .collect()
}

/// A value as shown; a long one is cut, and says so.
#[must_use]
pub fn text(value: &str) -> String {
    let chars = value.chars().count();
    if chars <= MOST_CHARS {
        return value.to_owned();
    }
    format!("{}（共 {chars} 字，已截断）", ellipsis(value, MOST_CHARS))
}

/// A list of names as shown.
#[must_use]
pub fn names(names: &[String], most: usize) -> String {
    let shown: Vec<&str> = names.iter().take(most).map(String::as_str).collect();
    match names.len() {
        all if all > most => format!("{} 等 {all} 个", shown.join("、")),
        _ => shown.join("、"),
    }
}
