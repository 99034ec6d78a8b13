//! However the files are encoded and separated, and whenever they change.

use std::{fs, path::PathBuf, sync::Arc};

use encoding_rs::GB18030;
use iit_manager::{
    adapters::edc::{Edc, EdcError, EdcPool},
    types::{dictionary::Dictionary, project::EdcConfig},
};

use super::{Folder, RECORDS, cells, everything, study};

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
