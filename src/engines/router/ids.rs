//! Record ids in the shapes people write, and only those: not dates, ages, doses, visits, phones, times.
//!
//! A run of ASCII letters and digits, joined by `-` or `_`, is a candidate; its own shape and what stands
//! beside it decide. Ids come out upper-case and otherwise as written.

use super::message::{head, patterns, tail};

/// At most so many ids come out of a range such as `P001到P005`.
pub(super) const MAX_RANGE: u64 = 50;

/// A place in the message that names records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mention {
    /// First byte, in the folded text.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
    /// The records; empty exactly when there is `trouble`.
    pub ids: Vec<String>,
    /// Why the place can't be read without asking.
    pub trouble: Option<Trouble>,
}

/// A range that must be asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Trouble {
    /// More than [`MAX_RANGE`] records.
    TooMany {
        from: String,
        to: String,
        count: u64,
    },
    /// The ends don't make a range (`P005到P001`, `P001到S009`).
    NoRange { from: String, to: String },
    /// `001-005` may be one id or five.
    IdOrRange {
        id: String,
        from: String,
        to: String,
    },
}

patterns! {
    /// A candidate.
    TOKEN = r"[a-z0-9]+(?:[-_][a-z0-9]+)*";
    /// What names an id beyond doubt, directly before it.
    STRONG = r"(?:(?:^|[^a-z0-9])(?:record[_ ]?id|usubjid|subjid|subject id|patient id|id|no\.)|编号|筛选号|随机号|入组号|病例号|(?:受试者|患者|病人)号|#)\s*(?:号|是|为)?\s*[:=]?\s*$";
    /// The nouns for a subject, directly before it.
    NOUN = r"(?:受试者|患者|病人|病例|参与者|参加者|(?:^|[^a-z])(?:subjects?|patients?|pts?|records?))\s*[:#]?\s*$";
    /// The verbs that take a record as their object, directly before it.
    VERB = r"(?:质控|质检|检查|校验|核查|核对|复核|入排|跑|查|(?:^|[^a-z])(?:qc|check|validate|verify|run))\s*(?:一?下|[一两]遍)?\s*$";
    /// What makes the number before it a quantity, a date or a place.
    UNIT = r"^\s*(?:[.%‰℃°+×*]|例|个|名(?:[^字单]|$)|位|人|周(?:[^报期]|$)|岁|天|日(?:[^期]|$)|次|月|年(?:[^龄]|$)|点|时(?:[^间]|$)|分(?:[^析组]|$)|秒|小时|刻|条|级|度|倍|中心|楼|床|版|期|台|份|页|科|项(?:[^目]|$)|种|组|疗程|轮|支|片|粒|盒|元|块|毫|微|千克|公斤|斤|厘米|米|(?:kg|mg|ug|g|ml|mmhg|mmol|umol|cm|mm|bpm|iu|u/l|h|hrs?|min|days?|weeks?|months?|years?|y/o|am|pm)(?:[^a-z0-9]|$))";
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
    /// What joins the members of a list.
    JOINT = r"^\s*(?:[、,/&]|和|与|及|跟|以及|还有|and)?\s*(?:和|与|及|and)?\s*(?:(?:受试者|患者|病人|编号|id)\s*[:=]?)?\s*$";
    /// What joins the ends of a range.
    SPAN = r"^\s*(?:到|至|直到|一直到|~|-{1,2}|to|through)\s*(?:受试者|患者|病人)?\s*$";
    DATE_START = r"^(?:19|20)\d\d-(?:0?[1-9]|1[0-2])(?:-|$)";
    /// 2026-W48, 2026-Q3.
    WEEK = r"^(?:19|20)\d\d-?[wq]\d{1,2}$";
    DATE_END = r"^(?:[0-2]?\d|3[01])-(?:0?[1-9]|1[0-2])-(?:19|20)\d\d$";
    MONTH_DAY = r"^(?:0?[1-9]|1[0-2])-(?:0?[1-9]|[12]\d|3[01])$";
    PHONE = r"^(?:1[3-9]\d-?\d{4}-?\d{4}|0\d{2,3}-\d{7,8}|400-\d{3}-?\d{4})$";
    QUOTED = "[「『\"'“《\\[]$";
}

/// The places of `plain` (folded text) that name records, in order, none overlapping.
pub(super) fn mentions(plain: &str) -> Vec<Mention> {
    let mut found: Vec<Mention> = Vec::new();
    for token in TOKEN.find_iter(plain) {
        let before = plain.get(..token.start()).unwrap_or_default();
        let after = plain.get(token.end()..).unwrap_or_default();
        let previous = found.last();
        let between = previous.and_then(|m| plain.get(m.end..token.start()));
        let listed = between.is_some_and(|gap| JOINT.is_match(gap));
        let spanned = between.is_some_and(|gap| SPAN.is_match(gap));
        let context = Context {
            before: tail(before, 16),
            after: head(after, 8),
            listed,
            spanned,
        };
        let Some((text, trouble)) = read(token.as_str(), &context) else {
            continue;
        };
        let start = token.end() - text.len();
        if spanned && let Some(open) = found.pop() {
            found.push(close_range(open, &text, token.end()));
            continue;
        }
        found.push(match trouble {
            Some(trouble) => Mention {
                start,
                end: token.end(),
                ids: Vec::new(),
                trouble: Some(trouble),
            },
            None => inner_range(&text, start, token.end()).unwrap_or_else(|| Mention {
                start,
                end: token.end(),
                ids: vec![text.to_ascii_uppercase()],
                trouble: None,
            }),
        });
    }
    found
}

