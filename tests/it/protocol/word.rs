//! Word files: the text as a reader of the file sees it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed expectation is the test's verdict"
)]

use super::files::{docx, p, read, told, zipped};

const STYLES: &str = r#"
<w:style w:type="paragraph" w:styleId="1"><w:name w:val="heading 1"/><w:pPr><w:numPr><w:numId w:val="1"/></w:numPr><w:outlineLvl w:val="0"/></w:pPr></w:style>
<w:style w:type="paragraph" w:styleId="2"><w:name w:val="heading 2"/><w:pPr><w:numPr><w:ilvl w:val="1"/><w:numId w:val="1"/></w:numPr></w:pPr></w:style>
<w:style w:type="paragraph" w:styleId="Own"><w:name w:val="自定义标题"/><w:basedOn w:val="2"/></w:style>
<w:style w:type="paragraph" w:styleId="TOC1"><w:name w:val="toc 1"/></w:style>
<w:style w:type="paragraph" w:styleId="Loop"><w:name w:val="loop"/><w:basedOn w:val="Loop"/></w:style>"#;

const NUMBERING: &str = r#"
<w:abstractNum w:abstractNumId="7">
 <w:lvl w:ilvl="0"><w:start w:val="5"/><w:numFmt w:val="decimal"/><w:pStyle w:val="1"/><w:lvlText w:val="%1"/></w:lvl>
 <w:lvl w:ilvl="1"><w:start w:val="1"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%1.%2"/></w:lvl>
</w:abstractNum>
<w:abstractNum w:abstractNumId="8"><w:lvl w:ilvl="0"><w:numFmt w:val="lowerLetter"/><w:lvlText w:val="%1)"/></w:lvl></w:abstractNum>
<w:num w:numId="1"><w:abstractNumId w:val="7"/></w:num>
<w:num w:numId="2"><w:abstractNumId w:val="8"/></w:num>"#;

#[test]
fn headings_carry_the_numbers_that_word_shows_and_lists_theirs() {
    let item = |text: &str| {
        format!(
            r#"<w:p><w:pPr><w:numPr><w:ilvl w:val="0"/><w:numId w:val="2"/></w:numPr></w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"#
        )
    };
    let body = [
        p("TOC1", "5 访视 ... 3"),
        p("1", "访视"),
        p("2", "访视安排"),
        p("2", "访视窗口"),
        item("甲"),
        item("乙"),
        p("Own", "提前终止"),
        p("Loop", "循环的样式"),
        p("1", "安全性"),
        p("2", "SAE"),
    ]
    .concat();
    let read = read(
        "a.docx",
        docx(&body, &[("styles", STYLES), ("numbering", NUMBERING)]),
    )
    .unwrap();
    insta::assert_snapshot!(told(&read.blocks), @r"
    #1 5 访视
    #2 5.1 访视安排
    #2 5.2 访视窗口
    a) 甲
    b) 乙
    #2 5.3 提前终止
    循环的样式
    #1 6 安全性
    #2 6.1 SAE
    ");
}

