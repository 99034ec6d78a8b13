//! Text as it is compared: half-width, without invisible characters, and the way back to where it stood.

/// A text with another form, byte by byte traced to the original.
#[derive(Debug, Clone)]
pub struct Folded {
    /// The form that is searched.
    pub text: String,
    /// For each byte of `text`, where its character begins and ends in the original.
    from: Vec<(u32, u32)>,
}

impl Folded {
    /// Half-width, without characters nobody sees; everything else as it is.
    #[must_use]
    pub fn plain(original: &str) -> Self {
        Self::made(original, Some)
    }

    /// The same in lower case and without blanks inside a line.
    #[must_use]
    pub fn dense(original: &str) -> Self {
        Self::made(original, |c| (!is_blank(c)).then(|| c.to_ascii_lowercase()))
    }

    /// The same without what groups digits, either.
    #[must_use]
    pub fn ungrouped(original: &str) -> Self {
        Self::made(original, |c| {
            (!is_blank(c) && !matches!(c, '-' | '.')).then(|| c.to_ascii_lowercase())
        })
    }

    fn made(original: &str, keep: impl Fn(char) -> Option<char>) -> Self {
        let mut folded = Self {
            text: String::with_capacity(original.len()),
            from: Vec::with_capacity(original.len()),
        };
        for (at, c) in original.char_indices() {
            if is_invisible(c) {
                continue;
            }
            let Some(shown) = keep(half(c)) else { continue };
            folded.text.push(shown);
            let place = (index(at), index(at + c.len_utf8()));
            folded.from.resize(folded.text.len(), place);
        }
        folded
    }

    /// Where the bytes `start..end` of [`Self::text`] stand in the original; empty ranges are nowhere.
    #[must_use]
    pub fn original(&self, start: usize, end: usize) -> Option<std::ops::Range<usize>> {
        let (first, _) = *self.from.get(start)?;
        let (_, last) = *self.from.get(end.checked_sub(1)?)?;
        (first < last).then_some(first as usize..last as usize)
    }
}

/// Texts of more than 4 GB don't come here; one that did would have no place to be traced to, and is refused
/// by the size limits long before.
fn index(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// The half-width form of a character.
#[must_use]
pub fn half(c: char) -> char {
    match c {
        '\u{3000}' | '\u{a0}' | '\u{2002}'..='\u{200a}' | '\u{202f}' | '\u{205f}' => ' ',
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c),
        '‐' | '‑' | '‒' | '–' | '—' | '―' | '−' | '﹣' => '-',
        '•' | '・' | '‧' | '⋅' | '∙' => '·',
        other => other,
    }
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t')
}

/// Zero-width and direction marks, soft hyphens, variation selectors.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{fe00}'..='\u{fe0f}' | '\u{180e}'
    )
}

/// The character before byte `at`.
#[must_use]
pub fn before(text: &str, at: usize) -> Option<char> {
    text.get(..at)?.chars().next_back()
}

/// The character from byte `at` on.
#[must_use]
pub fn after(text: &str, at: usize) -> Option<char> {
    text.get(at..)?.chars().next()
}

/// Whether `text[start..end]` stands by itself: no letter, digit or `_` of the Latin alphabet touches it.
#[must_use]
pub fn stands_alone(text: &str, start: usize, end: usize) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !before(text, start).is_some_and(is_word) && !after(text, end).is_some_and(is_word)
}

/// Whether `text[start..end]` is a piece of a longer number: a decimal, a date, a time, a range.
#[must_use]
pub fn is_piece_of_number(text: &str, start: usize, end: usize) -> bool {
    let joins = |c: char| matches!(c, '.' | '-' | '/' | ':' | ',');
    let digit_before = before(text, start)
        .filter(|c| joins(*c))
        .is_some_and(|c| before(text, start - c.len_utf8()).is_some_and(|c| c.is_ascii_digit()));
    let digit_after = after(text, end)
        .filter(|c| joins(*c))
        .is_some_and(|c| after(text, end + c.len_utf8()).is_some_and(|c| c.is_ascii_digit()));
    digit_before || digit_after
}
