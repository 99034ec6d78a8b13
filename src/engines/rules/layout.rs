//! Which form stands at which event, and what repeats: the dictionary's structure by number, so that
//! finding a value needs no text comparison.

use std::collections::{BTreeSet, HashMap};

use crate::types::dictionary::Dictionary;

/// Events and forms by number. A classic project has the one event 0.
#[derive(Debug, Default)]
pub(super) struct Layout {
    classic: bool,
    events: Vec<String>,
    by_event: HashMap<String, usize>,
    arms: Vec<u32>,
    forms: HashMap<String, usize>,
    form_count: usize,
    /// By event and form.
    designated: Vec<bool>,
    /// By event and form.
    repeating: Vec<bool>,
    /// By event.
    event_repeats: Vec<bool>,
}

impl Layout {
    pub(super) fn of(dictionary: &Dictionary) -> Self {
        let classic = !dictionary.is_longitudinal();
        let (events, arms): (Vec<String>, Vec<u32>) = if classic {
            (vec![String::new()], vec![1])
        } else {
            dictionary
                .events
                .iter()
                .map(|event| (event.unique_name.clone(), event.arm))
                .unzip()
        };
        let mut designated = Vec::with_capacity(events.len() * dictionary.forms.len());
        let mut repeating = Vec::with_capacity(designated.capacity());
        for event in &events {
            let name = (!classic).then_some(event.as_str());
            for form in &dictionary.forms {
                designated.push(dictionary.is_designated(name, form));
                repeating.push(dictionary.is_repeating_form(name, form));
            }
        }
        Self {
            classic,
            by_event: index(&events),
            arms,
            forms: index(&dictionary.forms),
            form_count: dictionary.forms.len(),
            designated,
            repeating,
            event_repeats: events
                .iter()
                .map(|event| !classic && dictionary.is_repeating_event(event))
                .collect(),
            events,
        }
    }

    pub(super) fn form(&self, name: &str) -> Option<usize> {
        self.forms.get(name).copied()
    }

    /// The event of a row; always 0 in a classic project, `None` for an event the project doesn't have.
    pub(super) fn event(&self, name: Option<&str>) -> Option<usize> {
        if self.classic {
            Some(0)
        } else {
            self.by_event.get(name?).copied()
        }
    }

    pub(super) fn is_classic(&self) -> bool {
        self.classic
    }

    pub(super) fn event_names(&self) -> &[String] {
        &self.events
    }

    pub(super) fn event_count(&self) -> usize {
        self.events.len()
    }

    pub(super) fn arm(&self, event: usize) -> u32 {
        self.arms.get(event).copied().unwrap_or_default()
    }

    pub(super) fn is_designated(&self, event: usize, form: usize) -> bool {
        flag(&self.designated, event * self.form_count + form)
    }

    pub(super) fn is_repeating(&self, event: usize, form: usize) -> bool {
        flag(&self.repeating, event * self.form_count + form)
    }

    pub(super) fn event_repeats(&self, event: usize) -> bool {
        flag(&self.event_repeats, event)
    }

    /// Whether the form repeats as an instrument at any event.
    pub(super) fn repeats_anywhere(&self, form: usize) -> bool {
        (0..self.event_count()).any(|event| self.is_repeating(event, form))
    }

    /// Whether the form is designated at that event, or repeats there.
    pub(super) fn stands_at(&self, event: usize, form: usize) -> bool {
        self.is_designated(event, form) || self.is_repeating(event, form)
    }

    /// Whether any row of the project can hold the form.
    pub(super) fn stands_anywhere(&self, form: usize) -> bool {
        (0..self.event_count()).any(|event| self.stands_at(event, form))
    }

    /// The form's unique name; empty for one the dictionary doesn't have.
    pub(super) fn form_name(&self, form: usize) -> &str {
        self.forms
            .iter()
            .find(|(_, at)| **at == form)
            .map_or("", |(name, _)| name)
    }

    /// The events where the form is designated, of one arm or of all.
    pub(super) fn events_of(
        &self,
        form: usize,
        arm: Option<u32>,
    ) -> impl Iterator<Item = usize> + '_ {
        (0..self.event_count()).filter(move |&event| {
            self.is_designated(event, form) && arm.is_none_or(|arm| arm == self.arm(event))
        })
    }

    /// The events of `arm` where the form is designated or repeats.
    pub(super) fn standing(&self, form: usize, arm: u32) -> impl Iterator<Item = usize> + '_ {
        (0..self.event_count())
            .filter(move |&event| self.arm(event) == arm && self.stands_at(event, form))
    }

    /// Every arm once.
    pub(super) fn arms(&self) -> BTreeSet<u32> {
        self.arms.iter().copied().collect()
    }

    /// The event whose row holds the one value of `form` that is meant at a row of `here`: `here` itself,
    /// else the only event of its arm with the form. `None` when that doesn't say which value.
    pub(super) fn source(&self, here: usize, form: usize) -> Option<usize> {
        if self.is_designated(here, form) {
            return (!self.is_repeating(here, form)).then_some(here);
        }
        self.sole_event(form, self.arm(here))
            .filter(|&event| !self.is_repeating(event, form) && !self.event_repeats(event))
    }

    /// The one event of `arm` where the form is designated; `None` when there are none or several.
    pub(super) fn sole_event(&self, form: usize, arm: u32) -> Option<usize> {
        let mut events = self.events_of(form, Some(arm));
        let only = events.next()?;
        events.next().is_none().then_some(only)
    }
}

fn index(names: &[String]) -> HashMap<String, usize> {
    names
        .iter()
        .enumerate()
        .map(|(at, name)| (name.clone(), at))
        .collect()
}

fn flag(flags: &[bool], at: usize) -> bool {
    flags.get(at).copied().unwrap_or(false)
}
