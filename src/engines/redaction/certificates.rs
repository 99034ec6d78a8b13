//! Numbers that prove themselves: identity cards by region, date and check digit, bank cards by their sum;
//! others by the words before them.
//!
//! Source of the identity card's structure: GB 11643 (region 6, birth date 8, sequence 3, check 1; before
//! 1999 region 6, birth date 6, sequence 3).

use std::sync::LazyLock;

use chrono::NaiveDate;
use regex::Regex;

use super::{
    folded::{Folded, before, stands_alone},
    kind::{Kind, Pattern, Span},
};

/// The first two digits of a region: provinces, 71 Taiwan, 81 to 83 Hong Kong, Macau and Taiwan residents.
const PROVINCES: [&str; 35] = [
    "11", "12", "13", "14", "15", "21", "22", "23", "31", "32", "33", "34", "35", "36", "37", "41",
    "42", "43", "44", "45", "46", "50", "51", "52", "53", "54", "61", "62", "63", "64", "65", "71",
    "81", "82", "83",
];

/// Up to one blank or dash between any two of the digits.
static CARD_18: Pattern =
    LazyLock::new(|| Regex::new(r"[1-8](?:[ \-]?[0-9]){16}[ \-]?[0-9Xx*]").ok());
static CARD_15: Pattern = LazyLock::new(|| Regex::new(r"[1-8](?:[ \-]?[0-9]){14}").ok());
static BANK: Pattern = LazyLock::new(|| Regex::new(r"[3-6](?:[ \-]?[0-9]){15,18}").ok());
static BANK_LABELLED: Pattern = LazyLock::new(|| {
    Regex::new(r"(?i)(?:银行卡号?|银行账[户号]|开户账号|储蓄卡号?|bank\s*(?:card|account)(?:\s*(?:no\.?|number))?)[\s:=#是为]*([0-9](?:[ \-]?[0-9]){9,24})").ok()
});
static PASSPORT: Pattern =
    LazyLock::new(|| Regex::new(r"(?:[EGDSPH][0-9]{8}|E[A-HJ-NP-Z][0-9]{7})").ok());
/// Written with its check digit in brackets, an identity card of Hong Kong is unmistakable.
static HONG_KONG: Pattern = LazyLock::new(|| Regex::new(r"[A-Z]{1,2}[0-9]{6} ?\([0-9A]\)").ok());
static LABELLED: Pattern = LazyLock::new(|| {
    Regex::new(r"(?i)(?:身份证件?(?:号码?)?|公民身份号码|证件号码?|护照(?:号码?)?|(?:港澳|台湾|往来)[\p{Han}]{0,10}(?:通行证|居住证)(?:号码?)?|通行证(?:号码?)?|回乡证(?:号码?)?|台胞证(?:号码?)?|居住证(?:号码?)?|军官证(?:号码?)?|士兵证(?:号码?)?|出生医学证明(?:编号|号)?|驾驶证(?:号码?)?|passport(?:\s*(?:no\.?|number))?|id\s*(?:card|number)(?:\s*(?:no\.?|number))?)[\s:=#是为]*([A-Za-z\p{Han}]{0,4}[0-9][0-9A-Za-z\-() ]{4,24}[0-9A-Za-z)]|[A-Za-z]{1,4}[0-9]{5,12})").ok()
});
static BATCH: Pattern =
    LazyLock::new(|| Regex::new(r"(?i)(?:批号|批次|lot|batch)[\s:=#.no号为是]*$").ok());

pub(super) const PATTERNS: [&Pattern; 8] = [
    &CARD_18,
    &CARD_15,
    &BANK,
    &BANK_LABELLED,
    &PASSPORT,
    &HONG_KONG,
    &LABELLED,
    &BATCH,
];

