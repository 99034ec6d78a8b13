//! Skills pasted out of a Markdown document, where punctuation carries backslashes: `\[`, `"\>="`,
//! `"start\_node"`.
//!
//! JSON knows no backslash outside strings, and inside them only `\" \\ \/ \b \f \n \r \t \u`, so any
//! other backslash before punctuation can be dropped. One thing looks the same and must not be
//! touched: a pattern whose author forgot to double the backslash (`"^\d\.\d$"`). Dropping that one
//! would loosen the pattern, and a value that is wrong would pass. So text counts as Markdown only
//! when a backslash stands where no author could have meant it: outside strings, or in a key.

use super::lexis::{Region, regions};

/// Text without Markdown's backslashes.
#[derive(Debug, PartialEq, Eq)]
pub struct Unescaped {
    /// The text to parse.
    pub text: String,
    /// For each backslash taken out, ascending: where it would stand in [`Unescaped::text`].
    removed: Vec<usize>,
}

impl Unescaped {
    /// The position in the original text of a position in [`Unescaped::text`].
    #[must_use]
    pub fn origin(&self, position: usize) -> usize {
        position + self.removed.partition_point(|removed| *removed <= position)
    }
}

/// Why Markdown-escaped text cannot be read safely.
#[derive(Debug, PartialEq, Eq)]
pub struct Ambiguous {
    /// Byte position of the doubled backslash: Markdown's for one, or JSON's own?
    pub position: usize,
}

/// Takes Markdown's backslashes out; `None` when the text shows no sign of Markdown.
///
/// # Errors
/// [`Ambiguous`] when the text is Markdown and a string holds `\\`, whose meaning cannot be known.
pub fn unescape(text: &str) -> Result<Option<Unescaped>, Ambiguous> {
    let mut out = String::with_capacity(text.len());
    let mut removed = Vec::new();
    let mut is_markdown = false;
    let mut doubled = None;
    for (region, range) in regions(text) {
        let start = range.start;
        let stretch = text.get(range).unwrap_or_default();
        if region == Region::Comment {
            out.push_str(stretch);
            continue;
        }
        let mut chars = stretch.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            let escaped = chars.peek().map(|(_, next)| *next).filter(|_| c == '\\');
            let Some(next) = escaped else {
                out.push(c);
                continue;
            };
            if next == '\\' {
                doubled = doubled.or(Some(start + at));
            }
            if is_markdown_escape(region, next) {
                removed.push(out.len());
                is_markdown |= region != Region::Text;
            } else {
                out.push(c);
            }
            out.push(next);
            chars.next();
        }
    }
    if !is_markdown {
        return Ok(None);
    }
    match doubled {
        Some(position) => Err(Ambiguous { position }),
        None => Ok(Some(Unescaped { text: out, removed })),
    }
}

fn is_markdown_escape(region: Region, next: char) -> bool {
    let is_json_escape = matches!(next, '"' | '\\') || (region != Region::Outside && next == '/');
    next.is_ascii_punctuation() && !is_json_escape
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        reason = "a failed expectation is the test's verdict"
    )]

    use super::{Ambiguous, unescape};

    #[test]
    fn backslashes_before_punctuation_go_and_json_escapes_stay() {
        let pasted = r#"{ "start\_node": "a", "logic": { "\>=": \[{ "var": "x" }, 1\] }, "m": "\"\-\n" } // \_"#;
        let plain = unescape(pasted).unwrap().unwrap();
        assert_eq!(
            plain.text,
            r#"{ "start_node": "a", "logic": { ">=": [{ "var": "x" }, 1] }, "m": "\"-\n" } // \_"#
        );
        for (position, byte) in plain.text.bytes().enumerate() {
            assert_eq!(pasted.as_bytes()[plain.origin(position)], byte);
        }
    }

    #[test]
    fn a_pattern_with_a_forgotten_backslash_is_not_taken_for_markdown() {
        let written = r#"{ "matches": [{ "var": "code" }, "^[0-9]\.[0-9]$"] }"#;
        assert_eq!(unescape(written), Ok(None));
    }

    #[test]
    fn a_doubled_backslash_in_markdown_is_refused_because_it_has_two_meanings() {
        let pasted = r#"{ "matches": \[{ "var": "code" }, "^\\d$"\] }"#;
        assert_eq!(unescape(pasted), Err(Ambiguous { position: 36 }));
    }
}
