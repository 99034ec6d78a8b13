//! `visit_window`: a visit took place within its days.

use super::{Args, NamedFunction, Window, date, shown};
use crate::{
    engines::rules::{
        eval::Eval,
        names::{Names, RefId, did_you_mean},
        result::Reason,
        typing::Ty,
    },
    types::{near_miss::near_misses, project::Visit},
};

/// A visit took place within its window. Bounds are inclusive; the anchor is day 0, or day 1 in studies
/// without a day 0.
#[derive(Debug)]
struct VisitWindow {
    visit: String,
    date: RefId,
    anchor: RefId,
    window: Window,
}

pub(super) fn make(args: &mut Args<'_, '_>) -> Option<Box<dyn NamedFunction>> {
    let (visit, event) = (args.text("visit"), args.text("event"));
    let Some(id) = visit else {
        return args.fault("visit", "name the visit, such as \"V3\"".to_owned());
    };
    let visits = args.names.study().visits;
    let found: Vec<&Visit> = visits
        .iter()
        .filter(|visit| visit.id == id && (event.is_none() || visit.event == event))
        .collect();
    let visit = match found.as_slice() {
        [visit] => *visit,
        [] => {
            let near = near_misses(&id, visits.iter().map(|visit| visit.id.as_str()), 3);
            return args.fault(
                "visit",
                format!(
                    "the project file has no visit `{id}`{}",
                    did_you_mean(&near)
                ),
            );
        }
        _ => {
            return args.fault(
                "event",
                format!("visit `{id}` stands at several events; name one"),
            );
        }
    };
    let Some(window) = Window::of(visit) else {
        return args.fault(
            "visit",
            format!(
                "visit `{id}` is planned on day 0, which a study whose anchor is day 1 doesn't have"
            ),
        );
    };
    let has_events = args
        .names
        .study()
        .dictionary
        .is_some_and(|dictionary| dictionary.is_longitudinal());
    let date = match &visit.event {
        Some(event) if has_events => {
            args.field("visit", &format!("{event}.{}", visit.date_field), Ty::Date)
        }
        _ => args.field("visit", &visit.date_field, Ty::Date),
    };
    let anchor = args.field("visit", &visit.anchor_field, Ty::Date);
    let (date, anchor) = (date?, anchor?);
    if stands_at_several_events(args.names, date) {
        return args.fault(
            "visit",
            format!(
                "`{}` stands at several events; set `event` of visit `{id}` in the project file",
                visit.date_field
            ),
        );
    }
    if stands_at_several_events(args.names, anchor) {
        return args.fault(
            "visit",
            format!(
                "`{}` stands at several events; write the anchor of visit `{id}` as `event.field`",
                visit.anchor_field
            ),
        );
    }
    Some(Box::new(VisitWindow {
        visit: id,
        date,
        anchor,
        window,
    }))
}

impl NamedFunction for VisitWindow {
    fn fields(&self) -> Vec<RefId> {
        vec![self.date, self.anchor]
    }

    fn decide<'a>(&'a self, eval: &Eval<'_, 'a>) -> Option<bool> {
        let (anchor, actual) = (date(eval, self.anchor), date(eval, self.date));
        let days = anchor?.days_until(actual?);
        let holds = self.window.holds(days);
        if holds.is_none() {
            for field in [self.anchor, self.date] {
                if date(eval, field).is_some_and(|moment| !moment.is_whole_day()) {
                    eval.doubt(Reason::PartialDate, Some(field));
                }
            }
        }
        holds
    }

    fn detail(&self, eval: &Eval<'_, '_>) -> String {
        let (anchor, actual) = (date(eval, self.anchor), date(eval, self.date));
        let (Some(anchor), Some(actual)) = (anchor, actual) else {
            return String::new();
        };
        let days @ (fewest, most) = anchor.days_until(actual);
        let deviation = self.window.deviation(days);
        let (day, least) = if fewest == most {
            (format!("Day {}", self.window.study_day(fewest)), "")
        } else {
            let (from, to) = (self.window.study_day(fewest), self.window.study_day(most));
            (format!("Day {from} 至 Day {to}"), "至少 ")
        };
        format!(
            "{}访视实际日期 {}（{day}，锚点 {}），应在 {}，偏离 {least}{deviation} 天",
            self.visit,
            shown(eval, self.date),
            shown(eval, self.anchor),
            self.window.range(),
        )
    }

    fn role(&self, field: RefId) -> Option<&'static str> {
        if field == self.anchor {
            Some("锚点日期")
        } else {
            Some("访视日期")
        }
    }

    fn words(&self) -> String {
        format!("{}访视应在 {} 内", self.visit, self.window.range())
    }
}

/// Whether a field without an event doesn't say which of an arm's events is meant.
fn stands_at_several_events(names: &Names<'_>, field: RefId) -> bool {
    let layout = &names.layout;
    let here = names.refs[field].event.is_none();
    names.slot(field).form.filter(|_| here).is_some_and(|form| {
        layout
            .events_of(form, None)
            .any(|event| layout.sole_event(form, layout.arm(event)).is_none())
    })
}
