//! Dates of birth: a date beside a word that says so. Any other date is a fact of the study and stays.

use std::sync::LazyLock;

use regex::Regex;

use super::{
    folded::Folded,
    kind::{Kind, Pattern, Span},
};

/// A day, a month or a year in the forms people write.
const DATE: &str = r"(?:(?:18|19|20)[0-9]{2} ?(?:[\-/.年] ?[0-9]{1,2} ?(?:[\-/.月] ?[0-9]{1,2}(?: ?日|号)?|月)?|年)|(?:19|20)[0-9]{6}|[0-9]{1,2}[/\-.][0-9]{1,2}[/\-.](?:19|20)[0-9]{2}|(?:19|20)[0-9]{2})";

static AFTER_LABEL: Pattern = LazyLock::new(|| {
    Regex::new(&format!(
        r#"(?i)(?:出生(?:日期|年月日?|时间|年份)?|生日|生于|诞生于|(?-u:\b)DOB(?-u:\b)|(?-u:\b)BRTHDTC?(?-u:\b)|date of birth|birth ?(?:date|day)|(?-u:\b)born(?: on| in)?(?-u:\b))["”』」]?\s*[:=为是于在\s"“]*({DATE})"#
    ))
    .ok()
});
static BEFORE_WORD: Pattern = LazyLock::new(|| {
    Regex::new(&format!(
        r"({DATE}) ?(?:出生|生人|生于|生(?:[,，。;；、)）\s]|$))"
    ))
    .ok()
});

pub(super) const PATTERNS: [&Pattern; 2] = [&AFTER_LABEL, &BEFORE_WORD];

/// All of them in `text`.
pub(super) fn find(text: &Folded, found: &mut Vec<Span>) {
    for pattern in PATTERNS {
        for groups in pattern.iter().flat_map(|p| p.captures_iter(&text.text)) {
            let at = groups
                .get(1)
                .and_then(|m| text.original(m.start(), m.end()));
            found.extend(at.map(|at| (at, Kind::Birth)));
        }
    }
}

/// The forms in which people write the day that an export writes `YYYY-MM-DD`; empty for what is no day.
pub(super) fn forms(exported: &str) -> Vec<String> {
    let day = exported.get(..10).unwrap_or(exported);
    let Ok(day) = chrono::NaiveDate::parse_from_str(day, "%Y-%m-%d") else {
        return Vec::new();
    };
    let mut forms: Vec<String> = [
        "%Y-%m-%d",
        "%Y/%m/%d",
        "%Y.%m.%d",
        "%Y%m%d",
        "%Y年%m月%d日",
        "%Y-%-m-%-d",
        "%Y/%-m/%-d",
        "%Y.%-m.%-d",
        "%Y年%-m月%-d日",
        "%d-%m-%Y",
        "%d/%m/%Y",
        "%m/%d/%Y",
        "%-m/%-d/%Y",
        "%d %b %Y",
        "%d%b%Y",
    ]
    .map(|form| day.format(form).to_string())
    .into();
    forms.sort();
    forms.dedup();
    forms
}
