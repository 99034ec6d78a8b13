//! Telephones as people write them, e-mail, and accounts by the word before them.

use std::sync::LazyLock;

use regex::Regex;

use super::{
    folded::{Folded, is_piece_of_number, stands_alone},
    kind::{Kind, Pattern, Span},
};

/// Eleven digits in one, grouped as people group them, or all apart; with or without the country's code.
static MOBILE: Pattern = LazyLock::new(|| {
    Regex::new(r"(?:(?:\(?\+ ?86\)?|0086|86)[ \-]?)?(?:1[3-9][0-9][ \-.]?[0-9]{4}[ \-.]?[0-9]{4}|1[3-9][0-9]{2}[ \-.]?[0-9]{3}[ \-.]?[0-9]{4}|1[3-9][0-9][ \-.][0-9]{3}[ \-.][0-9]{5}|1[ \-][3-9](?:[ \-][0-9]){9})").ok()
});
/// Area code and number with something between them; codes as China numbers them.
static LANDLINE: Pattern = LazyLock::new(|| {
    Regex::new(r"(?:(?:\+ ?86|0086)[ \-]?\(?0?(?:10|2[0-9]|[3-9][0-9]{2})\)?[ \-]?|\(0(?:10|2[0-9]|[3-9][0-9]{2})\)[ \-]?|0(?:10|2[0-9]|[3-9][0-9]{2})[ \-])[2-9][0-9]{2,3}[ \-]?[0-9]{4}(?:(?:-|转|ext\.?) ?[0-9]{1,6})?").ok()
});
static HOTLINE: Pattern =
    LazyLock::new(|| Regex::new(r"\+[0-9]{1,3}(?:[ \-][0-9]{2,5}){2,4}").ok());
static LABELLED: Pattern = LazyLock::new(|| {
    Regex::new(r"(?i)(?:联系电话|家庭电话|手机号?码?|电话号?码?|联系方式|座机|传真|来电|致电|(?-u:\b)(?:tel(?:ephone)?|phone|mobile|fax)(?-u:\b))(?:\s*(?:no\.?|number))?[\s:=#.为是]*(\+?[(0-9][0-9()\- ]{4,18}[0-9])").ok()
});
static ACCOUNT: Pattern = LazyLock::new(|| {
    Regex::new(r"(?i)(?:微信号?|wechat(?:\s*id)?|weixin)[\s:=#为是]*([A-Za-z][0-9A-Za-z_\-]{5,19})|(?:qq号?)[\s:=#为是]*([1-9][0-9]{4,11})").ok()
});
static EMAIL: Pattern = LazyLock::new(|| {
    Regex::new(r"[A-Za-z0-9][A-Za-z0-9._%+\-]* ?@ ?[A-Za-z0-9](?:[A-Za-z0-9\-]*\.)+[A-Za-z]{2,18}")
        .ok()
});

pub(super) const PATTERNS: [&Pattern; 6] =
    [&MOBILE, &LANDLINE, &HOTLINE, &LABELLED, &ACCOUNT, &EMAIL];

/// All of them in `text`.
pub(super) fn find(text: &Folded, found: &mut Vec<Span>) {
    let mut add = |start, end, kind| found.extend(text.original(start, end).map(|at| (at, kind)));
    for pattern in [&MOBILE, &LANDLINE, &HOTLINE] {
        for m in pattern.iter().flat_map(|p| p.find_iter(&text.text)) {
            if stands_alone(&text.text, m.start(), m.end())
                && !is_piece_of_number(&text.text, m.start(), m.end())
            {
                add(m.start(), m.end(), Kind::Phone);
            }
        }
    }
    for pattern in [&LABELLED, &ACCOUNT] {
        for groups in pattern.iter().flat_map(|p| p.captures_iter(&text.text)) {
            if let Some(value) = groups.iter().skip(1).flatten().next() {
                add(value.start(), value.end(), Kind::Phone);
            }
        }
    }
    for m in EMAIL.iter().flat_map(|p| p.find_iter(&text.text)) {
        add(m.start(), m.end(), Kind::Email);
    }
}
