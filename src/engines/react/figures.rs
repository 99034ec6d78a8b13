//! The figures of a text: what claims a quantity or a day, and what only looks like it (ids, visits, list
//! numbers, powers of ten in units).

use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::types::text::half_width;

/// What a text claims.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Figures {
    /// Quantities.
    pub numbers: Vec<Number>,
    /// Days, months, years, times of day.
    pub moments: Vec<Moment>,
    /// Words with digits in them, upper-case: `P001`, `V3`, `CD4`.
    pub names: Vec<String>,
}

/// A quantity.
#[derive(Debug, Clone, PartialEq)]
pub struct Number {
    /// As it was written, half-width.
    pub written: String,
    /// Its digits without sign, separators, leading and trailing zeros: what equals what.
    pub digits: String,
    /// Its value without sign.
    pub value: f64,
    /// Digits after the point.
    pub decimals: i32,
    /// `%` stands behind it.
    pub percent: bool,
    /// `约` stands before it.
    pub about: bool,
}

/// A point in time, or part of one.
#[derive(Debug, Clone, PartialEq)]
pub struct Moment {
    /// As it was written, half-width.
    pub written: String,
    /// Year.
    pub year: Option<u32>,
    /// Month.
    pub month: Option<u32>,
    /// Day.
    pub day: Option<u32>,
    /// Hour and minute.
    pub time: Option<(u32, u32)>,
    /// When it may be a quantity as well (`7日内`).
    pub number: Option<Number>,
}

/// Looked for in this order at each place.
const PATTERN: &str = r"(?x)
      (?P<unit>[×xX*]?\s*10(?:\^[-+]?[0-9]+|[eE][-+]?[0-9]+|[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+))
    | (?P<y1>(?:19|20)[0-9]{2})(?:-|/|\.|年\s?)(?P<m1>[0-9]{1,2})(?:-|/|\.|月\s?)(?P<d1>[0-9]{1,2})(?:日|号|T|(?-u:\b))
    | (?P<y2>(?:19|20)[0-9]{2})(?:(?:-|/)(?P<m2>0[1-9]|1[0-2])(?-u:\b)|年\s?(?P<m2b>[0-9]{1,2})\s?月)
    | (?P<week>(?:19|20)[0-9]{2}-?[Ww][0-9]{2})
    | (?P<m3>[0-9]{1,2})\s?月\s?(?P<d3>[0-9]{1,2})\s?(?:日|号)
    | (?P<y4>(?:19|20)[0-9]{2})\s?年
    | (?P<m4>[0-9]{1,2})\s?月(?P<not4>龄)?
    | (?P<d4>[0-9]{1,2})\s?(?:日|号)
    | (?P<h>[0-2]?[0-9]):(?P<min>[0-5][0-9])(?::[0-5][0-9](?:\.[0-9]+)?)?(?:Z|(?-u:\b))
    | (?P<ordinal>(?:第|访视|周期)\s?[0-9]+)
    | (?P<name>[A-Za-z][A-Za-z0-9_]*(?:-[A-Za-z0-9_]+)*)
    | (?P<number>[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?|[0-9]+(?:\.[0-9]+)?)(?P<tail>\s?%|\s?[万亿千])?
    | 百分之(?P<hundredths>[零〇一二两三四五六七八九十百]+)
    | (?P<before>第?)(?P<count>[零〇一二两三四五六七八九十百]+)(?:位|例|名|人|岁|天)
";

static TOKEN: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(PATTERN).ok());
/// `1.`, `2、`, `（3）` at the head of a line.
static LIST: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?m)^[ \t]*(?:[-*•·]\s*)?(?:[(（]([0-9]{1,2})[)）]|([0-9]{1,2})(?:[、)）]|\.(?:[ \t]|$)))").ok()
});

/// The figures of what a tool gave or a person asked.
#[must_use]
pub fn of(text: &str) -> Figures {
    read(&half_width(text))
}

/// The figures of an answer: the numbers of its lists are none.
#[must_use]
pub fn of_answer(text: &str) -> Figures {
    let text = half_width(text);
    let Some(list) = LIST.as_ref() else {
        return read(&text);
    };
    // Only what counts up from one is a list: `35、` at the head of a line is a figure.
    let mut before = 0_u32;
    let without = list.replace_all(&text, |found: &Captures<'_>| {
        let digits = found.get(1).or(found.get(2)).map(|no| no.as_str());
        let no = digits.and_then(|digits| digits.parse().ok()).unwrap_or(0);
        if no == 1 || no == before + 1 {
            before = no;
            return " ".to_owned();
        }
        found.get(0).map_or("", |whole| whole.as_str()).to_owned()
    });
    read(&without)
}

fn read(text: &str) -> Figures {
    let mut figures = Figures::default();
    let Some(token) = TOKEN.as_ref() else {
        return figures;
    };
    for found in token.captures_iter(text) {
        let start = found.get(0).map_or(0, |whole| whole.start());
        take(&mut figures, &found, text.get(..start).unwrap_or_default());
    }
    figures
}

