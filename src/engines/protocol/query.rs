//! A question to what is looked for: one phrase, and the terms it consists of. A term is a pair of
//! neighbouring Chinese characters, a word or code as written (`V3`, `±3`, `5.2`), or a whole stretch of the
//! question, which counts beside its pairs.

use std::sync::LazyLock;

use regex::Regex;

use super::outline::is_han;
use crate::types::text::half_width;

/// A question longer than this, in characters, is cut.
const LONGEST: usize = 400;
/// Terms looked for at most.
const MOST_TERMS: usize = 60;

/// What people wrap a question in; it says nothing about what they look for.
static WRAPPING: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"请问一下|请问|我想知道|想知道|想问一下|想问|告诉我|查一下|查查|查询|看一下|帮我|帮忙|麻烦|研究方案|试验方案|方案中|方案里|方案|规定的|有没有规定|规定|是怎么|怎么|如何|是什么|是多少|多少|什么|哪一些|哪些|哪个|哪里|几个|几次|几天|有没有|是不是|能不能|可不可以|是否|需不需要|关于|(?:吗|呢|吧|的|么|啊)(?:$|[\s，。？！?!,])|[？?！!。，,；;、：:“”‘’《》（）()\[\]]",
    )
    .ok()
});

/// What people say, and what protocols write.
const ALSO: [(&str, &[&str]); 9] = [
    ("入排", &["入选标准", "排除标准"]),
    ("纳排", &["入选标准", "排除标准"]),
    ("纳入", &["入选标准"]),
    ("SAE", &["严重不良事件"]),
    ("AE", &["不良事件"]),
    ("ICF", &["知情同意书"]),
    ("超窗", &["窗口", "时间窗"]),
    ("访视窗", &["访视窗口", "时间窗"]),
    ("怀孕", &["妊娠"]),
];

/// What to look for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// The question without its wrapping; a passage that says exactly this comes first.
    pub phrase: String,
    /// Distinct terms.
    pub terms: Vec<String>,
}

impl Query {
    /// Of a question; `None` when nothing in it can be looked for.
    #[must_use]
    pub fn of(question: &str) -> Option<Self> {
        let question: String = half_width(question).chars().take(LONGEST).collect();
        let bare = WRAPPING.as_ref().map_or_else(
            || question.clone(),
            |wrapping| wrapping.replace_all(&question, " ").into_owned(),
        );
        // “方案” alone is a question, too.
        let said = if bare.chars().any(is_searchable) {
            bare
        } else {
            question
        };
        let phrase = said.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut terms: Vec<String> = Vec::new();
        let mut add = |term: &str| {
            if terms.len() < MOST_TERMS && !terms.iter().any(|known| known == term) {
                terms.push(term.to_owned());
            }
        };
        for stretch in without_particles(&phrase).split(' ') {
            for run in runs(stretch) {
                match run {
                    Run::Han(han) if han.len() == 1 => add(&han.iter().collect::<String>()),
                    Run::Han(han) => {
                        for pair in han.windows(2) {
                            add(&pair.iter().collect::<String>());
                        }
                    }
                    Run::Code(code) => add(&code),
                }
            }
            if stretch.chars().filter(|c| is_searchable(*c)).count() > 2 {
                add(stretch);
            }
        }
        let upper = phrase.to_uppercase();
        for (said, also) in ALSO {
            if upper.contains(said) {
                also.iter().for_each(|term| add(term));
            }
        }
        (!terms.is_empty()).then_some(Self { phrase, terms })
    }
}

fn is_searchable(c: char) -> bool {
    is_han(c) || c.is_alphanumeric()
}

/// `受试者的年龄` is asked as 受试者 and 年龄.
fn without_particles(stretch: &str) -> String {
    stretch.replace(['的', '了', '和', '与', '或', '及', '是'], " ")
}

enum Run {
    Han(Vec<char>),
    Code(String),
}

/// Runs of Chinese, and codes: letters, digits and the signs that belong to a figure. A sign alone is none.
fn runs(text: &str) -> Vec<Run> {
    let mut found: Vec<Run> = Vec::new();
    let mut open = false;
    for c in text.chars() {
        let is_code = c.is_alphanumeric() && !is_han(c) || "±≥≤<>=%‰~.-/".contains(c);
        match found.last_mut() {
            Some(Run::Han(han)) if open && is_han(c) => han.push(c),
            Some(Run::Code(code)) if open && is_code => code.push(c),
            _ if is_han(c) => found.push(Run::Han(vec![c])),
            _ if is_code => found.push(Run::Code(c.to_string())),
            _ => {
                open = false;
                continue;
            }
        }
        open = true;
    }
    found.retain(|run| match run {
        Run::Han(_) => true,
        Run::Code(code) => code.chars().any(char::is_alphanumeric),
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(question: &str) -> String {
        Query::of(question).map_or_else(
            || "-".to_owned(),
            |query| format!("{} | {}", query.phrase, query.terms.join(" ")),
        )
    }

    #[test]
    fn a_question_is_freed_of_its_wrapping_and_taken_apart() {
        let questions = [
            "V3的访视窗口是多少天？",
            "请问访视窗是几天",
            "±3天",
            "ＥＣＯＧ评分要求是什么",
            "入排标准",
            "方案",
            "受试者的年龄和性别",
            "5.2",
            "年",
            "5.2节 SAE 报告时限",
            "？！",
            "",
        ];
        insta::assert_snapshot!(questions.map(told).join("\n"), @r"
    V3的访视窗口 天 | V3 访视 视窗 窗口 访视窗口 天 时间窗
    访视窗是 | 访视 视窗 访视窗 访视窗口 时间窗
    ±3天 | ±3 天
    ECOG评分要求 | ECOG 评分 分要 要求 ECOG评分要求
    入排标准 | 入排 排标 标准 入排标准 入选标准 排除标准
    方案 | 方案
    受试者的年龄和性别 | 受试 试者 受试者 年龄 性别
    5.2 | 5.2
    年 | 年
    5.2节 SAE 报告时限 | 5.2 节 5.2节 SAE 报告 告时 时限 报告时限 严重不良事件 不良事件
    -
    -
    ");
    }

    #[test]
    fn a_very_long_question_asks_for_a_bounded_number_of_terms() {
        let long: String = (0..3000)
            .filter_map(|n| char::from_u32(0x4e00 + n))
            .collect();
        let terms = Query::of(&long).map(|query| query.terms.len());
        assert_eq!(terms, Some(MOST_TERMS));
    }
}
