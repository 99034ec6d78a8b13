//! Word files: the text as it stands with all tracked changes taken over. Headings come from styles, numbers
//! from lists, rows of tables are lines; footnotes follow the paragraph that names them.

use std::{
    collections::HashMap,
    io::{Cursor, Read},
};

use quick_xml::{
    Reader,
    escape::resolve_xml_entity,
    events::{BytesStart, Event},
};
use zip::ZipArchive;

use super::{DocumentError, docx_body::Body, docx_styles};
use crate::{
    adapters::decode,
    types::protocol::{Manuscript, Media},
};

/// Most bytes one part of the file may unpack to.
const MOST_UNPACKED: u64 = 128 * 1024 * 1024;
/// Deepest nesting of elements.
const DEEPEST: usize = 512;

pub(super) fn read(bytes: &[u8]) -> Result<Manuscript, DocumentError> {
    if bytes.starts_with(&[0xd0, 0xcf, 0x11, 0xe0]) {
        return Err(broken(
            "它已加密，或其实是旧版 Word encrypted, or an old Word file",
        ));
    }
    let mut archive =
        ZipArchive::new(Cursor::new(bytes)).map_err(|_| broken("不是 zip 包 no zip archive"))?;
    let document = part(&mut archive, "word/document.xml")?
        .ok_or_else(|| broken("里面没有 word/document.xml it has no word/document.xml"))?;
    let mut body = Body::default();
    if let Some(styles) = part(&mut archive, "word/styles.xml")? {
        body.styles = docx_styles::styles(&styles)?;
    }
    if let Some(numbering) = part(&mut archive, "word/numbering.xml")? {
        body.numbering = docx_styles::numbering(&numbering)?;
    }
    for name in ["word/footnotes.xml", "word/endnotes.xml"] {
        if let Some(notes) = part(&mut archive, name)? {
            body.notes.extend(notes_of(&notes, name.contains("end"))?);
        }
    }
    elements(&document, |event| body.take(event))?;
    let gaps = body.gaps();
    Ok(Manuscript {
        media: Media::Docx,
        blocks: body.blocks,
        pages: None,
        gaps,
    })
}

/// A part of the archive as text; `None`: there is none of that name.
fn part(
    archive: &mut ZipArchive<Cursor<&[u8]>>,
    name: &str,
) -> Result<Option<String>, DocumentError> {
    let file = match archive.by_name(name) {
        Ok(file) => file,
        Err(zip::result::ZipError::FileNotFound) => return Ok(None),
        Err(_) => return Err(broken("zip 包读不了 the zip archive can't be read")),
    };
    let mut bytes = Vec::new();
    file.take(MOST_UNPACKED + 1)
        .read_to_end(&mut bytes)
        .map_err(|_| broken("zip 包读不了 the zip archive can't be read"))?;
    if bytes.len() as u64 > MOST_UNPACKED {
        return Err(DocumentError::TooLarge("解压后 128 MB unpacked"));
    }
    let decoded = decode::decode(&bytes)
        .map_err(|_| broken("XML 的编码有误 its XML is in no known encoding"))?;
    Ok(Some(decoded.text))
}

/// What a reader of the XML is told.
pub(super) enum Part<'a> {
    /// An element begins: its name without prefix, and its attributes.
    Begin(&'a str, &'a BytesStart<'a>),
    /// An element ends.
    End(&'a str),
    /// Text.
    Text(&'a str),
}

/// Walks through a document, element by element. An element without content begins and ends.
///
/// # Errors
/// Not well-formed, too deep, a DOCTYPE, an entity that XML does not define.
pub(super) fn elements(xml: &str, mut take: impl FnMut(Part<'_>)) -> Result<(), DocumentError> {
    let mut reader = Reader::from_str(xml.strip_prefix('\u{feff}').unwrap_or(xml));
    let mut depth = 0_usize;
    loop {
        let event = reader
            .read_event()
            .map_err(|_| broken("XML 不完整 its XML is not well-formed"))?;
        match event {
            Event::Start(tag) => {
                depth += 1;
                if depth > DEEPEST {
                    return Err(broken("XML 嵌套过深 its XML is nested too deeply"));
                }
                take(Part::Begin(tag.local_name().as_ref(), &tag));
            }
            Event::Empty(tag) => {
                take(Part::Begin(tag.local_name().as_ref(), &tag));
                take(Part::End(tag.local_name().as_ref()));
            }
            Event::End(tag) => {
                depth = depth.saturating_sub(1);
                take(Part::End(tag.local_name().as_ref()));
            }
            Event::Text(text) => take(Part::Text(&text.xml10_content())),
            Event::CData(text) => take(Part::Text(&text.xml10_content())),
            Event::GeneralRef(reference) => {
                let text = match reference.resolve_char_ref() {
                    Ok(Some(character)) => character.to_string(),
                    Ok(None) => resolve_xml_entity(&reference)
                        .ok_or_else(|| {
                            broken("XML 含未定义的实体 an entity that XML does not define")
                        })?
                        .to_owned(),
                    Err(_) => "\u{fffd}".to_owned(),
                };
                take(Part::Text(&text));
            }
            Event::DocType(_) => return Err(broken("XML 含 DOCTYPE a DOCTYPE is not allowed")),
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
            Event::Eof if depth > 0 => return Err(broken("XML 不完整 its XML is not well-formed")),
            Event::Eof => return Ok(()),
        }
    }
}

/// An attribute by its name without prefix.
pub(super) fn attribute(tag: &BytesStart<'_>, name: &str) -> Option<String> {
    tag.attributes()
        .with_checks(false)
        .filter_map(Result::ok)
        .find(|attribute| attribute.key.local_name().as_ref() == name)
        .map(|attribute| attribute.value.into_owned())
}

/// Footnotes or endnotes by the reference that names them.
fn notes_of(xml: &str, end: bool) -> Result<HashMap<(bool, String), String>, DocumentError> {
    let mut notes: HashMap<(bool, String), String> = HashMap::new();
    let (mut open, mut text, mut in_text, mut deleted) = (None, String::new(), false, 0_usize);
    elements(xml, |part| match part {
        Part::Begin("footnote" | "endnote", tag) => {
            // Separators are notes with a type.
            open = attribute(tag, "id").filter(|_| attribute(tag, "type").is_none());
            text.clear();
        }
        Part::End("footnote" | "endnote") => {
            if let Some(id) = open.take() {
                let said = text.split_whitespace().collect::<Vec<_>>().join(" ");
                if !said.is_empty() {
                    notes.insert((end, id), said);
                }
            }
        }
        Part::Begin("del" | "moveFrom", _) => deleted += 1,
        Part::End("del" | "moveFrom") => deleted = deleted.saturating_sub(1),
        Part::Begin("t", _) => in_text = true,
        Part::End("t") => in_text = false,
        Part::End("p") => text.push(' '),
        Part::Text(said) if in_text && deleted == 0 => text.push_str(said),
        _ => {}
    })?;
    Ok(notes)
}

pub(super) fn broken(why: &str) -> DocumentError {
    DocumentError::Broken(why.to_owned())
}
