//! From the names people and models use to the fields of the study: dictionary names, aliases, roles, what
//! people see on the form. A name is mapped when it can mean one field only; never to its nearest neighbour.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{scope::Scope, tool::ToolError};
use crate::{
    engines::rules::Study,
    types::{
        dictionary::{Dictionary, Field, FieldKind},
        near_miss::near_misses,
        text::half_width,
    },
};

/// Columns of an export that are no fields of the dictionary, with what people see.
const PSEUDO_FIELDS: [(&str, &str); 3] = [
    ("redcap_data_access_group", "中心"),
    ("redcap_event_name", "访视"),
    ("redcap_repeat_instance", "序号"),
];

/// What a name means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meaning {
    /// This field, as the rules write it: `field` or `event.field`.
    Field(String),
    /// Any of these.
    Several(Vec<String>),
    /// None; those written like it.
    Unknown(Vec<String>),
}

/// The names of a study, and what was learned of them in one tool call.
pub struct Names<'s> {
    dictionary: &'s Dictionary,
    roles: &'s BTreeMap<String, String>,
    visits: &'s [crate::types::project::Visit],
    /// The study's, and those learned.
    aliases: BTreeMap<String, String>,
    /// By plain writing: fields of that name, alias or role.
    by_name: HashMap<String, BTreeSet<&'s str>>,
    /// Plain label and field.
    labels: Vec<(String, &'s str)>,
    /// What was taken for what, for the model.
    pub notes: Vec<String>,
    /// Names nobody could map.
    pub unmapped: Vec<String>,
}

impl<'s> Names<'s> {
    /// The names of the study at hand.
    #[must_use]
    pub fn of(scope: &'s Scope<'_>) -> Self {
        let (project, dictionary) = (scope.project, scope.data.dictionary.as_ref());
        let mut by_name: HashMap<String, BTreeSet<&str>> = HashMap::new();
        let named = dictionary
            .fields()
            .iter()
            .map(|field| (field.name.as_str(), field.name.as_str()))
            .chain(PSEUDO_FIELDS.map(|(name, _)| (name, name)))
            .chain(both(&project.aliases))
            .chain(both(&project.file.fields));
        for (name, field) in named {
            if is_field(dictionary, field) {
                by_name.entry(plain(name)).or_default().insert(field);
            }
        }
        let labels = dictionary
            .fields()
            .iter()
            .filter(|field| field.kind != FieldKind::Descriptive)
            .map(|field| (plain(&field.label), field.name.as_str()))
            .chain(PSEUDO_FIELDS.map(|(name, label)| (label.to_owned(), name)))
            .filter(|(label, _)| !label.is_empty())
            .collect();
        Self {
            dictionary,
            roles: &project.file.fields,
            visits: &project.file.visits,
            aliases: project.aliases.clone(),
            by_name,
            labels,
            notes: Vec::new(),
            unmapped: Vec::new(),
        }
    }

