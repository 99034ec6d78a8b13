//! The `.env` file: the first one found from the working folder upwards. What the environment already
//! says beats it. A file that can't be read whole is refused, since a setting that is quietly missing
//! (a data folder, a token) sends the program somewhere else.

use std::{
    cell::Cell,
    io::Read,
    path::{Path, PathBuf},
    rc::Rc,
};

use super::cli::exit::Failure;

/// Reads the `.env` file into the environment and says which file that was; `None` when there is none.
/// Call it before any thread is started.
///
/// # Errors
/// Exit code 2, naming the file and, for a faulty line, its number; never its content, which may be a
/// secret. Nothing has been read into the environment then.
pub fn load() -> Result<Option<PathBuf>, Failure> {
    let Ok(here) = std::env::current_dir() else {
        return Ok(None);
    };
    let Some(path) = here
        .ancestors()
        .map(|folder| folder.join(".env"))
        .find(|path| path.is_file())
    else {
        return Ok(None);
    };
    let unreadable = |error: &dyn std::fmt::Display| {
        Failure::Usage(format!(
            "读不了 {}：{error}；请检查文件及其权限 (can't be read, check the file and its permissions)",
            path.display()
        ))
    };
    let bytes = std::fs::read(&path).map_err(|error| unreadable(&error))?;
    check(&path, &bytes)?;
    dotenvy::from_read(bytes.as_slice()).map_err(|error| unreadable(&error))?;
    Ok(Some(path))
}

/// Finds the first line that can't be read.
fn check(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let fault =
        |line: usize, what: &str| Err(Failure::Usage(format!("{}:{line}：{what}", path.display())));
    if let Err(error) = std::str::from_utf8(bytes) {
        return fault(
            line_at(bytes, error.valid_up_to()),
            "不是 UTF-8，请另存为 UTF-8 (not UTF-8, save the file as UTF-8)",
        );
    }
    if let Some(at) = bytes.iter().position(|byte| *byte == 0) {
        return fault(
            line_at(bytes, at),
            "含有 NUL 字符，请删除 (holds a NUL character, remove it)",
        );
    }
    let read = Rc::new(Cell::new(0));
    let lines = LineByLine {
        rest: bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes),
        read: Rc::clone(&read),
    };
    for item in dotenvy::from_read_iter(lines) {
        let Err(error) = item else { continue };
        // A quoted value may go over several lines; the fault is named where it begins.
        let over = match &error {
            dotenvy::Error::LineParse(text, _) => text.lines().count().max(1),
            _ => 1,
        };
        return fault(
            (read.get() + 1).saturating_sub(over).max(1),
            "这一行读不懂；写作 名称=值，值中有空格、引号或 # 时整个值加引号，如 NAME=\"a b\" (write NAME=value, and quote a value with spaces)",
        );
    }
    Ok(())
}

fn line_at(bytes: &[u8], at: usize) -> usize {
    bytes.iter().take(at).filter(|byte| **byte == b'\n').count() + 1
}

/// Hands out one line a read, so that the lines read so far are the lines parsed so far.
struct LineByLine<'a> {
    rest: &'a [u8],
    read: Rc<Cell<usize>>,
}

impl Read for LineByLine<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let line = self
            .rest
            .iter()
            .position(|byte| *byte == b'\n')
            .map_or(self.rest.len(), |at| at + 1);
        let length = line.min(into.len());
        let (now, later) = self.rest.split_at(length);
        if let Some(space) = into.get_mut(..length) {
            space.copy_from_slice(now);
        }
        if length == line && line > 0 {
            self.read.set(self.read.get() + 1);
        }
        self.rest = later;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        reason = "a failed expectation is the test's verdict"
    )]
    use super::*;

    fn refusal(bytes: &[u8]) -> String {
        let failure = check(Path::new("/x/.env"), bytes).unwrap_err();
        assert_eq!(failure.code(), 2);
        let text = failure.to_string();
        assert!(!text.contains('\n') && !text.contains("s3cret"), "{text}");
        text
    }

    #[test]
    fn what_can_be_read_is_accepted() {
        for text in [
            "",
            "\u{feff}A=1\r\n# 注释\r\n\r\nB=\"x y\" # why\r\nexport C='z'\r\n",
            "A=\nB=\"two\nlines\"\nLAST=1",
            include_str!("../../.env.example"),
        ] {
            assert!(check(Path::new(".env"), text.as_bytes()).is_ok(), "{text}");
        }
    }

    #[test]
    fn a_line_that_cannot_be_read_is_named_and_its_content_kept_secret() {
        for (text, line) in [
            ("A=1\n# x\n\nTOKEN=s3cret and more\nB=2\n", 4),
            ("\u{feff}TOKEN s3cret\n", 1),
            ("A=\"1\n2\"\nTOKEN=s3cret x\n", 3),
            ("A=1\nTOKEN=\"s3cret\nB=2\nC=3\n", 2),
            ("A=1\nTOKEN=\"s3cret", 2),
            ("A=1\nTOKEN=\"s3\ncret\" more\nB=2\n", 2),
        ] {
            let refusal = refusal(text.as_bytes());
            assert!(
                refusal.starts_with(&format!("/x/.env:{line}：")),
                "{refusal}"
            );
        }
        let long = format!("A=\"{}\"\nTOKEN=s3cret x\n", "a".repeat(20_000));
        assert!(refusal(long.as_bytes()).starts_with("/x/.env:2："));
    }

    #[test]
    fn bytes_that_are_no_text_are_named_with_their_line() {
        let gbk = b"A=1\n# \xca\xfd\xbe\xdd\nB=2\n";
        assert!(refusal(gbk).starts_with("/x/.env:2："));
        assert!(refusal(b"A=1\nB=\0\n").contains("/x/.env:2：含有 NUL"));
    }
}
