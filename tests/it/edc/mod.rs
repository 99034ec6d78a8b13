//! A study in a folder: public projects load whole, faults are named, changes are seen.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed expectation is the test's verdict"
)]

mod faults;
mod public_projects;
mod reading;

use std::{fs, path::Path};

use iit_manager::adapters::edc::{Edc, EdcError, Extract, RedcapFiles};

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
