//! The lines of one PDF page. A page says where each piece of text is put, not what a line is: pieces at the
//! same height are one line, and a gap between them is a space. Which character a code stands for is the
//! font's matter; a font that does not say so is counted, never guessed at.

use std::collections::BTreeMap;

use encoding_rs::{GBK, UTF_16BE};
use lopdf::{Dictionary, Document, Encoding, Object, ObjectId, content::Content};

use super::pdf::MOST_UNPACKED;

/// Forms may hold forms.
const DEEPEST: usize = 8;
/// Most drawing operations on one page.
const MOST_OPERATIONS: usize = 2_000_000;
/// Most saved graphics states.
const MOST_SAVED: usize = 512;

/// What a page says.
#[derive(Debug, Default)]
pub(super) struct PageText {
    /// Lines in the order they were drawn; none is empty.
    pub lines: Vec<String>,
    /// Pieces of text that could not be decoded.
    pub garbled: usize,
}

/// Reads a page.
///
/// # Errors
/// Its content can't be parsed.
pub(super) fn read(document: &Document, page: ObjectId) -> lopdf::Result<PageText> {
    let content = document.get_page_content_with_limit(page, MOST_UNPACKED)?;
    let (own, inherited) = document.get_page_resources(page)?;
    let mut resources: Vec<&Dictionary> = own.into_iter().collect();
    resources.extend(
        inherited
            .iter()
            .filter_map(|id| document.get_dictionary(*id).ok()),
    );
    let mut walk = Walk {
        document,
        page: PageText::default(),
        line: None,
        operations: 0,
    };
    walk.run(&content, &resources, Matrix::IDENTITY, 0)?;
    walk.end_line();
    Ok(walk.page)
}

/// How a font's codes become characters.
enum Font<'a> {
    /// By its own map.
    Composite(Box<Encoding<'a>>),
    /// One byte a character.
    Simple(Box<Encoding<'a>>),
    Utf16,
    Gbk,
    Unknown,
}

impl<'a> Font<'a> {
    fn of(document: &'a Document, font: &'a Dictionary) -> Self {
        let is = |key: &[u8], name: &[u8]| {
            font.get_deref(key, document)
                .and_then(Object::as_name)
                .is_ok_and(|is| is == name)
        };
        let named = font
            .get_deref(b"Encoding", document)
            .and_then(Object::as_name)
            .map(String::from_utf8_lossy)
            .unwrap_or_default();
        let composite = is(b"Subtype", b"Type0");
        if let Some(map) = to_unicode(document, font).map(Box::new) {
            return if composite {
                Self::Composite(map)
            } else {
                Self::Simple(map)
            };
        }
        if composite {
            return match &*named {
                name if name.starts_with("Uni")
                    && (name.contains("UCS2") || name.contains("UTF16")) =>
                {
                    Self::Utf16
                }
                name if name.starts_with("GB") => Self::Gbk,
                _ => Self::Unknown,
            };
        }
        if is(b"Subtype", b"Type3") {
            return Self::Unknown;
        }
        // Glyph names of a subset's own are no characters, and the library would fall back to Latin letters.
        let differs = font
            .get_deref(b"Encoding", document)
            .and_then(Object::as_dict)
            .is_ok_and(|encoding| encoding.has(b"Differences"));
        match font.get_font_encoding_with_limit(document, MOST_UNPACKED) {
            Ok(encoding) if !differs || matches!(encoding, Encoding::Differences(_)) => {
                Self::Simple(Box::new(encoding))
            }
            _ => Self::Unknown,
        }
    }

    fn is_composite(&self) -> bool {
        !matches!(self, Self::Simple(_))
    }

    fn decode(&self, bytes: &[u8]) -> Option<String> {
        match self {
            Self::Composite(encoding) | Self::Simple(encoding) => {
                encoding.bytes_to_string(bytes).ok()
            }
            Self::Utf16 => Some(UTF_16BE.decode_without_bom_handling(bytes).0.into_owned()),
            Self::Gbk => Some(GBK.decode_without_bom_handling(bytes).0.into_owned()),
            Self::Unknown => None,
        }
    }
}

/// How wide a character usually is, in its own height. Composite fonts are mostly Chinese ones, whose letters
/// all have half a width.
fn usual_width(c: char, composite: bool) -> f32 {
    match c {
        _ if !c.is_ascii() => 1.0,
        _ if composite => 0.5,
        ' ' | '.' | ',' | ';' | ':' | '!' | '|' | '\'' | 'i' | 'j' | 'l' | 'f' | 't' | 'I' => 0.26,
        'r' | '(' | ')' | '-' | '/' => 0.33,
        'm' | 'w' | 'M' | 'W' | '%' | '@' => 0.8,
        'A'..='Z' => 0.66,
        _ => 0.53,
    }
}

/// A font's own map to Unicode, which says more than its encoding does.
fn to_unicode(document: &Document, font: &Dictionary) -> Option<Encoding<'static>> {
    let mut bare = Dictionary::new();
    bare.set("Type", Object::Name(b"Font".to_vec()));
    bare.set("ToUnicode", font.get(b"ToUnicode").ok()?.clone());
    match bare.get_font_encoding_with_limit(document, MOST_UNPACKED) {
        Ok(Encoding::UnicodeMapEncoding(map)) => Some(Encoding::UnicodeMapEncoding(map)),
        _ => None,
    }
}

