//! No value of any generated person leaves in any byte: requests whole, logs, errors, notices, journals.

mod gate;
mod person;
mod recorder;
mod soft_rule;

use crate::support::study::StudyFolder;

use person::Person;

/// The dictionary: flagged fields, fields that only their names give away, and free text.
const FIELDS: [[&str; 5]; 10] = [
    ["record_id", "text", "受试者编号", "", ""],
    ["pname", "text", "患者姓名", "", "y"],
    ["idc", "text", "证", "", "y"],
    ["tel", "text", "联系电话", "", ""],
    ["mrn", "text", "住院号", "", ""],
    ["addr", "text", "家庭住址", "", "y"],
    ["mail", "text", "邮箱", "email", ""],
    ["dob", "text", "出生日期", "date_ymd", ""],
    ["age", "text", "年龄", "integer", ""],
    ["history", "notes", "既往史", "", ""],
];

const PROJECT: &str = r#"id = "lung"
name = "研究"
[edc]
kind = "redcap_files"
dir = "study"
[fields]
record_id = "record_id"
age = "age"
[[members]]
wecom_user = "ZhangSan"
role = "pi"
"#;

/// A study of these people, each of whose notes speaks of the next one, too.
fn study(people: &[Person]) -> StudyFolder {
    let study = StudyFolder::new("lung", []);
    let dictionary = FIELDS.map(|[name, kind, label, validation, identifier]| {
        format!("{name},baseline,,{kind},{label},,,{validation},,,{identifier},,,,,,,")
    });
    study.write_metadata(&dictionary.join("\n"));
    let columns: Vec<&str> = FIELDS.iter().map(|field| field[0]).collect();
    let mut records = format!("{},baseline_complete", columns.join(","));
    for (at, person) in people.iter().enumerate() {
        let next = &people[(at + 1) % people.len()];
        records.push_str(&format!(
            "\nP{:03},{},{},{},{},{},{},{},45,\"{}\",2",
            at + 1,
            person.name,
            person.card,
            person.phone,
            person.mrn,
            person.address,
            person.email,
            person.born,
            format!("{}{}", person.note(), next.note()).replace('"', "\"\""),
        ));
    }
    study.break_records(&(records + "\n"));
    study.write_whole_project(PROJECT);
    study.write_skill(
        "history",
        &serde_json::json!({
            "name": "病史核查",
            "start_node": "history",
            "nodes": { "history": {
                "type": "soft_instruction",
                "instruction": "既往史中不得有间质性肺炎",
                "on_pass": "end_success",
                "on_fail": "end_review_required",
            }},
        }),
    );
    study
}

/// Nothing of anybody stands in `bytes`, plain, escaped or in full width.
fn assert_clean(what: &str, bytes: &[u8], people: &[Person]) {
    let text = String::from_utf8_lossy(bytes);
    let unescaped = unescape(&text);
    let narrow = iit_manager::types::text::half_width(&unescaped);
    for person in people {
        for value in person.values() {
            for seen in [text.as_ref(), &unescaped, &narrow] {
                assert!(!seen.contains(&value), "{what} holds {value}");
            }
        }
    }
}

/// `\u5f20` to 张, wherever it stands.
fn unescape(text: &str) -> String {
    let escape = regex::Regex::new(r"\\+u([0-9a-fA-F]{4})").unwrap();
    escape
        .replace_all(text, |groups: &regex::Captures<'_>| {
            let code = u32::from_str_radix(&groups[1], 16).unwrap();
            char::from_u32(code).unwrap_or('?').to_string()
        })
        .into_owned()
}
