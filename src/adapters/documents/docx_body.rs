//! The body of a Word file, element by element, to headings, paragraphs and rows.

use std::{collections::HashMap, sync::Arc};

use quick_xml::events::BytesStart;

use super::{
    docx::{Part, attribute},
    docx_styles::Styles,
    numbering::Numbering,
};
use crate::types::protocol::Block;

/// What is drawn in the font Symbol, by its code there. Bounds and tolerances are often written so.
const SYMBOLS: [(&str, char); 14] = [
    ("F0B1", '±'),
    ("F0B3", '≥'),
    ("F0A3", '≤'),
    ("F0B0", '°'),
    ("F06D", 'μ'),
    ("F0B4", '×'),
    ("F0B9", '≠'),
    ("F0BB", '≈'),
    ("F061", 'α'),
    ("F062", 'β'),
    ("F067", 'γ'),
    ("F0AE", '→'),
    ("F0B7", '•'),
    ("F044", 'Δ'),
];

/// Elements whose content is not part of the text: what was deleted or moved away, formats of before, and
/// the second copy of a drawing.
const LEFT_OUT: [&str; 7] = [
    "del",
    "moveFrom",
    "pPrChange",
    "rPrChange",
    "sectPrChange",
    "Fallback",
    "tblPrChange",
];

/// A paragraph being read.
#[derive(Default)]
struct Paragraph {
    text: String,
    style: Option<String>,
    outline: Option<u8>,
    list: Option<String>,
    level: Option<usize>,
    notes: Vec<String>,
}

/// A cell of a row.
#[derive(Clone, Default)]
struct Cell {
    text: String,
    span: usize,
    /// The cell above goes on.
    continues: bool,
}

#[derive(Default)]
struct Table {
    head: Option<Arc<str>>,
    /// The last row, by column.
    above: Vec<String>,
    row: Vec<Cell>,
}

/// Takes in the body; see [`Body::take`].
#[derive(Default)]
pub(super) struct Body {
    pub styles: Styles,
    pub numbering: Numbering,
    /// Endnote or not, and id, to text.
    pub notes: HashMap<(bool, String), String>,
    /// What was read.
    pub blocks: Vec<Block>,
    open: Vec<Paragraph>,
    tables: Vec<Table>,
    left_out: usize,
    in_text: bool,
    note_count: usize,
    unknown_symbols: usize,
}

impl Body {
    /// Takes in the next piece of the XML.
    pub fn take(&mut self, part: Part<'_>) {
        match part {
            Part::Begin(name, _) if LEFT_OUT.contains(&name) => self.left_out += 1,
            Part::End(name) if LEFT_OUT.contains(&name) => {
                self.left_out = self.left_out.saturating_sub(1)
            }
            _ if self.left_out > 0 => {}
            Part::Begin(name, tag) => self.begin(name, tag),
            Part::End(name) => self.end(name),
            Part::Text(text) if self.in_text => self.say(text),
            Part::Text(_) => {}
        }
    }

    /// What could not be read.
    pub fn gaps(&self) -> Vec<String> {
        if self.unknown_symbols == 0 {
            return Vec::new();
        }
        vec![format!(
            "有 {} 个用符号字体写的字符读不出，以 □ 代替；请在 Word 中改为普通字符 (characters of a symbol font are shown as □)",
            self.unknown_symbols
        )]
    }

    fn say(&mut self, text: &str) {
        if let Some(paragraph) = self.open.last_mut() {
            paragraph.text.push_str(text);
        }
    }

    fn begin(&mut self, name: &str, tag: &BytesStart<'_>) {
        match name {
            "p" => self.open.push(Paragraph::default()),
            "t" => self.in_text = true,
            "tab" if !self.open.is_empty() => self.say("\t"),
            "br" | "cr" => self.say(" "),
            "noBreakHyphen" => self.say("-"),
            "sym" => self.symbol(tag),
            "footnoteReference" | "endnoteReference" => self.note(name == "endnoteReference", tag),
            "tbl" => self.tables.push(Table::default()),
            "tr" => {
                if let Some(table) = self.tables.last_mut() {
                    table.row.clear();
                }
            }
            "tc" => {
                if let Some(table) = self.tables.last_mut() {
                    table.row.push(Cell {
                        span: 1,
                        ..Cell::default()
                    });
                }
            }
            "gridSpan" => {
                if let (Some(cell), Some(span)) = (
                    self.cell(),
                    attribute(tag, "val").and_then(|v| v.parse().ok()),
                ) {
                    cell.span = usize::min(span, 64);
                }
            }
            "vMerge" => {
                let continues = attribute(tag, "val").is_none_or(|value| value == "continue");
                if let Some(cell) = self.cell() {
                    cell.continues = continues;
                }
            }
            _ => self.property(name, tag),
        }
    }

    fn property(&mut self, name: &str, tag: &BytesStart<'_>) {
        let (Some(paragraph), Some(value)) = (self.open.last_mut(), attribute(tag, "val")) else {
            return;
        };
        match name {
            "pStyle" => paragraph.style = Some(value),
            "outlineLvl" => paragraph.outline = value.parse().ok(),
            "numId" => paragraph.list = Some(value),
            "ilvl" => paragraph.level = value.parse().ok(),
            _ => {}
        }
    }

