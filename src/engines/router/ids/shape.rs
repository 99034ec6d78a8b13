//! Whether one candidate is a record id, by its own shape and by what stands beside it.

use super::{Trouble, range::letters_then_digits};
use crate::engines::router::message::patterns;

patterns! {
    /// What names an id beyond doubt, directly before it.
    STRONG = r"(?x)
        (?:(?:^|[^a-z0-9])(?:record[_\ ]?id|usubjid|subjid|subject\ id|patient\ id|id|no\.)|编号
        |筛选号|随机号|入组号|病例号|(?:受试者|患者|病人)号|\#)\s*(?:号|是|为)?\s*[:=]?\s*$";
    /// The nouns for a subject, directly before it.
    NOUN = r"(?:受试者|患者|病人|病例|参与者|参加者|(?:^|[^a-z])(?:subjects?|patients?|pts?|records?))\s*[:#]?\s*$";
    /// The verbs that take a record as their object, directly before it.
    VERB = r"(?:质控|质检|检查|校验|核查|核对|复核|入排|跑|查|(?:^|[^a-z])(?:qc|check|validate|verify|run))\s*(?:一?下|[一两]遍)?\s*$";
    /// What makes the number before it a quantity, a date or a place.
    UNIT = r"(?x)
        ^\s*(?:[.%‰℃°+×*]|例|个|名(?:[^字单]|$)|位|人|周(?:[^报期]|$)|岁|天|日(?:[^期]|$)|次|月
        |年(?:[^龄]|$)|点|时(?:[^间]|$)|分(?:[^析组]|$)|秒|小时|刻|条|级|度|倍|中心|楼|床|版|期|台
        |份|页|科|项(?:[^目]|$)|种|组|疗程|轮|支|片|粒|盒|元|块|毫|微|千克|公斤|斤|厘米|米|(?:kg|mg
        |ug|g|ml|mmhg|mmol|umol|cm|mm|bpm|iu|u/l|h|hrs?|min|days?|weeks?|months?|years?|y/o|am
        |pm)(?:[^a-z0-9]|$))";
    /// A phase or a grade, where a token has letters: P2期.
    PHASE = r"^(?:期|级)";
    /// 号 as in 12号病人, and not as in 12号楼 or 12号之前.
    NUMBERED = r"^\s*号";
    NUMBERED_OTHER = r"^\s*号(?:中心|楼|床|机|线|药|门|厅|会|之?前|以前|之?后|以后|上午|下午|早|晚|中午|来|到|开|回|访视|随访|入|出|是周|截止|锁|那天|当天)";
    /// A day of the month.
    MONTH = r"(?:月|本月|这个月|上个月|下个月|今天|明天|昨天|-|/)\s*$";
    /// Where an unmarked number may stand as the subject of a sentence.
    SUBJECT_BEFORE = r"(?:^|[,。;:、?!\s]|查一下|查下|看看|看一下|看下|告诉我|给|对|把|和|跟|那|请)$";
    SUBJECT_AFTER = r"^\s*(?:的|怎么样|呢|有没有|有几|是不是|是否|什么时候)";
    DATE_START = r"^(?:19|20)\d\d-(?:0?[1-9]|1[0-2])(?:-|$)";
    /// 2026-W48, 2026-Q3.
    WEEK = r"^(?:19|20)\d\d-?[wq]\d{1,2}$";
    DATE_END = r"^(?:[0-2]?\d|3[01])-(?:0?[1-9]|1[0-2])-(?:19|20)\d\d$";
    MONTH_DAY = r"^(?:0?[1-9]|1[0-2])-(?:0?[1-9]|[12]\d|3[01])$";
    PHONE = r"^(?:1[3-9]\d-?\d{4}-?\d{4}|0\d{2,3}-\d{7,8}|400-\d{3}-?\d{4})$";
    QUOTED = "[「『\"'“《\\[]$";
}

/// What stands beside a candidate.
pub(super) struct Context<'a> {
    pub before: &'a str,
    pub after: &'a str,
    /// It goes on a list of ids.
    pub listed: bool,
    /// It ends a range.
    pub spanned: bool,
}

