//! The sample study holds together: data, project file and skills name the same fields.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed expectation is the test's verdict"
)]

use std::{collections::BTreeSet, fs, path::PathBuf};

use iit_manager::{
    adapters::edc::{Edc, RedcapFiles},
    types::project::{EdcConfig, ProjectFile},
};
use serde_json::Value;

fn demo() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("demo")
}

fn project() -> ProjectFile {
    ProjectFile::parse(&fs::read_to_string(demo().join("project.toml")).unwrap()).unwrap()
}

fn study() -> RedcapFiles {
    let EdcConfig::RedcapFiles { dir } = project().edc else {
        panic!("the sample study is a folder");
    };
    RedcapFiles::new(demo().join(dir))
}

#[tokio::test]
async fn all_subjects_of_the_pilot_load_without_a_warning() {
    let edc = study();
    assert_eq!(edc.warnings().await.unwrap(), []);
    let ids = edc.record_ids().await.unwrap();
    let all = edc.records(&ids).await.unwrap();
    let rows = |form: &str| {
        let rows = all.records.iter().flat_map(|record| &record.rows);
        rows.filter(|row| row.instrument.as_deref().unwrap_or_default() == form)
            .count()
    };
    let counts = ["", "ae", "ex", "mh", "other_visits"].map(rows);
    // DM, AE, EX, MH of the source, and SV less the 2,381 scheduled clinic visits.
    assert_eq!(counts, [306, 1191, 591, 1818, 1178]);
    assert_eq!(ids.first().map(String::as_str), Some("01-701-1015"));
    let sites: BTreeSet<_> = all
        .records
        .iter()
        .filter_map(|record| record.base_row(None)?.get("redcap_data_access_group"))
        .collect();
    assert_eq!(sites.len(), 17);
    let partial = all
        .records
        .iter()
        .flat_map(|record| &record.rows)
        .filter(|row| matches!(row.get("aestdtc").unwrap().len(), 4 | 7))
        .count();
    assert_eq!(partial, 26);
}

#[tokio::test]
async fn the_synthetic_consent_date_is_called_synthetic() {
    let dictionary = study().dictionary().await.unwrap();
    assert!(
        dictionary
            .field("icf_date")
            .unwrap()
            .label
            .contains("SYNTHETIC")
    );
    let metadata = fs::read_to_string(demo().join("study/metadata.csv")).unwrap();
    assert!(metadata.contains("SYNTHETIC 合成数据"));
}

#[tokio::test]
async fn project_file_and_skills_name_only_fields_of_the_dictionary() {
    let project = project();
    let dictionary = study().dictionary().await.unwrap();
    let forms = &dictionary.forms;
    let known = |name: &str| {
        name.is_empty()
            || name == "redcap_data_access_group"
            || dictionary.field(name).is_some()
            || forms.iter().any(|form| form == name)
    };
    let named = project
        .fields
        .values()
        .chain(project.aliases.values())
        .chain(
            project
                .visits
                .iter()
                .flat_map(|visit| [&visit.date_field, &visit.anchor_field]),
        );
    let unknown: Vec<_> = named.filter(|name| !known(name)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");

    let mut ids = BTreeSet::new();
    for name in ["eligibility", "ae_dates", "visit_window", "ethics"] {
        let text = fs::read_to_string(demo().join(format!("skills/{name}.json"))).unwrap();
        let skill: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(skill["skillType"], name);
        let mut fields = Vec::new();
        vars(&skill, &mut fields);
        for node in skill["config"]["nodes"].as_object().unwrap().values() {
            for rule in node["rules"].as_array().into_iter().flatten() {
                assert!(
                    ids.insert(rule["id"].as_str().unwrap().to_owned()),
                    "{rule}"
                );
                fields.push(rule["field"].as_str().unwrap().to_owned());
                if let Some(visit) = rule["logic"]["args"]["visit"].as_str() {
                    assert!(
                        project.visits.iter().any(|known| known.id == visit),
                        "{visit}"
                    );
                }
            }
        }
        fields.retain(|field| dictionary.field(field).is_none());
        assert!(fields.is_empty(), "{name}: {fields:?}");
    }
    let expected: Value =
        serde_json::from_str(&fs::read_to_string("tests/data/demo_expected.json").unwrap())
            .unwrap();
    let counted: BTreeSet<String> = expected["rules"]
        .as_object()
        .unwrap()
        .keys()
        .cloned()
        .collect();
    assert_eq!(ids, counted);
}

fn vars(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            if let Some(name) = map.get("var").and_then(Value::as_str) {
                found.push(name.to_owned());
            }
            map.values().for_each(|inner| vars(inner, found));
        }
        Value::Array(items) => items.iter().for_each(|inner| vars(inner, found)),
        _ => {}
    }
}
