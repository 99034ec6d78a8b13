//! Documents people hand in: Markdown, plain text, PDF, Word. What comes from outside is read within bounds
//! of size and time, and what could not be read is said.

mod docx;
mod docx_body;
mod docx_styles;
mod error;
mod numbering;
mod page_text;
mod pdf;
mod plain;

use std::{path::Path, sync::mpsc, time::Duration};

use crate::types::protocol::{Manuscript, Media};

pub use error::DocumentError;

/// Largest file.
pub const MOST_BYTES: u64 = 64 * 1024 * 1024;
/// Most characters of text; a protocol of 300 pages has half a million.
const MOST_CHARACTERS: usize = 8_000_000;
/// No document takes as long, but a file made to keep us busy does.
const DEADLINE: Duration = Duration::from_secs(120);
/// Room for formats that nest: a reader that runs out of stack takes the process with it.
const STACK: usize = 64 * 1024 * 1024;

/// How far reading has come: pages done, pages in all.
pub type Progress = Box<dyn Fn(u32, u32) + Send>;

/// Reads a document, by what its name ends in. Blocks the thread it is called on.
///
/// A file that hangs its reader is given up after two minutes; the reader's thread ends with the process, so
/// this is for commands and not for a server.
///
/// # Errors
/// [`DocumentError`]: too large, no format we know, broken, encrypted, or without any text.
pub fn read(name: &Path, bytes: Vec<u8>, progress: Progress) -> Result<Manuscript, DocumentError> {
    read_within(name, bytes, progress, DEADLINE)
}

fn read_within(
    name: &Path,
    bytes: Vec<u8>,
    progress: Progress,
    deadline: Duration,
) -> Result<Manuscript, DocumentError> {
    let media = media_of(name)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(DocumentError::TooLarge("64 MB"));
    }
    if bytes.is_empty() {
        return Err(DocumentError::Empty);
    }
    let (tell, told) = mpsc::channel();
    let reading = move || {
        let read = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| match media {
            Media::Markdown => plain::markdown(&bytes),
            Media::Text => plain::text(&bytes),
            Media::Pdf => pdf::read(&bytes, &progress),
            Media::Docx => docx::read(&bytes),
        }));
        let read = read.unwrap_or(Err(DocumentError::Broken(
            "读取时出错 the reader gave up".to_owned(),
        )));
        // Nobody listens any more when it took too long.
        let _ = tell.send(read);
    };
    std::thread::Builder::new()
        .name("document".to_owned())
        .stack_size(STACK)
        .spawn(reading)
        .map_err(|_| DocumentError::Broken("内存不足 not enough memory".to_owned()))?;
    let manuscript = told
        .recv_timeout(deadline)
        .map_err(|_| DocumentError::TookTooLong)??;
    let characters: usize = manuscript.blocks.iter().map(|block| block.text.len()).sum();
    if characters == 0 {
        return Err(match media {
            Media::Pdf => DocumentError::Scanned,
            _ => DocumentError::Empty,
        });
    }
    if characters > MOST_CHARACTERS {
        return Err(DocumentError::TooLarge(
            "800 万字节文字 8 million bytes of text",
        ));
    }
    Ok(manuscript)
}

fn media_of(name: &Path) -> Result<Media, DocumentError> {
    let ending = name
        .extension()
        .map(|ending| ending.to_string_lossy().to_lowercase())
        .unwrap_or_default();
    match ending.as_str() {
        "md" | "markdown" => Ok(Media::Markdown),
        "txt" | "text" => Ok(Media::Text),
        "pdf" => Ok(Media::Pdf),
        "docx" => Ok(Media::Docx),
        "doc" => Err(DocumentError::OldWord),
        _ => Err(DocumentError::UnknownFormat(ending)),
    }
}
