//! Public projects load whole, and every row of a record is found.

use std::{fs, path::Path};

use iit_manager::{
    adapters::edc::{Edc, EdcError, RedcapFiles},
    types::dictionary::{Choice, Dictionary, Field},
};

use super::{everything, set, study};

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
