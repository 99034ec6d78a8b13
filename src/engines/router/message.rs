//! A message in two spellings: as written, and folded so that rules match it.

use regex::Regex;

use crate::types::text::half_width;

/// Compiles a pattern of this module tree.
#[allow(
    clippy::expect_used,
    reason = "patterns are constants of this program; a test compiles every one of them"
)]
pub(super) fn pattern(source: &str) -> Regex {
    Regex::new(source).expect("a constant pattern compiles")
}

/// Declares patterns compiled on first use.
macro_rules! patterns {
    ($($(#[$doc:meta])* $name:ident = $source:expr;)*) => {
        $($(#[$doc])* static $name: std::sync::LazyLock<regex::Regex> =
            std::sync::LazyLock::new(|| $crate::engines::router::message::pattern($source));)*
        /// Compiles every pattern of this file.
        #[cfg(test)]
        pub(super) fn compile_all() {
            $(std::sync::LazyLock::force(&$name);)*
        }
    };
}
pub(super) use patterns;

/// Messages longer than this (characters) are not read: WeCom delivers at most 2048 bytes.
pub(super) const MAX_CHARS: usize = 4000;

/// A message and its folded spelling.
///
/// Folding is character by character: half-width, lower-case (ASCII), one kind of dash and of apostrophe,
/// the traditional characters the rules know. So every byte of the folded text has its place in the original.
#[derive(Debug)]
pub(super) struct Message {
    original: String,
    plain: String,
    /// For each byte of `plain` (and its end): the byte of `original` where that character starts.
    origin: Vec<usize>,
}

impl Message {
    pub(super) fn new(text: &str) -> Self {
        let original: String = text.chars().filter(|c| !is_invisible(*c)).collect();
        let half = half_width(&original);
        let mut plain = String::with_capacity(half.len());
        let mut origin = Vec::with_capacity(half.len() + 1);
        for ((at, _), c) in original.char_indices().zip(half.chars()) {
            plain.push(fold(c));
            origin.resize(plain.len(), at);
        }
        origin.push(original.len());
        Self {
            original,
            plain,
            origin,
        }
    }

    /// Whether it is longer than anything a person types, so that reading it makes no sense.
    pub(super) fn is_too_long(&self) -> bool {
        self.plain.chars().nth(MAX_CHARS).is_some()
    }

    /// The folded text.
    pub(super) fn plain(&self) -> &str {
        &self.plain
    }

    /// The folded text between two byte positions of itself.
    pub(super) fn part(&self, start: usize, end: usize) -> &str {
        self.plain.get(start..end).unwrap_or_default()
    }

    /// The text as written behind a part of the folded text.
    pub(super) fn written(&self, start: usize, end: usize) -> &str {
        let from = self.origin.get(start).copied().unwrap_or(0);
        let to = self.origin.get(end).copied().unwrap_or(self.original.len());
        self.original.get(from..to).unwrap_or_default()
    }
}

fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}' | '\u{fe0e}' | '\u{fe0f}' | '\u{ad}'
    )
}

fn fold(c: char) -> char {
    match c {
        'A'..='Z' => c.to_ascii_lowercase(),
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{fe63}' => '-',
        '\u{2018}' | '\u{2019}' => '\'',
        '\u{301c}' | '\u{2053}' => '~',
        '\u{a0}' | '\t' => ' ',
        '質' => '质',
        '檢' => '检',
        '對' => '对',
        '給' => '给',
        '驗' => '验',
        '這' => '这',
        '個' => '个',
        '後' => '后',
        '別' => '别',
        '無' => '无',
        '項' => '项',
        '試' => '试',
        '審' => '审',
        '麼' => '么',
        '嗎' => '吗',
        '誰' => '谁',
        '訪' => '访',
        '視' => '视',
        '齡' => '龄',
        '報' => '报',
        '幫' => '帮',
        '標' => '标',
        '錄' => '录',
        '組' => '组',
        '編' => '编',
        '號' => '号',
        '體' => '体',
        '達' => '达',
        '現' => '现',
        '樣' => '样',
        '說' => '说',
        '義' => '义',
        '讓' => '让',
        other => other,
    }
}

/// At most `chars` characters at the end of `text`.
pub(super) fn tail(text: &str, chars: usize) -> &str {
    text.char_indices()
        .rev()
        .nth(chars.saturating_sub(1))
        .map_or(text, |(at, _)| text.get(at..).unwrap_or_default())
}

/// At most `chars` characters at the start of `text`.
pub(super) fn head(text: &str, chars: usize) -> &str {
    text.char_indices()
        .nth(chars)
        .map_or(text, |(at, _)| text.get(..at).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::expect_used,
        reason = "a failed expectation is the test's verdict"
    )]
    use super::*;

    #[test]
    fn a_part_of_the_folded_text_leads_back_to_what_was_written() {
        let message = Message::new("質控　Ｐ００１，谢谢");
        assert_eq!(message.plain(), "质控 p001,谢谢");
        let at = message.plain().find("p001").unwrap();
        assert_eq!(message.written(at, at + 4), "Ｐ００１");
    }

    #[test]
    fn head_and_tail_count_characters() {
        assert_eq!(tail("质控P001", 2), "01");
        assert_eq!(head("质控P001", 3), "质控P");
        assert_eq!(tail("质", 9), "质");
        assert_eq!(head("", 3), "");
    }
}
