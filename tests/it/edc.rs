//! A study in a folder: public projects load whole, faults are named, changes are seen.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed expectation is the test's verdict"
)]

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use encoding_rs::GB18030;
use iit_manager::{
    adapters::edc::{Edc, EdcError, EdcPool, Extract, RedcapFiles},
    types::{
        dictionary::{Choice, Dictionary, Field},
        project::EdcConfig,
    },
};

fn set(name: &str) -> RedcapFiles {
    RedcapFiles::new(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/data/edc")
            .join(name),
    )
}

async fn everything(edc: &dyn Edc) -> Extract {
    let ids = edc.record_ids().await.unwrap();
    edc.records(&ids).await.unwrap()
}

/// Every cell of every row, with where it stands.
fn cells(all: &Extract) -> String {
    let mut text = String::new();
    for record in &all.records {
        for row in &record.rows {
            text += &format!(
                "{} {:?} {:?} {:?}",
                record.id, row.event, row.instrument, row.instance
            );
            for column in row.columns().names() {
                text += &format!(" {column}={:?}", row.get(column));
            }
            text.push('\n');
        }
    }
    text
}

/// A folder of files that goes away with the test.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new<B: AsRef<[u8]>>(files: &[(&str, B)]) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        for (name, bytes) in files {
            folder.write(name, bytes);
        }
        folder
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.0.path().join(name), bytes).unwrap();
    }

    fn edc(&self) -> RedcapFiles {
        RedcapFiles::new(self.0.path().to_owned())
    }

    /// The error in its own words, without the folder's random name.
    fn said(&self, error: &EdcError) -> String {
        error
            .to_string()
            .replace(&self.0.path().display().to_string(), "study")
    }

    async fn fault(&self) -> String {
        let error = self.edc().record_ids().await.unwrap_err();
        assert!(
            matches!(error, EdcError::Faulty { .. }) && !error.is_retryable(),
            "{error:?}"
        );
        self.said(&error)
    }

    async fn warned(&self) -> String {
        let warnings = self.edc().warnings().await.unwrap();
        warnings
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("\n")
    }
}

const METADATA: &str = "\
field_name,form_name,field_type,field_label,select_choices_or_calculations,text_validation_type_or_show_slider_number,branching_logic,required_field
id,base,text,Id,,,,
icf,base,text,Consent,,date_ymd,,y
smoker,base,yesno,Smoker,,,,
aeterm,ae,text,Term,,,,
risks,ae,checkbox,Risks,\"-1, none | k>=9, high\",,,
";
const RECORDS: &str = "\
id,redcap_repeat_instrument,redcap_repeat_instance,icf,smoker,base_complete,aeterm,risks____1,risks___k__9,ae_complete
001,,,2024-01-02,1,2,,0,0,
P-2,,,2024-01-03,,2,,0,0,
001,ae,1,,,,fever,1,0,2
";
const REPEATING: &str = "event_name,form_name\n,ae\n";

fn study(changes: &[(&str, &str)]) -> Folder {
    let mut files = vec![
        ("metadata.csv", METADATA),
        ("records.csv", RECORDS),
        ("repeating.csv", REPEATING),
    ];
    for (name, text) in changes {
        files.retain(|(known, _)| known != name);
        files.push((name, text));
    }
    Folder::new(&files)
}

#[tokio::test]
async fn every_public_project_loads_whole() {
    let mut table = String::new();
    for name in [
        "checkboxes-1",
        "clinical-trial-1",
        "dag",
        "longitudinal",
        "phpcap_longitudinal",
        "repeating-instruments",
        "simple",
    ] {
        let edc = set(name);
        let all = everything(&edc).await;
        let d = &all.dictionary;
        let rows: Vec<_> = all.records.iter().flat_map(|record| &record.rows).collect();
        table += &format!(
            "{name}: records {} rows {} instances {} columns {} · fields {} forms {} events {} designations {} repeats {:?}\n",
            all.records.len(),
            rows.len(),
            rows.iter().filter(|row| !row.is_base()).count(),
            rows[0].columns().names().len(),
            d.fields().len(),
            d.forms.len(),
            d.events.len(),
            d.designations.len(),
            d.repeating,
        );
        for warning in edc.warnings().await.unwrap() {
            table += &format!("    ! {warning}\n");
        }
    }
    insta::assert_snapshot!("public_projects", table);
}