/// `[a b c d e f]` as PDF writes them.
#[derive(Debug, Clone, Copy)]
struct Matrix([f32; 6]);

impl Matrix {
    const IDENTITY: Self = Self([1.0, 0.0, 0.0, 1.0, 0.0, 0.0]);

    /// This one first, then `next`.
    fn then(self, next: Self) -> Self {
        let ([a, b, c, d, e, f], [g, h, i, j, k, l]) = (self.0, next.0);
        Self([
            a * g + b * i,
            a * h + b * j,
            c * g + d * i,
            c * h + d * j,
            e * g + f * i + k,
            e * h + f * j + l,
        ])
    }

    fn moved(x: f32, y: f32) -> Self {
        Self([1.0, 0.0, 0.0, 1.0, x, y])
    }
}

struct Line {
    text: String,
    y: f32,
    /// Where its last piece began and, by a guess at the widths, ended.
    last_x: f32,
    end_x: f32,
    height: f32,
    last: String,
}

#[derive(Clone, Copy)]
struct TextState {
    line: Matrix,
    at: Matrix,
    leading: f32,
    size: f32,
}

struct Walk<'a> {
    document: &'a Document,
    page: PageText,
    line: Option<Line>,
    operations: usize,
}

impl<'a> Walk<'a> {
    fn run(
        &mut self,
        content: &[u8],
        resources: &[&'a Dictionary],
        outer: Matrix,
        depth: usize,
    ) -> lopdf::Result<()> {
        let content = Content::decode(content)?;
        let fonts = self.fonts(resources);
        let mut font = None;
        let mut ctm = outer;
        let mut saved = Vec::new();
        let mut text = TextState {
            line: Matrix::IDENTITY,
            at: Matrix::IDENTITY,
            leading: 0.0,
            size: 12.0,
        };
        for operation in &content.operations {
            self.operations += 1;
            if self.operations > MOST_OPERATIONS {
                return Ok(());
            }
            let operands = operation.operands.as_slice();
            let number = |at: usize| {
                operands
                    .get(at)
                    .and_then(|o| o.as_float().ok())
                    .unwrap_or_default()
            };
            let matrix = || Matrix([0, 1, 2, 3, 4, 5].map(number));
            let next_line = |text: &mut TextState, x: f32, y: f32| {
                text.line = Matrix::moved(x, y).then(text.line);
                text.at = text.line;
            };
            match operation.operator.as_str() {
                "q" if saved.len() < MOST_SAVED => saved.push(ctm),
                "Q" => ctm = saved.pop().unwrap_or(ctm),
                "cm" => ctm = matrix().then(ctm),
                "BT" => {
                    text.line = Matrix::IDENTITY;
                    text.at = Matrix::IDENTITY;
                }
                "Tf" => {
                    font = operands
                        .first()
                        .and_then(|name| name.as_name().ok())
                        .and_then(|name| fonts.get(name));
                    text.size = number(1);
                }
                "TL" => text.leading = number(0),
                "Tm" => {
                    text.line = matrix();
                    text.at = text.line;
                }
                "Td" => next_line(&mut text, number(0), number(1)),
                "TD" => {
                    text.leading = -number(1);
                    next_line(&mut text, number(0), number(1));
                }
                "T*" => {
                    let leading = text.leading;
                    next_line(&mut text, 0.0, -leading);
                }
                "Tj" | "TJ" => self.show(operands, font, &mut text, ctm),
                "'" => {
                    let leading = text.leading;
                    next_line(&mut text, 0.0, -leading);
                    self.show(operands, font, &mut text, ctm);
                }
                "\"" => {
                    let leading = text.leading;
                    next_line(&mut text, 0.0, -leading);
                    self.show(operands.get(2..).unwrap_or_default(), font, &mut text, ctm);
                }
                "Do" if depth < DEEPEST => {
                    if let Some(name) = operands.first().and_then(|name| name.as_name().ok()) {
                        self.form(name, resources, ctm, depth);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn fonts(&self, resources: &[&'a Dictionary]) -> BTreeMap<Vec<u8>, Font<'a>> {
        let mut fonts = BTreeMap::new();
        for resource in resources {
            let named = resource
                .get_deref(b"Font", self.document)
                .and_then(Object::as_dict);
            for (name, font) in named.into_iter().flat_map(Dictionary::iter) {
                let font = self
                    .document
                    .dereference(font)
                    .and_then(|(_, font)| font.as_dict());
                if let (Ok(font), false) = (font, fonts.contains_key(name)) {
                    fonts.insert(name.clone(), Font::of(self.document, font));
                }
            }
        }
        fonts
    }

    /// A form is drawn as if it stood in the page. One that can't be read is counted.
    fn form(&mut self, name: &[u8], resources: &[&'a Dictionary], ctm: Matrix, depth: usize) {
        let found = resources.iter().find_map(|resource| {
            let forms = resource
                .get_deref(b"XObject", self.document)
                .and_then(Object::as_dict)
                .ok()?;
            forms
                .get_deref(name, self.document)
                .and_then(Object::as_stream)
                .ok()
        });
        let Some(form) = found.filter(|form| {
            form.dict
                .get(b"Subtype")
                .and_then(Object::as_name)
                .is_ok_and(|name| name == b"Form")
        }) else {
            return;
        };
        let matrix = form
            .dict
            .get_deref(b"Matrix", self.document)
            .and_then(Object::as_array)
            .map_or(Matrix::IDENTITY, |numbers| {
                Matrix([0, 1, 2, 3, 4, 5].map(|at: usize| {
                    numbers
                        .get(at)
                        .and_then(|number| number.as_float().ok())
                        .unwrap_or_default()
                }))
            });
        let own = form
            .dict
            .get_deref(b"Resources", self.document)
            .and_then(Object::as_dict)
            .ok();
        let own: Vec<&Dictionary> = own.into_iter().collect();
        let inner = if own.is_empty() {
            resources
        } else {
            own.as_slice()
        };
        let drawn = form
            .get_plain_content_with_limit(MOST_UNPACKED)
            .and_then(|content| self.run(&content, inner, matrix.then(ctm), depth + 1));
        if drawn.is_err() {
            self.page.garbled += 1;
        }
    }

    fn show(
        &mut self,
        operands: &[Object],
        font: Option<&Font<'_>>,
        text: &mut TextState,
        ctm: Matrix,
    ) {
        for operand in operands {
            match operand {
                Object::String(bytes, _) => self.piece(bytes, font, text, ctm),
                Object::Array(pieces) => {
                    for piece in pieces {
                        match piece {
                            Object::String(bytes, _) => self.piece(bytes, font, text, ctm),
                            number => {
                                let back = number.as_float().unwrap_or_default();
                                text.at =
                                    Matrix::moved(-back / 1000.0 * text.size, 0.0).then(text.at);
                            }
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn piece(&mut self, bytes: &[u8], font: Option<&Font<'_>>, text: &mut TextState, ctm: Matrix) {
        if bytes.is_empty() {
            return;
        }
        let decoded = font.and_then(|font| font.decode(bytes));
        let Some(said) = decoded.filter(|said| !said.contains('\u{fffd}')) else {
            self.page.garbled += 1;
            return;
        };
        let Matrix([a, b, c, d, x, y]) = text.at.then(ctm);
        let height = (text.size * (c.hypot(d))).abs().max(0.1);
        let wide = font.is_some_and(Font::is_composite);
        let width: f32 = said.chars().map(|c| usual_width(c, wide)).sum();
        self.put(&said, x, y, x + width * text.size * a.hypot(b), height);
        text.at = Matrix::moved(width * text.size, 0.0).then(text.at);
    }

    fn put(&mut self, said: &str, x: f32, y: f32, end_x: f32, height: f32) {
        let same_line = self.line.as_ref().is_some_and(|line| {
            let usual = line.height.max(height);
            (line.y - y).abs() < usual * 0.5 && x > line.last_x - usual * 0.5
        });
        if !same_line {
            self.end_line();
        }
        let Some(line) = &mut self.line else {
            self.line = Some(Line {
                text: said.to_owned(),
                y,
                last_x: x,
                end_x,
                height,
                last: said.to_owned(),
            });
            return;
        };
        // Bold is often the same text drawn twice, a hair apart.
        if line.last == said && (x - line.last_x).abs() < height * 0.12 {
            return;
        }
        let gap = x - line.end_x;
        let words = line.text.ends_with(|c: char| c.is_ascii_alphanumeric())
            && said.starts_with(|c: char| c.is_ascii_alphanumeric());
        if gap > height * 2.0 {
            line.text.push_str("  ");
        } else if gap > height * if words { 0.18 } else { 0.8 } {
            line.text.push(' ');
        }
        line.text.push_str(said);
        line.last_x = x;
        line.end_x = end_x;
        line.height = line.height.max(height);
        said.clone_into(&mut line.last);
    }

    fn end_line(&mut self) {
        let Some(line) = self.line.take() else {
            return;
        };
        let clean: String = line
            .text
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        let clean = clean.trim();
        if !clean.is_empty() {
            self.page.lines.push(clean.to_owned());
        }
    }
}
