//! What a printed page carries beside its text: running heads and feet, page numbers, tables of contents.
//! Left in, they would be found instead of what they point to.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use regex::Regex;

use crate::types::protocol::Block;

/// Lines at the top and at the bottom of a page that may be furniture.
const EDGE: usize = 2;
/// Fewer pages can't tell furniture from text.
const FEWEST_PAGES: usize = 4;

static PAGE_NUMBER: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)^[-–—\s]*(?:第\s*\d+\s*页)?[\s,，/／]*(?:共\s*\d+\s*页)?[-–—\s]*$|^[-–—\s]*(?:page\s*)?\d{1,4}(?:\s*(?:/|of)\s*\d{1,4})?[-–—\s]*$").ok()
});
static CONTENTS_LINE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?:[.．·•]{4,}|…{2,}|(?:[.．…·]\s){3,}|\t)\s*\d{1,4}$").ok());

/// Whether a line points to a page, as lines of a table of contents do.
#[must_use]
pub fn is_contents_line(line: &str) -> bool {
    CONTENTS_LINE
        .as_ref()
        .is_some_and(|pattern| pattern.is_match(line.trim_end()))
}

/// The blocks without furniture. Only blocks with a page lose their running heads, and the first of each
/// stays: text that was taken for one is still found.
#[must_use]
pub fn cleared(blocks: &[Block]) -> Vec<Block> {
    let repeated = repeated(blocks);
    let edges = edges(blocks);
    let mut said = BTreeSet::new();
    blocks
        .iter()
        .enumerate()
        .filter(|(at, block)| {
            if is_contents_line(&block.text) {
                return false;
            }
            if !edges.contains(at) {
                return true;
            }
            let numbers_page = PAGE_NUMBER
                .as_ref()
                .is_some_and(|pattern| pattern.is_match(&block.text));
            let shape = shape(&block.text);
            !numbers_page && (!repeated.contains(&shape) || said.insert(shape))
        })
        .map(|(_, block)| block.clone())
        .collect()
}

/// What is the same on every page: the line without its figures.
fn shape(line: &str) -> String {
    line.chars()
        .filter(|c| !c.is_whitespace())
        .map(|c| if c.is_ascii_digit() { '0' } else { c })
        .collect::<String>()
        .replace("00", "0")
}

fn pages(blocks: &[Block]) -> BTreeMap<u32, Vec<usize>> {
    let mut pages: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (at, block) in blocks.iter().enumerate() {
        if let Some(page) = block.page {
            pages.entry(page).or_default().push(at);
        }
    }
    pages
}

fn edges(blocks: &[Block]) -> BTreeSet<usize> {
    pages(blocks)
        .values()
        .flat_map(|lines| {
            let tail = lines.len().saturating_sub(EDGE);
            lines
                .iter()
                .take(EDGE)
                .chain(lines.iter().skip(tail))
                .copied()
                .collect::<Vec<_>>()
        })
        .collect()
}

/// Shapes that stand at the edge of more than half of the pages.
fn repeated(blocks: &[Block]) -> BTreeSet<String> {
    let pages = pages(blocks);
    if pages.len() < FEWEST_PAGES {
        return BTreeSet::new();
    }
    let edges = edges(blocks);
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for lines in pages.values() {
        let shapes: BTreeSet<String> = lines
            .iter()
            .filter(|at| edges.contains(at))
            .filter_map(|at| blocks.get(*at))
            .map(|block| shape(&block.text))
            .collect();
        for shape in shapes {
            *seen.entry(shape).or_default() += 1;
        }
    }
    seen.retain(|_, count| *count * 2 > pages.len());
    seen.into_keys().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(page: u32, text: &str) -> Block {
        Block {
            heading: None,
            text: text.to_owned(),
            page: Some(page),
            table_head: None,
        }
    }

    #[test]
    fn running_heads_and_page_numbers_go_and_what_is_said_twice_stays() {
        let mut blocks = Vec::new();
        for page in 1..=12 {
            blocks.push(line(page, "方案编号 XN-001  版本 2.0"));
            blocks.push(line(page, &format!("{page}.1 一节")));
            for text in [
                "正文甲",
                "正文乙",
                "正文丙",
                "每页都说的正文",
                "正文丁",
                "正文戊",
                "正文己",
            ] {
                blocks.push(line(page, text));
            }
            blocks.push(line(page, &format!("第 {page} 页 共 12 页")));
            blocks.push(line(page, &format!("- {page} -")));
        }
        let left = cleared(&blocks);
        let of = |wanted: &str| {
            left.iter()
                .filter(|block| block.text.contains(wanted))
                .count()
        };
        assert_eq!((of("XN-001"), of("共"), of("- ")), (1, 0, 0));
        // In the middle of a page it is text, however often it comes.
        assert_eq!(of("每页都说的正文"), 12);
    }

    #[test]
    fn a_short_document_keeps_everything_but_page_numbers_and_contents() {
        let blocks = [
            line(1, "5.2 访视窗口 ........ 12"),
            line(1, "5.3 随访\t13"),
            line(1, "5.4 终止 …… 14"),
            line(1, "窗口为 12"),
            line(1, "12"),
        ];
        let left: Vec<String> = cleared(&blocks)
            .into_iter()
            .map(|block| block.text)
            .collect();
        assert_eq!(left, ["窗口为 12"]);
    }
}
