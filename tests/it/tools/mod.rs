//! The tools over the sample study, over a study with visits and repeating forms, and at the database.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed expectation is the test's verdict"
)]

mod aggregate;
mod any_arguments;
mod demo;
mod proposals;
mod reader;
mod records;
mod stats;
mod unmapped;

use std::{collections::BTreeMap, sync::Arc};

use chrono::NaiveDate;
use iit_manager::{
    adapters::edc::{Edc, RedcapFiles},
    store::projects::Project,
    tools::{Observation, Registry, Scope, Snapshot, ToolError, registry::Caller},
    types::{
        clock::Clock,
        dictionary::{Choice, Dictionary, Event, Field, FieldKind},
        project::ProjectFile,
        record::{Columns, Record, Row},
    },
};
use serde_json::{Value, json};
use sqlx::PgPool;

/// A study at hand, and the tools.
pub struct Rig {
    pub project: Project,
    pub data: Snapshot,
    pub record: Option<String>,
    reader: PgPool,
    registry: Registry,
}

impl Rig {
    /// A study whose tools find no database.
    pub fn new(file: ProjectFile, data: Snapshot) -> Self {
        let nowhere = PgPool::connect_lazy("postgres://nobody@127.0.0.1:1/nothing").unwrap();
        Self::reading(file, data, nowhere)
    }

    pub fn reading(file: ProjectFile, data: Snapshot, reader: PgPool) -> Self {
        let aliases = file.aliases.clone();
        Self {
            project: Project { file, aliases },
            data,
            record: None,
            reader,
            registry: Registry::standard(None),
        }
    }

    pub async fn call_text(&self, tool: &str, args: &str) -> Result<Observation, ToolError> {
        let scope = Scope {
            project: &self.project,
            data: &self.data,
            record: self.record.as_deref(),
            today: day("2026-06-01"),
            reader: &self.reader,
        };
        self.registry
            .call(Caller::Sop, None, &scope, tool, args)
            .await
    }

    pub async fn call(&self, tool: &str, args: Value) -> Result<Observation, ToolError> {
        self.call_text(tool, &args.to_string()).await
    }

    /// What the tool gave.
    pub async fn ok(&self, tool: &str, args: Value) -> Observation {
        self.call(tool, args.clone())
            .await
            .unwrap_or_else(|error| panic!("{tool} {args}: {error}"))
    }

    /// Why it gave nothing.
    pub async fn refused(&self, tool: &str, args: Value) -> String {
        match self.call(tool, args.clone()).await {
            Ok(observation) => panic!("{tool} {args}: {observation:?}"),
            Err(error) => error.to_string(),
        }
    }
}

/// What a person reads of an observation.
pub fn told(observation: &Observation) -> Value {
    json!({ "value": observation.value, "notes": observation.notes, "records": observation.records })
}

pub fn day(text: &str) -> NaiveDate {
    text.parse().unwrap()
}

/// The sample study.
pub async fn demo() -> Rig {
    let folder = std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("demo");
    let file = std::fs::read_to_string(folder.join("project.toml")).unwrap();
    let edc = RedcapFiles::new(folder.join("study"));
    let data = Snapshot::read(&edc as &dyn Edc, &Clock::system())
        .await
        .unwrap();
    Rig::new(ProjectFile::parse(&file).unwrap(), data)
}

// --- a study with visits, repeating adverse events and missing codes ---

fn field(name: &str, form: &str, label: &str, kind: FieldKind, validation: &str) -> Field {
    Field {
        name: name.to_owned(),
        form: form.to_owned(),
        label: label.to_owned(),
        kind,
        validation: validation.to_owned(),
        min: String::new(),
        max: String::new(),
        choices: Vec::new(),
        calculation: String::new(),
        branching: String::new(),
        required: false,
        identifier: false,
        annotation: String::new(),
    }
}

fn choices(pairs: &[(&str, &str)]) -> Vec<Choice> {
    pairs
        .iter()
        .map(|(code, label)| Choice {
            code: (*code).to_owned(),
            label: (*label).to_owned(),
        })
        .collect()
}

