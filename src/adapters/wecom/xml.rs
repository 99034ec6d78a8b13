//! The small XML of callbacks, read strictly: one root, no document type, bounded depth and size.

use quick_xml::Reader;
use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::{BytesRef, BytesStart, Event};

/// Deepest nesting the protocol has is `xml/SelectedItems/SelectedItem/OptionIds/OptionId`.
const MAX_DEPTH: usize = 8;
const MAX_ELEMENTS: usize = 2_000;

/// One element: its own text (CDATA sections and references joined) and its children in order.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Element {
    /// Tag name as written.
    pub name: String,
    /// Text directly inside, not trimmed; line ends normalised to `\n`.
    pub text: String,
    /// Child elements in document order.
    pub children: Vec<Element>,
}

impl Element {
    /// The only child of that name; `None` if absent.
    ///
    /// # Errors
    /// Two of them: which one counts would be a guess.
    pub fn only(&self, name: &str) -> Result<Option<&Element>, XmlError> {
        let mut found = self.children.iter().filter(|child| child.name == name);
        match (found.next(), found.next()) {
            (_, Some(_)) => Err(XmlError("an element that must be single appears twice")),
            (first, None) => Ok(first),
        }
    }

    /// Children of that name.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Element> {
        self.children.iter().filter(move |child| child.name == name)
    }
}

/// Why a document was refused; holds no part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct XmlError(pub &'static str);

/// Reads a whole document.
///
/// # Errors
/// Not well-formed, a DOCTYPE (entities are never expanded), an undeclared entity, anything but
/// white space beside the root, too deep or too many elements.
pub fn parse(document: &str) -> Result<Element, XmlError> {
    let mut reader = Reader::from_str(document.strip_prefix('\u{feff}').unwrap_or(document));
    let mut open: Vec<Element> = Vec::new();
    let mut root: Option<Element> = None;
    let mut elements = 0_usize;
    loop {
        match reader
            .read_event()
            .map_err(|_| XmlError("not well-formed XML"))?
        {
            Event::Start(tag) => {
                begin(&tag, &mut open, root.is_some(), &mut elements)?;
            }
            Event::Empty(tag) => {
                begin(&tag, &mut open, root.is_some(), &mut elements)?;
                finish(&mut open, &mut root)?;
            }
            Event::End(_) => finish(&mut open, &mut root)?,
            Event::Text(text) => append(&mut open, &text.xml10_content())?,
            Event::CData(data) => match open.last_mut() {
                Some(element) => element.text.push_str(&data.xml10_content()),
                None => return Err(XmlError("text outside the root element")),
            },
            Event::GeneralRef(reference) => {
                let mut buffer = [0; 4];
                append(&mut open, resolve(&reference, &mut buffer)?)?;
            }
            Event::DocType(_) => return Err(XmlError("a DOCTYPE is not allowed")),
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
            Event::Eof => break,
        }
    }
    if !open.is_empty() {
        return Err(XmlError("an element is not closed"));
    }
    root.ok_or(XmlError("there is no root element"))
}

fn begin(
    tag: &BytesStart<'_>,
    open: &mut Vec<Element>,
    after_root: bool,
    elements: &mut usize,
) -> Result<(), XmlError> {
    *elements += 1;
    if after_root {
        return Err(XmlError("a second root element"));
    }
    if open.len() >= MAX_DEPTH || *elements > MAX_ELEMENTS {
        return Err(XmlError("too deep or too many elements"));
    }
    open.push(Element {
        name: tag.name().as_ref().to_owned(),
        ..Element::default()
    });
    Ok(())
}

fn finish(open: &mut Vec<Element>, root: &mut Option<Element>) -> Result<(), XmlError> {
    let done = open.pop().ok_or(XmlError("an end tag without a start"))?;
    match open.last_mut() {
        Some(parent) => parent.children.push(done),
        None => *root = Some(done),
    }
    Ok(())
}

fn append(open: &mut [Element], text: &str) -> Result<(), XmlError> {
    match open.last_mut() {
        Some(element) => element.text.push_str(text),
        None if text.chars().all(char::is_whitespace) => {}
        None => return Err(XmlError("text outside the root element")),
    }
    Ok(())
}

