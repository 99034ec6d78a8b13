//! `iit rules eval` from the outside: files in, lines and exit codes out.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed expectation is the test's verdict"
)]

use std::{
    path::Path,
    process::{Command, Output},
};

use serde_json::{Value, json};
use tempfile::TempDir;

struct Files {
    dir: TempDir,
}

impl Files {
    fn new(rules: &Value, records: &[u8]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("rules.json"), rules.to_string()).unwrap();
        std::fs::write(dir.path().join("records.jsonl"), records).unwrap();
        Self { dir }
    }

    fn run(&self, more: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_iit"))
            .args([
                "rules",
                "eval",
                "--rules",
                "rules.json",
                "--records",
                "records.jsonl",
            ])
            .args(more)
            .current_dir(self.dir.path())
            .output()
            .unwrap()
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }
}

fn lines(output: &Output) -> Vec<Value> {
    let text = std::str::from_utf8(&output.stdout).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn said(output: &Output) -> String {
    format!(
        "exit {}\n{}{}",
        output.status.code().unwrap(),
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

fn inclusion() -> Value {
    json!([
        {"id": "IC-01", "field": "age", "logic": {">=": [{"var": "age"}, 18]}, "message": "年龄<18岁"},
        {"field": "age", "logic": {"<=": [{"var": "age"}, 75]}, "message": "年龄>75岁"},
        {"field": "ecog", "logic": {"<=": [{"var": "ecog"}, 2]}, "message": "ECOG>2", "severity": "warning"},
        {"field": "icf_date", "logic": {"<=": [{"var": "icf_date"}, {"var": "enrollment_date"}]}},
    ])
}

#[test]
fn every_record_and_rule_gets_one_line() {
    let records = "\u{feff}{\"record_id\":\"001\",\"age\":16,\"ecog\":1,\"icf_date\":\"2026-01-05\",\"enrollment_date\":\"2026-01-04\"}\r\n\
        \n\
        {\"record_id\":2,\"age\":\"\",\"ecog\":\"<2\",\"icf_date\":\"2026-01-05\",\"enrollment_date\":\"2026-01\"}";
    let output = Files::new(&inclusion(), records.as_bytes()).run(&[]);
    insta::assert_snapshot!(said(&output));
}

#[test]
fn lines_that_are_no_records_are_named_and_lose_nothing_else() {
    let mut records: Vec<u8> = Vec::new();
    for line in [
        br#"{"record_id":"1","age":20}"#.as_slice(),
        br#"{"record_id":"2","age":20"#,
        b"{\"record_id\":\"3\",\"age\":\"\xff\xfe\"}",
        b"{\"record_id\":\"4\",\"age\":\"\0\"}",
        br#"{"record_id":"5","age":"\u0000"}"#,
        br#"[1,2]"#,
        br#"{"age":20}"#,
        br#"{"record_id":" ","age":20}"#,
        br#"{"record_id":"6","age":1e999}"#,
        br#"{"record_id":"7","age":"\ud800"}"#,
    ] {
        records.extend(line);
        records.push(b'\n');
    }
    records.extend(
        format!(
            "{{\"record_id\":\"8\",\"x\":{}1{}}}\n",
            "[".repeat(100_000),
            "]".repeat(100_000)
        )
        .bytes(),
    );
    records.extend(br#"{"record_id":"9","age":17}"#);
    let rules = json!([{"field": "age", "logic": {">=": [{"var": "age"}, 18]}}]);
    let output = Files::new(&rules, &records).run(&[]);
    assert_eq!(output.status.code(), Some(2));
    let outcomes: Vec<(String, String)> = lines(&output)
        .iter()
        .map(|line| (line["record"].to_string(), line["outcome"].to_string()))
        .collect();
    assert_eq!(
        outcomes,
        [
            ("\"1\"".into(), "\"pass\"".into()),
            ("\"9\"".into(), "\"fail\"".into())
        ]
    );
    insta::assert_snapshot!(String::from_utf8_lossy(&output.stderr));
}

#[test]
fn faulty_rules_are_all_named_and_nothing_is_evaluated() {
    let rules = json!([
        {"id": "A", "field": "age", "logic": {">=": [{"var": "age"}]}},
        {"id": "A", "field": "age", "logic": {"gte": [{"var": "age"}, 18]}},
        {"field": "age"},
    ]);
    let output = Files::new(&rules, b"{\"record_id\":\"1\",\"age\":20}\n").run(&[]);
    insta::assert_snapshot!(said(&output));
    let rules = json!([{"id": 5, "logic": {}}, 7]);
    let output = Files::new(&rules, b"").run(&[]);
    insta::assert_snapshot!(said(&output));
}

#[test]
fn files_that_cannot_be_read_are_wrong_use() {
    let files = Files::new(&json!([]), b"");
    std::fs::remove_file(files.path().join("records.jsonl")).unwrap();
    insta::assert_snapshot!(said(&files.run(&[])));
    std::fs::write(files.path().join("rules.json"), "[\n {\"field\": }]").unwrap();
    insta::assert_snapshot!(said(&files.run(&[])));
    std::fs::write(files.path().join("rules.json"), b"[\n\"\xb2\xe2\"]").unwrap();
    insta::assert_snapshot!(said(&files.run(&[])));
    std::fs::write(files.path().join("rules.json"), "[]").unwrap();
    insta::assert_snapshot!(said(&files.run(&["--dictionary", "nowhere.csv"])));
}

const METADATA: &str = "\
field_name,form_name,field_type,field_label,select_choices_or_calculations,text_validation_type_or_show_slider_number,branching_logic,required_field
study_id,base,text,编号,,,,
age,base,text,年龄,,integer,,y
sex,base,radio,性别,\"1, 男 | 2, 女\",,,
preg,base,yesno,妊娠,,,[sex] = '2',
symptoms,base,checkbox,症状,\"1, 发热 | 2, 咳嗽\",,,
";

#[test]
fn a_dictionary_types_the_values() {
    let rules = json!([
        {"id": "age", "field": "age", "logic": {"<=": [{"var": "age"}, 75]}},
        {"id": "preg", "field": "preg", "logic": {"==": [{"var": "preg"}, 0]}},
        {"id": "fever", "field": "symptoms", "logic": {"!": {"in": ["1", {"var": "symptoms"}]}}},
    ]);
    let records = [
        json!({"study_id": "1", "age": 30, "sex": 2, "preg": false, "symptoms": ["2"]}),
        json!({"study_id": "2", "age": "5,3", "sex": "2", "preg": "", "symptoms___1": "1"}),
        json!({"study_id": "3", "age": null, "sex": "1"}),
        json!({"study_id": "4", "base_complete": "0", "symptoms___1": "0", "symptoms___2": "0"}),
    ];
    let records: String = records.iter().map(|record| format!("{record}\n")).collect();
    let files = Files::new(&rules, records.as_bytes());
    std::fs::write(files.path().join("metadata.csv"), METADATA).unwrap();
    insta::assert_snapshot!(said(&files.run(&["--dictionary", "metadata.csv"])));
    let slips = json!([
        {"id": "typo", "field": "age", "logic": {"<=": [{"var": "agee"}, 75]}},
        {"id": "code", "field": "sex", "logic": {"==": [{"var": "sex"}, 3]}},
    ]);
    std::fs::write(files.path().join("rules.json"), slips.to_string()).unwrap();
    insta::assert_snapshot!(said(&files.run(&["--dictionary", "metadata.csv"])));
}
