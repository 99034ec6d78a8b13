//! Paragraphs to passages: whole paragraphs of one section, a few hundred characters each, so that what is
//! found can be read at once and cited exactly. Nothing is lost and nothing is said twice, but for the head
//! of a table that is cut.

use super::{furniture, outline::Outline, paragraphs};
use crate::types::protocol::{Block, Manuscript, Media, Passage};

/// A passage holds about as many characters at most.
pub const LONGEST: usize = 600;

/// The passages of a document, in order.
#[must_use]
pub fn passages(manuscript: &Manuscript) -> Vec<Passage> {
    let blocks = match manuscript.media {
        Media::Pdf => paragraphs::joined(furniture::cleared(&manuscript.blocks)),
        Media::Text => paragraphs::joined(manuscript.blocks.clone()),
        Media::Markdown | Media::Docx => furniture::cleared(&manuscript.blocks),
    };
    let mut cut = Cut::default();
    let mut outline = Outline::of(&blocks);
    for block in &blocks {
        // Where the heading before this one stood.
        let (path, number) = (outline.path(), outline.number());
        match outline.enter(block) {
            Some(rank) => cut.section(rank, block, path, number),
            None => cut.paragraph(block, &outline),
        }
    }
    let (path, number) = (outline.path(), outline.number());
    cut.end(path, number);
    cut.done
}

#[derive(Default)]
struct Cut {
    done: Vec<Passage>,
    open: Option<Passage>,
    /// A heading nothing has followed yet: its rank, text and page.
    bare: Option<(u32, String, Option<u32>)>,
}

impl Cut {
    fn section(&mut self, rank: u32, heading: &Block, path: String, number: Option<String>) {
        self.close();
        // A section without text of its own, and without sections in it, says all it has in its heading.
        if self.bare.as_ref().is_some_and(|(outer, ..)| rank <= *outer) {
            self.heading_alone(path, number);
        }
        self.bare = Some((rank, heading.text.clone(), heading.page));
    }

    fn paragraph(&mut self, block: &Block, outline: &Outline) {
        self.bare = None;
        for (no, piece) in pieces(&block.text).into_iter().enumerate() {
            let room = self.open.as_ref().is_some_and(|open| {
                open.text.chars().count() + 1 + piece.chars().count() <= LONGEST
            });
            if !room {
                self.close();
            }
            match &mut self.open {
                Some(open) => {
                    open.text.push('\n');
                    open.text.push_str(piece);
                }
                None => {
                    let head = block.table_head.as_ref().filter(|_| no == 0);
                    let text =
                        head.map_or_else(|| piece.to_owned(), |head| format!("{head}\n{piece}"));
                    self.open = Some(Passage {
                        number: outline.number(),
                        section: outline.path(),
                        page: block.page,
                        text,
                    });
                }
            }
        }
    }

    fn end(&mut self, path: String, number: Option<String>) {
        self.close();
        if self.bare.is_some() {
            self.heading_alone(path, number);
        }
    }

    fn heading_alone(&mut self, path: String, number: Option<String>) {
        if let Some((_, text, page)) = self.bare.take() {
            self.done.push(Passage {
                number,
                section: path,
                page,
                text,
            });
        }
    }

    fn close(&mut self) {
        self.done.extend(self.open.take());
    }
}

/// A paragraph that is too long, cut behind sentences; a sentence that is too long, where it must be.
fn pieces(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while rest.chars().count() > LONGEST {
        let window = rest.char_indices().take(LONGEST);
        let after_sentence = window
            .clone()
            .filter(|(_, c)| "。；！？;!?".contains(*c))
            .map(|(at, c)| at + c.len_utf8())
            .last();
        let must = window
            .last()
            .map_or(rest.len(), |(at, c)| at + c.len_utf8());
        let (piece, after) = rest.split_at(after_sentence.unwrap_or(must));
        pieces.push(piece.trim());
        rest = after.trim_start();
    }
    pieces.push(rest);
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        reason = "a failed expectation is the test's verdict"
    )]
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;

    fn block(text: &str) -> Block {
        Block {
            heading: None,
            text: text.to_owned(),
            page: Some(3),
            table_head: None,
        }
    }

    fn heading(level: u8, text: &str) -> Block {
        Block {
            heading: Some(level),
            ..block(text)
        }
    }

    fn of(media: Media, blocks: Vec<Block>) -> Vec<Passage> {
        passages(&Manuscript {
            media,
            blocks,
            pages: None,
            gaps: Vec::new(),
        })
    }

    #[test]
    fn a_passage_is_whole_paragraphs_of_one_section_with_its_path_and_page() {
        let found = of(
            Media::Docx,
            vec![
                heading(1, "5 访视"),
                heading(2, "5.1 筛选"),
                heading(2, "5.2 访视窗口"),
                block(&"甲".repeat(400)),
                block(&"乙".repeat(199)),
                block("丙"),
                heading(1, "6 终止"),
            ],
        );
        let told: Vec<(Option<&str>, &str, usize)> = found
            .iter()
            .map(|p| {
                (
                    p.number.as_deref(),
                    p.section.as_str(),
                    p.text.chars().count(),
                )
            })
            .collect();
        assert_eq!(
            told,
            [
                (Some("5.1"), "5 访视 › 5.1 筛选", 6),
                (Some("5.2"), "5 访视 › 5.2 访视窗口", 600),
                (Some("5.2"), "5 访视 › 5.2 访视窗口", 1),
                (Some("6"), "6 终止", 4),
            ]
        );
        assert!(found.iter().all(|passage| passage.page == Some(3)));
    }

    #[test]
    fn a_cut_table_says_again_what_its_columns_are() {
        let head: Arc<str> = Arc::from("访视 | 计划日 | 窗口");
        let mut rows = vec![block(&head)];
        rows.extend((0..60).map(|n| Block {
            table_head: Some(Arc::clone(&head)),
            ..block(&format!("V{n} | 第 {n} 天 | ±5 天"))
        }));
        let found = of(Media::Docx, rows);
        assert!(found.len() > 1);
        for passage in &found {
            assert!(passage.text.starts_with(&*head), "{}", passage.text);
        }
    }

    #[test]
    fn a_long_paragraph_is_cut_behind_sentences() {
        let sentence = format!("{}。", "句".repeat(99));
        let found = of(Media::Markdown, vec![block(&sentence.repeat(13))]);
        let lengths: Vec<usize> = found.iter().map(|p| p.text.chars().count()).collect();
        assert_eq!(lengths, [600, 600, 100]);
    }

    proptest! {
        #[test]
        fn no_character_is_lost_and_no_passage_is_too_long(
            paragraphs in proptest::collection::vec("[一-三。；a-c ]{1,900}", 0..12),
        ) {
            let blocks: Vec<Block> = paragraphs.iter().map(|text| block(text)).collect();
            let found = of(Media::Markdown, blocks);
            let dense = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
            let all: String = found.iter().map(|p| dense(&p.section) + &dense(&p.text)).collect();
            // Short lines that look like headings stand in the section, not in the text.
            if found.iter().all(|p| p.section.is_empty()) {
                prop_assert_eq!(all, paragraphs.iter().map(|p| dense(p)).collect::<String>());
            }
            for passage in &found {
                prop_assert!(passage.text.chars().count() <= LONGEST);
                prop_assert!(!passage.text.trim().is_empty() || paragraphs.iter().all(|p| p.trim().is_empty()));
            }
        }
    }
}
