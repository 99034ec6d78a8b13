//! `iit protocol` as people and programs run it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed expectation is the test's verdict"
)]

use super::files::{Font, docx, p, pdf};
use crate::support::app::TestApp;
use crate::support::binary::Iit;
use crate::support::postgres::TestDb;
use crate::support::study::StudyFolder;

fn write(iit: &Iit, name: &str, bytes: impl AsRef<[u8]>) -> String {
    let path = iit.folder().join(name);
    std::fs::write(&path, bytes).unwrap();
    path.display().to_string()
}

#[tokio::test]
async fn documents_of_each_format_are_stored_listed_found_replaced_and_removed() {
    let db = TestDb::new().await;
    let iit = Iit::on(&db);
    let study = StudyFolder::with_eligibility("lung", []);
    TestApp::apply_to(&db, &study).await;
    let word = write(
        &iit,
        "研究方案V2.0.docx",
        docx(
            &[p("", "5.2 访视窗口"), p("", "各次访视允许 ±3 天。")].concat(),
            &[],
        ),
    );
    let printed = write(
        &iit,
        "手册.pdf",
        pdf(&[vec![(72, 780, Font::UniGb, "采血管用紫色盖")], vec![]]),
    );
    let gbk = encoding_rs::GBK.encode("知情同意书须在研究操作前签署").0;
    let text = write(&iit, "知情.txt", gbk);

    let mut told = Vec::new();
    for args in [
        vec!["protocol", "list"],
        vec!["protocol", "add", &word],
        vec!["protocol", "add", &word],
        vec!["protocol", "add", &printed, "--project", "lung"],
        vec![
            "protocol",
            "add",
            &text,
            "--name",
            "知情同意书",
            "--label",
            "V1.1",
        ],
        vec!["protocol", "list"],
        vec!["protocol", "search", "访视窗口是多少天"],
        vec!["protocol", "search", "采血管"],
        vec!["protocol", "search", "奥希替尼"],
    ] {
        let ran = iit.run(&args).await;
        assert_eq!(ran.code, 0, "{args:?} {ran:?}");
        told.push(format!("{}{}", ran.stdout, ran.stderr));
    }
    write(
        &iit,
        "研究方案V3.0.docx",
        docx(
            &[p("", "5.2 访视窗口"), p("", "各次访视允许 ±7 天。")].concat(),
            &[],
        ),
    );
    let next = iit.folder().join("研究方案V3.0.docx").display().to_string();
    told.push(iit.ok(&["protocol", "add", &next]).await);
    told.push(
        iit.ok(&["protocol", "search", "访视窗口", "--limit", "1"])
            .await,
    );
    told.push(iit.ok(&["protocol", "remove", "手册"]).await);
    insta::assert_snapshot!(told.join("---\n"));

    let found = iit
        .json(&["protocol", "search", "访视窗口", "--format", "json"])
        .await;
    assert_eq!(found[0]["source"], "《研究方案》V3.0 §5.2");
    let listed = iit.json(&["protocol", "list", "--format", "json"]).await;
    assert_eq!(listed.as_array().unwrap().len(), 2);
    assert_eq!(
        iit.json(&["protocol", "add", &next, "--format", "json"])
            .await[0]["result"],
        "unchanged"
    );
}

#[tokio::test]
async fn wrong_use_is_exit_code_2_and_one_sentence() {
    let db = TestDb::new().await;
    let iit = Iit::on(&db);
    let good = write(&iit, "a.md", "# 标题\n正文");
    let scanned = write(&iit, "scan.pdf", pdf(&[vec![]]));
    let empty = write(&iit, "b.md", "");
    assert_eq!(iit.run(&["protocol", "list"]).await.code, 2);
    for id in ["one", "two"] {
        TestApp::apply_to(&db, &StudyFolder::with_eligibility(id, [])).await;
    }
    let folder = iit.folder().display().to_string();
    let mut told = Vec::new();
    for args in [
        vec!["protocol", "add", &good],
        vec!["protocol", "add", &good, "--project", "three"],
        vec!["protocol", "add", "nowhere.pdf", "--project", "one"],
        vec!["protocol", "add", &folder, "--project", "one"],
        vec!["protocol", "add", &scanned, "--project", "one"],
        vec!["protocol", "add", &empty, "--project", "one"],
        vec!["protocol", "add", &good, "--project", "one", "--name", " "],
        vec!["protocol", "remove", "x", "--project", "one"],
        vec!["protocol", "search", "？", "--project", "one"],
    ] {
        let ran = iit.run(&args).await;
        assert_eq!(ran.code, 2, "{args:?} {ran:?}");
        told.push(ran.refusal().replace(&folder, "[folder]"));
    }
    insta::assert_snapshot!(told.join("\n"));
}