    /// The dictionary behind the names.
    #[must_use]
    pub fn dictionary(&self) -> &'s Dictionary {
        self.dictionary
    }

    /// The study as the rules know it, with the names learned so far.
    #[must_use]
    pub fn study(&self) -> Study<'_> {
        Study {
            dictionary: Some(self.dictionary),
            aliases: &self.aliases,
            roles: self.roles,
            visits: self.visits,
        }
    }

    /// What `written` means: `field`, `event.field`, an alias, a label, or a part of one label only.
    #[must_use]
    pub fn meaning(&self, written: &str) -> Meaning {
        let written = written.trim();
        if let Some((event, name)) = written.split_once('.')
            && let Some(event) = self.event(event)
        {
            return match self.meaning_of(name.trim()) {
                Meaning::Field(field) => Meaning::Field(format!("{event}.{field}")),
                other => other,
            };
        }
        self.meaning_of(written)
    }

    fn meaning_of(&self, written: &str) -> Meaning {
        if is_field(self.dictionary, written) {
            return Meaning::Field(written.to_owned());
        }
        // As written, before letter case and width are looked away from: the table knows best.
        let exact = self
            .aliases
            .get(written)
            .or_else(|| self.roles.get(written));
        if let Some(field) = exact.filter(|field| is_field(self.dictionary, field)) {
            return Meaning::Field(field.clone());
        }
        let wanted = plain(written);
        if wanted.is_empty() {
            return Meaning::Unknown(Vec::new());
        }
        if let Some(fields) = self.by_name.get(&wanted) {
            return one_of(fields);
        }
        // A label in two languages is either of them.
        let whole =
            |label: &str| label == wanted || label.split(['/', '|']).any(|part| part == wanted);
        let labelled = self.labelled(whole);
        if !labelled.is_empty() {
            return one_of(&labelled);
        }
        // One letter is in every label.
        if wanted.chars().count() >= 2 {
            let containing = self.labelled(|label| label.contains(&wanted));
            if !containing.is_empty() {
                return one_of(&containing);
            }
        }
        Meaning::Unknown(self.near(written))
    }

    fn labelled(&self, is_meant: impl Fn(&str) -> bool) -> BTreeSet<&'s str> {
        self.labels
            .iter()
            .filter(|(label, _)| is_meant(label))
            .map(|(_, field)| *field)
            .collect()
    }

    fn near(&self, written: &str) -> Vec<String> {
        let known = self
            .dictionary
            .fields()
            .iter()
            .flat_map(|field| [field.name.as_str(), field.label.as_str()])
            .chain(self.aliases.keys().map(String::as_str))
            .filter(|name| !name.is_empty());
        let mut near: Vec<String> = Vec::new();
        for name in near_misses(written, known, 6) {
            if let Meaning::Field(field) = self.meaning_exactly(name) {
                let shown = self.shown(&field);
                if !near.contains(&shown) {
                    near.push(shown);
                }
            }
        }
        near.truncate(3);
        near
    }

    /// Of a name that is known to be one.
    fn meaning_exactly(&self, name: &str) -> Meaning {
        if is_field(self.dictionary, name) {
            return Meaning::Field(name.to_owned());
        }
        match self.aliases.get(name) {
            Some(field) => Meaning::Field(field.clone()),
            None => one_of(&self.labelled(|label| label == plain(name))),
        }
    }

    /// The field `written` means. What was taken for what is noted.
    ///
    /// # Errors
    /// [`ToolError::Unmapped`], with those it may mean.
    pub fn field(&mut self, written: &str) -> Result<String, ToolError> {
        match self.meaning(written) {
            Meaning::Field(field) => {
                self.learn(written, &field);
                Ok(field)
            }
            other => Err(self.not_found(written, &other)),
        }
    }

    /// The fields that `written` mean; a form's name means all of its fields. Those that mean none are noted
    /// and left out.
    ///
    /// # Errors
    /// [`ToolError::Unmapped`] when none means any.
    pub fn fields(&mut self, written: &[String]) -> Result<Vec<String>, ToolError> {
        let mut found: Vec<String> = Vec::new();
        let mut refused = Vec::new();
        for name in written {
            let fields = match self.meaning(name) {
                Meaning::Field(field) => {
                    self.learn(name, &field);
                    vec![field]
                }
                other => match self.of_form(name) {
                    Some(fields) => fields,
                    None => {
                        let error = self.not_found(name, &other);
                        refused.push(error.to_string());
                        Vec::new()
                    }
                },
            };
            for field in fields {
                if !found.contains(&field) {
                    found.push(field);
                }
            }
        }
        if found.is_empty() && !refused.is_empty() {
            return Err(ToolError::Unmapped {
                names: self.unmapped.clone(),
                what: refused.join("；"),
            });
        }
        self.notes.extend(refused);
        Ok(found)
    }

    fn of_form(&self, name: &str) -> Option<Vec<String>> {
        let form = self
            .dictionary
            .forms
            .iter()
            .find(|form| plain(form) == plain(name))?;
        Some(
            self.dictionary
                .fields()
                .iter()
                .filter(|field| field.form == *form && field.kind != FieldKind::Descriptive)
                .map(|field| field.name.clone())
                .collect(),
        )
    }

    /// Notes that `written` means `field`, for the rules and for the model.
    pub(super) fn learn(&mut self, written: &str, field: &str) {
        let written = written.trim();
        if written == field {
            return;
        }
        self.notes
            .push(format!("“{written}”按字段 {} 理解", self.shown(field)));
        self.learn_quietly(written, field);
    }

    /// The same without telling.
    pub(super) fn learn_quietly(&mut self, written: &str, field: &str) {
        let bare = |name: &str| match name.split_once('.') {
            Some((_, name)) => name.trim().to_owned(),
            None => name.trim().to_owned(),
        };
        self.aliases.insert(bare(written), bare(field));
    }

    pub(super) fn not_found(&mut self, written: &str, meaning: &Meaning) -> ToolError {
        let name = written.trim().to_owned();
        if !name.is_empty() && !self.unmapped.contains(&name) {
            self.unmapped.push(name.clone());
        }
        let what = match meaning {
            Meaning::Several(fields) => {
                let fields: Vec<String> = fields.iter().map(|field| self.shown(field)).collect();
                format!(
                    "“{name}”可能指多个字段：{}，请写明是哪一个",
                    super::bounded::names(&fields, 6)
                )
            }
            Meaning::Unknown(near) if !near.is_empty() => {
                format!("没有名为“{name}”的字段，是否指 {}？", near.join("、"))
            }
            _ => format!("没有名为“{name}”的字段"),
        };
        ToolError::Unmapped {
            names: vec![name],
            what,
        }
    }

    /// The unique name of the event that is written, by that name or by what people see.
    #[must_use]
    pub fn event(&self, written: &str) -> Option<&'s str> {
        let events = &self.dictionary.events;
        let wanted = plain(written);
        let exact = events.iter().find(|event| event.unique_name == written);
        if let Some(event) = exact {
            return Some(&event.unique_name);
        }
        let mut meant = events
            .iter()
            .filter(|event| plain(&event.unique_name) == wanted || plain(&event.label) == wanted);
        match (meant.next(), meant.next()) {
            (Some(event), None) => Some(&event.unique_name),
            _ => None,
        }
    }

    /// The dictionary's field behind a resolved name: without its event, of a checkbox column the checkbox.
    #[must_use]
    pub fn definition(&self, resolved: &str) -> Option<&'s Field> {
        let name = resolved.split_once('.').map_or(resolved, |(_, name)| name);
        self.dictionary.field(name).or_else(|| {
            let (checkbox, _) = name.split_once("___")?;
            self.dictionary.field(checkbox)
        })
    }

    /// `age（年龄）`
    #[must_use]
    pub fn shown(&self, resolved: &str) -> String {
        match self.label(resolved) {
            "" => resolved.to_owned(),
            label => format!("{resolved}（{label}）"),
        }
    }

    /// What people see of a resolved name; empty when nothing.
    #[must_use]
    pub fn label(&self, resolved: &str) -> &'s str {
        let pseudo = PSEUDO_FIELDS.iter().find(|(name, _)| *name == resolved);
        match (self.definition(resolved), pseudo) {
            (Some(field), _) => &field.label,
            (None, Some((_, label))) => label,
            (None, None) => "",
        }
    }
}

