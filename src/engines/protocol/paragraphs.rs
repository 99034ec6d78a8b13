//! Printed lines back to paragraphs. PDF and hard-wrapped text know lines only; a phrase that runs over a
//! line's end would otherwise never be found.

use std::sync::LazyLock;

use regex::Regex;

use super::outline::may_be_heading;
use crate::types::protocol::Block;

/// Lines wider than this, in half-width columns, were not wrapped by a printer.
const WIDEST_PRINTED: usize = 160;
/// A line that is this full, in percent of a usual one, goes on in the next.
const FULL: usize = 75;

static LIST_ITEM: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^(?:[（(]?\s*(?:\d{1,2}|[a-zA-Z]|[ivx]{1,4})\s*[)）]|\d{1,2}[.、．]\D|[•●○■□▪◆·*–—-]\s|[①-⑳]|[（(][一二三四五六七八九十]{1,3}[)）]|表\s*\d|图\s*\d)").ok()
});

/// The lines joined to paragraphs. An empty line ends one; empty lines are gone afterwards.
#[must_use]
pub fn joined(lines: Vec<Block>) -> Vec<Block> {
    let usual = usual_width(&lines);
    let mut paragraphs: Vec<Block> = Vec::new();
    let mut open = false;
    for mut line in lines {
        line.text = line.text.trim().to_owned();
        if line.text.is_empty() {
            open = false;
            continue;
        }
        let begins =
            line.heading.is_some() || may_be_heading(&line.text) || is_list_item(&line.text);
        // Of a paragraph's last line: it is full when the paragraph goes on.
        let goes_on = usual.is_some_and(|usual| width(&line.text) * 100 >= usual * FULL)
            && !ends(&line.text)
            && !may_be_heading(&line.text);
        match paragraphs.last_mut() {
            Some(paragraph) if open && !begins => join(&mut paragraph.text, &line.text),
            _ => paragraphs.push(line),
        }
        open = goes_on;
    }
    paragraphs
}

fn is_list_item(line: &str) -> bool {
    LIST_ITEM
        .as_ref()
        .is_some_and(|pattern| pattern.is_match(line))
}

fn ends(line: &str) -> bool {
    line.ends_with(['。', '！', '？', '；', '：', '!', '?', ';', ':'])
}

/// How wide a full line is, or `None` when lines are paragraphs already.
fn usual_width(lines: &[Block]) -> Option<usize> {
    let mut widths: Vec<usize> = lines
        .iter()
        .map(|line| width(line.text.trim()))
        .filter(|width| *width > 0)
        .collect();
    widths.sort_unstable();
    let usual = *widths.get(widths.len() * 9 / 10)?;
    (20..=WIDEST_PRINTED).contains(&usual).then_some(usual)
}

/// In half-width columns.
fn width(text: &str) -> usize {
    text.chars().map(|c| if c.is_ascii() { 1 } else { 2 }).sum()
}

/// Chinese runs on without a space.
fn join(paragraph: &mut String, line: &str) {
    let is_word = |c: Option<char>| c.is_some_and(|c| c.is_ascii_graphic());
    if is_word(paragraph.chars().next_back()) && is_word(line.chars().next()) {
        paragraph.push(' ');
    }
    paragraph.push_str(line);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paragraphs(text: &str) -> Vec<String> {
        let lines = text
            .lines()
            .map(|line| Block {
                heading: None,
                text: line.to_owned(),
                page: None,
                table_head: None,
            })
            .collect();
        joined(lines).into_iter().map(|block| block.text).collect()
    }

    #[test]
    fn a_wrapped_sentence_is_one_paragraph_and_a_heading_or_an_item_is_its_own() {
        let text = "5.2 访视窗口
受试者应当在基线后第十四天前后五天以内完成访视，超出窗
口的访视记为方案偏离，并由研究者在病例报告表中说明原因
与处理。
1) 记录实际日期
2) the visit date is taken from the source and entered into
the case report form
短行
另一段";
        assert_eq!(
            paragraphs(text),
            [
                "5.2 访视窗口",
                "受试者应当在基线后第十四天前后五天以内完成访视，超出窗口的访视记为方案偏离，并由研究者在病例报告表中说明原因与处理。",
                "1) 记录实际日期",
                "2) the visit date is taken from the source and entered into the case report form",
                "短行",
                "另一段",
            ]
        );
    }

    #[test]
    fn an_empty_line_ends_a_paragraph_and_lines_that_are_paragraphs_stay() {
        let line = "受试者应当在基线后第十四天前后五天以内完成访视超出窗口的访视";
        assert_eq!(paragraphs(&format!("{line}\n\n{line}")).len(), 2);
        let long = "长".repeat(90);
        assert_eq!(paragraphs(&format!("{long}\n{long}\n{long}")).len(), 3);
    }
}
