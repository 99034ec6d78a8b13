//! A small study as a team would hand it in: a folder with a project file, an export and skills.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed expectation is the test's verdict"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use tempfile::TempDir;

const METADATA_HEADER: &str = "field_name,form_name,section_header,field_type,field_label,select_choices_or_calculations,field_note,text_validation_type_or_show_slider_number,text_validation_min,text_validation_max,identifier,branching_logic,required_field,custom_alignment,question_number,matrix_group_name,matrix_ranking,field_annotation";

/// Name, type, label, choices and validation of each field of the form `baseline`.
const FIELDS: [[&str; 5]; 8] = [
    ["record_id", "text", "受试者编号", "", ""],
    ["age", "text", "年龄", "", "integer"],
    ["ecog", "text", "ECOG 评分", "", "integer"],
    ["history", "notes", "既往史", "", ""],
    ["sex", "radio", "性别", "1, 男 | 2, 女", ""],
    ["enroll_date", "text", "入组日期", "", "date_ymd"],
    ["icf_date", "text", "知情同意日期", "", "date_ymd"],
    ["visit3_date", "text", "V3 访视日期", "", "date_ymd"],
];

/// A study folder, gone with the value and with the programs it was applied to.
pub struct StudyFolder {
    folder: Arc<TempDir>,
    id: String,
    subjects: Vec<Subject>,
}