fn both(map: &BTreeMap<String, String>) -> impl Iterator<Item = (&str, &str)> {
    map.iter().map(|(a, b)| (a.as_str(), b.as_str()))
}

/// Whether the rules know that name without an alias.
fn is_field(dictionary: &Dictionary, name: &str) -> bool {
    let is_choice = || {
        name.split_once("___")
            .and_then(|(field, _)| dictionary.field(field))
            .is_some_and(|field| {
                field.kind == FieldKind::Checkbox
                    && field
                        .choices
                        .iter()
                        .any(|choice| field.checkbox_column(&choice.code) == name)
            })
    };
    dictionary.field(name).is_some()
        || PSEUDO_FIELDS.iter().any(|(pseudo, _)| *pseudo == name)
        || name
            .strip_suffix("_complete")
            .is_some_and(|form| dictionary.forms.iter().any(|known| known == form))
        || is_choice()
}

fn one_of(fields: &BTreeSet<&str>) -> Meaning {
    let mut all = fields.iter().map(|field| (*field).to_owned());
    match (all.next(), fields.len()) {
        (Some(field), 1) => Meaning::Field(field),
        _ => Meaning::Several(fields.iter().map(|field| (*field).to_owned()).collect()),
    }
}

/// A name without what people write differently: letter case, width, spaces, underscores, end marks.
pub(super) fn plain(name: &str) -> String {
    half_width(name)
        .chars()
        .filter(|c| !c.is_whitespace() && !matches!(c, '_' | '*'))
        .flat_map(char::to_lowercase)
        .collect::<String>()
        .trim_end_matches([':', '?', '.', '。'])
        .to_owned()
}
