//! PDF and plain text: what is read, and what is said of what can't be.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed expectation is the test's verdict"
)]

use iit_manager::adapters::documents::DocumentError;
use iit_manager::engines::protocol::passages;
use iit_manager::types::protocol::Media;

use super::files::{Font, pdf, read, told};

#[test]
fn text_of_every_usual_font_is_read_page_by_page_and_pieces_at_one_height_are_one_line() {
    use Font::{Gbk, Latin, Mapped, UniGb};
    let bytes = pdf(&[
        vec![
            (72, 780, Latin, "5.2"),
            (108, 780, UniGb, "访视窗口"),
            (72, 760, Gbk, "受试者应在窗口内完成访视"),
            (72, 740, Latin, "Visit"),
            (104, 740, Latin, "window"),
        ],
        vec![(72, 780, Mapped, "V3"), (84, 780, Mapped, "±3天")],
    ]);
    let read = read("方案.PDF", bytes).unwrap();
    assert_eq!((read.media, read.pages), (Media::Pdf, Some(2)));
    assert_eq!(read.gaps, Vec::<String>::new());
    insta::assert_snapshot!(told(&read.blocks), @r"
    p1 5.2 访视窗口
    p1 受试者应在窗口内完成访视
    p1 Visit window
    p2 V3±3天
    ");
}

#[test]
fn pages_without_text_and_fonts_that_do_not_say_what_they_mean_are_named() {
    let bytes = pdf(&[
        vec![(72, 780, Font::UniGb, "有字")],
        vec![],
        vec![
            (72, 780, Font::Unmapped, "这些字读不出"),
            (72, 760, Font::UniGb, "这些读得出"),
        ],
    ]);
    let read = read("a.pdf", bytes).unwrap();
    // What can't be decoded is never guessed at.
    insta::assert_snapshot!(told(&read.blocks), @r"
    p1 有字
    p3 这些读得出
    ");
    insta::assert_snapshot!(read.gaps.join("\n"), @r"
    第 2 页没有可读的文字，可能是图或扫描件 (no text on these pages)
    第 3 页的部分文字无法解码，检索不到；请改用 Word 原稿 (some text on these pages can't be decoded and won't be found)
    ");
}

#[test]
fn running_heads_go_and_a_sentence_over_two_lines_is_found_as_one() {
    let page = |heading: &'static str, says: &'static str| {
        vec![
            (72, 820, Font::UniGb, "方案编号 XN-001 版本 2.0"),
            (72, 780, Font::UniGb, heading),
            (
                72,
                760,
                Font::UniGb,
                "受试者应当在基线后第十四天前后五天以内完成访视，超出窗",
            ),
            (
                72,
                740,
                Font::UniGb,
                "口的访视记为方案偏离，研究者应当在三个工作日内记录原因",
            ),
            (72, 720, Font::UniGb, "并上报。"),
            (72, 700, Font::UniGb, says),
            (280, 30, Font::Latin, "7"),
        ]
    };
    let bytes = pdf(&[
        page("1 概述", "甲"),
        page("2 入选", "乙"),
        page("2.1 入选标准", "丙"),
        page("3 访视", "丁"),
        page("4 统计", "戊"),
    ]);
    let found = passages(&read("a.pdf", bytes).unwrap());
    let told: Vec<String> = found
        .iter()
        .map(|p| {
            format!(
                "{:?} {} p{}: {}",
                p.number,
                p.section,
                p.page.unwrap(),
                p.text
            )
        })
        .collect();
    insta::assert_snapshot!(told.join("\n"), @r#"
    None  p1: 方案编号 XN-001 版本 2.0
    Some("1") 1 概述 p1: 受试者应当在基线后第十四天前后五天以内完成访视，超出窗口的访视记为方案偏离，研究者应当在三个工作日内记录原因并上报。
    甲
    Some("2") 2 入选 p2: 受试者应当在基线后第十四天前后五天以内完成访视，超出窗口的访视记为方案偏离，研究者应当在三个工作日内记录原因并上报。
    乙
    Some("2.1") 2 入选 › 2.1 入选标准 p3: 受试者应当在基线后第十四天前后五天以内完成访视，超出窗口的访视记为方案偏离，研究者应当在三个工作日内记录原因并上报。
    丙
    Some("3") 3 访视 p4: 受试者应当在基线后第十四天前后五天以内完成访视，超出窗口的访视记为方案偏离，研究者应当在三个工作日内记录原因并上报。
    丁
    Some("4") 4 统计 p5: 受试者应当在基线后第十四天前后五天以内完成访视，超出窗口的访视记为方案偏离，研究者应当在三个工作日内记录原因并上报。
    戊
    "#);
}

#[test]
fn utf8_gbk_and_markdown_are_read_alike() {
    let text = "5.2 访视窗口\n\n允许 ±3 天。\n";
    let gbk = encoding_rs::GBK.encode(text).0.into_owned();
    let utf8 = read("a.txt", text).unwrap();
    assert_eq!(read("a.TXT", gbk).unwrap(), utf8);
    let passage = passages(&utf8).remove(0);
    assert_eq!(
        (passage.number.as_deref(), passage.text.as_str()),
        (Some("5.2"), "允许 ±3 天。")
    );
    let markdown = read("a.md", "# 5 访视\n\n## 5.2 访视窗口 ##\n第一行\n第二行\n\n- 甲\n- 乙\n\n| 访视 | 窗口 |\n|---|---|\n| V4 | ±5 天 |\n\n```\n# 不是标题\n```\n标题\n===\n").unwrap();
    insta::assert_snapshot!(told(&markdown.blocks), @r"
    #1 5 访视
    #2 5.2 访视窗口
    第一行第二行
    - 甲
    - 乙
    访视 | 窗口
    | V4 | ±5 天
    # 不是标题
    #1 标题
    ");
}

#[test]
fn what_cannot_be_read_is_refused_in_one_sentence_that_says_what_to_do() {
    let scanned = pdf(&[vec![], vec![]]);
    let mut cut = pdf(&[vec![(72, 780, Font::UniGb, "字")]]);
    cut.truncate(200);
    let refusals: Vec<String> = [
        ("a.pdf", scanned),
        ("a.pdf", cut),
        ("a.pdf", b"not a pdf".to_vec()),
        ("a.pdf", Vec::new()),
        ("a.docx", b"PK\x03\x04 no zip".to_vec()),
        ("a.docx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1".to_vec()),
        ("a.doc", b"x".to_vec()),
        ("a.xlsx", b"x".to_vec()),
        ("a.txt", b" \n\n \n".to_vec()),
        ("a.txt", b"a\0b".to_vec()),
        ("a.txt", b"ok\n\xff\xff\xff\n".to_vec()),
        ("noending", b"x".to_vec()),
    ]
    .into_iter()
    .map(|(name, bytes)| {
        let refusal = read(name, bytes).unwrap_err();
        assert!(!refusal.to_string().contains('\n'));
        format!("{name}: {refusal}")
    })
    .collect();
    insta::assert_snapshot!(refusals.join("\n"));
}

#[test]
fn a_locked_pdf_is_told_from_a_broken_one() {
    let mut document =
        lopdf::Document::load_mem(&pdf(&[vec![(72, 780, Font::UniGb, "密")]])).unwrap();
    document.trailer.set(
        "ID",
        vec![
            lopdf::Object::string_literal("0123456789abcdef"),
            lopdf::Object::string_literal("0123456789abcdef"),
        ],
    );
    let state = lopdf::EncryptionState::try_from(lopdf::EncryptionVersion::V2 {
        document: &document,
        owner_password: "owner",
        user_password: "user",
        key_length: 128,
        permissions: lopdf::Permissions::all(),
    })
    .unwrap();
    document.encrypt(&state).unwrap();
    let mut bytes = Vec::new();
    document.save_to(&mut bytes).unwrap();
    assert_eq!(read("a.pdf", bytes).unwrap_err(), DocumentError::Encrypted);
}