#[tokio::test]
async fn checkboxes_and_their_ambiguous_zero_stay_as_exported() {
    let all = everything(&set("checkboxes-1")).await;
    let third = &all.records[2].rows[0];
    assert_eq!(third.get("check_one___4"), Some("1"));
    assert_eq!(third.get("check_two___a"), Some("0"));
    assert_eq!(third.get("form_2_complete"), Some("2"));
    assert_eq!(third.get("check_three___1"), None);
}

#[tokio::test]
async fn repeats_data_access_groups_and_ids_that_are_no_numbers_are_kept() {
    let repeating = everything(&set("repeating-instruments")).await;
    let rows: Vec<_> = repeating.records[0]
        .rows
        .iter()
        .map(|row| {
            (
                row.instrument.as_deref(),
                row.instance,
                row.get("bp_systolic").unwrap(),
            )
        })
        .collect();
    assert_eq!(
        rows,
        [
            (None, None, ""),
            (Some("bp"), Some(1), "110"),
            (Some("bp"), Some(2), "111"),
            (Some("bp"), Some(3), "112")
        ]
    );
    let dag = everything(&set("dag")).await;
    let groups: Vec<_> = dag
        .records
        .iter()
        .map(|record| {
            (
                record.id.as_str(),
                record.rows[0].get("redcap_data_access_group").unwrap(),
            )
        })
        .collect();
    assert_eq!(
        groups,
        [("331-1", "daga"), ("331-2", "daga"), ("332-3", "dagb")]
    );
}

#[tokio::test]
async fn a_dictionary_written_by_r_means_the_same_as_the_downloaded_one() {
    let simple = set("simple").dictionary().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/edc/simple");
    for name in ["dictionary.csv", "data.csv"] {
        fs::copy(source.join(name), folder.path().join(name)).unwrap();
    }
    let downloaded = RedcapFiles::new(folder.path().to_owned())
        .dictionary()
        .await
        .unwrap();
    // The two files were not made on the same day: `age` became a calculation in between.
    let but_age = |dictionary: &Dictionary| -> Vec<Field> {
        let fields = dictionary.fields().iter();
        fields
            .filter(|field| field.name != "age")
            .cloned()
            .collect()
    };
    assert_eq!(but_age(&simple), but_age(&downloaded));
    assert_eq!(but_age(&simple).len(), 15);
    assert_eq!(simple.field("race").unwrap().choices.len(), 6);
    assert!(simple.field("name_first").unwrap().identifier);
    assert_eq!(simple.field("bmi").unwrap().branching, "");
}

#[tokio::test]
async fn rows_of_one_record_need_not_stand_together_and_leading_zeros_stay() {
    let all = everything(&study(&[]).edc()).await;
    let ids: Vec<_> = all
        .records
        .iter()
        .map(|record| (record.id.as_str(), record.rows.len()))
        .collect();
    assert_eq!(ids, [("001", 2), ("P-2", 1)]);
    assert!(all.dictionary.is_repeating_form(None, "ae"));
    assert_eq!(all.records[0].rows[1].get("risks____1"), Some("1"));
    let smoker = all.dictionary.field("smoker").unwrap();
    let codes: Vec<_> = smoker
        .choices
        .iter()
        .map(|choice: &Choice| choice.code.as_str())
        .collect();
    assert_eq!(codes, ["1", "0"]);
    assert!(all.dictionary.field("icf").unwrap().required);
}

#[tokio::test]
async fn records_come_in_the_order_asked_and_unknown_ids_are_all_named() {
    let folder = study(&[]);
    let edc = folder.edc();
    let ids = |ids: &[&str]| ids.iter().map(|&id| id.to_owned()).collect::<Vec<_>>();
    let some = edc.records(&ids(&["P-2", "001", "P-2"])).await.unwrap();
    assert_eq!(
        some.records
            .iter()
            .map(|r| r.id.as_str())
            .collect::<Vec<_>>(),
        ["P-2", "001"]
    );
    assert!(edc.records(&[]).await.unwrap().records.is_empty());
    let error = edc.records(&ids(&["1", "001", "p-2"])).await.unwrap_err();
    assert!(matches!(&error, EdcError::NotFound { records } if *records == ids(&["1", "p-2"])));
    insta::assert_snapshot!("unknown_records", error);
}

fn structure(dictionary: &Dictionary) -> String {
    format!(
        "{:?} {:?} {:?}",
        dictionary.fields(),
        dictionary.repeating,
        dictionary.missing_codes
    )
}

