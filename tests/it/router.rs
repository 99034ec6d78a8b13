//! `iit eval` as a person runs it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed expectation is the test's verdict"
)]

use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::{Value, json};

fn iit(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_iit"))
        .args(args)
        .env_remove("DATABASE_URL")
        .output()
        .unwrap()
}

fn file(dir: &Path, content: impl AsRef<[u8]>) -> PathBuf {
    let path = dir.join("messages.jsonl");
    std::fs::write(&path, content).unwrap();
    path
}

fn answers(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn each_message_comes_to_one_line_and_the_summary_stays_out_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(
        dir.path(),
        [
            json!({"id": "a", "text": "查一下p001的年龄，再对他做入排质控", "history": null, "expect": {"types": ["QA_QUERY", "QC_TASK"], "record_id": "P001"}}),
            json!({"id": 2, "text": "他的入排状态", "history": [{"role": "user", "text": "P002的年龄"}, {"role": "assistant", "text": "45"}]}),
            json!({"id": "c", "text": "他的入排状态", "history": [{"role": "user", "text": "P002的年龄"}], "memory": {"last_patient": null}, "expect": "UNCLEAR"}),
            json!({"id": "d", "text": "检查Ｐ００３的V3不良事件表", "memory": {"last_patient": "P009"}, "expect": ["HELP"]}),
            json!({"id": "e", "text": "\u{0}\u{feff}把他的年龄改成45", "memory": {"last_patient": "p-7"}}),
        ]
        .map(|line| line.to_string())
        .join("\n\n"),
    );
    let output = iit(&[
        "eval",
        "intents",
        path.to_str().unwrap(),
        "--router",
        "keyword",
    ]);
    assert_eq!(output.status.code(), Some(0));
    let lines = answers(std::str::from_utf8(&output.stdout).unwrap());
    let expected = [
        json!({"id": "a", "types": ["QA_QUERY", "QC_TASK"], "record_id": "P001", "visit": null, "form": null, "needs_clarification": false, "write": false}),
        json!({"id": 2, "types": ["QA_QUERY"], "record_id": "P002", "visit": null, "form": null, "needs_clarification": false, "write": false}),
        json!({"id": "c", "types": ["UNCLEAR"], "record_id": null, "visit": null, "form": null, "needs_clarification": true, "write": false}),
        json!({"id": "d", "types": ["QC_TASK"], "record_id": "P003", "visit": "V3", "form": "不良事件表", "needs_clarification": false, "write": false}),
        json!({"id": "e", "types": ["QC_TASK"], "record_id": "P-7", "visit": null, "form": null, "needs_clarification": false, "write": true}),
    ];
    assert_eq!(lines.len(), expected.len());
    for (mut line, expected) in lines.into_iter().zip(expected) {
        let confidence = line.as_object_mut().unwrap().remove("confidence").unwrap();
        assert!((0.0..=1.0).contains(&confidence.as_f64().unwrap()));
        assert_eq!(line, expected);
    }
    insta::assert_snapshot!(String::from_utf8(output.stderr).unwrap());
}

#[test]
fn with_an_output_file_the_summary_goes_to_stdout() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(
        dir.path(),
        r#"{"id":"a","text":"质控 ID=001","expect":"QC_TASK"}"#,
    );
    let out = dir.path().join("answers.jsonl");
    let output = iit(&[
        "eval",
        "intents",
        path.to_str().unwrap(),
        "--router",
        "keyword",
        "--out",
        out.to_str().unwrap(),
    ]);
    assert_eq!(output.status.code(), Some(0));
    assert!(
        String::from_utf8(output.stdout)
            .unwrap()
            .contains("100.0 %")
    );
    let lines = answers(&std::fs::read_to_string(out).unwrap());
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0]["record_id"], "001");
}

#[test]
fn a_bad_line_is_named_and_nothing_is_printed() {
    let dir = tempfile::tempdir().unwrap();
    let good = r#"{"id":"a","text":"质控 ID=001"}"#;
    for bad in [
        &b"{\"id\":\"b\"}"[..],
        b"not json",
        b"{\"id\":\"b\",\"text\":7}",
        b"{\"id\":\"b\",\"text\":\"x\",\"expect\":\"NO_SUCH\"}",
        b"{\"id\":\"b\",\"text\":\"x\",\"expect\":{}}",
        b"{\"id\":\"b\",\"text\":\"x\",\"memory\":7}",
        b"{\"id\":\"b\",\"text\":\"\xff\xfe\"}",
        b"{\"id\":\"b\",\"text\":\"\\ud800\"}",
    ] {
        let mut content = format!("{good}\n\n").into_bytes();
        content.extend_from_slice(bad);
        let path = file(dir.path(), content);
        let output = iit(&[
            "eval",
            "intents",
            path.to_str().unwrap(),
            "--router",
            "keyword",
        ]);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{}",
            String::from_utf8_lossy(bad)
        );
        assert!(output.stdout.is_empty());
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(told.contains(&format!("{}:3:", path.display())), "{told}");
        assert_eq!(told.trim_end().lines().count(), 1, "{told}");
    }
}

#[test]
fn a_file_that_is_missing_or_empty_is_wrong_use() {
    let dir = tempfile::tempdir().unwrap();
    let empty = file(dir.path(), "\n");
    for path in [dir.path().join("none.jsonl"), empty] {
        let output = iit(&[
            "eval",
            "intents",
            path.to_str().unwrap(),
            "--router",
            "keyword",
        ]);
        assert_eq!(output.status.code(), Some(2));
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(told.contains(path.to_str().unwrap()), "{told}");
    }
}

#[test]
fn what_takes_a_language_model_says_so() {
    for args in [
        &["eval", "intents", "x.jsonl"][..],
        &["eval", "intents", "x.jsonl", "--router", "llm"],
        &["eval", "verdicts", "x.jsonl"],
    ] {
        let output = iit(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(told.contains("LLM_BASE_URL"), "{told}");
        assert_eq!(told.trim_end().lines().count(), 1, "{told}");
    }
}