fn dictionary() -> Dictionary {
    use FieldKind::{Checkbox, Radio, Text, YesNo};
    let yes_no = choices(&[("1", "是"), ("0", "否")]);
    let sex = Field {
        choices: choices(&[("1", "男"), ("2", "女")]),
        ..field("sex", "demog", "性别", Radio, "")
    };
    let name = Field {
        identifier: true,
        ..field("pt_name", "demog", "受试者姓名", Text, "")
    };
    let pregnant = Field {
        choices: yes_no.clone(),
        branching: "[sex] = '2'".to_owned(),
        ..field("preg", "demog", "是否妊娠", YesNo, "")
    };
    let chronic = Field {
        choices: choices(&[("1", "高血压"), ("2", "糖尿病")]),
        ..field("chronic", "demog", "慢性病", Checkbox, "")
    };
    let frail = Field {
        choices: choices(&[("0", "不属于"), ("1", "认知障碍"), ("2", "经济困难")]),
        ..field("frail", "demog", "弱势群体类别", Radio, "")
    };
    let serious = Field {
        choices: yes_no,
        ..field("aeser", "ae", "是否严重", YesNo, "")
    };
    let mut dictionary = Dictionary::new(vec![
        field("record_id", "demog", "受试者编号", Text, ""),
        name,
        field("age", "demog", "年龄（岁）", Text, "integer"),
        sex,
        pregnant,
        chronic,
        frail,
        field("icf_date", "demog", "知情同意日期", Text, "date_ymd"),
        field("enroll_date", "demog", "入组日期", Text, "date_ymd"),
        field("guardian_date", "demog", "监护人同意日期", Text, "date_ymd"),
        field("sbp", "vitals", "收缩压", Text, "number"),
        field("vs_date", "vitals", "访视日期", Text, "date_ymd"),
        field("aeterm", "ae", "不良事件名称", Text, ""),
        serious,
        field("ae_start", "ae", "不良事件开始日期", Text, "date_ymd"),
    ]);
    dictionary.events = [
        ("scr_arm_1", "筛选"),
        ("w1_arm_1", "第1周"),
        ("w2_arm_1", "第2周"),
    ]
    .iter()
    .map(|(name, label)| Event {
        unique_name: (*name).to_owned(),
        label: (*label).to_owned(),
        arm: 1,
    })
    .collect();
    dictionary.designations = [
        ("scr_arm_1", "demog"),
        ("w1_arm_1", "vitals"),
        ("w2_arm_1", "vitals"),
        ("w2_arm_1", "ae"),
    ]
    .iter()
    .map(|(event, form)| ((*event).to_owned(), (*form).to_owned()))
    .collect();
    dictionary.repeating = [("w2_arm_1".to_owned(), "ae".to_owned())].into();
    dictionary.missing_codes = choices(&[("NI", "没有资料")]);
    dictionary
}

fn columns() -> Arc<Columns> {
    let mut names: Vec<String> = Vec::new();
    for field in dictionary().fields() {
        match field.kind {
            FieldKind::Checkbox => names.extend(["1", "2", "NI"].map(|c| field.checkbox_column(c))),
            _ => names.push(field.name.clone()),
        }
    }
    names.push("redcap_data_access_group".to_owned());
    names.extend(["demog", "vitals", "ae"].map(|form| format!("{form}_complete")));
    Columns::new(names)
}

/// One subject of that study.
pub struct Subject {
    id: String,
    rows: Vec<Row>,
    columns: Arc<Columns>,
}

impl Subject {
    /// Screened with these values.
    pub fn new(id: &str, cells: &[(&str, &str)]) -> Self {
        let mut subject = Self {
            id: id.to_owned(),
            rows: Vec::new(),
            columns: columns(),
        };
        subject.row("scr_arm_1", None, None, cells);
        subject
    }

    /// Came to a visit.
    pub fn visit(mut self, event: &str, cells: &[(&str, &str)]) -> Self {
        self.row(event, None, None, cells);
        self
    }

    /// Had an adverse event.
    pub fn ae(mut self, instance: u32, cells: &[(&str, &str)]) -> Self {
        self.row("w2_arm_1", Some("ae"), Some(instance), cells);
        self
    }

    fn row(
        &mut self,
        event: &str,
        form: Option<&str>,
        instance: Option<u32>,
        cells: &[(&str, &str)],
    ) {
        let cells: BTreeMap<&str, &str> = cells.iter().copied().collect();
        let values = self
            .columns
            .names()
            .iter()
            .map(|name| match name.as_str() {
                "record_id" => self.id.as_str().into(),
                name => cells.get(name).copied().unwrap_or_default().into(),
            })
            .collect();
        self.rows.push(Row::new(
            Some(event.to_owned()),
            form.map(str::to_owned),
            instance,
            Arc::clone(&self.columns),
            values,
        ));
    }