impl Context<'_> {
    fn strong(&self) -> bool {
        STRONG.is_match(self.before)
    }
    fn marked(&self) -> bool {
        self.strong() || NOUN.is_match(self.before) || VERB.is_match(self.before)
    }
    fn unit(&self) -> bool {
        UNIT.is_match(self.after) && !self.sentence_end()
    }
    /// A full stop after the token, not a decimal point.
    fn sentence_end(&self) -> bool {
        self.after
            .strip_prefix('.')
            .is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric()))
    }
    /// Inside a decimal, a time, a date with slashes, an address, a file name.
    fn glued(&self) -> bool {
        let mut back = self.before.chars().rev();
        let glued_before = match back.next() {
            Some('@' | '<' | '>' | '≥' | '≤' | '+') => true,
            Some('.') => !self.strong() && back.next().is_some_and(|c| c.is_ascii_alphanumeric()),
            Some(':') => back.next().is_some_and(|c| c.is_ascii_digit()),
            Some('/') => {
                !self.listed
                    && back
                        .next()
                        .is_some_and(|c| c.is_ascii_alphanumeric() || c == '/')
            }
            _ => false,
        };
        let mut front = self.after.chars();
        let glued_after = match front.next() {
            Some('@' | '%') => true,
            Some('.') => front.next().is_some_and(|c| c.is_ascii_alphanumeric()),
            Some(':' | '/') => front.next().is_some_and(|c| c.is_ascii_digit()),
            _ => false,
        };
        glued_before || glued_after
    }
}

/// The id a token stands for, if it stands for one.
pub(super) fn read(token: &str, context: &Context) -> Option<(String, Option<Trouble>)> {
    if token.len() > 40 || !token.bytes().any(|b| b.is_ascii_digit()) || context.glued() {
        return None;
    }
    for word in ["id", "qc", "check"] {
        let Some(rest) = token.strip_prefix(word) else {
            continue;
        };
        let rest = rest.trim_start_matches(['_', '-']);
        let numeric = rest.starts_with(|c: char| c.is_ascii_digit());
        if numeric || word != "id" && shaped(rest, true) {
            return (!context.unit()).then(|| (rest.to_owned(), None));
        }
    }
    let parts: Vec<&str> = token.split(['-', '_']).collect();
    let all_digits = token.bytes().all(|b| !b.is_ascii_alphabetic());
    if all_digits {
        return match parts.as_slice() {
            [_] => number(token, context).then(|| (token.to_owned(), None)),
            [first, second] => pair(token, first, second, context),
            _ => several(token, &parts, context).then(|| (token.to_owned(), None)),
        };
    }
    if DATE_START.is_match(token) || WEEK.is_match(token) {
        return None;
    }
    let marked = context.marked() || context.listed || context.spanned;
    let named = context.strong() && !quantity(token) || shaped(token, marked);
    if !named || PHASE.is_match(context.after) {
        return None;
    }
    if let [first, second] = parts.as_slice()
        && second.bytes().all(|b| b.is_ascii_digit())
        && let Some((prefix, digits)) = letters_then_digits(first)
        && !prefix.is_empty()
        && is_ambiguous(digits, second)
    {
        let trouble = Trouble::IdOrRange {
            id: token.to_ascii_uppercase(),
            from: first.to_ascii_uppercase(),
            to: format!("{prefix}{second}").to_ascii_uppercase(),
        };
        return Some((
            token.to_owned(),
            (!QUOTED.is_match(context.before)).then_some(trouble),
        ));
    }
    Some((token.to_owned(), None))
}

/// `12`, `001`, `20261130`.
fn number(token: &str, context: &Context) -> bool {
    let is_year = token.len() == 4 && (token.starts_with("19") || token.starts_with("20"));
    let is_phone = PHONE.is_match(token);
    if context.strong() {
        return !context.unit();
    }
    if context.unit() || is_phone || is_year || token.len() > 12 || context.before.ends_with('第')
    {
        return false;
    }
    let is_day = token.len() == 8 && (token.starts_with("19") || token.starts_with("20"));
    if is_day {
        return false;
    }
    if NUMBERED.is_match(context.after) {
        return !NUMBERED_OTHER.is_match(context.after) && !MONTH.is_match(context.before);
    }
    context.marked()
        || context.listed
        || context.spanned
        || (token.starts_with('0') && (3..=8).contains(&token.len()))
        || ((3..=6).contains(&token.len())
            && SUBJECT_BEFORE.is_match(context.before)
            && SUBJECT_AFTER.is_match(context.after))
}

