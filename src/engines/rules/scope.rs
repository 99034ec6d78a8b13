//! On which rows of a record a rule is evaluated.

use super::{
    frame::Fields,
    names::{Names, RefId},
    record_view::RecordView,
};

/// Where a rule applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// No dictionary: every row.
    EveryRow,
    /// Every row the form stands on: the row of each event where it is designated, each instance of a
    /// repeating event, each instance of the form where it repeats.
    Form(usize),
    /// The base row of one event.
    Event(usize),
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
        let mut repeating: Vec<usize> = refs
            .iter()
            .filter(here)
            .filter_map(|id| form_of(*id))
            .filter(|form| layout.repeats_anywhere(*form))
            .collect();
        repeating.dedup();
        if let Some(first) = repeating.first() {
            if let Some(other) = repeating.iter().find(|form| *form != first) {
                let field_on = |form: usize| {
                    refs.iter()
                        .find(|id| form_of(**id) == Some(form))
                        .map_or("", |id| &*names.refs[*id].name)
                };
                return Err(format!(
                    "`{}` and `{}` stand on two different repeating forms, whose instances don't belong together",
                    field_on(*first),
                    field_on(*other)
                ));
            }
            return Ok(Self::Form(*first));
        }
        if let Some(field) = field {
            let same = |id: &&RefId| names.refs[**id].slot == names.refs[field].slot;
            let read: Vec<RefId> = refs.iter().filter(same).copied().collect();
            let read_here = read.iter().any(|id| names.refs[*id].event.is_none());
            if let (false, Some(event)) =
                (read_here, read.iter().find_map(|id| names.refs[*id].event))
            {
                return Ok(Self::Event(event));
            }
            if let Some(event) = names.refs[field].event {
                return Ok(Self::Event(event));
            }
            if let Some(form) = form_of(field)
                && (read_here || !layout.repeats_anywhere(form))
            {
                return Ok(Self::Form(form));
            }
        }
        let first_form = refs.iter().filter(here).find_map(|id| form_of(*id));
        let first_event = refs.iter().find_map(|id| names.refs[*id].event);
        Ok(match (first_form, first_event) {
            (Some(form), _) => Self::Form(form),
            (None, Some(event)) => Self::Event(event),
            (None, None) => Self::Once,
        })
    }

    /// Whether the rule is evaluated on that row.
    pub(super) fn applies(self, fields: &Fields, view: &RecordView<'_>, row: usize) -> bool {
        let layout = &fields.layout;
        match self {
            Self::EveryRow => true,
            Self::Once => row == 0,
            Self::Event(event) => view.base_row(event) == Some(row),
            Self::Form(form) => match (view.instrument(row), view.event(row)) {
                (Some(instrument), _) => instrument == form,
                (None, Some(event)) => {
                    layout.is_designated(event, form) && !layout.is_repeating(event, form)
                }
                (None, None) => false,
            },
        }
    }

    /// The event to report an unopened form at, when no row of the record has it: `None` when there is
    /// nothing to report (a repeating form without instances, an arm the record is not in).
    pub(super) fn awaited(self, fields: &Fields, view: &RecordView<'_>) -> Option<usize> {
        let layout = &fields.layout;
        let arms = view.arms();
        let in_arm = |event: &usize| arms.is_empty() || arms.contains(&layout.arm(*event));
        match self {
            Self::EveryRow | Self::Once => None,
            Self::Event(event) => Some(event).filter(in_arm),
            Self::Form(form) => {
                let mut events = layout.events_of(form, None).filter(in_arm);
                let first = events.next()?;
                let repeats = std::iter::once(first)
                    .chain(events)
                    .any(|event| layout.is_repeating(event, form) || layout.event_repeats(event));
                (!repeats).then_some(first)
            }
        }
    }
}
