//! What a study has written down: the text of a document as it is read, and passages of it as they are
//! found and cited.

use std::{fmt, sync::Arc};

use serde::Serialize;

/// What a document was read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Media {
    /// Markdown.
    Markdown,
    /// Plain text.
    Text,
    /// PDF with a text layer.
    Pdf,
    /// Word, since 2007.
    Docx,
}

impl Media {
    /// The name it is stored by.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Markdown => "markdown",
            Self::Text => "text",
            Self::Pdf => "pdf",
            Self::Docx => "docx",
        }
    }
}

/// A paragraph, a heading, or a row of a table; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// How deep a heading it is, from 1; `None`: the format does not say that it is one.
    pub heading: Option<u8>,
    /// The text, in one line.
    pub text: String,
    /// The page it begins on, from 1, where the format has pages.
    pub page: Option<u32>,
    /// Of a table's row: its first row, which says what the columns are. Repeated where the table is cut.
    pub table_head: Option<Arc<str>>,
}

/// A document as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manuscript {
    /// What it was read from.
    pub media: Media,
    /// Its text, in order.
    pub blocks: Vec<Block>,
    /// How many pages it has, where the format has pages.
    pub pages: Option<u32>,
    /// What could not be read, one sentence each, for people.
    pub gaps: Vec<String>,
}

/// A piece of a document that is found and cited as one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    /// The number of its section, where it has one: `5.2`.
    pub number: Option<String>,
    /// The headings it stands under, outermost first, joined by ` › `; empty before the first.
    pub section: String,
    /// The page it begins on.
    pub page: Option<u32>,
    /// The text; paragraphs are lines.
    pub text: String,
}

/// A passage that a search found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Found {
    /// The document's name.
    pub document: String,
    /// Its version as it calls it itself (`V2.0`), or as it is counted here (`第2版`).
    pub version: Option<String>,
    /// The number of the section.
    pub number: Option<String>,
    /// The headings.
    pub section: String,
    /// The page.
    pub page: Option<u32>,
    /// The text.
    pub text: String,
}

impl Found {
    /// How an answer cites it: `《方案》V2.0 §5.2`; without a numbered section its innermost heading stands
    /// there, and without any the page.
    #[must_use]
    pub fn citation(&self) -> Citation<'_> {
        Citation(self)
    }
}

/// See [`Found::citation`].
#[derive(Debug, Clone, Copy)]
pub struct Citation<'a>(&'a Found);

impl fmt::Display for Citation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = self.0;
        write!(f, "《{}》", found.document)?;
        if let Some(version) = &found.version {
            f.write_str(version)?;
        }
        let innermost = found
            .section
            .rsplit(SECTION_MARK)
            .next()
            .unwrap_or_default();
        match (&found.number, innermost, found.page) {
            (Some(number), ..) => write!(f, " §{number}"),
            (None, "", Some(page)) => write!(f, "第 {page} 页"),
            (None, "", None) => Ok(()),
            (None, heading, _) => write!(f, " “{heading}”"),
        }
    }
}

/// Stands between the headings of a section's path.
pub const SECTION_MARK: &str = " › ";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_citation_names_document_version_and_the_closest_place_there_is() {
        let found = Found {
            document: "方案".to_owned(),
            version: Some("V2.0".to_owned()),
            number: Some("5.2".to_owned()),
            section: "5 访视 › 5.2 访视窗口".to_owned(),
            page: Some(12),
            text: String::new(),
        };
        assert_eq!(found.citation().to_string(), "《方案》V2.0 §5.2");
        let unnumbered = Found {
            number: None,
            section: "附录 › 剂量调整".to_owned(),
            ..found.clone()
        };
        assert_eq!(unnumbered.citation().to_string(), "《方案》V2.0 “剂量调整”");
        let bare = Found {
            number: None,
            version: None,
            section: String::new(),
            ..found
        };
        assert_eq!(bare.citation().to_string(), "《方案》第 12 页");
        let nowhere = Found { page: None, ..bare };
        assert_eq!(nowhere.citation().to_string(), "《方案》");
    }
}