fn take(figures: &mut Figures, found: &Captures<'_>, before: &str) {
    let written = found
        .get(0)
        .map_or("", |whole| whole.as_str())
        .trim()
        .to_owned();
    let part = |name: &str| found.name(name).map(|part| part.as_str());
    let small = |name: &str| part(name).and_then(|digits| digits.parse::<u32>().ok());
    if part("unit").is_some() || part("ordinal").is_some() {
        return;
    }
    if let Some(name) = part("name") {
        if name.bytes().any(|b| b.is_ascii_digit()) || name.len() > 1 {
            figures.names.push(name.to_ascii_uppercase());
        }
        return;
    }
    if let Some(week) = part("week") {
        figures
            .names
            .push(week.to_ascii_uppercase().replace('-', ""));
        return;
    }
    let about = before
        .trim_end()
        .chars()
        .rev()
        .take(2)
        .any(|c| matches!(c, '约' | '≈' | '~'));
    if let Some(digits) = part("number") {
        let tail = part("tail").map(str::trim);
        figures
            .numbers
            .extend(number(&written, digits, tail, about));
        return;
    }
    if let Some(words) = part("hundredths") {
        let digits = chinese(words).map(|n| n.to_string()).unwrap_or_default();
        figures
            .numbers
            .extend(number(&written, &digits, Some("%"), about));
        return;
    }
    if let Some(words) = part("count") {
        // 第三位 is a place, and 一例 is said of anything.
        if part("before") != Some("第") && words != "一" {
            let digits = chinese(words).map(|n| n.to_string()).unwrap_or_default();
            figures
                .numbers
                .extend(number(&written, &digits, None, about));
        }
        return;
    }
    let mut moment = Moment {
        written: written.clone(),
        year: small("y1").or(small("y2")).or(small("y4")),
        month: small("m1")
            .or(small("m2"))
            .or(small("m2b"))
            .or(small("m3"))
            .or(small("m4")),
        day: small("d1").or(small("d3")).or(small("d4")),
        time: small("h").zip(small("min")),
        number: None,
    };
    let alone = part("m4").or(part("d4"));
    if let Some(digits) = alone {
        moment.number = number(&written, digits, None, about);
    }
    match part("not4") {
        Some(_) => figures.numbers.extend(moment.number),
        None => figures.moments.push(moment),
    }
}

fn number(written: &str, digits: &str, tail: Option<&str>, about: bool) -> Option<Number> {
    let plain = digits.replace(',', "");
    let (whole, fraction) = plain.split_once('.').unwrap_or((&plain, ""));
    let mut value: f64 = plain.parse().ok()?;
    let mut normal = whole.trim_start_matches('0').to_owned();
    if normal.is_empty() {
        normal.push('0');
    }
    let fraction_kept = fraction.trim_end_matches('0');
    if !fraction_kept.is_empty() {
        normal.push('.');
        normal.push_str(fraction_kept);
    }
    let times = match tail {
        Some("千") => 1e3,
        Some("万") => 1e4,
        Some("亿") => 1e8,
        _ => 1.0,
    };
    if times > 1.0 {
        value *= times;
        normal = format!("{value}");
    }
    Some(Number {
        written: written.to_owned(),
        digits: normal,
        value,
        decimals: i32::try_from(fraction.len()).unwrap_or(i32::MAX),
        percent: tail == Some("%"),
        about,
    })
}

/// A Chinese numeral up to 999.
fn chinese(words: &str) -> Option<u32> {
    let (mut total, mut digit) = (0_u32, None);
    for c in words.chars() {
        let unit = match c {
            '零' | '〇' => {
                digit = None;
                continue;
            }
            '十' => 10,
            '百' => 100,
            '两' => {
                digit = Some(2);
                continue;
            }
            c => {
                let at = "一二三四五六七八九".chars().position(|one| one == c)?;
                digit = u32::try_from(at).ok().map(|at| at + 1);
                continue;
            }
        };
        total = total.checked_add(digit.take().unwrap_or(1) * unit)?;
    }
    total.checked_add(digit.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::expect_used,
        reason = "a failed expectation is the test's verdict"
    )]
    use super::*;

    fn numbers(text: &str) -> Vec<String> {
        of_answer(text)
            .numbers
            .into_iter()
            .map(|n| n.digits)
            .collect()
    }

    #[test]
    fn the_patterns_compile() {
        assert!(TOKEN.is_some() && LIST.is_some());
    }

    #[test]
    fn quantities_are_read_however_they_are_written() {
        for (text, wanted) in [
            ("平均 35.50 岁", "35.5"),
            ("共 1,234 例", "1234"),
            ("共１２例", "12"),
            ("占 45%", "45"),
            ("约1.2万人", "12000"),
            ("超窗-3 天", "3"),
            ("共三十二例", "32"),
            ("共十二人", "12"),
            ("一百零五例", "105"),
            ("两位患者", "2"),
            ("百分之四十", "40"),
            ("45kg", "45"),
        ] {
            assert_eq!(numbers(text), [wanted], "{text}");
        }
    }

    #[test]
    fn ids_visits_lists_and_units_are_no_quantities() {
        for text in [
            "P001 与 V3、C1D1",
            "1. 男性\n2、女性\n（3）其他\n\n1. 又一",
            "WBC 单位 ×10^9/L，10⁹/L",
            "第3次访视，访视 2，第三位",
            "其中一例",
            "CD4 与 HbA1c",
            "2026-W49",
        ] {
            assert_eq!(numbers(text), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn days_are_days_and_not_three_numbers() {
        for text in [
            "2026-03-02",
            "2026年3月2日",
            "2026/3/2",
            "于 2026.03.02 入组",
            "2026-03-02T08:30:00Z",
        ] {
            let figures = of(text);
            assert!(figures.numbers.is_empty(), "{text}: {figures:?}");
            let day = &figures.moments[0];
            assert_eq!(
                (day.year, day.month, day.day),
                (Some(2026), Some(3), Some(2)),
                "{text}"
            );
        }
    }
}
