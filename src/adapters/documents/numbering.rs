//! The numbers Word shows in front of paragraphs. They are not in the text: “5.2” is the second counter of a
//! list that the paragraph, or its style, belongs to. An answer cites them, so they are counted as Word does.

use std::collections::HashMap;

/// Levels a list has.
pub(super) const LEVELS: usize = 9;

/// One level of a list.
#[derive(Debug, Clone, Default)]
pub(super) struct Level {
    /// Where it begins to count; 1 when not said.
    pub start: Option<u32>,
    /// `decimal`, `upperLetter`, `chineseCounting`, `bullet`, …
    pub format: String,
    /// `%1.%2`
    pub text: String,
    /// The style whose paragraphs stand on this level.
    pub style: Option<String>,
    /// All its numbers are Arabic.
    pub legal: bool,
}

/// All lists of a document, and how far each has counted.
#[derive(Debug, Default)]
pub(super) struct Numbering {
    /// Kinds of lists.
    pub kinds: HashMap<String, [Level; LEVELS]>,
    /// Lists: their kind.
    pub lists: HashMap<String, String>,
    /// Where a list begins although its kind says otherwise.
    pub restarts: HashMap<(String, usize), u32>,
    counted: HashMap<String, [Option<u32>; LEVELS]>,
    restarted: Vec<(String, usize)>,
}

impl Numbering {
    /// The level that paragraphs of a style stand on.
    pub fn level_of_style(&self, list: &str, style: &str) -> Option<usize> {
        let levels = self.kinds.get(self.lists.get(list)?)?;
        levels
            .iter()
            .position(|level| level.style.as_deref() == Some(style))
    }

    /// Counts the next paragraph of a list; what is shown in front of it, empty for a bullet.
    pub fn next(&mut self, list: &str, level: usize) -> String {
        let Some(kind) = self.lists.get(list) else {
            return String::new();
        };
        let (Some(levels), true) = (self.kinds.get(kind), level < LEVELS) else {
            return String::new();
        };
        let counted = self.counted.entry(kind.clone()).or_default();
        let key = (list.to_owned(), level);
        if let Some(start) = self.restarts.get(&key)
            && !self.restarted.contains(&key)
        {
            self.restarted.push(key);
            if let Some(count) = counted.get_mut(level) {
                *count = start.checked_sub(1);
                if *start == 0 {
                    *count = None;
                }
            }
        }
        for (at, (count, one)) in counted.iter_mut().zip(levels).enumerate() {
            let start = one.start.unwrap_or(1);
            match at.cmp(&level) {
                // A level that was passed over counts as begun.
                std::cmp::Ordering::Less => *count = count.or(Some(start)),
                std::cmp::Ordering::Equal => {
                    *count = Some(count.map_or(start, |count| count.saturating_add(1)))
                }
                std::cmp::Ordering::Greater => *count = None,
            }
        }
        let Some(this) = levels.get(level) else {
            return String::new();
        };
        if this.format == "bullet" || this.format == "none" {
            return String::new();
        }
        let mut shown = this.text.clone();
        for (at, (count, one)) in counted.iter().zip(levels).enumerate() {
            let number = count.unwrap_or(1);
            let written = if this.legal {
                number.to_string()
            } else {
                written(number, &one.format)
            };
            shown = shown.replace(&format!("%{}", at + 1), &written);
        }
        shown
    }
}

/// A number as a list shows it; formats we don't know are shown in Arabic.
fn written(number: u32, format: &str) -> String {
    match format {
        "upperLetter" => letters(number).to_uppercase(),
        "lowerLetter" => letters(number),
        "upperRoman" => roman(number),
        "lowerRoman" => roman(number).to_lowercase(),
        "decimalZero" => format!("{number:02}"),
        "decimalEnclosedCircle" | "decimalEnclosedCircleChinese" => number
            .checked_sub(1)
            .filter(|n| *n < 20)
            .and_then(|n| char::from_u32(0x2460 + n))
            .map_or_else(|| number.to_string(), String::from),
        "chineseCounting"
        | "chineseCountingThousand"
        | "japaneseCounting"
        | "ideographTraditional"
        | "taiwaneseCountingThousand" => chinese(number),
        _ => number.to_string(),
    }
}