#[tokio::test]
async fn a_chinese_study_reads_the_same_in_utf8_with_and_without_mark_and_gb18030() {
    let metadata = "\
\"Variable / Field Name\",\"Form Name\",\"Section Header\",\"Field Type\",\"Field Label\",\"Choices, Calculations, OR Slider Labels\",\"Field Note\",\"Text Validation Type OR Show Slider Number\",\"Text Validation Min\",\"Text Validation Max\",Identifier?,\"Branching Logic (Show field only if...)\",\"Required Field?\"
record_id,筛选,,text,受试者编号,,,,,,,,
xm,筛选,,text,姓名,,,,,,y,,
xb,筛选,,radio,性别,\"1, 男|2, 女|9, 不详,未填\",,,,,,,y
jws,筛选,,notes,既往史,,,,,,,\"[xb] = '1'\",
";
    let records = "record_id,xm,xb,jws,筛选_complete\n一-001,张𠮷,1,\"高血压,2级\n糖尿病\",2\n";
    let mut seen = Vec::new();
    let marked = |text: &str| [b"\xef\xbb\xbf", text.as_bytes()].concat();
    let gb = |text: &str| {
        let (bytes, _, lossy) = GB18030.encode(text);
        assert!(!lossy);
        bytes.into_owned()
    };
    for (m, r) in [
        (metadata.as_bytes().to_vec(), records.as_bytes().to_vec()),
        (marked(metadata), marked(records)),
        (gb(metadata), gb(records)),
        (gb(metadata), records.as_bytes().to_vec()),
        (
            metadata.replace('\n', "\r\n").into_bytes(),
            records.as_bytes().to_vec(),
        ),
    ] {
        let folder = Folder::new(&[("metadata.csv", m), ("records.csv", r)]);
        let all = everything(&folder.edc()).await;
        seen.push((structure(&all.dictionary), cells(&all)));
    }
    assert!(seen.windows(2).all(|pair| pair[0] == pair[1]), "{seen:#?}");
    assert!(
        seen[0].1.contains("一-001")
            && seen[0].1.contains("张𠮷")
            && seen[0].0.contains("不详,未填")
    );
}

#[tokio::test]
async fn semicolon_and_tab_separated_exports_read_like_comma_separated_ones() {
    let plain = "id,base_complete\n001,2\n";
    let mut seen = Vec::new();
    for separator in [",", ";", "\t"] {
        let folder = Folder::new(&[
            (
                "metadata.csv",
                "field_name,form_name,field_type\nid,base,text\n".replace(',', separator),
            ),
            ("records.csv", plain.replace(',', separator)),
        ]);
        seen.push(cells(&everything(&folder.edc()).await));
    }
    assert!(seen.windows(2).all(|pair| pair[0] == pair[1]), "{seen:#?}");
}

#[tokio::test]
async fn a_cell_changed_on_disk_is_seen_by_the_next_read_and_an_unchanged_folder_is_shared() {
    let folder = study(&[]);
    let edc = folder.edc();
    let first = everything(&edc).await;
    let again = everything(&edc).await;
    assert!(Arc::ptr_eq(&first.dictionary, &again.dictionary));
    assert!(Arc::ptr_eq(&first.records[0], &again.records[0]));
    assert_eq!(first.fingerprint, again.fingerprint);

    folder.write("records.csv", RECORDS.replace("2024-01-02", "2024-01-09"));
    let changed = everything(&edc).await;
    assert_eq!(changed.records[0].rows[0].get("icf"), Some("2024-01-09"));
    assert_eq!(first.records[0].rows[0].get("icf"), Some("2024-01-02"));
    assert_ne!(first.fingerprint, changed.fingerprint);

    folder.write("records.csv", RECORDS);
    assert_eq!(everything(&edc).await.fingerprint, first.fingerprint);

    folder.write(
        "project.json",
        r#"{"missing_data_codes":"NI, 无信息","secondary_unique_field":"icf"}"#,
    );
    let dictionary = edc.dictionary().await.unwrap();
    assert_eq!(dictionary.missing_codes[0].code, "NI");
    assert_eq!(dictionary.secondary_unique_field.as_deref(), Some("icf"));

    fs::remove_file(folder.0.path().join("records.csv")).unwrap();
    assert!(edc.record_ids().await.is_err());
}

