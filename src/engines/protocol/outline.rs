//! What is a heading, and where in the document we are. A format that says which paragraphs are headings is
//! believed; in the others a heading is a short line with a section number that follows on the last one.

use std::sync::LazyLock;

use regex::Regex;

use crate::types::protocol::{Block, SECTION_MARK};

/// A heading without a number of its own is at most this long, in characters; longer is a sentence.
const LONGEST_HEADING: usize = 60;

/// A numbered line, as far as its form goes.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Numbered {
    /// `5.2 访视窗口` as 5, 2
    Decimal(Vec<u32>),
    /// `第三章`, `附录A`
    Chapter,
    /// `第二节`
    Part,
    /// `一、`
    Item,
    /// `（一）`
    SubItem,
}

static DECIMAL: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"^§?\s*([1-9]\d?(?:[.．]\d{1,2}){0,5})(?:[.．、]\s*|\s+|(?P<tight>))(?P<title>\S.*)$",
    )
    .ok()
});
static CHAPTER: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^(?:第\s*[一二三四五六七八九十百零〇0-9]{1,4}\s*[章篇编部](?:\s|[：:]|\p{Han}|$)|附(?:录|件)\s*[A-Z0-9一二三四五六七八九十]{0,3}(?:\s|[：:.、]|\p{Han}|$))").ok()
});
static PART: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^第\s*[一二三四五六七八九十百零〇0-9]{1,4}\s*[节条](?:\s|[：:]|\p{Han}|$)").ok()
});
static ITEM: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^[一二三四五六七八九十]{1,3}[、.．]\s*\S").ok());
static SUB_ITEM: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^[（(][一二三四五六七八九十]{1,3}[)）]\s*\S").ok());

fn is(pattern: &LazyLock<Option<Regex>>, line: &str) -> bool {
    pattern
        .as_ref()
        .is_some_and(|pattern| pattern.is_match(line))
}

/// The section number in front of a line and what follows it, when the line has the form of a numbered heading.
fn decimal(line: &str) -> Option<(Vec<u32>, &str)> {
    let found = DECIMAL.as_ref()?.captures(line)?;
    let title = found.name("title")?.as_str();
    let parts: Vec<u32> = found
        .get(1)?
        .as_str()
        .split(['.', '．'])
        .map_while(|part| part.parse().ok())
        .collect();
    // `2.5mg` and `14天内` are figures; `5.2访视窗口` is a heading whose space was lost.
    if found.name("tight").is_some() && parts.len() < 2 {
        return None;
    }
    let first = title.chars().next()?;
    let begins_a_title = first.is_ascii_uppercase() || is_han(first) || "《“\"(（".contains(first);
    begins_a_title.then_some((parts, title))
}

fn form(line: &str) -> Option<Numbered> {
    if line.chars().count() > LONGEST_HEADING || ends_a_sentence(line) {
        return None;
    }
    if let Some((parts, _)) = decimal(line) {
        return Some(Numbered::Decimal(parts));
    }
    if is(&CHAPTER, line) {
        return Some(Numbered::Chapter);
    }
    if is(&PART, line) {
        return Some(Numbered::Part);
    }
    if is(&ITEM, line) {
        return Some(Numbered::Item);
    }
    is(&SUB_ITEM, line).then_some(Numbered::SubItem)
}

/// Whether a line may be a heading, whatever stands around it.
#[must_use]
pub fn may_be_heading(line: &str) -> bool {
    form(line).is_some()
}

/// Whether `c` is a Chinese character.
#[must_use]
pub fn is_han(c: char) -> bool {
    matches!(u32::from(c), 0x3005 | 0x3007 | 0x3400..=0x9fff | 0xf900..=0xfaff | 0x20000..=0x323af)
}

fn ends_a_sentence(line: &str) -> bool {
    line.ends_with(['。', '；', ';', '，', ',', '：', ':', '！', '？', '、'])
        || (line.ends_with('.') && !line.ends_with(".."))
}

/// Where in the document we are.
#[derive(Debug, Default)]
pub struct Outline {
    /// Headings that are open: rank, number, text.
    open: Vec<(u32, Option<String>, String)>,
    /// The last section number.
    last: Vec<u32>,
    /// The last number of a list under way, which is no section.
    list: Option<u32>,
    /// Whether the format says what is a heading.
    explicit: bool,
}

impl Outline {
    /// The outline of a document of which `blocks` are all.
    #[must_use]
    pub fn of(blocks: &[Block]) -> Self {
        Self {
            explicit: blocks
                .iter()
                .filter(|block| block.heading.is_some())
                .count()
                >= 2,
            ..Self::default()
        }
    }

    /// Takes in the next block. Returns its rank when it is a heading; the smaller, the further out.
    pub fn enter(&mut self, block: &Block) -> Option<u32> {
        let line = block.text.trim();
        let found = match block.heading {
            Some(level) => {
                let parts = decimal(line).map(|(parts, _)| parts);
                let number = parts.as_deref().map(dotted);
                Some((u32::from(level) * 10, number, parts))
            }
            None if block.table_head.is_some() => None,
            None => self.numbered(line),
        };
        let (rank, number, parts) = found?;
        self.list = None;
        if let Some(parts) = parts {
            self.last = parts;
        }
        while self.open.last().is_some_and(|(outer, ..)| *outer >= rank) {
            self.open.pop();
        }
        self.open.push((rank, number, line.to_owned()));
        Some(rank)
    }

