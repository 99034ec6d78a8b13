//! Ranges: `P001到P005`, `P001-P005`, `001~010`.

use super::{MAX_RANGE, Mention, Trouble};

/// `P001-P005` written as one token.
pub(super) fn inner_range(text: &str, start: usize, end: usize) -> Option<Mention> {
    let (first, second) = text.split_once('-')?;
    let (a, a_digits) = letters_then_digits(first)?;
    let (b, b_digits) = letters_then_digits(second)?;
    if a.is_empty() || a != b || a_digits.is_empty() || b_digits.is_empty() {
        return None;
    }
    Some(range(first, second, start, end))
}

/// The mention from `open`'s last id to `to`.
pub(super) fn close_range(mut open: Mention, to: &str, end: usize) -> Mention {
    let Some(from) = open.ids.pop() else {
        open.end = end;
        return open;
    };
    let closed = range(&from.to_ascii_lowercase(), to, open.start, end);
    if closed.trouble.is_some() {
        return closed;
    }
    open.ids.extend(closed.ids);
    open.end = end;
    open
}

/// Every id from `from` to `to`; the last run of digits counts up. `to` may leave out what stays the same.
fn range(from: &str, to: &str, start: usize, end: usize) -> Mention {
    let (stem, low) = split_counter(from);
    let (to_stem, high) = split_counter(to);
    let trouble = |trouble| Mention {
        start,
        end,
        ids: Vec::new(),
        trouble: Some(trouble),
    };
    let no_range = || Trouble::NoRange {
        from: from.to_ascii_uppercase(),
        to: to.to_ascii_uppercase(),
    };
    let same_stem = stem == to_stem || to_stem.is_empty();
    let padded = low.starts_with('0') || high.starts_with('0');
    let same_width = low.len() == high.len() || !padded;
    let (Ok(first), Ok(last)) = (low.parse::<u64>(), high.parse::<u64>()) else {
        return trouble(no_range());
    };
    if !same_stem || !same_width || last <= first {
        return trouble(no_range());
    }
    let count = last - first + 1;
    if count > MAX_RANGE {
        return trouble(Trouble::TooMany {
            from: from.to_ascii_uppercase(),
            to: format!("{stem}{high}").to_ascii_uppercase(),
            count,
        });
    }
    let width = low.len();
    Mention {
        start,
        end,
        ids: (first..=last)
            .map(|n| format!("{stem}{n:0width$}").to_ascii_uppercase())
            .collect(),
        trouble: None,
    }
}

fn split_counter(id: &str) -> (&str, &str) {
    let at = id
        .rfind(|c: char| !c.is_ascii_digit())
        .map_or(0, |at| at + 1);
    id.split_at_checked(at).unwrap_or((id, ""))
}

/// `P001` as `P` and `001`.
pub(super) fn letters_then_digits(part: &str) -> Option<(&str, &str)> {
    let at = part
        .find(|c: char| c.is_ascii_digit())
        .unwrap_or(part.len());
    let (letters, digits) = part.split_at_checked(at)?;
    digits
        .bytes()
        .all(|b| b.is_ascii_digit())
        .then_some((letters, digits))
}
