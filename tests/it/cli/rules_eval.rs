//! `iit rules eval` over odd files.

use std::fs;

use super::{plain, said};

#[test]
fn odd_inputs_of_rules_eval_are_said_and_lists_of_faults_end() {
    let folder = tempfile::tempdir().unwrap();
    let run = |rules: &str, records: &str| {
        fs::write(folder.path().join("rules.json"), rules).unwrap();
        fs::write(folder.path().join("r.jsonl"), records).unwrap();
        let args = [
            "rules",
            "eval",
            "--rules",
            "rules.json",
            "--records",
            "r.jsonl",
        ];
        plain(folder.path(), &args).output().unwrap()
    };
    let rules = r#"[{"field": "age", "logic": {">=": [{"var": "age"}, 18]}}]"#;
    let empty = run(rules, "\n");
    assert_eq!(empty.status.code(), Some(0));
    assert!(said(&empty).contains("0 条记录"), "{}", said(&empty));
    let none = run("[]", "{\"record_id\":\"1\"}\n");
    assert_eq!((none.status.code(), none.stdout.len()), (Some(0), 0));
    assert!(said(&none).contains("0 条规则"), "{}", said(&none));
    let twice = run(
        rules,
        "{\"record_id\":\"1\",\"age\":20}\n{\"record_id\":\"1\",\"age\":7}\n",
    );
    assert_eq!(twice.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&twice.stdout).lines().count(), 2);
    assert!(
        said(&twice).contains("r.jsonl:2: 记录 `1` 在第 1 行已有"),
        "{}",
        said(&twice)
    );
    let junk = run(rules, &"junk\n".repeat(1000));
    let said = said(&junk);
    assert_eq!(junk.status.code(), Some(2));
    assert_eq!(said.matches("is not valid JSON").count(), 20);
    assert!(said.contains("…另有 980 行"), "{said}");
    assert!(said.contains("1000 line(s)"), "{said}");
}