#[tokio::test]
async fn one_folder_is_opened_once_and_an_unreadable_kind_is_named() {
    let pool = EdcPool::default();
    let config = EdcConfig::RedcapFiles {
        dir: PathBuf::from("tests/data/edc/dag"),
    };
    let (one, two) = (pool.open(&config).unwrap(), pool.open(&config).unwrap());
    assert!(Arc::ptr_eq(
        &one.dictionary().await.unwrap(),
        &two.dictionary().await.unwrap()
    ));
    assert_eq!(one.version().await.unwrap(), "redcap_files");
    let api = EdcConfig::Redcap {
        url: "https://redcap.example/api/".to_owned(),
        token_env: "T".to_owned(),
    };
    let refused = pool.open(&api).unwrap_err();
    assert!(
        matches!(&refused, EdcError::Faulty { .. })
            && refused.to_string().contains("redcap.example")
    );
}

#[tokio::test]
async fn every_fault_of_a_folder_says_where_and_what_to_do() {
    let row = |text: &str| format!("{RECORDS}{text}\n");
    let events = "event_name,arm_num,unique_event_name\nBase,1,base_arm_1\n";
    let long = |records: &str| {
        records
            .replacen("id,", "id,redcap_event_name,", 1)
            .replace("\n001,", "\n001,base_arm_1,")
            .replace("\nP-2,", "\nP-2,base_arm_1,")
    };
    let cases: Vec<(&str, Vec<(&str, String)>)> = vec![
        ("blank id", vec![("records.csv", row("  ,,,,1,,,0,0,"))]),
        (
            "duplicate base row",
            vec![("records.csv", row("P-2,,,,1,,,0,0,"))],
        ),
        (
            "duplicate instance",
            vec![("records.csv", row("001,ae,1,,,,x,0,0,"))],
        ),
        ("short row", vec![("records.csv", row("P-3,,"))]),
        (
            "open quote",
            vec![("records.csv", row("P-3,,,\"2024,,,,,,\nP-4,,,,,,,,,"))],
        ),
        (
            "unknown instrument",
            vec![("records.csv", row("P-2,Adverse Events,1,,,,,0,0,"))],
        ),
        (
            "instrument without instance",
            vec![("records.csv", row("P-2,ae,,,,,,0,0,"))],
        ),
        (
            "instance without instrument",
            vec![("records.csv", row("P-2,,2,,,,,0,0,"))],
        ),
        (
            "instance no number",
            vec![("records.csv", row("P-2,ae,1.0,,,,,0,0,"))],
        ),
        (
            "labels for headers",
            vec![("records.csv", RECORDS.replacen("id", "Record ID", 1))],
        ),
        (
            "column twice",
            vec![("records.csv", RECORDS.replacen("smoker", "icf", 1))],
        ),
        ("empty records", vec![("records.csv", String::new())]),
        ("NUL", vec![("records.csv", row("P-3,,,\0,,,,0,0,"))]),
        (
            "unknown event",
            vec![
                ("events.csv", events.to_owned()),
                (
                    "repeating.csv",
                    "event_name,form_name\nbase_arm_1,ae\n".to_owned(),
                ),
                (
                    "records.csv",
                    long(RECORDS).replacen("P-2,base_arm_1", "P-2,Base", 1),
                ),
            ],
        ),
        (
            "blank event",
            vec![
                ("events.csv", events.to_owned()),
                (
                    "repeating.csv",
                    "event_name,form_name\nbase_arm_1,ae\n".to_owned(),
                ),
                (
                    "records.csv",
                    long(RECORDS).replacen("P-2,base_arm_1", "P-2,", 1),
                ),
            ],
        ),
        (
            "no event column",
            vec![
                ("events.csv", events.to_owned()),
                (
                    "repeating.csv",
                    "form_name,event_name\nae,base_arm_1\n".to_owned(),
                ),
            ],
        ),
        (
            "event twice",
            vec![("events.csv", format!("{events}Base again,1,base_arm_1\n"))],
        ),
        (
            "arm no number",
            vec![("events.csv", events.replace(",1,", ",one,"))],
        ),
        (
            "mapping of unknown form",
            vec![
                ("events.csv", events.to_owned()),
                (
                    "form_event_mapping.csv",
                    "arm_num,unique_event_name,form\n1,base_arm_1,lab\n".to_owned(),
                ),
            ],
        ),
        (
            "mapping of unknown event",
            vec![
                ("events.csv", events.to_owned()),
                (
                    "form_event_mapping.csv",
                    "arm_num,unique_event_name,form\n1,visit_2_arm_1,ae\n".to_owned(),
                ),
            ],
        ),
        (
            "repeating unknown form",
            vec![("repeating.csv", "event_name,form_name\n,lab\n".to_owned())],
        ),
        (
            "repeating event in a classic project",
            vec![(
                "repeating.csv",
                "event_name,form_name\nbase_arm_1,\n".to_owned(),
            )],
        ),
        (
            "unknown field type",
            vec![("metadata.csv", METADATA.replace("yesno", "boolean"))],
        ),
        (
            "field twice",
            vec![("metadata.csv", METADATA.replace("smoker", "icf"))],
        ),
        (
            "field without name",
            vec![("metadata.csv", METADATA.replace("smoker", ""))],
        ),
        (
            "field without form",
            vec![("metadata.csv", METADATA.replace("smoker,base", "smoker,"))],
        ),
        (
            "no dictionary at all",
            vec![("metadata.csv", RECORDS.to_owned())],
        ),
        (
            "dictionary without fields",
            vec![("metadata.csv", METADATA.lines().next().unwrap().to_owned())],
        ),
        (
            "project.json broken",
            vec![("project.json", "{\n\"missing_data_codes\": 3,\n".to_owned())],
        ),
    ];
    let mut said = String::new();
    for (name, changes) in &cases {
        let changes: Vec<_> = changes
            .iter()
            .map(|(file, text)| (*file, text.as_str()))
            .collect();
        said += &format!("{name}: {}\n", study(&changes).fault().await);
    }
    let broken = [RECORDS.as_bytes(), b"P-3,,,\xff\xff,,,,0,0,\n"].concat();
    let folder = Folder::new(&[
        ("metadata.csv", METADATA.as_bytes()),
        ("records.csv", &broken),
    ]);
    said += &format!("undecodable byte: {}\n", folder.fault().await);
    said += &format!(
        "no records: {}\n",
        Folder::new(&[("dictionary.csv", METADATA)]).fault().await
    );
    said += &format!(
        "no metadata: {}\n",
        Folder::new(&[("data.csv", RECORDS)]).fault().await
    );
    let nowhere = Folder(tempfile::tempdir().unwrap());
    let gone = RedcapFiles::new(nowhere.0.path().join("gone"))
        .record_ids()
        .await
        .unwrap_err();
    said += &format!("no folder: {}\n", nowhere.said(&gone));
    insta::assert_snapshot!("faults", said);
}

