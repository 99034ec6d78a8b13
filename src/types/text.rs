//! Text that comes from outside: made safe for Postgres, cut at character borders.

/// Postgres text and jsonb refuse U+0000; every other scalar value is kept as it is.
///
/// Lone surrogates never reach this point: JSON decoding refuses or replaces them. Returns the cleaned
/// text and whether anything was taken out, so that the caller can say so.
#[must_use]
pub fn without_nul(text: &str) -> (String, bool) {
    if text.contains('\0') {
        (text.replace('\0', "\u{fffd}"), true)
    } else {
        (text.to_owned(), false)
    }
}

/// Full-width ASCII (`！`…`～`) and the ideographic space to half-width; nothing else changes.
#[must_use]
pub fn half_width(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\u{3000}' => ' ',
            '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c),
            other => other,
        })
        .collect()
}

/// Cuts `text` to at most `max_chars` characters, with `…` in place of what was cut.
#[must_use]
pub fn ellipsis(text: &str, max_chars: usize) -> String {
    if text.chars().count() <= max_chars {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(max_chars.saturating_sub(1)).collect();
    cut.push('…');
    cut
}