    fn symbol(&mut self, tag: &BytesStart<'_>) {
        let code = attribute(tag, "char").unwrap_or_default().to_uppercase();
        let is_symbol =
            attribute(tag, "font").is_some_and(|font| font.eq_ignore_ascii_case("symbol"));
        let known = SYMBOLS
            .iter()
            .find(|(known, _)| is_symbol && *known == code)
            .map(|(_, c)| *c);
        // A code outside of the private area is a character.
        let plain = || {
            u32::from_str_radix(&code, 16)
                .ok()
                .filter(|code| !(0xe000..=0xf8ff).contains(code))
                .and_then(char::from_u32)
        };
        let said = known.or_else(plain).unwrap_or_else(|| {
            self.unknown_symbols += 1;
            '□'
        });
        self.say(said.encode_utf8(&mut [0; 4]));
    }

    fn note(&mut self, end: bool, tag: &BytesStart<'_>) {
        let Some(text) = attribute(tag, "id")
            .and_then(|id| self.notes.get(&(end, id)))
            .cloned()
        else {
            return;
        };
        self.note_count += 1;
        let no = self.note_count;
        self.say(&format!("[注{no}]"));
        if let Some(paragraph) = self.open.last_mut() {
            paragraph.notes.push(format!("注{no}：{text}"));
        }
    }

    fn cell(&mut self) -> Option<&mut Cell> {
        self.tables.last_mut()?.row.last_mut()
    }

    fn end(&mut self, name: &str) {
        match name {
            "t" => self.in_text = false,
            "p" => {
                if let Some(paragraph) = self.open.pop() {
                    self.paragraph(paragraph);
                }
            }
            "tr" => self.row(),
            "tbl" => {
                // What a table in a cell says was put into the cell, row by row.
                self.tables.pop();
            }
            _ => {}
        }
    }

    fn paragraph(&mut self, paragraph: Paragraph) {
        let style = paragraph.style.as_deref().unwrap_or_default();
        if self.styles.is_contents(style) {
            return;
        }
        let shown = self.number_of(&paragraph, style);
        let mut text = tidy(&paragraph.text);
        if text.is_empty() {
            return;
        }
        if !shown.is_empty() {
            text = format!("{shown} {text}");
        }
        let heading = match paragraph.outline {
            Some(outline) => (outline < 9).then_some(outline + 1),
            None => self.styles.heading(style),
        };
        let in_table = !self.tables.is_empty();
        // A box of text inside a paragraph comes before it.
        for (said, heading) in
            std::iter::once((text, heading)).chain(paragraph.notes.into_iter().map(|n| (n, None)))
        {
            match self.cell() {
                Some(cell) if in_table => {
                    if !cell.text.is_empty() {
                        cell.text.push(' ');
                    }
                    cell.text.push_str(&said);
                }
                _ => self.blocks.push(Block {
                    heading,
                    text: said,
                    page: None,
                    table_head: None,
                }),
            }
        }
    }

    /// Counts on in the paragraph's list, even if the paragraph is empty for us.
    fn number_of(&mut self, paragraph: &Paragraph, style: &str) -> String {
        if paragraph.text.trim().is_empty() {
            return String::new();
        }
        let of_style = self.styles.list(style);
        let list = paragraph
            .list
            .as_deref()
            .or(of_style.map(|(list, ..)| list));
        let Some(list) = list.filter(|list| *list != "0").map(str::to_owned) else {
            return String::new();
        };
        let level = paragraph
            .level
            .or_else(|| of_style.and_then(|(_, level, _)| level))
            .or_else(|| {
                let (_, _, said_by) = of_style?;
                self.numbering
                    .level_of_style(&list, style)
                    .or_else(|| self.numbering.level_of_style(&list, said_by))
            });
        self.numbering.next(&list, level.unwrap_or(0))
    }

    fn row(&mut self) {
        let nested = self.tables.len() > 1;
        let Some(table) = self.tables.last_mut() else {
            return;
        };
        let (mut columns, mut cells): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
        for cell in table.row.drain(..) {
            let text = if cell.continues {
                table.above.get(columns.len()).cloned().unwrap_or_default()
            } else {
                cell.text
            };
            columns.extend(std::iter::repeat_n(text.clone(), cell.span.max(1)));
            cells.push(text);
        }
        table.above = columns;
        if cells.iter().all(String::is_empty) {
            return;
        }
        let text = cells.join(" | ");
        let head = table.head.clone();
        table.head.get_or_insert_with(|| Arc::from(text.as_str()));
        if nested {
            let outer = self.tables.len().saturating_sub(2);
            if let Some(cell) = self
                .tables
                .get_mut(outer)
                .and_then(|table| table.row.last_mut())
            {
                if !cell.text.is_empty() {
                    cell.text.push_str("； ");
                }
                cell.text.push_str(&text);
            }
            return;
        }
        self.blocks.push(Block {
            heading: None,
            text,
            page: None,
            table_head: head,
        });
    }
}

/// In one line; a tab stays one, since it tells lines of a table of contents.
fn tidy(text: &str) -> String {
    let cells: Vec<String> = text
        .split('\t')
        .map(|cell| cell.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    cells.join("\t").trim().to_owned()
}