/// One subject as exported.
#[derive(Debug, Clone)]
pub struct Subject(BTreeMap<&'static str, String>);

impl Subject {
    /// Somebody no rule of this file objects to.
    pub fn fit(id: &str) -> Self {
        let cells = [
            ("record_id", id),
            ("age", "45"),
            ("ecog", "0"),
            ("history", "无特殊"),
            ("sex", "1"),
            ("enroll_date", "2026-03-02"),
            ("icf_date", "2026-03-01"),
            ("visit3_date", "2026-03-30"),
            ("baseline_complete", "2"),
        ];
        Self(cells.map(|(field, value)| (field, value.to_owned())).into())
    }

    /// The same with another value.
    pub fn with(mut self, field: &'static str, value: &str) -> Self {
        self.0.insert(field, value.to_owned());
        self
    }

    fn id(&self) -> &str {
        &self.0["record_id"]
    }
}

impl StudyFolder {
    /// A study with these subjects, the PI ZhangSan and the CRC LiSi, and no skill yet.
    pub fn new(id: &str, subjects: impl IntoIterator<Item = Subject>) -> Self {
        let mut study = Self {
            folder: Arc::new(TempDir::with_prefix("iit-study-").unwrap()),
            id: id.to_owned(),
            subjects: subjects.into_iter().collect(),
        };
        fs::create_dir(study.export()).unwrap();
        fs::create_dir(study.skills()).unwrap();
        let rows = FIELDS.map(|[name, kind, label, choices, validation]| {
            format!("{name},baseline,,{kind},{label},\"{choices}\",,{validation},,,,,,,,,,")
        });
        study.write_metadata(&rows.join("\n"));
        study.write_records();
        study.write_project("");
        study
    }

    /// The study with `eligibility` as its only skill.
    pub fn with_eligibility(id: &str, subjects: impl IntoIterator<Item = Subject>) -> Self {
        let study = Self::new(id, subjects);
        study.write_skill("eligibility", &eligibility());
        study
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    /// Keeps the folder from going.
    pub fn keep(&self) -> Arc<TempDir> {
        Arc::clone(&self.folder)
    }

    /// The folder of the export.
    pub fn export(&self) -> PathBuf {
        self.folder.path().join("study")
    }

    /// The folder of the skills.
    pub fn skills(&self) -> PathBuf {
        self.folder.path().join("skills")
    }

    /// The project file.
    pub fn project_file(&self) -> PathBuf {
        self.folder.path().join("project.toml")
    }

    /// Writes the project file, with `more` after what every study here has.
    pub fn write_project(&self, more: &str) {
        let text = format!(
            r#"id = "{id}"
name = "研究 {id}"
timezone = "Asia/Shanghai"
[edc]
kind = "redcap_files"
dir = "study"
[fields]
record_id = "record_id"
enrollment_date = "enroll_date"
consent_date = "icf_date"
sex = "sex"
age = "age"
[aliases]
"岁数" = "age"
[[members]]
wecom_user = "ZhangSan"
name = "张三"
role = "pi"
[[members]]
wecom_user = "LiSi"
name = "李四"
role = "crc"
[[visits]]
id = "V3"
date_field = "visit3_date"
anchor_field = "enroll_date"
day = 28
minus = 3
plus = 3
[groups]
admin_group = ["ZhangSan"]
everyone = ["ZhangSan", "LiSi"]
{more}"#,
            id = self.id
        );
        fs::write(self.project_file(), text).unwrap();
    }

    /// Writes the project file as it is given.
    pub fn write_whole_project(&self, text: &str) {
        fs::write(self.project_file(), text).unwrap();
    }

    /// Writes a skill file of that type.
    pub fn write_skill(&self, skill_type: &str, config: &Value) {
        let skill = json!({ "skillType": skill_type, "name": skill_type, "config": config });
        self.write_skill_file(&format!("{skill_type}.json"), &skill.to_string());
    }

    /// Writes a skill file as a team wrote it.
    pub fn write_skill_file(&self, name: &str, text: &str) {
        fs::write(self.skills().join(name), text).unwrap();
    }

    /// Writes the rows of the data dictionary below the header.
    pub fn write_metadata(&self, rows: &str) {
        self.replace("metadata.csv", &format!("{METADATA_HEADER}\n{rows}\n"));
    }

    /// Changes one cell of the export.
    pub fn set(&mut self, record: &str, field: &'static str, value: &str) {
        let subject = self.subjects.iter_mut().find(|s| s.id() == record);
        subject.unwrap().0.insert(field, value.to_owned());
        self.write_records();
    }

    /// Removes a subject from the export.
    pub fn remove(&mut self, record: &str) {
        self.subjects.retain(|subject| subject.id() != record);
        self.write_records();
    }

    /// Writes the export anew from the subjects, after [`StudyFolder::break_records`] too.
    pub fn write_records(&mut self) {
        let mut columns: Vec<&str> = FIELDS.map(|field| field[0]).to_vec();
        columns.push("baseline_complete");
        let mut text = columns.join(",");
        for subject in &self.subjects {
            let row: Vec<&str> = columns.iter().map(|c| subject.0[c].as_str()).collect();
            text.push('\n');
            text.push_str(&row.join(","));
        }
        text.push('\n');
        self.replace("records.csv", &text);
    }

    /// Makes the export unreadable: `text` stands where the records were.
    pub fn break_records(&self, text: &str) {
        self.replace("records.csv", text);
    }

    /// As a careful writer does it: whole, and never seen half.
    fn replace(&self, name: &str, text: &str) {
        replace(&self.export().join(name), text);
    }
}

/// Writes beside `path` and renames, so that a reader sees the old file or the new one.
pub fn replace(path: &Path, text: &str) {
    let beside = path.with_extension("new");
    fs::write(&beside, text).unwrap();
    fs::rename(beside, path).unwrap();
}

/// The rule that decides over `field`.
pub fn rule(id: &str, field: &str, logic: Value, message: &str) -> Value {
    json!({ "id": id, "field": field, "logic": logic, "message": message, "severity": "error" })
}

/// A skill of one hard node.
pub fn one_node(rules: &[Value]) -> Value {
    json!({
        "start_node": "check",
        "nodes": { "check": {
            "type": "hard_rule",
            "rules": rules,
            "on_pass": "end_success",
            "on_fail": "end_with_violation",
            "on_not_evaluable": "end_review_required",
        }}
    })
}

/// Age 18 to 75 and ECOG at most 2.
pub fn eligibility() -> Value {
    one_node(&[
        rule(
            "IE-01",
            "age",
            json!({ ">=": [{ "var": "age" }, 18] }),
            "年龄<18岁",
        ),
        rule(
            "IE-02",
            "age",
            json!({ "<=": [{ "var": "age" }, 75] }),
            "年龄>75岁",
        ),
        rule(
            "IE-03",
            "ecog",
            json!({ "<=": [{ "var": "ecog" }, 2] }),
            "ECOG>2",
        ),
    ])
}

/// The same rules, but a person decides about what they find.
pub fn reviewed_eligibility() -> Value {
    let mut config = eligibility();
    config["nodes"]["check"]["on_fail"] = json!("review");
    config["nodes"]["review"] = json!({
        "type": "human_review",
        "message": "入排标准疑似不符，请研究者确认",
        "on_pass": "end_success",
        "on_fail": "end_with_violation",
    });
    config
}
