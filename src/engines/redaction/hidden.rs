//! A run's placeholders: one for each value, the same in every turn, and the way back.

use std::collections::HashMap;

use super::{
    kind::{Kind, PLACEHOLDER, Span},
    known::{self, Known},
};

/// A placeholder and what it stands for.
#[derive(Clone, PartialEq, Eq)]
pub struct Placeholder {
    /// `〔姓名1〕`
    pub placeholder: String,
    /// What the value is.
    pub kind: Kind,
    /// The value, exactly as it stood in the text.
    pub value: String,
}

impl std::fmt::Debug for Placeholder {
    /// Without the value.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.placeholder)
    }
}

/// The placeholders of one run.
#[derive(Default)]
pub struct Hidden {
    all: Vec<Placeholder>,
    by_value: HashMap<String, usize>,
    by_placeholder: HashMap<String, usize>,
    /// Of `all`, those before this were there from the beginning.
    old: usize,
    /// What was hidden once in a run is hidden wherever it stands in it.
    known: Option<Known>,
    /// How many of `all` are looked for in `known`.
    looked_for: usize,
}

impl std::fmt::Debug for Hidden {
    /// Without the values.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(&self.all).finish()
    }
}

impl Hidden {
    /// The placeholders a run has so far.
    #[must_use]
    pub fn of(kept: Vec<Placeholder>) -> Self {
        let mut hidden = Self::default();
        for one in kept {
            hidden.add(one);
        }
        hidden.old = hidden.all.len();
        hidden
    }

    /// Placeholders that were not there from the beginning: to be stored before anything leaves.
    #[must_use]
    pub fn fresh(&self) -> &[Placeholder] {
        self.all.get(self.old..).unwrap_or_default()
    }

    /// How many there are: when it grew, texts looked at before may have to be looked at again.
    #[must_use]
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether nothing is hidden.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The placeholder of `value`; a new one when it has none.
    pub(super) fn hide(&mut self, kind: Kind, value: &str) -> &str {
        let at = match self.by_value.get(value) {
            Some(&at) => at,
            None => {
                let same = self.all.iter().filter(|one| one.kind == kind).count();
                let free = (same + 1..)
                    .map(|no| kind.placeholder(no))
                    .find(|one| !self.by_placeholder.contains_key(one));
                self.add(Placeholder {
                    placeholder: free.unwrap_or_default(),
                    kind,
                    value: value.to_owned(),
                })
            }
        };
        self.all.get(at).map_or("", |one| &one.placeholder)
    }

    fn add(&mut self, one: Placeholder) -> usize {
        let at = self.all.len();
        self.by_value.insert(one.value.clone(), at);
        self.by_placeholder.insert(one.placeholder.clone(), at);
        self.all.push(one);
        at
    }

    /// Looks for everything hidden so far from now on.
    ///
    /// # Errors
    /// It is too much to be looked for.
    pub(super) fn look_for_all(&mut self) -> Result<(), aho_corasick::BuildError> {
        if self.looked_for == self.all.len() {
            return Ok(());
        }
        let personal = || self.all.iter().filter(|one| one.kind != Kind::Literal);
        let whole = personal()
            .filter(|one| known::is_telling(&one.value))
            .map(|one| (one.kind, one.value.as_str()));
        // 患者张三因… may have been taken for a longer name than it is.
        let shorter = personal()
            .filter(|one| one.kind == Kind::Name && one.value.chars().count() == 3)
            .filter_map(|one| {
                let (last, c) = one.value.char_indices().last()?;
                (!c.is_ascii()).then(|| (one.kind, one.value.get(..last).unwrap_or_default()))
            });
        let known = Known::new(whole.chain(shorter))?;
        self.known = Some(known);
        self.looked_for = self.all.len();
        Ok(())
    }

    /// What was hidden before, in `text`.
    pub(super) fn find(&self, text: &str, found: &mut Vec<Span>) {
        if let Some(known) = &self.known {
            known.find(text, found);
        }
    }

    /// `text` with every placeholder of this run put back. What only looks like one stays.
    #[must_use]
    pub fn restore(&self, text: &str) -> String {
        self.replaced(text, |one| one.value.clone())
    }

    /// The same in a JSON text: a value with quotes in it leaves it JSON.
    #[must_use]
    pub fn restore_json(&self, json: &str) -> String {
        self.replaced(json, |one| {
            let quoted = serde_json::Value::from(one.value.as_str()).to_string();
            let inside = quoted.strip_prefix('"').and_then(|q| q.strip_suffix('"'));
            inside.unwrap_or_default().to_owned()
        })
    }

    /// `text` for somebody who may not see what is hidden: `〔姓名〕`. What a model made up that looks like a
    /// placeholder loses its number, too.
    #[must_use]
    pub fn mask(&self, text: &str) -> String {
        let Some(pattern) = PLACEHOLDER.as_ref() else {
            return String::new();
        };
        pattern
            .replace_all(text, |groups: &regex::Captures<'_>| {
                let kind = groups.get(1).and_then(|kind| Kind::of_label(kind.as_str()));
                match (kind, groups.get(0).and_then(|m| self.get(m.as_str()))) {
                    // Nobody's: what a person wrote is shown as written.
                    (Some(Kind::Literal), Some(one)) => one.value.clone(),
                    (Some(kind), _) => kind.mask(),
                    (None, _) => String::new(),
                }
            })
            .into_owned()
    }

    /// `text` for one reader.
    #[must_use]
    pub fn shown(&self, text: &str, may_see: bool) -> String {
        match may_see {
            true => self.restore(text),
            false => self.mask(text),
        }
    }

    fn get(&self, placeholder: &str) -> Option<&Placeholder> {
        self.by_placeholder
            .get(placeholder)
            .and_then(|&at| self.all.get(at))
    }

    fn replaced(&self, text: &str, with: impl Fn(&Placeholder) -> String) -> String {
        let Some(pattern) = PLACEHOLDER.as_ref() else {
            return text.to_owned();
        };
        pattern
            .replace_all(text, |groups: &regex::Captures<'_>| {
                let whole = groups.get(0).map_or("", |m| m.as_str());
                self.get(whole).map_or_else(|| whole.to_owned(), &with)
            })
            .into_owned()
    }
}
