//! On which rows of a record a rule is evaluated.

use std::collections::BTreeSet;

use super::{
    frame::Fields,
    layout::Layout,
    names::{Names, RefId, SlotKind},
    record_view::RecordView,
    scope_choice,
};

/// Where a rule applies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Scope {
    /// Every row: there is no dictionary, or the rule reads only the row's event.
    EveryRow,
    /// Every row the form stands on: the row of each event where it is designated, each instance of a
    /// repeating event, each instance of the form where it repeats.
    Form(usize),
    /// The base row of the first of these events that has one: the rule names its events.
    Events(Box<[usize]>),
    /// The first row: the rule reads nothing that belongs to a form.
    Once,
}

impl Scope {
    /// The scope of a rule about `field` (if it has one) that reads `refs`, in reading order.
    pub(super) fn of(
        names: &Names<'_>,
        field: Option<RefId>,
        refs: &[RefId],
    ) -> Result<Self, String> {
        if names.study().dictionary.is_none() {
            return Ok(Self::EveryRow);
        }
        let layout = &names.layout;
        let form_of = |id: RefId| names.slot(id).form;
        let here = |id: &&RefId| names.refs[**id].event.is_none();
        for id in refs.iter().chain(&field).filter(here) {
            if let Some(form) = form_of(*id).filter(|form| !layout.stands_anywhere(*form)) {
                return Err(format!(
                    "`{}` stands on form `{}`, which is designated at no event; fix the mapping of forms to events or the rule",
                    names.refs[*id].name,
                    layout.form_name(form),
                ));
            }
        }
        let unbound: Vec<RefId> = refs
            .iter()
            .filter(|id| here(id) && form_of(**id).is_some())
            .copied()
            .collect();
        let named = event_of(names, field, refs);
        if unbound.is_empty() {
            let mut events: Vec<usize> = named
                .into_iter()
                .chain(refs.iter().filter_map(|id| names.refs[*id].event))
                .collect();
            let mut seen = BTreeSet::new();
            events.retain(|event| seen.insert(*event));
            if !events.is_empty() {
                return Ok(Self::Events(events.into()));
            }
            if let Some(form) = field.and_then(form_of) {
                return Ok(Self::Form(form));
            }
            let differs = |id: &RefId| matches!(names.slot(*id).kind, SlotKind::EventName);
            return Ok(if refs.iter().any(differs) {
                Self::EveryRow
            } else {
                Self::Once
            });
        }
        if let Some(event) = named
            && unbound
                .iter()
                .filter_map(|id| form_of(*id))
                .all(|form| is_constant(layout, event, form))
        {
            return Ok(Self::Events([event].into()));
        }
        let about = field.and_then(form_of);
        Ok(scope_choice::lead(names, about, &unbound)?.map_or(Self::Once, Self::Form))
    }

    /// Whether the rule is evaluated on that row.
    pub(super) fn applies(&self, fields: &Fields, view: &RecordView<'_>, row: usize) -> bool {
        let layout = &fields.layout;
        match self {
            Self::EveryRow => true,
            Self::Once => row == 0,
            Self::Events(events) => {
                events.iter().find_map(|event| view.base_row(*event)) == Some(row)
            }
            &Self::Form(form) => match (view.instrument(row), view.event(row)) {
                (Some(instrument), _) => instrument == form,
                (None, Some(event)) => {
                    layout.is_designated(event, form)
                        && !layout.is_repeating(event, form)
                        && view.is_reached(row)
                }
                (None, None) => false,
            },
        }
    }

    /// The events to report an unopened form at for want of a row: those the record has instances at, and
    /// if the rule was `asked` nowhere, the first it waits for. None when there is nothing to report (a
    /// repeating form without instances, an arm the record is not in).
    pub(super) fn awaited(
        &self,
        fields: &Fields,
        view: &RecordView<'_>,
        asked: bool,
    ) -> Vec<usize> {
        let layout = &fields.layout;
        let arms = view.arms();
        let in_arm = |event: &usize| arms.is_empty() || arms.contains(&layout.arm(*event));
        match self {
            Self::EveryRow | Self::Once => Vec::new(),
            Self::Events(_) if asked => Vec::new(),
            Self::Events(events) => events.iter().copied().find(in_arm).into_iter().collect(),
            &Self::Form(form) => {
                let repeats =
                    |event: usize| layout.is_repeating(event, form) || layout.event_repeats(event);
                let events: Vec<usize> = layout.events_of(form, None).filter(in_arm).collect();
                let reached: Vec<usize> = events
                    .iter()
                    .copied()
                    .filter(|&event| !layout.is_classic() && !repeats(event))
                    .filter(|&event| view.base_row(event).is_none() && view.has_instance(event))
                    // Repeats after all, whatever the project says; it was asked there.
                    .filter(|&event| !view.has_instance_of(event, form))
                    .collect();
                let waits = !asked && !events.iter().any(|&event| repeats(event));
                match (reached.is_empty(), events.first()) {
                    (true, Some(&first)) if waits => vec![first],
                    _ => reached,
                }
            }
        }
    }
}

/// The event a rule names for the field it is about; `None` when it reads that field without one.
fn event_of(names: &Names<'_>, field: Option<RefId>, refs: &[RefId]) -> Option<usize> {
    let field = field?;
    let same = |id: &&RefId| names.refs[**id].slot == names.refs[field].slot;
    if refs
        .iter()
        .filter(same)
        .any(|id| names.refs[*id].event.is_none())
    {
        return None;
    }
    let read = refs
        .iter()
        .filter(same)
        .find_map(|id| names.refs[*id].event);
    read.or(names.refs[field].event)
}

/// Whether the form has one value a record, which can be read from `event`.
fn is_constant(layout: &Layout, event: usize, form: usize) -> bool {
    layout.source(event, form).is_some()
        && layout
            .arms()
            .into_iter()
            .all(|arm| layout.standing(form, arm).nth(1).is_none())
}
