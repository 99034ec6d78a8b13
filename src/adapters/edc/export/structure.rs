//! Events, designations, repeats and project settings, from their own files.

use std::collections::BTreeSet;

use serde::{Deserialize, de::Error as _};
use serde_json::Value;

use crate::types::dictionary::{Choice, Dictionary, Event};

use super::{
    super::error::{EdcError, Warning},
    Tables,
    metadata::choices,
    table::{Table, TableRow},
};

/// The parts of REDCap's project information that bear on checking data.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ProjectInfo {
    /// Project-wide missing-data codes.
    pub missing_codes: Vec<Choice>,
    /// The field that must be unique over records.
    pub secondary_unique_field: Option<String>,
}

impl ProjectInfo {
    /// Reads REDCap's project information: an object, or a list of one.
    ///
    /// # Errors
    /// What is wrong with the JSON.
    pub fn parse(json: &str) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        struct Info {
            #[serde(default)]
            missing_data_codes: Option<String>,
            #[serde(default)]
            secondary_unique_field: Option<String>,
        }
        let mut written: Value = serde_json::from_str(json.trim_start_matches('\u{feff}'))?;
        if let Some([one]) = written.as_array_mut().map(Vec::as_mut_slice) {
            written = one.take();
        }
        if !written.is_object() {
            return Err(serde_json::Error::custom(
                "neither an object nor a list of one",
            ));
        }
        let info: Info = serde_json::from_value(written)?;
        Ok(Self {
            missing_codes: choices(&info.missing_data_codes.unwrap_or_default()),
            secondary_unique_field: info
                .secondary_unique_field
                .filter(|name| !name.trim().is_empty()),
        })
    }
}

/// Puts events, designations, repeats and project settings into the dictionary.
pub(super) fn apply(
    tables: &Tables,
    dictionary: &mut Dictionary,
    warnings: &mut Vec<Warning>,
) -> Result<(), EdcError> {
    dictionary
        .missing_codes
        .clone_from(&tables.project.missing_codes);
    if let Some(name) = &tables.project.secondary_unique_field {
        if dictionary.field(name).is_none() {
            warnings.push(Warning {
                file: "project.json".to_owned(),
                message: format!("the secondary unique field `{name}` is not in the dictionary"),
            });
        }
        dictionary.secondary_unique_field = Some(name.clone());
    }
    if let Some(table) = &tables.events {
        dictionary.events = events(table)?;
    }
    if let Some(table) = &tables.mapping {
        mapping(table, dictionary, warnings)?;
    }
    if let Some(table) = &tables.repeating {
        dictionary.repeating = repeating(table, dictionary)?;
    }
    if dictionary.is_longitudinal() && dictionary.designations.is_empty() {
        let file = tables.events.as_ref().unwrap_or(&tables.records);
        warnings.push(
            file.warning(
                "there is no form-event mapping, so every form is taken as used at every event"
                    .to_owned(),
            ),
        );
        designate_everywhere(dictionary);
    }
    Ok(())
}

/// Every form at every event: for exports without a mapping.
pub(super) fn designate_everywhere(dictionary: &mut Dictionary) {
    dictionary.designations = dictionary
        .events
        .iter()
        .flat_map(|event| {
            dictionary
                .forms
                .iter()
                .map(|form| (event.unique_name.clone(), form.clone()))
        })
        .collect();
}

fn events(table: &Table) -> Result<Vec<Event>, EdcError> {
    table.require(
        "unique_event_name",
        "export the events with their unique names",
    )?;
    let mut events: Vec<Event> = Vec::with_capacity(table.rows.len());
    for row in &table.rows {
        let unique_name = table.cell(row, "unique_event_name").to_owned();
        if unique_name.is_empty() {
            return Err(table.fault(row.line, "the event has no unique name", "write it"));
        }
        if events.iter().any(|event| event.unique_name == unique_name) {
            return Err(table.fault(
                row.line,
                &format!("event `{unique_name}` is listed twice"),
                "keep one of them",
            ));
        }
        let label = match table.cell(row, "event_name") {
            "" => unique_name.clone(),
            label => label.to_owned(),
        };
        events.push(Event {
            label,
            arm: arm(table, row)?,
            unique_name,
        });
    }
    Ok(events)
}

