//! Record ids in the shapes people write, and only those: not dates, ages, doses, visits, phones, times.
//!
//! A run of ASCII letters and digits, joined by `-` or `_`, is a candidate; its own shape and what stands
//! beside it decide. Ids come out upper-case and otherwise as written.

mod range;
mod shape;
#[cfg(test)]
mod tests;

use self::{
    range::{close_range, inner_range},
    shape::{Context, read},
};
use super::message::{head, patterns, tail};

/// At most so many ids come out of a range such as `P001到P005`.
pub(super) const MAX_RANGE: u64 = 50;

/// A place in the message that names records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mention {
    /// First byte, in the folded text.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
    /// The records; empty exactly when there is `trouble`.
    pub ids: Vec<String>,
    /// Why the place can't be read without asking.
    pub trouble: Option<Trouble>,
}

/// A range that must be asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Trouble {
    /// More than [`MAX_RANGE`] records.
    TooMany {
        from: String,
        to: String,
        count: u64,
    },
    /// The ends don't make a range (`P005到P001`, `P001到S009`).
    NoRange { from: String, to: String },
    /// `001-005` may be one id or five.
    IdOrRange {
        id: String,
        from: String,
        to: String,
    },
}

patterns! {
    /// A candidate.
    TOKEN = r"[a-z0-9]+(?:[-_][a-z0-9]+)*";
    /// An id the agent marked itself, see `resolve::named`: whatever stands in the quotes, to the letter.
    MARKED = r"编号「([^「」]{1,64})」";
    /// What joins the members of a list.
    JOINT = r"^\s*(?:[、,/&]|和|与|及|跟|以及|还有|and)?\s*(?:和|与|及|and)?\s*(?:(?:受试者|患者|病人|编号|id)\s*[:=]?)?\s*$";
    /// What joins the ends of a range.
    SPAN = r"^\s*(?:到|至|直到|一直到|~|-{1,2}|to|through)\s*(?:受试者|患者|病人)?\s*$";
}

/// The places of `plain` (folded text) that name records, in order, none overlapping.
pub(super) fn mentions(plain: &str) -> Vec<Mention> {
    let marked: Vec<Mention> = MARKED
        .captures_iter(plain)
        .filter_map(|captures| captures.get(1))
        .map(|id| Mention {
            start: id.start(),
            end: id.end(),
            ids: vec![id.as_str().trim().to_ascii_uppercase()],
            trouble: None,
        })
        .collect();
    let mut found: Vec<Mention> = Vec::new();
    for token in TOKEN.find_iter(plain) {
        if marked
            .iter()
            .any(|m| m.start <= token.start() && token.end() <= m.end)
        {
            continue;
        }
        let before = plain.get(..token.start()).unwrap_or_default();
        let after = plain.get(token.end()..).unwrap_or_default();
        let previous = found.last();
        let between = previous.and_then(|m| plain.get(m.end..token.start()));
        let listed = between.is_some_and(|gap| JOINT.is_match(gap));
        let spanned = between.is_some_and(|gap| SPAN.is_match(gap));
        let context = Context {
            before: tail(before, 16),
            after: head(after, 8),
            listed,
            spanned,
        };
        let Some((text, trouble)) = read(token.as_str(), &context) else {
            continue;
        };
        let start = token.end() - text.len();
        if spanned && let Some(open) = found.pop() {
            found.push(close_range(open, &text, token.end()));
            continue;
        }
        found.push(match trouble {
            Some(trouble) => Mention {
                start,
                end: token.end(),
                ids: Vec::new(),
                trouble: Some(trouble),
            },
            None => inner_range(&text, start, token.end()).unwrap_or_else(|| Mention {
                start,
                end: token.end(),
                ids: vec![text.to_ascii_uppercase()],
                trouble: None,
            }),
        });
    }
    found.extend(marked);
    found.sort_by_key(|mention| mention.start);
    found
}
