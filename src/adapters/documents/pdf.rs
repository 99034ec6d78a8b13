//! PDF, page by page. Only its text layer is read; a page without one is named.

use lopdf::{Document, LoadOptions};

use super::{DocumentError, Progress, page_text};
use crate::types::protocol::{Block, Manuscript, Media};

/// Most pages.
const MOST_PAGES: usize = 3_000;
/// Most bytes one stream of the file may unpack to.
pub(super) const MOST_UNPACKED: usize = 64 * 1024 * 1024;
/// Pages named in one sentence at most.
const NAMED_PAGES: usize = 20;

pub(super) fn read(bytes: &[u8], progress: &Progress) -> Result<Manuscript, DocumentError> {
    let head = bytes.get(..bytes.len().min(1024)).unwrap_or_default();
    if !head.windows(5).any(|five| five == b"%PDF-") {
        return Err(DocumentError::Broken(
            "开头不是 %PDF no %PDF at its beginning".to_owned(),
        ));
    }
    let options = LoadOptions {
        max_decompressed_size: Some(MOST_UNPACKED),
        ..LoadOptions::default()
    };
    let document =
        Document::load_mem_with_options(bytes, options).map_err(|error| match error {
            lopdf::Error::Decryption(_) | lopdf::Error::AlreadyEncrypted => {
                DocumentError::Encrypted
            }
            other => DocumentError::Broken(in_one_line(&other)),
        })?;
    if document.is_encrypted() {
        return Err(DocumentError::Encrypted);
    }
    let pages = document.get_pages();
    if pages.is_empty() {
        return Err(DocumentError::Broken("没有页 it has no pages".to_owned()));
    }
    if pages.len() > MOST_PAGES {
        return Err(DocumentError::TooLarge("3000 页 pages"));
    }
    let total = u32::try_from(pages.len()).unwrap_or(u32::MAX);
    let (mut blocks, mut blank, mut garbled) = (Vec::new(), Vec::new(), Vec::new());
    for (&no, &id) in &pages {
        progress(no, total);
        match page_text::read(&document, id) {
            Ok(page) => {
                if page.garbled > 0 {
                    garbled.push(no);
                } else if page.lines.is_empty() {
                    blank.push(no);
                }
                blocks.extend(page.lines.into_iter().map(|text| Block {
                    heading: None,
                    text,
                    page: Some(no),
                    table_head: None,
                }));
            }
            Err(_) => garbled.push(no),
        }
    }
    let mut gaps = Vec::new();
    if !blank.is_empty() {
        gaps.push(format!(
            "第 {} 页没有可读的文字，可能是图或扫描件 (no text on these pages)",
            named(&blank)
        ));
    }
    if !garbled.is_empty() {
        gaps.push(format!(
            "第 {} 页的部分文字无法解码，检索不到；请改用 Word 原稿 (some text on these pages can't be decoded and won't be found)",
            named(&garbled)
        ));
    }
    Ok(Manuscript {
        media: Media::Pdf,
        blocks,
        pages: Some(total),
        gaps,
    })
}

fn named(pages: &[u32]) -> String {
    let mut names: Vec<String> = pages.iter().take(NAMED_PAGES).map(u32::to_string).collect();
    if pages.len() > NAMED_PAGES {
        names.push(format!("… 共 {} 页", pages.len()));
    }
    names.join("、")
}

fn in_one_line(error: &lopdf::Error) -> String {
    let text: Vec<String> = error
        .to_string()
        .split_whitespace()
        .map(str::to_owned)
        .collect();
    text.join(" ").chars().take(160).collect()
}
