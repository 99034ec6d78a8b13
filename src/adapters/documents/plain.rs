//! Markdown and plain text.

use std::sync::Arc;

use super::DocumentError;
use crate::{
    adapters::decode,
    types::protocol::{Block, Manuscript, Media},
};

/// Text: its lines as they are. UTF-8, UTF-16 with a mark, or GBK.
pub(super) fn text(bytes: &[u8]) -> Result<Manuscript, DocumentError> {
    let text = decoded(bytes)?;
    // Empty lines separate paragraphs, which is for whoever joins lines to see.
    let blocks = text.lines().map(|line| block(None, line.trim())).collect();
    Ok(manuscript(Media::Text, blocks))
}

/// Markdown: headings, paragraphs, list items, rows of tables. Marks of emphasis stay, they hurt nobody.
pub(super) fn markdown(bytes: &[u8]) -> Result<Manuscript, DocumentError> {
    let text = decoded(bytes)?;
    let mut blocks: Vec<Block> = Vec::new();
    // Whether the last block takes another line.
    let mut open = false;
    let mut fence: Option<&str> = None;
    let mut table_head: Option<Arc<str>> = None;
    for line in text.lines() {
        let trimmed = line.trim();
        if let Some(end) = fence {
            if trimmed.starts_with(end) {
                fence = None;
            } else if !trimmed.is_empty() {
                blocks.push(block(None, trimmed));
            }
            continue;
        }
        if trimmed.starts_with('|') {
            open = false;
            let row = table_row(trimmed);
            if !row.is_empty() && !is_rule(trimmed) {
                blocks.push(Block {
                    table_head: table_head.clone(),
                    ..block(None, &row)
                });
                table_head.get_or_insert_with(|| Arc::from(row));
            }
            continue;
        }
        table_head = None;
        match trimmed {
            "" => open = false,
            _ if trimmed.starts_with("```") || trimmed.starts_with("~~~") => {
                fence = trimmed.get(..3);
                open = false;
            }
            // A line below text makes a heading of it.
            _ if open && is_underline(trimmed, '=') => {
                open = false;
                if let Some(last) = blocks.last_mut() {
                    last.heading = Some(1);
                }
            }
            _ if is_underline(trimmed, '-')
                || is_underline(trimmed, '*')
                || is_underline(trimmed, '=') =>
            {
                open = false
            }
            _ => match atx_heading(trimmed) {
                Some((level, title)) => {
                    open = false;
                    if !title.is_empty() {
                        blocks.push(block(Some(level), title));
                    }
                }
                None => {
                    let begins = !open || is_item(trimmed);
                    match blocks.last_mut() {
                        Some(last) if !begins => join(&mut last.text, trimmed),
                        _ => blocks.push(block(None, trimmed.trim_start_matches("> "))),
                    }
                    open = true;
                }
            },
        }
    }
    Ok(manuscript(Media::Markdown, blocks))
}

fn decoded(bytes: &[u8]) -> Result<String, DocumentError> {
    let decoded = decode::decode(bytes).map_err(|bad| DocumentError::Encoding {
        line: bad.line,
        column: bad.column,
    })?;
    if decoded.text.contains('\0') {
        return Err(DocumentError::Broken(
            "它是二进制文件 a binary file".to_owned(),
        ));
    }
    Ok(decoded.text)
}

fn block(heading: Option<u8>, text: &str) -> Block {
    Block {
        heading,
        text: text.to_owned(),
        page: None,
        table_head: None,
    }
}

fn manuscript(media: Media, blocks: Vec<Block>) -> Manuscript {
    Manuscript {
        media,
        blocks,
        pages: None,
        gaps: Vec::new(),
    }
}

fn atx_heading(line: &str) -> Option<(u8, &str)> {
    let level = line.bytes().take_while(|b| *b == b'#').count();
    let title = line.get(level..)?;
    let is_heading =
        (1..=6).contains(&level) && (title.is_empty() || title.starts_with([' ', '\t']));
    is_heading.then(|| {
        (
            u8::try_from(level).unwrap_or(6),
            title.trim().trim_end_matches('#').trim_end(),
        )
    })
}

fn is_underline(line: &str, mark: char) -> bool {
    line.chars().count() >= 3 && line.chars().all(|c| c == mark || c == ' ')
}

fn is_item(line: &str) -> bool {
    let numbered = line.trim_start_matches(|c: char| c.is_ascii_digit());
    ["- ", "* ", "+ ", "> "]
        .iter()
        .any(|mark| line.starts_with(mark))
        || numbered.len() < line.len() && numbered.starts_with(['.', ')', '、', '）'])
        || line.starts_with(['（', '(', '•'])
}

/// The line between a table's head and its body.
fn is_rule(line: &str) -> bool {
    line.chars()
        .all(|c| matches!(c, '|' | '-' | ':' | ' ' | '\t'))
}

fn table_row(line: &str) -> String {
    let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
    if cells.iter().all(|cell| cell.is_empty()) {
        return String::new();
    }
    cells.join(" | ")
}

/// Chinese runs on without a space.
fn join(paragraph: &mut String, line: &str) {
    let is_word = |c: Option<char>| c.is_some_and(|c| c.is_ascii_graphic());
    if is_word(paragraph.chars().next_back()) && is_word(line.chars().next()) {
        paragraph.push(' ');
    }
    paragraph.push_str(line);
}
