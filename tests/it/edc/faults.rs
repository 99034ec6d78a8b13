//! What is wrong or odd about a folder, said with its place and remedy.

use iit_manager::adapters::edc::{Edc, RedcapFiles};

use super::{Folder, METADATA, RECORDS, everything, study};

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
