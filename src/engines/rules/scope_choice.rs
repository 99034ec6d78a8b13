//! Which form a rule is asked along, so that no value it reads is left unlooked at.
//!
//! A field without an event is read from the row the rule is asked on, or from the one event its form stands
//! at. So a rule asked where *one* of its forms stands may pass over values of another at other events.
//! It is asked along the form for which that can't be, and refused when there is none.

use super::{
    layout::Layout,
    names::{Names, RefId},
};

/// A form the rule reads, with the first field it reads there.
#[derive(Clone, Copy)]
struct Read {
    form: usize,
    field: RefId,
}

/// The form to ask a rule along that reads the fields `refs` (all without an event, all on forms), about
/// the form `about`: one that stands wherever any other of several events does, and from where every other
/// field's place is clear. Judged arm by arm, for a record lives in one.
///
/// # Errors
/// A sentence that names the event at which it is unclear which value is meant, or whose value would never
/// be looked at.
pub(super) fn lead(
    names: &Names<'_>,
    about: Option<usize>,
    refs: &[RefId],
) -> Result<Option<usize>, String> {
    let choice = Choice {
        names,
        layout: &names.layout,
        about,
    };
    let mut forms: Vec<Read> = Vec::new();
    for &field in refs {
        if let Some(form) = names.slot(field).form
            && forms.iter().all(|read| read.form != form)
        {
            forms.push(Read { form, field });
        }
    }
    let mut repeating = forms
        .iter()
        .filter(|read| names.layout.repeats_anywhere(read.form));
    match (repeating.next().copied(), repeating.next()) {
        (Some(one), Some(other)) => {
            return Err(format!(
                "`{}` and `{}` stand on two different repeating forms, whose instances don't belong together",
                choice.name(one),
                choice.name(*other),
            ));
        }
        (Some(one), None) => {
            return match choice.complaint(one, &forms) {
                Some(complaint) => Err(complaint),
                None => Ok(Some(one.form)),
            };
        }
        (None, _) => {}
    }
    // The widest first; among equals the form the rule is about, else reading order.
    let mut candidates = forms.clone();
    candidates.sort_by_key(|read| {
        let width = names.layout.events_of(read.form, None).count();
        (std::cmp::Reverse(width), Some(read.form) != about)
    });
    let mut first = None;
    for candidate in candidates {
        match choice.complaint(candidate, &forms) {
            None => return Ok(Some(candidate.form)),
            Some(complaint) => first = first.or(Some(complaint)),
        }
    }
    first.map_or(Ok(None), Err)
}

struct Choice<'n, 's> {
    names: &'n Names<'s>,
    layout: &'n Layout,
    about: Option<usize>,
}

impl Choice<'_, '_> {
    fn name(&self, read: Read) -> &str {
        &self.names.refs[read.field].name
    }

    /// What would go wrong if the rule were asked along `lead`.
    fn complaint(&self, lead: Read, forms: &[Read]) -> Option<String> {
        let others = || forms.iter().filter(|read| read.form != lead.form);
        self.layout.arms().into_iter().find_map(|arm| {
            others().find_map(|other| {
                self.unclear(arm, lead, *other)
                    .or_else(|| self.passed_over(arm, lead, *other))
            })
        })
    }

    /// An event of `lead` from where nobody can tell which value of `other` is meant.
    fn unclear(&self, arm: u32, lead: Read, other: Read) -> Option<String> {
        let layout = self.layout;
        let at = layout
            .standing(lead.form, arm)
            .find(|at| layout.source(*at, other.form).is_none())?;
        let (events, other_name) = (layout.event_names(), self.name(other));
        let event = events.get(at)?;
        let place = match layout.standing(other.form, arm).next() {
            None => "no event of that arm".to_owned(),
            Some(first) if layout.sole_event(other.form, arm).is_some() => {
                format!("`{}`, which repeats", events.get(first)?)
            }
            Some(_) => self.events(other, arm),
        };
        Some(format!(
            "at event `{event}` it is unclear which `{other_name}` belongs to `{}`: it stands at {place}; {}",
            self.name(lead),
            self.remedy(other, arm),
        ))
    }

    /// A value of `other` at an event where the rule would not be asked.
    fn passed_over(&self, arm: u32, lead: Read, other: Read) -> Option<String> {
        let layout = self.layout;
        // A rule on instances is about the instances, and reads the rest beside them.
        let mut own = (0..layout.event_count()).filter(|at| layout.stands_at(*at, lead.form));
        if own.all(|at| layout.is_repeating(at, lead.form)) {
            return None;
        }
        let out_of_arm = layout.standing(lead.form, arm).next().is_none();
        let several = layout.standing(other.form, arm).nth(1).is_some();
        if !several {
            // One value is read from wherever the rule is asked; in an arm that has no `lead`, a rule
            // about `lead` asks nothing.
            let is_about_lead = self.about == Some(lead.form)
                || layout
                    .arms()
                    .into_iter()
                    .any(|arm| layout.standing(lead.form, arm).nth(1).is_some());
            if !out_of_arm || is_about_lead {
                return None;
            }
        }
        let missed = layout
            .standing(other.form, arm)
            .find(|at| !layout.stands_at(*at, lead.form))?;
        Some(format!(
            "`{}` at event `{}` would never be looked at, for `{}` isn't collected there; {}",
            self.name(other),
            layout.event_names().get(missed)?,
            self.name(lead),
            self.remedy(other, arm),
        ))
    }

    fn events(&self, read: Read, arm: u32) -> String {
        let names: Vec<String> = self
            .layout
            .standing(read.form, arm)
            .filter_map(|at| self.layout.event_names().get(at))
            .map(|name| format!("`{name}`"))
            .collect();
        names.join(", ")
    }

    fn remedy(&self, read: Read, arm: u32) -> String {
        let event = self
            .layout
            .standing(read.form, arm)
            .find(|at| !self.layout.is_repeating(*at, read.form) && !self.layout.event_repeats(*at))
            .and_then(|at| self.layout.event_names().get(at));
        match event {
            Some(event) => format!(
                "name the event as {{\"var\": \"{event}.{}\"}}, or split the rule",
                self.name(read)
            ),
            None => "split the rule".to_owned(),
        }
    }
}
