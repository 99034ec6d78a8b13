//! Where strings and comments stand in JSON text, also when the text is not valid JSON.

use std::ops::Range;

/// What a stretch of text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Region {
    /// Structure: braces, commas, numbers, blanks.
    Outside,
    /// A string before a colon.
    Key,
    /// Any other string.
    Text,
    /// `// …` or `/* … */`.
    Comment,
}

/// Splits `text` into regions that cover it without gaps; quotes belong to their string.
#[must_use]
pub fn regions(text: &str) -> Vec<(Region, Range<usize>)> {
    let bytes = text.as_bytes();
    let mut found: Vec<(Region, Range<usize>)> = Vec::new();
    let mut at = 0;
    let mut outside_from = 0;
    while let Some(&byte) = bytes.get(at) {
        let (region, end) = match (byte, bytes.get(at + 1)) {
            (b'"', _) => (Region::Text, string_end(bytes, at)),
            (b'/', Some(b'/')) => (Region::Comment, line_end(bytes, at)),
            (b'/', Some(b'*')) => (Region::Comment, block_end(text, at)),
            _ => {
                at += 1;
                continue;
            }
        };
        if outside_from < at {
            found.push((Region::Outside, outside_from..at));
        }
        found.push((region, at..end));
        at = end;
        outside_from = end;
    }
    if outside_from < bytes.len() {
        found.push((Region::Outside, outside_from..bytes.len()));
    }
    mark_keys(text, &mut found);
    found
}

fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn line_end(bytes: &[u8], start: usize) -> usize {
    bytes
        .get(start..)
        .and_then(|rest| rest.iter().position(|b| *b == b'\n'))
        .map_or(bytes.len(), |length| start + length)
}

fn block_end(text: &str, start: usize) -> usize {
    text.get(start + 2..)
        .and_then(|rest| rest.find("*/"))
        .map_or(text.len(), |length| start + 2 + length + 2)
}

/// A string is a key when a colon follows it, comments and blanks apart.
fn mark_keys(text: &str, found: &mut [(Region, Range<usize>)]) {
    let mut colon_follows = false;
    for (region, range) in found.iter_mut().rev() {
        match region {
            Region::Outside => {
                let stretch = text.get(range.clone()).unwrap_or_default().trim_start();
                if !stretch.is_empty() {
                    colon_follows = stretch.starts_with(':') || stretch.starts_with("\\:");
                }
            }
            Region::Comment => {}
            Region::Text | Region::Key => {
                if colon_follows {
                    *region = Region::Key;
                }
                colon_follows = false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Region, regions};

    #[test]
    fn keys_texts_and_comments_are_told_apart() {
        let text = "{ \"a\\\"b\" /* \"c\" */ : \"d\" } // \"e\"";
        let seen: Vec<(Region, &str)> = regions(text)
            .into_iter()
            .map(|(region, range)| (region, text.get(range).unwrap_or_default()))
            .filter(|(region, _)| *region != Region::Outside)
            .collect();
        assert_eq!(
            seen,
            [
                (Region::Key, "\"a\\\"b\""),
                (Region::Comment, "/* \"c\" */"),
                (Region::Text, "\"d\""),
                (Region::Comment, "// \"e\""),
            ]
        );
    }

    proptest! {
        #[test]
        fn any_text_is_covered_without_gaps_at_character_borders(text in "[\"\\\\/*\\n:x年 ]{0,40}") {
            let mut next = 0;
            for (_, range) in regions(&text) {
                prop_assert_eq!(range.start, next);
                prop_assert!(text.get(range.clone()).is_some());
                next = range.end;
            }
            prop_assert_eq!(next, text.len());
        }
    }
}