    /// The number of the innermost section.
    #[must_use]
    pub fn number(&self) -> Option<String> {
        self.open.last().and_then(|(_, number, _)| number.clone())
    }

    /// The open headings, outermost first.
    #[must_use]
    pub fn path(&self) -> String {
        let headings: Vec<&str> = self.open.iter().map(|(.., text)| text.as_str()).collect();
        headings.join(SECTION_MARK)
    }

    fn numbered(&mut self, line: &str) -> Option<(u32, Option<String>, Option<Vec<u32>>)> {
        match form(line)? {
            Numbered::Decimal(parts) => {
                if parts.len() == 1 && !self.follows_at_the_top(&parts) {
                    self.list = parts.first().copied();
                    return None;
                }
                if !self.follows(&parts) {
                    return None;
                }
                let rank = u32::try_from(parts.len()).unwrap_or(9) * 10;
                Some((rank, Some(dotted(&parts)), Some(parts)))
            }
            // Where the format names its headings, these are items of a list.
            Numbered::Chapter if !self.explicit => Some((10, None, None)),
            Numbered::Part if !self.explicit => Some((20, None, None)),
            Numbered::Item if !self.explicit => Some((25, None, None)),
            Numbered::SubItem if !self.explicit => Some((35, None, None)),
            _ => None,
        }
    }

    /// A number alone is far more often an item of a list: it opens a section only when it is the next one,
    /// no list is under way that it could belong to, and neither the format nor chapters say otherwise.
    fn follows_at_the_top(&self, parts: &[u32]) -> bool {
        let Some(&number) = parts.first() else {
            return false;
        };
        let in_chapters = self.open.iter().any(|(_, number, _)| number.is_none());
        let next = self.last.first().map_or(1, |last| last + 1);
        !self.explicit
            && !in_chapters
            && number == next
            && self.list.is_none_or(|item| item + 1 != number)
    }

    /// Section numbers go up; the first of them may begin anywhere.
    fn follows(&self, parts: &[u32]) -> bool {
        let (Some(&first), Some(&last)) = (parts.first(), self.last.first()) else {
            return true;
        };
        parts > self.last.as_slice() && first <= last + 1
    }
}

fn dotted(parts: &[u32]) -> String {
    let parts: Vec<String> = parts.iter().map(u32::to_string).collect();
    parts.join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(lines: &[&str]) -> Vec<String> {
        let blocks: Vec<Block> = lines.iter().map(|line| plain(line)).collect();
        let mut outline = Outline::of(&blocks);
        blocks
            .iter()
            .map(|block| match outline.enter(block) {
                Some(_) => format!("# {}", outline.path()),
                None => format!("{}: {}", outline.number().unwrap_or_default(), block.text),
            })
            .collect()
    }

    fn plain(text: &str) -> Block {
        Block {
            heading: text.starts_with("##").then_some(2),
            text: text.trim_start_matches("## ").to_owned(),
            page: None,
            table_head: None,
        }
    }

    #[test]
    fn sections_are_told_from_lists_and_figures() {
        insta::assert_snapshot!(walk(&[
            "1 研究背景",
            "1.1 疾病介绍",
            "阿尔茨海默病是……",
            "2 入选与排除",
            "2.1 入选标准",
            "1. 年龄 50 至 85 岁",
            "2. 签署知情同意书",
            "3. 愿意随访",
            "2.5 mg 每日一次",
            "1.5 倍正常值上限",
            "2.2排除标准",
            "1) 妊娠",
            "3. 访视",
            "3.1 访视窗口：见下表。",
            "3.1 访视窗口",
            "9.9 不相干的数",
            "4 统计",
        ]).join("\n"), @r"
        # 1 研究背景
        # 1 研究背景 › 1.1 疾病介绍
        1.1: 阿尔茨海默病是……
        # 2 入选与排除
        # 2 入选与排除 › 2.1 入选标准
        2.1: 1. 年龄 50 至 85 岁
        2.1: 2. 签署知情同意书
        2.1: 3. 愿意随访
        2.1: 2.5 mg 每日一次
        2.1: 1.5 倍正常值上限
        # 2 入选与排除 › 2.2排除标准
        2.2: 1) 妊娠
        # 3. 访视
        3: 3.1 访视窗口：见下表。
        # 3. 访视 › 3.1 访视窗口
        3.1: 9.9 不相干的数
        # 4 统计
        ");
    }

    #[test]
    fn chinese_chapters_nest_and_a_named_heading_is_believed() {
        insta::assert_snapshot!(walk(&[
            "第三章 访视",
            "第一节 窗口",
            "一、筛选期",
            "（一）检查项目",
            "1 心电图",
            "第四章 安全性",
            "附录A 量表",
        ]).join("\n"), @r"
        # 第三章 访视
        # 第三章 访视 › 第一节 窗口
        # 第三章 访视 › 第一节 窗口 › 一、筛选期
        # 第三章 访视 › 第一节 窗口 › 一、筛选期 › （一）检查项目
        : 1 心电图
        # 第四章 安全性
        # 附录A 量表
        ");
        insta::assert_snapshot!(walk(&[
            "## 5.2 访视窗口",
            "1 第一条",
            "一、总则",
            "## 说明",
        ]).join("\n"), @r"
        # 5.2 访视窗口
        5.2: 1 第一条
        5.2: 一、总则
        # 说明
        ");
    }
}
