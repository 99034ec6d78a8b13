//! What the rules may know of the study they are compiled for.

use std::collections::BTreeMap;

use crate::types::{
    dictionary::Dictionary,
    project::{ProjectFile, Visit},
};

/// The study behind a rule set: names, types and visit windows.
///
/// [`Study::default`] knows nothing: any field name goes, and JSON types stand.
#[derive(Debug, Clone, Copy)]
pub struct Study<'a> {
    /// Types every field; `None` for plain JSON data.
    pub dictionary: Option<&'a Dictionary>,
    /// Names people use → field names. A dictionary field beats an alias.
    pub aliases: &'a BTreeMap<String, String>,
    /// What the study calls each role (`consent_date` → `icf_date`).
    pub roles: &'a BTreeMap<String, String>,
    /// Visit windows, for `visit_window`.
    pub visits: &'a [Visit],
}

static NO_NAMES: BTreeMap<String, String> = BTreeMap::new();

impl Default for Study<'_> {
    fn default() -> Self {
        Self {
            dictionary: None,
            aliases: &NO_NAMES,
            roles: &NO_NAMES,
            visits: &[],
        }
    }
}

impl<'a> Study<'a> {
    /// The study of a project file, typed by its dictionary.
    #[must_use]
    pub fn of(project: &'a ProjectFile, dictionary: Option<&'a Dictionary>) -> Self {
        Self {
            dictionary,
            aliases: &project.aliases,
            roles: &project.fields,
            visits: &project.visits,
        }
    }

    /// A study known by its dictionary only.
    #[must_use]
    pub fn typed_by(dictionary: &'a Dictionary) -> Self {
        Self {
            dictionary: Some(dictionary),
            ..Self::default()
        }
    }

    /// The field that plays `role`; `None` when unset or set to "".
    #[must_use]
    pub fn role(&self, role: &str) -> Option<&'a str> {
        self.roles
            .get(role)
            .map(String::as_str)
            .filter(|name| !name.is_empty())
    }
}
