//! The record a tool is asked about. Never a neighbour of it: the wrong patient's data is worse than none.

use std::sync::Arc;

use super::{scope::Scope, tool::ToolError};
use crate::types::{near_miss::near_misses, record::Record, text::half_width};

impl<'s> Scope<'s> {
    /// The records the run may read.
    pub fn records(&self) -> impl Iterator<Item = &'s Arc<Record>> {
        let only = self.record;
        self.data
            .records
            .iter()
            .filter(move |record| only.is_none_or(|only| record.id == only))
    }

    /// The record of that id; letter case and width don't count where they tell no two records apart.
    ///
    /// # Errors
    /// [`ToolError::Arguments`]: there is none, with those written like it, or the run may not read it.
    pub fn find_record(&self, written: &str) -> Result<&'s Arc<Record>, ToolError> {
        let written = written.trim();
        let found = self.data.record(written).or_else(|| {
            let wanted = folded(written);
            let mut alike = self
                .data
                .records
                .iter()
                .filter(|record| folded(&record.id) == wanted);
            match (alike.next(), alike.next()) {
                (Some(record), None) => Some(record),
                _ => None,
            }
        });
        if let Some(only) = self.record {
            return found.filter(|record| record.id == only).ok_or_else(|| {
                ToolError::Arguments(format!(
                    "本次只能查看受试者 {only} 的数据，不能查看其他受试者"
                ))
            });
        }
        found.ok_or_else(|| self.no_such_record(written))
    }

    fn no_such_record(&self, written: &str) -> ToolError {
        if self.data.records.is_empty() {
            return ToolError::Arguments("研究里还没有任何受试者的数据".to_owned());
        }
        let ids = self.data.records.iter().map(|record| record.id.as_str());
        let near = near_misses(written, ids, 3);
        let shown = super::bounded::text(written);
        ToolError::Arguments(if near.is_empty() {
            format!("研究里没有受试者“{shown}”；请核对编号，或用 search_records 查找")
        } else {
            format!(
                "研究里没有受试者“{shown}”，编号相近的有 {}；请与提问者核对，不要自行更换",
                near.join("、")
            )
        })
    }
}

fn folded(id: &str) -> String {
    half_width(id).trim().to_lowercase()
}
