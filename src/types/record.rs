//! One subject's data as rows of text, the way an EDC exports it. Ids and values are strings everywhere.

use std::{collections::HashMap, sync::Arc};

/// The column names of an export, shared by all its rows.
#[derive(Debug, Default)]
pub struct Columns {
    names: Vec<String>,
    by_name: HashMap<String, usize>,
}

impl Columns {
    /// Columns in export order.
    #[must_use]
    pub fn new(names: Vec<String>) -> Arc<Self> {
        let by_name = names
            .iter()
            .enumerate()
            .map(|(at, name)| (name.clone(), at))
            .collect();
        Arc::new(Self { names, by_name })
    }

    /// Names in export order.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Position of a column.
    #[must_use]
    pub fn position(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }
}

/// One row: a base row of an event, or one instance of a repeating form or event.
#[derive(Debug, Clone)]
pub struct Row {
    /// Unique event name; `None` in a classic project.
    pub event: Option<String>,
    /// The repeating instrument; `None` on a base row and on a repeating event's row.
    pub instrument: Option<String>,
    /// Instance number; `None` on a base row.
    pub instance: Option<u32>,
    columns: Arc<Columns>,
    cells: Vec<Box<str>>,
}

impl Row {
    /// A row whose `cells` stand under `columns`, in the same order.
    #[must_use]
    pub fn new(
        event: Option<String>,
        instrument: Option<String>,
        instance: Option<u32>,
        columns: Arc<Columns>,
        cells: Vec<Box<str>>,
    ) -> Self {
        Self {
            event,
            instrument,
            instance,
            columns,
            cells,
        }
    }

    /// The cell as exported, untrimmed; `None` when the export has no such column.
    #[must_use]
    pub fn get(&self, column: &str) -> Option<&str> {
        let at = self.columns.position(column)?;
        self.cells.get(at).map(AsRef::as_ref)
    }

    /// The cell at a column's position, see [`Columns::position`].
    #[must_use]
    pub fn cell(&self, position: usize) -> Option<&str> {
        self.cells.get(position).map(AsRef::as_ref)
    }

    /// The columns of this row.
    #[must_use]
    pub fn columns(&self) -> &Arc<Columns> {
        &self.columns
    }

    /// Whether this is a base row (not an instance of something repeating).
    #[must_use]
    pub fn is_base(&self) -> bool {
        self.instance.is_none()
    }
}

/// All rows of one subject.
#[derive(Debug, Clone)]
pub struct Record {
    /// The record id as written in the EDC.
    pub id: String,
    /// Rows in export order.
    pub rows: Vec<Row>,
}

impl Record {
    /// The base row of an event (of the project, when classic).
    #[must_use]
    pub fn base_row(&self, event: Option<&str>) -> Option<&Row> {
        self.rows
            .iter()
            .find(|row| row.is_base() && row.event.as_deref() == event)
    }
}