/// A reference's text. A number that is no character (NUL, a lone surrogate) becomes U+FFFD: the
/// message is kept, the character can't be.
fn resolve<'a>(reference: &'a BytesRef<'_>, buffer: &'a mut [u8; 4]) -> Result<&'a str, XmlError> {
    if let Some(number) = reference.strip_prefix('#') {
        let (digits, radix) = match number.strip_prefix('x') {
            Some(hex) => (hex, 16),
            None => (number, 10),
        };
        if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
            return Err(XmlError("a character reference that is no number"));
        }
        let value = u32::from_str_radix(digits, radix);
        let character = value
            .ok()
            .filter(|&value| value != 0)
            .and_then(char::from_u32)
            .unwrap_or('\u{fffd}');
        return Ok(character.encode_utf8(buffer));
    }
    resolve_xml_entity(reference).ok_or(XmlError("an entity that XML does not define"))
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::expect_used,
        reason = "a failed expectation is the test's verdict"
    )]

    use proptest::prelude::*;

    use super::*;

    fn text_of(inner: &str) -> String {
        let root = parse(&format!("<xml><C>{inner}</C></xml>")).unwrap();
        root.only("C").unwrap().unwrap().text.clone()
    }

    #[test]
    fn text_cdata_and_references_are_joined() {
        assert_eq!(
            text_of("a<![CDATA[b]]]]><![CDATA[>c]]>&lt;&#x4e2d;&#25991;&amp;d"),
            "ab]]>c<中文&d"
        );
        assert_eq!(text_of("<![CDATA[ &amp; <b> ]]>"), " &amp; <b> ");
        assert_eq!(text_of("<!-- no -->x<?pi y?>z"), "xz");
        assert_eq!(text_of("a\r\nb\rc"), "a\nb\nc");
        assert_eq!(text_of(""), "");
    }

    #[test]
    fn a_reference_to_no_character_becomes_the_replacement_character() {
        assert_eq!(
            text_of("a&#0;b&#xD800;c&#x110000;d&#99999999999;e"),
            "a\u{fffd}b\u{fffd}c\u{fffd}d\u{fffd}e"
        );
    }

    #[test]
    fn what_is_not_one_plain_document_is_refused() {
        for (document, what) in [
            ("", "nothing"),
            ("   ", "white space"),
            ("hello", "no markup"),
            ("<xml>", "not closed"),
            ("<xml></lmx>", "wrong end"),
            ("</xml>", "end only"),
            ("<xml/><xml/>", "two roots"),
            ("<xml/>tail", "text after"),
            ("<xml/><![CDATA[tail]]>", "data after"),
            ("<xml>&unknown;</xml>", "unknown entity"),
            ("<xml>&</xml>", "bare ampersand"),
            ("<xml>&#zz;</xml>", "no number"),
            ("<xml>&#x;</xml>", "empty number"),
            ("<!DOCTYPE xml><xml/>", "document type"),
            ("<xml><!DOCTYPE a []></xml>", "document type inside"),
            ("<xml><![CDATA[x</xml>", "open data section"),
        ] {
            let result = parse(document);
            assert!(result.is_err(), "{what}: {result:?}");
        }
    }

    #[test]
    fn depth_and_number_of_elements_are_bounded() {
        let deep = "<xml>".repeat(MAX_DEPTH + 1) + &"</xml>".repeat(MAX_DEPTH + 1);
        assert!(parse(&deep).is_err());
        let fits = "<xml>".repeat(MAX_DEPTH) + &"</xml>".repeat(MAX_DEPTH);
        assert!(parse(&fits).is_ok());
        let wide = format!("<xml>{}</xml>", "<a/>".repeat(MAX_ELEMENTS));
        assert!(parse(&wide).is_err());
    }

    #[test]
    fn a_byte_order_mark_a_declaration_and_space_around_the_root_are_fine() {
        let root =
            parse("\u{feff}<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n <xml a=\"1\"><B/></xml>\n")
                .unwrap();
        assert_eq!(root.children.len(), 1);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".*") {
            let _ = parse(&text);
        }

        #[test]
        fn no_tag_soup_makes_it_panic(pieces in proptest::collection::vec(
            prop_oneof![Just("<xml>"), Just("</xml>"), Just("<a"), Just("/>"), Just("<![CDATA["), Just("]]>"), Just("&#x"), Just("&amp;"), Just(";"), Just("<!DOCTYPE"), Just("<!--"), Just("-->"), Just("<?"), Just("é")], 0..30)) {
            let _ = parse(&pieces.concat());
        }

        #[test]
        fn escaped_text_reads_back(text in "[^\r]*") {
            prop_assume!(!text.contains('\0'));
            let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            prop_assert_eq!(text_of(&escaped), text);
        }
    }
}