/// a … z, aa, bb, …
fn letters(number: u32) -> String {
    let at = number.saturating_sub(1);
    let letter = char::from_u32(u32::from(b'a') + at % 26).unwrap_or('a');
    std::iter::repeat_n(letter, usize::try_from(at / 26 + 1).unwrap_or(1).min(8)).collect()
}

fn roman(number: u32) -> String {
    const SIGNS: [(u32, &str); 13] = [
        (1000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ];
    if number > 3999 {
        return number.to_string();
    }
    let mut rest = number;
    let mut written = String::new();
    for (value, sign) in SIGNS {
        while rest >= value {
            written.push_str(sign);
            rest -= value;
        }
    }
    written
}

/// 一 … 九十九; beyond that lists are not numbered in words.
fn chinese(number: u32) -> String {
    const DIGITS: [char; 10] = ['零', '一', '二', '三', '四', '五', '六', '七', '八', '九'];
    let digit = |n: u32| {
        usize::try_from(n)
            .ok()
            .and_then(|n| DIGITS.get(n))
            .copied()
            .unwrap_or('零')
    };
    match (number / 10, number % 10) {
        (0, ones) => digit(ones).to_string(),
        (1, 0) => "十".to_owned(),
        (1, ones) => format!("十{}", digit(ones)),
        (tens @ 2..=9, 0) => format!("{}十", digit(tens)),
        (tens @ 2..=9, ones) => format!("{}十{}", digit(tens), digit(ones)),
        _ => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbering() -> Numbering {
        let mut levels: [Level; LEVELS] = Default::default();
        for (level, (format, text)) in levels.iter_mut().zip([
            ("chineseCounting", "第%1章"),
            ("decimal", "%1.%2"),
            ("lowerLetter", "%3)"),
            ("bullet", "·"),
        ]) {
            level.format = format.to_owned();
            level.text = text.to_owned();
            level.legal = text == "%1.%2";
        }
        let mut numbering = Numbering::default();
        numbering.kinds.insert("k".to_owned(), levels);
        numbering.lists.insert("1".to_owned(), "k".to_owned());
        numbering.lists.insert("2".to_owned(), "k".to_owned());
        numbering.restarts.insert(("2".to_owned(), 0), 7);
        numbering
    }

    #[test]
    fn levels_count_and_begin_again_below() {
        let mut numbering = numbering();
        let shown: Vec<String> = [0, 1, 1, 2, 2, 3, 0, 1, 2]
            .map(|level| numbering.next("1", level))
            .into();
        assert_eq!(
            shown,
            [
                "第一章",
                "1.1",
                "1.2",
                "a)",
                "b)",
                "",
                "第二章",
                "2.1",
                "a)"
            ]
        );
    }

    #[test]
    fn a_list_that_begins_elsewhere_does_so_once() {
        let mut numbering = numbering();
        let shown: Vec<String> = [0, 0].map(|level| numbering.next("2", level)).into();
        assert_eq!(shown, ["第七章", "第八章"]);
    }

    #[test]
    fn a_list_nobody_defined_shows_nothing() {
        assert_eq!(numbering().next("9", 0), "");
        assert_eq!(numbering().next("1", 9), "");
    }

    #[test]
    fn numbers_are_written_as_lists_show_them() {
        let cases = [
            (4, "upperRoman", "IV"),
            (14, "lowerRoman", "xiv"),
            (27, "upperLetter", "AA"),
            (3, "decimalEnclosedCircle", "③"),
            (10, "chineseCounting", "十"),
            (11, "chineseCounting", "十一"),
            (20, "chineseCounting", "二十"),
            (35, "chineseCounting", "三十五"),
            (7, "hebrew1", "7"),
            (0, "decimal", "0"),
        ];
        for (number, format, shown) in cases {
            assert_eq!(written(number, format), shown, "{number} {format}");
        }
    }
}
