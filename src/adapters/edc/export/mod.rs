//! REDCap's flat export: metadata, events, mapping, repeating setup and records as tables, turned into
//! a [`Dictionary`] and [`Record`]s. Where the bytes come from is the caller's matter.

pub mod metadata;
pub mod records;
pub mod structure;
pub mod table;

use std::{collections::HashMap, sync::Arc};

use crate::types::{dictionary::Dictionary, record::Record};

use super::error::{EdcError, Warning};

pub use self::table::Table;

/// The tables of one export. Only metadata and records must be there.
#[derive(Debug)]
pub struct Tables {
    /// Data dictionary.
    pub metadata: Table,
    /// Flat records, raw values, raw headers.
    pub records: Table,
    /// Events.
    pub events: Option<Table>,
    /// Which form is used at which event.
    pub mapping: Option<Table>,
    /// Repeating instruments and events.
    pub repeating: Option<Table>,
    /// Project information.
    pub project: structure::ProjectInfo,
}

/// A whole study as it stood in one export.
#[derive(Debug)]
pub struct Study {
    /// The dictionary, with its structure.
    pub dictionary: Arc<Dictionary>,
    /// Record ids in export order.
    pub ids: Vec<String>,
    /// Records by id.
    pub records: HashMap<String, Arc<Record>>,
    /// What was odd.
    pub warnings: Vec<Warning>,
}

/// Reads an export.
///
/// Structure comes from the structure files; where one is missing although the data has events or
/// repeats, it is taken from the data and a warning says so.
///
/// # Errors
/// [`EdcError::Faulty`] with file and line of the first fault.
pub fn study(tables: Tables) -> Result<Study, EdcError> {
    let mut warnings: Vec<Warning> = [Some(&tables.metadata), Some(&tables.records)]
        .into_iter()
        .chain([&tables.events, &tables.mapping, &tables.repeating].map(Option::as_ref))
        .flatten()
        .filter_map(Table::encoding_warning)
        .collect();
    let fields = metadata::fields(&tables.metadata, &mut warnings)?;
    let mut dictionary = Dictionary::new(fields);
    structure::apply(&tables, &mut dictionary, &mut warnings)?;
    let read = records::read(tables.records, &mut dictionary, &mut warnings)?;
    Ok(Study {
        dictionary: Arc::new(dictionary),
        ids: read.ids,
        records: read.records,
        warnings,
    })
}