/// `331-1`, `01-002`, and not `3-5`, `18-75`, `11-30`, `2026-11`, `010-12345678`.
fn pair(
    token: &str,
    first: &str,
    second: &str,
    context: &Context,
) -> Option<(String, Option<Trouble>)> {
    let never = PHONE.is_match(token) || DATE_START.is_match(token) || context.unit();
    let day = MONTH_DAY.is_match(token) && !context.strong() && !NOUN.is_match(context.before);
    if never || day {
        return None;
    }
    let marked = context.marked() || context.listed || context.spanned;
    let descending = match (first.parse::<u64>(), second.parse::<u64>()) {
        (Ok(a), Ok(b)) => first.len() >= 3 && b < a,
        _ => false,
    };
    let padded = second.len() >= 2 && second.starts_with('0');
    if !(marked || (first.len() >= 2 && (padded || descending))) {
        return None;
    }
    let trouble = is_ambiguous(first, second).then(|| Trouble::IdOrRange {
        id: token.to_owned(),
        from: first.to_owned(),
        to: second.to_owned(),
    });
    let trouble = trouble.filter(|_| !QUOTED.is_match(context.before));
    Some((token.to_owned(), trouble))
}

/// Whether `001-005` could be a range: same width of at least three digits, ascending.
fn is_ambiguous(first: &str, second: &str) -> bool {
    first.len() == second.len() && first.len() >= 3 && first < second
}

/// `01-701-1015`, and not a date or a phone.
fn several(token: &str, parts: &[&str], context: &Context) -> bool {
    let digits: usize = parts.iter().map(|part| part.len()).sum();
    let short = parts.iter().all(|part| part.len() <= 2);
    !(DATE_START.is_match(token)
        || DATE_END.is_match(token)
        || PHONE.is_match(token)
        || context.unit()
        || digits > 20
        || (short && !context.strong()))
}

/// `5mg`, `12h`: a number with a unit.
fn quantity(token: &str) -> bool {
    let letters = token.trim_start_matches(|c: char| c.is_ascii_digit());
    letters.len() < token.len()
        && !letters.is_empty()
        && letters.bytes().all(|b| b.is_ascii_alphabetic())
}

/// Prefixes that name subjects even before one or two digits.
const SUBJECT_PREFIXES: [&str; 10] = [
    "p", "pt", "pat", "patient", "sub", "subj", "subject", "scr", "rand", "s",
];
/// Visits, cycles, stages, grades, markers, drugs, documents: never subjects, however many digits.
const OTHER_PREFIXES: [&str; 46] = [
    "v", "visit", "w", "wk", "week", "c", "cycle", "d", "day", "month", "t", "n", "m", "g",
    "grade", "covid", "sars", "il", "cd", "pd", "pdl", "ctcae", "ecog", "her", "ca", "ki",
    "recist", "ich", "icf", "crf", "sop", "ver", "rev", "doc", "utf", "iso", "gpt", "spo", "ft",
    "tnf", "ae", "sae", "ph", "page", "q", "f",
];

/// Whether a token with letters looks like a subject's id.
fn shaped(token: &str, marked: bool) -> bool {
    let mut parts = Vec::new();
    for part in token.split(['-', '_']) {
        match letters_then_digits(part) {
            Some((letters, digits)) if letters.len() <= 8 && digits.len() <= 10 => {
                parts.push((letters, digits));
            }
            _ => return false,
        }
    }
    let (Some((prefix, first_digits)), Some((_, last_digits))) =
        (parts.first().copied(), parts.last().copied())
    else {
        return false;
    };
    if last_digits.is_empty() {
        return false;
    }
    let digits: usize = parts.iter().map(|(_, digits)| digits.len()).sum();
    if parts.len() == 1 && prefix.is_empty() {
        return false;
    }
    // A site such as C01 or T2 may head an id: C01-001.
    let other = OTHER_PREFIXES.contains(&prefix);
    if other {
        return parts.len() > 1
            && first_digits.len() >= 2
            && prefix.len() == 1
            && last_digits.len() >= 3
            || parts.len() == 1 && prefix.len() == 1 && first_digits.len() >= 3;
    }
    match digits {
        0 => false,
        1 => prefix == "p" || marked && SUBJECT_PREFIXES.contains(&prefix),
        2 => SUBJECT_PREFIXES.contains(&prefix) || parts.len() > 1 && marked,
        _ => prefix.len() <= 8 && (parts.len() > 1 || first_digits.len() >= 3),
    }
}