/// The arm number; 1 where the file has no such column.
fn arm(table: &Table, row: &TableRow) -> Result<u32, EdcError> {
    if table.position("arm_num").is_none() {
        return Ok(1);
    }
    let written = table.cell(row, "arm_num");
    written.parse().map_err(|_| {
        table.fault(
            row.line,
            &format!("`{written}` is no arm number"),
            "write a whole number such as 1",
        )
    })
}

fn mapping(
    table: &Table,
    dictionary: &mut Dictionary,
    warnings: &mut Vec<Warning>,
) -> Result<(), EdcError> {
    for name in ["unique_event_name", "form"] {
        table.require(name, "export the form-event mapping by the API")?;
    }
    if dictionary.events.is_empty() && !table.rows.is_empty() {
        warnings.push(
            table.warning(
                "there is no events file, so events are taken from this mapping".to_owned(),
            ),
        );
        for row in &table.rows {
            let name = table.cell(row, "unique_event_name");
            if !name.is_empty()
                && dictionary
                    .events
                    .iter()
                    .all(|event| event.unique_name != name)
            {
                let event = Event {
                    unique_name: name.to_owned(),
                    label: name.to_owned(),
                    arm: arm(table, row)?,
                };
                dictionary.events.push(event);
            }
        }
    }
    let mut designations = BTreeSet::new();
    for row in &table.rows {
        let event = known_event(table, row, table.cell(row, "unique_event_name"), dictionary)?;
        let form = known_form(table, row, table.cell(row, "form"), dictionary)?;
        designations.insert((event, form));
    }
    dictionary.designations = designations;
    Ok(())
}

fn repeating(
    table: &Table,
    dictionary: &Dictionary,
) -> Result<BTreeSet<(String, String)>, EdcError> {
    table.require(
        "form_name",
        "export the repeating instruments and events by the API",
    )?;
    let mut repeating = BTreeSet::new();
    for row in &table.rows {
        let event = match table.cell(row, "event_name") {
            name if dictionary.is_longitudinal() => known_event(table, row, name, dictionary)?,
            "" => String::new(),
            name => {
                return Err(table.fault(
                    row.line,
                    &format!("names event `{name}`, but the project has no events"),
                    "add events.csv, or leave the event blank",
                ));
            }
        };
        let form = match table.cell(row, "form_name") {
            "" if !event.is_empty() => String::new(),
            name => known_form(table, row, name, dictionary)?,
        };
        repeating.insert((event, form));
    }
    Ok(repeating)
}

fn known_event(
    table: &Table,
    row: &TableRow,
    name: &str,
    dictionary: &Dictionary,
) -> Result<String, EdcError> {
    if dictionary
        .events
        .iter()
        .any(|event| event.unique_name == name)
    {
        return Ok(name.to_owned());
    }
    Err(table.fault(
        row.line,
        &format!("event `{name}` is not among the project's events"),
        "write a unique event name such as baseline_arm_1, as in events.csv",
    ))
}

fn known_form(
    table: &Table,
    row: &TableRow,
    name: &str,
    dictionary: &Dictionary,
) -> Result<String, EdcError> {
    if dictionary.forms.iter().any(|form| form == name) {
        return Ok(name.to_owned());
    }
    Err(table.fault(
        row.line,
        &format!("form `{name}` is not in the dictionary"),
        "write the form's unique name, or export the dictionary again",
    ))
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        reason = "a failed expectation is the test's verdict"
    )]

    use super::*;

    #[test]
    fn project_information_is_read_as_object_and_as_list() {
        let object = r#"{"missing_data_codes":"NI, No information | UNK, 未知","secondary_unique_field":"mrn","is_longitudinal":1}"#;
        let info = ProjectInfo::parse(object).unwrap();
        assert_eq!(info.secondary_unique_field.as_deref(), Some("mrn"));
        assert_eq!(
            info.missing_codes,
            choices("NI, No information | UNK, 未知")
        );
        assert_eq!(ProjectInfo::parse(&format!("[{object}]")).unwrap(), info);
        assert_eq!(
            ProjectInfo::parse(r#"{"missing_data_codes":"","secondary_unique_field":null}"#)
                .unwrap(),
            ProjectInfo::default()
        );
        assert!(ProjectInfo::parse("[]").is_err());
    }
}