/// All of them in `text`.
pub(super) fn find(text: &Folded, found: &mut Vec<Span>) {
    let mut add = |start, end, kind| found.extend(text.original(start, end).map(|at| (at, kind)));
    let whole = |pattern: &'static Pattern| pattern.iter().flat_map(|p| starts(p, &text.text));
    for (start, end) in whole(&CARD_18) {
        let number = digits(&text.text[start..end]);
        if alone(&text.text, start, end) && is_card_18(&number) {
            add(start, end, Kind::Certificate);
        }
    }
    for (start, end) in whole(&CARD_15) {
        let number = digits(&text.text[start..end]);
        if alone(&text.text, start, end) && is_card_15(&number) {
            add(start, end, Kind::Certificate);
        }
    }
    for (start, end) in whole(&BANK) {
        let number = digits(&text.text[start..end]);
        let is_bank =
            number.starts_with("62") || number.starts_with('4') || number.starts_with('5');
        if alone(&text.text, start, end) && is_bank && has_luhn_sum(&number) {
            add(start, end, Kind::Bank);
        }
    }
    for (start, end) in whole(&PASSPORT) {
        let digits = &text.text[start + 1..end];
        let is_lot = BATCH
            .as_ref()
            .is_some_and(|p| p.is_match(tail(&text.text, start)));
        // A letter before a day of this century is how lots are numbered.
        let is_day = digits.starts_with("20") && day(digits).is_some();
        if stands_alone(&text.text, start, end) && !is_lot && !is_day {
            add(start, end, Kind::Certificate);
        }
    }
    for (start, end) in whole(&HONG_KONG) {
        if stands_alone(&text.text, start, end) {
            add(start, end, Kind::Certificate);
        }
    }
    for (pattern, kind) in [(&BANK_LABELLED, Kind::Bank), (&LABELLED, Kind::Certificate)] {
        let Some(pattern) = pattern.as_ref() else {
            continue;
        };
        for value in pattern.captures_iter(&text.text).filter_map(|c| c.get(1)) {
            let value_text = value.as_str().trim_end();
            add(value.start(), value.start() + value_text.len(), kind);
        }
    }
}

/// Every place a pattern matches at, overlapping ones too: in a row of numbers the first match may swallow
/// the beginning of the next.
fn starts<'t>(pattern: &'t Regex, text: &'t str) -> impl Iterator<Item = (usize, usize)> + 't {
    let mut at = 0;
    std::iter::from_fn(move || {
        let found = pattern.find_at(text, at)?;
        at = found.start()
            + text[found.start()..]
                .chars()
                .next()
                .map_or(1, char::len_utf8);
        Some((found.start(), found.end()))
    })
}

/// Not a piece of a longer number or word, and not the fraction of a decimal.
fn alone(text: &str, start: usize, end: usize) -> bool {
    let decimal = before(text, start) == Some('.')
        && text[..start - 1].ends_with(|c: char| c.is_ascii_digit());
    stands_alone(text, start, end) && !decimal
}

/// The last few characters before `at`.
pub(super) fn tail(text: &str, at: usize) -> &str {
    let from = text[..at]
        .char_indices()
        .rev()
        .take(12)
        .last()
        .map_or(at, |(i, _)| i);
    &text[from..at]
}

fn digits(text: &str) -> String {
    text.chars().filter(char::is_ascii_alphanumeric).collect()
}

fn day(digits: &str) -> Option<NaiveDate> {
    NaiveDate::parse_from_str(digits, "%Y%m%d").ok()
}

fn has_region(number: &str) -> bool {
    number
        .get(..2)
        .is_some_and(|province| PROVINCES.contains(&province))
}

/// By region and birth date. A wrong check digit is a slip of the pen: the number still names somebody.
pub(super) fn is_card_18(number: &str) -> bool {
    let born = number.get(6..14).and_then(day);
    let in_range = number
        .get(6..8)
        .is_some_and(|century| matches!(century, "18" | "19" | "20"));
    number.len() == 18 && has_region(number) && in_range && born.is_some()
        || number.len() == 18
            && check_digit(number) == number.chars().last().map(|c| c.to_ascii_uppercase())
}

/// The check digit of the first seventeen; ISO 7064 MOD 11-2.
pub(super) fn check_digit(number: &str) -> Option<char> {
    const WEIGHTS: [u32; 17] = [7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2];
    let mut sum = 0;
    for (weight, c) in WEIGHTS.iter().zip(number.chars()) {
        sum += weight * c.to_digit(10)?;
    }
    "10X98765432".chars().nth(usize::try_from(sum % 11).ok()?)
}

fn is_card_15(number: &str) -> bool {
    let born = number.get(6..12).and_then(|born| day(&format!("19{born}")));
    number.len() == 15 && has_region(number) && born.is_some()
}

/// The sum of bank cards (ISO/IEC 7812, Luhn).
fn has_luhn_sum(number: &str) -> bool {
    let sum: u32 = number
        .chars()
        .rev()
        .filter_map(|c| c.to_digit(10))
        .enumerate()
        .map(|(at, digit)| match at % 2 {
            0 => digit,
            _ => digit * 2 / 10 + digit * 2 % 10,
        })
        .sum();
    sum.is_multiple_of(10)
}
