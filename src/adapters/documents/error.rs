//! Why a document can't be read; each a sentence with what to do.

/// Why a document can't be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// Not a format we read.
    #[error(
        "不认识的格式 `{0}`；支持 .md、.txt、.pdf、.docx (unknown format; use Markdown, text, PDF or DOCX)"
    )]
    UnknownFormat(String),
    /// Word before 2007.
    #[error("旧版 Word（.doc）读不了；请在 Word 中另存为 .docx (save it as .docx)")]
    OldWord,
    /// Beyond a bound.
    #[error("文件过大，上限 {0}；请拆成几份 (too large, split it)")]
    TooLarge(&'static str),
    /// Nothing in it.
    #[error("文件里没有文字；请检查是否选对了文件 (there is no text in it)")]
    Empty,
    /// Pictures of pages.
    #[error(
        "PDF 里没有可读的文字，可能是扫描件；请先做文字识别（OCR），或改用 Word 原稿 (a PDF without a text layer, probably scanned; run OCR first or use the Word file)"
    )]
    Scanned,
    /// Locked.
    #[error("PDF 已加密；请去掉打开密码后再试 (the PDF is encrypted; remove its password)")]
    Encrypted,
    /// In no encoding we know.
    #[error(
        "第 {line} 行第 {column} 字节既不是 UTF-8 也不是 GBK；请另存为 UTF-8 (neither UTF-8 nor GBK, save it as UTF-8)"
    )]
    Encoding {
        /// Line, from 1.
        line: u64,
        /// Byte in it, from 1.
        column: usize,
    },
    /// Not what its name says, or damaged; a few words why.
    #[error(
        "文件已损坏或不是这种格式：{0}；请重新导出 (broken, or not of this format; export it again)"
    )]
    Broken(String),
    /// Given up.
    #[error(
        "读取超过两分钟，已放弃；请重新导出这份文件 (given up after two minutes; export it again)"
    )]
    TookTooLong,
}