#[tokio::test]
async fn what_is_odd_but_readable_is_kept_and_warned_of() {
    let hidden = study(&[(
        "records.csv",
        "id,icf,mystery,base_timestamp\n1,2024-01-01,x,\n",
    )]);
    let mut said = format!("columns:\n{}\n", hidden.warned().await);
    let all = everything(&hidden.edc()).await;
    assert_eq!(all.records[0].rows[0].get("mystery"), Some("x"));

    let bare = Folder::new(&[("metadata.csv", METADATA), ("records.csv", RECORDS)]);
    said += &format!("no repeating.csv:\n{}\n", bare.warned().await);
    assert!(
        bare.edc()
            .dictionary()
            .await
            .unwrap()
            .is_repeating_form(None, "ae")
    );

    let events = Folder::new(&[
        (
            "metadata.csv",
            "field_name,form_name,field_type\nid,base,text\n",
        ),
        (
            "records.csv",
            "id,redcap_event_name,redcap_repeat_instrument,redcap_repeat_instance,base_complete\n1,week_1_arm_2,,,2\n1,logs_arm_1b,,1,2\n1,logs_arm_1b,,2,2\n",
        ),
    ]);
    said += &format!("no events.csv:\n{}\n", events.warned().await);
    let dictionary = events.edc().dictionary().await.unwrap();
    assert_eq!(dictionary.events[0].arm, 2);
    assert!(dictionary.is_designated(Some("week_1_arm_2"), "base"));
    assert!(
        dictionary.is_repeating_event("logs_arm_1b")
            && !dictionary.is_repeating_event("week_1_arm_2")
    );

    let choices = study(&[("metadata.csv", &METADATA.replace("k>=9, high", "+1, high"))]);
    said += &format!("choices:\n{}\n", choices.warned().await);
    insta::assert_snapshot!("warnings", said);
}