#[test]
fn tracked_changes_are_taken_over_and_nothing_is_said_twice() {
    let body = r#"
<w:p><w:r><w:t xml:space="preserve">窗口为 </w:t></w:r><w:del><w:r><w:delText>±3</w:delText><w:t>旧</w:t></w:r></w:del><w:ins><w:r><w:t>±5</w:t></w:r></w:ins><w:r><w:t xml:space="preserve"> 天 &lt;含&gt; A&#38;B</w:t></w:r></w:p>
<w:p><w:hyperlink><w:r><w:t>链接</w:t></w:r></w:hyperlink><w:r><w:t>与</w:t></w:r><w:sdt><w:sdtContent><w:r><w:t>控件</w:t></w:r></w:sdtContent></w:sdt><w:r><w:instrText>PAGE</w:instrText></w:r></w:p>
<w:p><w:r><mc:AlternateContent><mc:Choice><w:txbxContent><w:p><w:r><w:t>文本框</w:t></w:r></w:p></w:txbxContent></mc:Choice><mc:Fallback><w:p><w:r><w:t>文本框</w:t></w:r></w:p></mc:Fallback></mc:AlternateContent><w:t>框外</w:t></w:r></w:p>
<w:p><w:pPr><w:pPrChange><w:pPr><w:outlineLvl w:val="0"/></w:pPr></w:pPrChange></w:pPr><w:r><w:t>不是标题</w:t></w:r></w:p>
<w:p><w:r><w:sym w:font="Symbol" w:char="F0B1"/><w:t>3 天，</w:t><w:sym w:font="Symbol" w:char="F0B3"/><w:t>18 岁</w:t><w:sym w:font="Wingdings" w:char="F0FC"/><w:footnoteReference w:id="2"/></w:r></w:p>"#;
    let notes = r#"<w:footnote w:type="separator" w:id="0"><w:p><w:r><w:t>-</w:t></w:r></w:p></w:footnote><w:footnote w:id="2"><w:p><w:r><w:t>以签署日为准。</w:t></w:r></w:p></w:footnote>"#;
    let read = read("a.docx", docx(body, &[("footnotes", notes)])).unwrap();
    insta::assert_snapshot!(told(&read.blocks), @r"
    窗口为 ±5 天 <含> A&B
    链接与控件
    文本框
    框外
    不是标题
    ±3 天，≥18 岁□[注1]
    注1：以签署日为准。
    ");
    insta::assert_snapshot!(read.gaps.join("\n"), @r"有 1 个用符号字体写的字符读不出，以 □ 代替；请在 Word 中改为普通字符 (characters of a symbol font are shown as □)");
}

#[test]
fn a_table_is_its_rows_and_merged_cells_say_what_they_stand_for() {
    let cell = |properties: &str, text: &str| {
        format!("<w:tc><w:tcPr>{properties}</w:tcPr>{}</w:tc>", p("", text))
    };
    let row = |cells: &[String]| format!("<w:tr>{}</w:tr>", cells.concat());
    let rows = [
        row(&[
            cell("", "期"),
            cell("", "访视"),
            cell(r#"<w:gridSpan w:val="2"/>"#, "窗口（天）"),
        ]),
        row(&[
            cell(r#"<w:vMerge w:val="restart"/>"#, "治疗期"),
            cell("", "V4"),
            cell("", "-5"),
            cell("", "+5"),
        ]),
        row(&[
            cell("<w:vMerge/>", ""),
            cell("", "V5"),
            cell("", "-7"),
            cell("", "+7"),
        ]),
        row(&[cell("", ""), cell("", "")]),
        row(&[
            cell("", "附"),
            format!(
                "<w:tc><w:tbl>{}</w:tbl>{}</w:tc>",
                row(&[cell("", "内"), cell("", "表")]),
                p("", "外")
            ),
        ]),
    ];
    let body = format!(
        "{}<w:tbl>{}</w:tbl>{}",
        p("", "见表"),
        rows.concat(),
        p("", "表后")
    );
    insta::assert_snapshot!(told(&read("a.docx", docx(&body, &[])).unwrap().blocks), @r"
    见表
    期 | 访视 | 窗口（天）
    | 治疗期 | V4 | -5 | +5
    | 治疗期 | V5 | -7 | +7
    | 附 | 内 | 表 外
    表后
    ");
}

#[test]
fn a_file_that_is_no_word_file_or_means_harm_is_refused() {
    let bomb = vec![b' '; 129 * 1024 * 1024];
    let deep = "<w:sdt>".repeat(600);
    let archives = [
        zipped(&[("mimetype", b"x")]),
        zipped(&[("word/document.xml", b"<w:document><w:p>")]),
        zipped(&[(
            "word/document.xml",
            b"<!DOCTYPE x [<!ENTITY a \"b\">]><w:document>&a;</w:document>",
        )]),
        zipped(&[(
            "word/document.xml",
            b"<w:document><w:p><w:r><w:t>&nbsp;</w:t></w:r></w:p></w:document>",
        )]),
        zipped(&[("word/document.xml", b"<w:document/>")]),
        zipped(&[("word/document.xml", bomb.as_slice())]),
        docx(&deep, &[]),
    ];
    let refusals: Vec<String> = archives
        .map(|bytes| read("a.docx", bytes).unwrap_err().to_string())
        .into();
    insta::assert_snapshot!(refusals.join("\n"), @r"
    文件已损坏或不是这种格式：里面没有 word/document.xml it has no word/document.xml；请重新导出 (broken, or not of this format; export it again)
    文件已损坏或不是这种格式：XML 不完整 its XML is not well-formed；请重新导出 (broken, or not of this format; export it again)
    文件已损坏或不是这种格式：XML 含 DOCTYPE a DOCTYPE is not allowed；请重新导出 (broken, or not of this format; export it again)
    文件已损坏或不是这种格式：XML 含未定义的实体 an entity that XML does not define；请重新导出 (broken, or not of this format; export it again)
    文件里没有文字；请检查是否选对了文件 (there is no text in it)
    文件过大，上限 解压后 128 MB unpacked；请拆成几份 (too large, split it)
    文件已损坏或不是这种格式：XML 嵌套过深 its XML is nested too deeply；请重新导出 (broken, or not of this format; export it again)
    ");
}
