//! Documents made here: PDF by `lopdf`, Word by `zip`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed expectation is the test's verdict"
)]

use std::io::{Cursor, Write};
use std::path::Path;

use iit_manager::adapters::documents::{self, DocumentError};
use iit_manager::types::protocol::{Block, Manuscript};
use lopdf::content::{Content, Operation};
use lopdf::{Dictionary, Document, Object, Stream, dictionary};
use zip::write::SimpleFileOptions;

/// Reads bytes as a file of that name.
pub fn read(name: &str, bytes: impl Into<Vec<u8>>) -> Result<Manuscript, DocumentError> {
    documents::read(Path::new(name), bytes.into(), Box::new(|_, _| ()))
}

/// One block a line: `#2 标题`, `p3 text`, `| row`.
pub fn told(blocks: &[Block]) -> String {
    let lines = blocks.iter().map(|block| {
        let heading = block
            .heading
            .map(|level| format!("#{level} "))
            .unwrap_or_default();
        let page = block
            .page
            .map(|page| format!("p{page} "))
            .unwrap_or_default();
        let row = if block.table_head.is_some() { "| " } else { "" };
        format!("{page}{heading}{row}{}", block.text)
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// How a piece of text is encoded in a PDF.
#[derive(Debug, Clone, Copy)]
pub enum Font {
    /// The predefined map of Chinese fonts that are not embedded.
    UniGb,
    /// GBK codes.
    Gbk,
    /// Glyph numbers with a map to Unicode, as embedded subsets have.
    Mapped,
    /// Glyph numbers and nothing that says what they mean.
    Unmapped,
    /// Latin letters.
    Latin,
}

/// A piece of text and where it is put.
pub type Piece = (i64, i64, Font, &'static str);

/// A PDF of these pages.
pub fn pdf(pages: &[Vec<Piece>]) -> Vec<u8> {
    let mut document = Document::with_version("1.5");
    let tree = document.new_object_id();
    let fonts = fonts(&mut document);
    let kids: Vec<Object> = pages
        .iter()
        .map(|pieces| {
            let content = Content {
                operations: drawn(pieces),
            }
            .encode()
            .unwrap();
            let content = document.add_object(Stream::new(Dictionary::new(), content));
            let page = dictionary! {
                "Type" => "Page", "Parent" => tree, "Contents" => content,
                "Resources" => dictionary! { "Font" => fonts.clone() },
                "MediaBox" => vec![0.into(), 0.into(), 595.into(), 842.into()],
            };
            document.add_object(page).into()
        })
        .collect();
    let count = i64::try_from(kids.len()).unwrap();
    let root = dictionary! { "Type" => "Pages", "Kids" => kids, "Count" => count };
    document.objects.insert(tree, root.into());
    let catalog = document.add_object(dictionary! { "Type" => "Catalog", "Pages" => tree });
    document.trailer.set("Root", catalog);
    document.compress();
    let mut bytes = Vec::new();
    document.save_to(&mut bytes).unwrap();
    bytes
}

fn drawn(pieces: &[Piece]) -> Vec<Operation> {
    pieces
        .iter()
        .flat_map(|&(x, y, font, text)| {
            let (name, bytes) = encoded(font, text);
            [
                Operation::new("BT", vec![]),
                Operation::new("Tf", vec![name.into(), 12.into()]),
                Operation::new("Tm", [1, 0, 0, 1, x, y].map(Object::from).to_vec()),
                Operation::new(
                    "Tj",
                    vec![Object::String(bytes, lopdf::StringFormat::Hexadecimal)],
                ),
                Operation::new("ET", vec![]),
            ]
        })
        .collect()
}

fn encoded(font: Font, text: &str) -> (&'static str, Vec<u8>) {
    let utf16 = || text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    match font {
        Font::UniGb => ("F1", utf16()),
        Font::Gbk => ("F2", encoding_rs::GBK.encode(text).0.into_owned()),
        // Glyph n is the n-th character of the map.
        Font::Mapped => (
            "F3",
            text.chars().flat_map(|c| glyph(c).to_be_bytes()).collect(),
        ),
        Font::Unmapped => ("F4", utf16()),
        Font::Latin => ("F5", text.bytes().collect()),
    }
}

const GLYPHS: &str = "访视窗口基线天前后±0123456789V";

fn glyph(c: char) -> u16 {
    u16::try_from(GLYPHS.chars().position(|known| known == c).unwrap() + 1).unwrap()
}

fn fonts(document: &mut Document) -> Dictionary {
    let map: String = GLYPHS
        .chars()
        .map(|c| format!("<{:04x}> <{:04x}>\n", glyph(c), u32::from(c)))
        .collect();
    let map = format!(
        "/CIDInit /ProcSet findresource begin\n12 dict begin\nbegincmap\n\
         /CIDSystemInfo\n<< /Registry (Adobe)\n/Ordering (UCS)\n/Supplement 0\n>> def\n\
         /CMapName /Adobe-Identity-UCS def\n/CMapType 2 def\n\
         1 begincodespacerange\n<0000> <FFFF>\nendcodespacerange\n\
         {} beginbfchar\n{map}endbfchar\n\
         endcmap\nCMapName currentdict /CMap defineresource pop\nend\nend\n",
        GLYPHS.chars().count()
    );
    let map = document.add_object(Stream::new(Dictionary::new(), map.into_bytes()));
    let composite = |encoding: &str| {
        dictionary! { "Type" => "Font", "Subtype" => "Type0", "BaseFont" => "SimSun", "Encoding" => encoding }
    };
    let mut mapped = composite("Identity-H");
    mapped.set("ToUnicode", map);
    dictionary! {
        "F1" => composite("UniGB-UCS2-H"),
        "F2" => composite("GBK-EUC-H"),
        "F3" => mapped,
        "F4" => composite("Identity-H"),
        "F5" => dictionary! { "Type" => "Font", "Subtype" => "Type1", "BaseFont" => "Helvetica", "Encoding" => "WinAnsiEncoding" },
    }
}

/// A Word file with this body and these other parts.
pub fn docx(body: &str, parts: &[(&str, &str)]) -> Vec<u8> {
    let root = |name: &str, inner: &str| {
        format!(
            r#"<?xml version="1.0" encoding="UTF-8"?><w:{name} xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006">{inner}</w:{name}>"#
        )
    };
    let document = root("document", &format!("<w:body>{body}</w:body>"));
    let mut all = vec![("word/document.xml".to_owned(), document)];
    for (name, inner) in parts {
        all.push((format!("word/{name}.xml"), root(name, inner)));
    }
    zipped(
        &all.iter()
            .map(|(name, text)| (name.as_str(), text.as_bytes()))
            .collect::<Vec<_>>(),
    )
}

/// An archive of these files.
pub fn zipped(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in files {
        archive
            .start_file(*name, SimpleFileOptions::default())
            .unwrap();
        archive.write_all(bytes).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

/// A paragraph, of a style unless it is empty.
pub fn p(style: &str, text: &str) -> String {
    let style = match style {
        "" => String::new(),
        style => format!(r#"<w:pPr><w:pStyle w:val="{style}"/></w:pPr>"#),
    };
    format!("<w:p>{style}<w:r><w:t>{text}</w:t></w:r></w:p>")
}