struct Context<'a> {
    before: &'a str,
    after: &'a str,
    listed: bool,
    spanned: bool,
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
fn read(token: &str, context: &Context) -> Option<(String, Option<Trouble>)> {
    if token.len() > 40 || !token.bytes().any(|b| b.is_ascii_digit()) || context.glued() {
        return None;
    }
    for word in ["id", "qc", "check"] {
        let Some(rest) = token.strip_prefix(word) else {
            continue;
        };
        let rest = rest.trim_start_matches(['_', '-']);
        let numeric = rest.starts_with(|c: char| c.is_ascii_digit());
        if word == "id" && numeric || word != "id" && (numeric || shaped(rest, true)) {
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

fn letters_then_digits(part: &str) -> Option<(&str, &str)> {
    let at = part
        .find(|c: char| c.is_ascii_digit())
        .unwrap_or(part.len());
    let (letters, digits) = part.split_at_checked(at)?;
    digits
        .bytes()
        .all(|b| b.is_ascii_digit())
        .then_some((letters, digits))
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

/// `P001-P005` written as one token.
fn inner_range(text: &str, start: usize, end: usize) -> Option<Mention> {
    let (first, second) = text.split_once('-')?;
    let (a, a_digits) = letters_then_digits(first)?;
    let (b, b_digits) = letters_then_digits(second)?;
    if a.is_empty() || a != b || a_digits.is_empty() || b_digits.is_empty() {
        return None;
    }
    Some(range(first, second, start, end))
}

/// The mention from `open`'s last id to `to`.
fn close_range(mut open: Mention, to: &str, end: usize) -> Mention {
    let Some(from) = open.ids.pop() else {
        open.end = end;
        return open;
    };
    let closed = range(&from.to_ascii_lowercase(), to, open.start, end);
    if closed.trouble.is_some() {
        return closed;
    }
    open.ids.extend(closed.ids);
    open.end = end;
    open
}

/// Every id from `from` to `to`; the last run of digits counts up. `to` may leave out what stays the same.
fn range(from: &str, to: &str, start: usize, end: usize) -> Mention {
    let (stem, low) = split_counter(from);
    let (to_stem, high) = split_counter(to);
    let trouble = |trouble| Mention {
        start,
        end,
        ids: Vec::new(),
        trouble: Some(trouble),
    };
    let no_range = || Trouble::NoRange {
        from: from.to_ascii_uppercase(),
        to: to.to_ascii_uppercase(),
    };
    let same_stem = stem == to_stem || to_stem.is_empty();
    let padded = low.starts_with('0') || high.starts_with('0');
    let same_width = low.len() == high.len() || !padded;
    let (Ok(first), Ok(last)) = (low.parse::<u64>(), high.parse::<u64>()) else {
        return trouble(no_range());
    };
    if !same_stem || !same_width || last <= first {
        return trouble(no_range());
    }
    let count = last - first + 1;
    if count > MAX_RANGE {
        return trouble(Trouble::TooMany {
            from: from.to_ascii_uppercase(),
            to: format!("{stem}{high}").to_ascii_uppercase(),
            count,
        });
    }
    let width = low.len();
    Mention {
        start,
        end,
        ids: (first..=last)
            .map(|n| format!("{stem}{n:0width$}").to_ascii_uppercase())
            .collect(),
        trouble: None,
    }
}

fn split_counter(id: &str) -> (&str, &str) {
    let at = id
        .rfind(|c: char| !c.is_ascii_digit())
        .map_or(0, |at| at + 1);
    id.split_at_checked(at).unwrap_or((id, ""))
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::expect_used,
        reason = "a failed expectation is the test's verdict"
    )]
    use super::*;
    use crate::engines::router::message::Message;

    fn ids(text: &str) -> Vec<String> {
        mentions(Message::new(text).plain())
            .into_iter()
            .flat_map(|m| m.ids)
            .collect()
    }

    fn trouble(text: &str) -> Option<Trouble> {
        mentions(Message::new(text).plain())
            .into_iter()
            .find_map(|m| m.trouble)
    }

    #[test]
    fn every_pattern_compiles() {
        compile_all();
    }

    #[test]
    fn every_shape_people_write_is_an_id() {
        for (text, expected) in [
            ("质控 ID=001", "001"),
            ("质控id：001", "001"),
            ("质控ＩＤ＝００１", "001"),
            ("id 001 怎么样", "001"),
            ("ID001 质控", "001"),
            ("record_id=7", "7"),
            ("质控编号：Ｐ００１", "P001"),
            ("P001", "P001"),
            ("检查p-001", "P-001"),
            ("受试者 12 质控", "12"),
            ("12号质控一下", "12"),
            ("12号病人", "12"),
            ("患者P001的年龄", "P001"),
            ("患者号12", "12"),
            ("编号 0012", "0012"),
            ("筛选号是 S1003", "S1003"),
            ("01-701-1015", "01-701-1015"),
            ("01－701－1015", "01-701-1015"),
            ("01–701–1015 的AE", "01-701-1015"),
            ("S01-002", "S01-002"),
            ("sub-01-003", "SUB-01-003"),
            ("331-1 的数据", "331-1"),
            ("质控331-1", "331-1"),
            ("01-002入组了吗", "01-002"),
            ("质控001", "001"),
            ("质控1015", "1015"),
            ("质控 12 吧", "12"),
            ("质控一下12", "12"),
            ("qc001", "001"),
            ("qcP001", "P001"),
            ("check p-001.", "P-001"),
            ("1015的年龄", "1015"),
            ("病人P1怎么样", "P1"),
            ("#12 质控", "12"),
            ("C01-001", "C01-001"),
            ("质控SHR_0012", "SHR_0012"),
        ] {
            assert_eq!(ids(text), [expected], "{text}");
        }
    }

    #[test]
    fn numbers_that_are_no_ids_never_become_ids() {
        for text in [
            "2026-11-30",
            "2026/11/30 入组的",
            "2026.11.30",
            "30-11-2026",
            "20261130之后入组的",
            "11-30的访视",
            "11月12号",
            "12号之前补完",
            "本月15号",
            "18岁",
            "18-75岁",
            "患者18岁以上",
            "患者12例",
            "受试者5名",
            "V3",
            "访视3",
            "第3次访视",
            "第 12 周",
            "C1D1 给药",
            "W12",
            "5天",
            "3-5天",
            "前后3天",
            "13800138000",
            "质控13800138000",
            "电话010-12345678",
            "138-0013-8000",
            "10:30",
            "下午3点",
            "v2.6",
            "0.001",
            "p<0.05",
            "p=0.05",
            "p0.05",
            "COVID-19",
            "IL-6 升高",
            "PD-L1 表达",
            "CD4 计数",
            "CA125 升高",
            "HbA1c",
            "ECOG 1分",
            "ECOG1",
            "CTCAE 5.0",
            "2026-W48的周报",
            "T790M",
            "3级AE",
            "120/80",
            "5mg",
            "62kg",
            "38.5℃",
            "95%",
            "01中心",
            "质控01中心的数据",
            "3号中心",
            "排除标准第5条",
            "Q3 的进展",
            "a001@x.org",
            "data001.csv",
            "http://x.org/p001",
            "血小板100-200的有几个",
            "1+1等于几",
            "110101199003078888",
        ] {
            assert_eq!(ids(text), Vec::<String>::new(), "{text}");
            assert_eq!(trouble(text), None, "{text}");
        }
    }

    #[test]
    fn lists_and_ranges_are_read_in_order() {
        for (text, expected) in [
            ("质控P001、P002和P003", vec!["P001", "P002", "P003"]),
            ("质控001、002和003", vec!["001", "002", "003"]),
            ("ID=1,2,3", vec!["1", "2", "3"]),
            ("P001/P002", vec!["P001", "P002"]),
            ("质控P001 P002 与 P010", vec!["P001", "P002", "P010"]),
            ("质控P001到P003", vec!["P001", "P002", "P003"]),
            ("质控P009-P011", vec!["P009", "P010", "P011"]),
            ("质控P001~003", vec!["P001", "P002", "P003"]),
            ("质控ID=8至10", vec!["8", "9", "10"]),
            (
                "01-701-1015 到 01-701-1017",
                vec!["01-701-1015", "01-701-1016", "01-701-1017"],
            ),
            ("P001到P002、P009", vec!["P001", "P002", "P009"]),
        ] {
            assert_eq!(ids(text), expected, "{text}");
        }
    }

    #[test]
    fn a_range_that_could_mean_two_things_is_asked_about() {
        assert_eq!(
            trouble("质控P001到P900"),
            Some(Trouble::TooMany {
                from: "P001".into(),
                to: "P900".into(),
                count: 900
            })
        );
        assert!(matches!(
            trouble("质控P005到P001"),
            Some(Trouble::NoRange { .. })
        ));
        assert!(matches!(
            trouble("质控P001到S009"),
            Some(Trouble::NoRange { .. })
        ));
        assert!(matches!(
            trouble("质控001-005"),
            Some(Trouble::IdOrRange { .. })
        ));
        assert!(matches!(
            trouble("质控P001-005"),
            Some(Trouble::IdOrRange { .. })
        ));
        assert_eq!(trouble("质控「001-005」"), None);
        assert!(matches!(
            trouble("质控1到18446744073709551615"),
            Some(Trouble::TooMany { .. } | Trouble::NoRange { .. }) | None
        ));
    }

    #[test]
    fn a_range_needs_two_ids() {
        assert_eq!(ids("P001到院了"), ["P001"]);
        assert_eq!(ids("P001到3月复查"), ["P001"]);
    }
}