    fn record(self) -> Arc<Record> {
        Arc::new(Record {
            id: self.id,
            rows: self.rows,
        })
    }
}

const PROJECT: &str = r#"
id = "visits"
name = "访视研究"
target_enrollment = 10
[edc]
kind = "redcap_files"
dir = "study"
[fields]
record_id = "record_id"
enrollment_date = "enroll_date"
consent_date = "icf_date"
sex = "sex"
age = "age"
site = "redcap_data_access_group"
guardian_consent_date = "guardian_date"
vulnerable_population = "frail"
[aliases]
"岁数" = "age"
[[members]]
wecom_user = "ZhangSan"
role = "pi"
[groups]
admins = ["ZhangSan"]
[[visits]]
id = "W1"
date_field = "vs_date"
anchor_field = "enroll_date"
event = "w1_arm_1"
day = 7
minus = 2
plus = 2
[[visits]]
id = "W2"
date_field = "vs_date"
anchor_field = "enroll_date"
event = "w2_arm_1"
day = 14
minus = 2
plus = 2
"#;

/// The study with these subjects.
pub fn study(subjects: Vec<Subject>) -> Rig {
    let records = subjects.into_iter().map(Subject::record).collect();
    let data = Snapshot::new(
        records,
        Arc::new(dictionary()),
        "fingerprint".to_owned(),
        Clock::system().now(),
    );
    Rig::new(ProjectFile::parse(PROJECT).unwrap(), data)
}

/// Five subjects that differ in what a careless reader would pass over.
pub fn five() -> Rig {
    study(vec![
        Subject::new(
            "S001",
            &[
                ("pt_name", "王小明"),
                ("age", "45"),
                ("sex", "1"),
                ("frail", "0"),
                ("chronic___1", "1"),
                ("chronic___2", "0"),
                ("icf_date", "2026-03-01"),
                ("enroll_date", "2026-03-02"),
                ("redcap_data_access_group", "site_a"),
                ("demog_complete", "2"),
            ],
        )
        .visit("w1_arm_1", &[("sbp", "120"), ("vs_date", "2026-03-09")])
        .visit("w2_arm_1", &[("sbp", "130"), ("vs_date", "2026-03-21")])
        .ae(
            1,
            &[
                ("aeterm", "头痛"),
                ("aeser", "0"),
                ("ae_start", "2026-03-10"),
            ],
        )
        .ae(
            2,
            &[("aeterm", "肺炎"), ("aeser", "1"), ("ae_start", "2026-03")],
        ),
        Subject::new(
            "S002",
            &[
                ("pt_name", "李梅"),
                ("age", "60"),
                ("sex", "2"),
                ("preg", "0"),
                ("frail", "1"),
                ("icf_date", "2026-04-05"),
                ("enroll_date", "2026-04-01"),
                ("redcap_data_access_group", "site_b"),
                ("demog_complete", "2"),
            ],
        )
        .visit("w1_arm_1", &[("sbp", "NI"), ("vs_date", "2026-04")])
        .ae(
            1,
            &[
                ("aeterm", "皮疹"),
                ("aeser", ""),
                ("ae_start", "2026-04-03"),
            ],
        ),
        Subject::new(
            "S003",
            &[
                ("age", ""),
                ("sex", "2"),
                ("frail", "1"),
                ("guardian_date", "2026-02-01"),
                ("icf_date", "2026-02-01"),
                ("enroll_date", "2026-02-02"),
                ("redcap_data_access_group", "site_a"),
                ("demog_complete", "2"),
            ],
        )
        .visit("w1_arm_1", &[("sbp", "140"), ("vs_date", "2026-02-20")]),
        Subject::new(
            "S004",
            &[
                ("age", "十七"),
                ("sex", "2"),
                ("icf_date", "2026-05-01"),
                ("enroll_date", ""),
                ("redcap_data_access_group", "site_a"),
                ("demog_complete", "1"),
            ],
        ),
        Subject::new(
            "S005",
            &[
                ("age", "16"),
                ("sex", "1"),
                ("frail", "0"),
                ("icf_date", "2026-05-03"),
                ("enroll_date", "2026-05"),
                ("redcap_data_access_group", "site_b"),
                ("demog_complete", "2"),
            ],
        ),
    ])
}
