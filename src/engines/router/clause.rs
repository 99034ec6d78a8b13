//! A message cut into clauses: at punctuation, and before the words that start another request.

use super::{command, message::patterns};

/// A clause of the folded text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Clause {
    pub start: usize,
    pub end: usize,
    /// It ended with a question mark.
    pub asked: bool,
}

patterns! {
    /// A border: punctuation (first group) or a word that opens the next clause (second group).
    BORDER = r"(?x)
        ([,。;!?\r\n…]+|\.(?:\s+|$))|(然后|接着|随后|紧接着|另外|顺便|此外|最后|同时|(?:并且?|还要
        |以及|再)(?:对|给|把|将|帮|请|让|看|查|质控|检查|核|校验|跑|过一遍|做|生成|出|发|告诉|总结
        |汇总|录入|修改|更新|删除|列|统计|导出|重新)|(?:和|及)(?:对|把|生成|出一份|质控[a-z\d])
        |(?-u:\b)(?:and\ )?then\ |(?-u:\b)and\ also\ )";
    /// Where the opening word is part of something else: 合并给药, 不再做, 再次.
    NO_BORDER = r"(?:合|不|别|要|先|一|想|能|可以|后|明天|后天|下周.?|下个?月|晚点|一点|改天|回头|待会儿?|等会儿?|几天)$";
}

/// The clauses of a folded text, in order; empty ones are left out.
pub(super) fn clauses(plain: &str) -> Vec<Clause> {
    let mut found = Vec::new();
    let mut start = 0;
    let mut push = |from: usize, to: usize, asked: bool| {
        let text = plain.get(from..to).unwrap_or_default();
        let trimmed = text.trim();
        if !trimmed.is_empty() {
            let lead = text.len() - text.trim_start().len();
            found.push(Clause {
                start: from + lead,
                end: from + lead + trimmed.len(),
                asked,
            });
        }
    };
    for border in BORDER.captures_iter(plain) {
        if let Some(mark) = border.get(1) {
            push(start, mark.start(), mark.as_str().contains('?'));
            start = mark.end();
        } else if let Some(word) = border.get(2) {
            let before = plain.get(start..word.start()).unwrap_or_default();
            if NO_BORDER.is_match(before) || command::leaves_negation_open(before) {
                continue;
            }
            push(start, word.start(), false);
            start = word.start();
        }
    }
    push(start, plain.len(), false);
    found
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::expect_used,
        reason = "a failed expectation is the test's verdict"
    )]
    use super::*;

    fn cut(text: &str) -> Vec<&str> {
        clauses(text)
            .into_iter()
            .map(|c| text.get(c.start..c.end).unwrap())
            .collect()
    }

    #[test]
    fn every_pattern_compiles() {
        compile_all();
    }

    #[test]
    fn requests_are_cut_apart_and_words_are_not() {
        assert_eq!(
            cut("查一下p001的年龄,再对他做入排质控"),
            ["查一下p001的年龄", "再对他做入排质控"]
        );
        assert_eq!(
            cut("查p001的血压并对p002做质控"),
            ["查p001的血压", "并对p002做质控"]
        );
        assert_eq!(cut("质控p001;p002呢?"), ["质控p001", "p002呢"]);
        assert_eq!(cut("合并给药有哪些"), ["合并给药有哪些"]);
        assert_eq!(cut("不再做质控"), ["不再做质控"]);
        assert_eq!(cut("体温38.5度"), ["体温38.5度"]);
        assert_eq!(cut(",。!"), Vec::<&str>::new());
    }
}
