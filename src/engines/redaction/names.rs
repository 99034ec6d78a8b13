//! What somebody is called, by the words around it: a label (姓名：), a role before it (患者张三), a title after
//! it (张三女士). A name that stands alone is only found when the study's own data knows it, see
//! [`super::known`]. A surname without a given name (张某某, 张女士) names nobody and stays.

use std::sync::LazyLock;

use regex::Regex;

use super::{
    folded::{Folded, after},
    kind::{Kind, Pattern, Span},
    surnames::{ALSO_WORDS, BEFORE_SURNAMES, COMPOUND, GOES_ON, NOT_IN_NAMES, NOT_NAMES, SINGLE},
};

/// After the label, whatever the surname: also 阿依古丽·买买提 and John Smith.
static LABELLED: Pattern = LazyLock::new(|| {
    Regex::new(r#"(?i)(?:姓 ?名(?:缩写)?|患者名称?|名叫|联系人|监护人|法定代理人|(?:患者|受试者|病人|家属|研究者|医生)?(?:签名|签字)|(?-u:\b)(?:(?:patient|subject|full|first|last|given|family|guardian)[ _]?)?name(?-u:\b))(?:\([^)\n]{0,12}\))?["”』」]?\s*[:=]\s*["“『「]?((?:[\p{Han}] ?){2,4}(?:·[\p{Han}]{1,10}){0,3}|[A-Za-z][A-Za-z'\-]+(?:[ ,]{1,2}[A-Za-z][A-Za-z'.\-]*){0,3})"#).ok()
});
/// Words a name follows at once.
static ROLE: Pattern = LazyLock::new(|| {
    Regex::new(r"(?:患者|病人|受试者|患儿|病患|孕妇|产妇|老人|志愿者|供者|家属|家长|母亲|父亲|妻子|丈夫|儿子|女儿|配偶|本人|联系人|姓名|名叫|我叫|我是|叫做|其母|其父|其子|其女|其妻|其夫)[:,\s“「]*").ok()
});
/// Words that follow a name at once.
static TITLE: Pattern = LazyLock::new(|| {
    Regex::new(r"\s?(?:先生|女士|小姐|同志|阿姨|叔叔|大爷|大妈|大叔|大娘|奶奶|爷爷|太太|夫人|老师|医生|医师|主任|护士长?|教授|院长)").ok()
});
static UNNAMED: Pattern = LazyLock::new(|| {
    Regex::new(r"^(?:某|先生|女士|小姐|不详|未知|同前|同上|略|保密|本人|无|已隐去|未提供|拒绝|见|待|未|否|是|有|n/?a$|unknown|none|null|nil|string|text)").ok()
});

pub(super) const PATTERNS: [&Pattern; 4] = [&LABELLED, &ROLE, &TITLE, &UNNAMED];

/// All of them in `text`.
pub(super) fn find(text: &Folded, found: &mut Vec<Span>) {
    let mut add = |start, end| found.extend(text.original(start, end).map(|at| (at, Kind::Name)));
    let whole = &text.text;
    for name in LABELLED
        .iter()
        .flat_map(|p| p.captures_iter(whole))
        .filter_map(|groups| groups.get(1))
    {
        let shown = name.as_str().trim_end();
        let is_unnamed = UNNAMED.as_ref().is_some_and(|p| p.is_match(shown))
            || UNNAMED
                .as_ref()
                .is_some_and(|p| p.is_match(&shown.to_lowercase()));
        let is_masked = shown.contains('某');
        // {"name": "search_records"}: what programs are called, also when a model writes a call as text. Taken for
        // a person it would stand in the request's own words, and no request would ever leave again.
        let is_word = shown.chars().all(|c| c.is_ascii_lowercase());
        if is_unnamed || is_masked || is_word {
            continue;
        }
        let length = labelled_length(shown);
        add(name.start(), name.start() + length);
    }
    for role in ROLE.iter().flat_map(|p| p.find_iter(whole)) {
        if let Some(length) = name_at(&whole[role.end()..], false) {
            add(role.end(), role.end() + length);
        }
    }
    for title in TITLE.iter().flat_map(|p| p.find_iter(whole)) {
        if let Some(start) = name_before(whole, title.start()) {
            add(start, title.start());
        }
    }
}

/// Behind a label the name ends where a known surname's name would; with another surname it is all of it.
fn labelled_length(shown: &str) -> usize {
    let is_han = shown.chars().all(|c| !c.is_ascii() && c != '·');
    match surname(shown, true) {
        Some(_) if is_han => name_at(shown, true).unwrap_or(shown.len()),
        _ => shown.len(),
    }
}

/// The surname `text` begins with.
fn surname(text: &str, also_words: bool) -> Option<&str> {
    if let Some(compound) = COMPOUND.iter().find(|name| text.starts_with(**name)) {
        return Some(compound);
    }
    let first = text.chars().next()?;
    let counts = SINGLE.contains(first) && (also_words || !ALSO_WORDS.contains(first));
    counts.then(|| &text[..first.len_utf8()])
}

/// The length of the name `text` begins with: a surname and one or two characters that names are made of. A
/// surname that is also a word needs, without a label, a sentence that goes on behind a name.
fn name_at(text: &str, labelled: bool) -> Option<usize> {
    if NOT_NAMES.iter().any(|word| text.starts_with(word)) {
        return None;
    }
    let surname = surname(text, true)?;
    let mut end = surname.len();
    for c in text[surname.len()..].chars().take(2) {
        if !is_han(c) || NOT_IN_NAMES.contains(c) {
            break;
        }
        end += c.len_utf8();
    }
    let is_word = self::surname(text, false).is_none();
    let goes_on = || after(text, end).is_none_or(|c| !is_han(c) || GOES_ON.contains(c));
    let is_masked = text[surname.len()..].starts_with(['某', '×', '*', 'X', 'x']);
    (end > surname.len() && !is_masked && (labelled || !is_word || goes_on())).then_some(end)
}

/// Where the name begins that ends at `end`: the longest that is one.
fn name_before(text: &str, end: usize) -> Option<usize> {
    let starts: Vec<usize> = text[..end]
        .char_indices()
        .rev()
        .take(4)
        .map(|(at, _)| at)
        .collect();
    starts.into_iter().rev().find(|start| {
        let candidate = &text[*start..end];
        let Some(surname) = surname(candidate, true) else {
            return false;
        };
        let given: Vec<char> = candidate[surname.len()..].chars().collect();
        let other = given.len() == 1 && given.iter().all(|c| SINGLE.contains(*c));
        if other && BEFORE_SURNAMES.contains(surname) {
            return false;
        }
        (1..=2).contains(&given.len())
            && given
                .iter()
                .all(|c| is_han(*c) && !NOT_IN_NAMES.contains(*c))
            && !NOT_NAMES.iter().any(|word| candidate.starts_with(word))
            && !TITLES_INSIDE.iter().any(|word| candidate.contains(word))
    })
}

/// 主治医生 and its like are no names.
const TITLES_INSIDE: [&str; 8] = [
    "主治", "主管", "住院", "责任", "值班", "管床", "全科", "专科",
];

fn is_han(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{9fff}' | '\u{20000}'..='\u{323af}')
}
