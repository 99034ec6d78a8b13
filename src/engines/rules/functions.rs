//! Named functions, for what JSON Logic can't say: `{"function_name": "visit_window", "args": {…}}`.
//!
//! A new function is one struct that implements [`NamedFunction`] and one line in [`REGISTRY`].

use std::fmt::Debug;

use serde_json::{Map, Value};

use super::{
    cell::Cell,
    eval::Eval,
    moment::{Moment, Order},
    names::{Names, RefId, did_you_mean},
    number,
    parse::Found,
    result::Reason,
    typing::{self, Ty},
    value::V,
};
use crate::types::{near_miss::near_misses, project::Visit};

/// A check with a name.
pub(super) trait NamedFunction: Debug + Send + Sync {
    /// Every field it reads.
    fn fields(&self) -> Vec<RefId>;

    /// Whether the check holds; notes its doubts in `eval` when that is unknown.
    fn decide<'a>(&'a self, eval: &Eval<'_, 'a>) -> Option<bool>;

    /// After a failure: what was found, with the values.
    fn detail(&self, eval: &Eval<'_, '_>) -> String;

    /// What a field is to this check, for the message when it is missing.
    fn role(&self, _field: RefId) -> Option<&'static str> {
        None
    }

    /// The check in words.
    fn words(&self) -> String;
}

type Compiled = Result<Box<dyn NamedFunction>, Vec<Found>>;

type Make = fn(&mut Args<'_, '_>) -> Option<Box<dyn NamedFunction>>;

/// Every named function: name, arguments it takes, how it is made.
const REGISTRY: [(&str, &[&str], Make); 3] = [
    ("visit_window", &["visit", "event"], VisitWindow::make),
    (
        "informed_consent",
        &["consent_date", "enrollment_date"],
        InformedConsent::make,
    ),
    (
        "age_requirement",
        &["age", "guardian_consent_date", "min_age"],
        AgeRequirement::make,
    ),
];

/// Compiles `{"function_name", "args"}`.
pub(super) fn compile(map: &Map<String, Value>, names: &mut Names<'_>) -> Compiled {
    let fault = |place: &str, what: String| Err(vec![(place.to_owned(), what)]);
    if let Some(extra) = map
        .keys()
        .find(|key| !matches!(key.as_str(), "function_name" | "args"))
    {
        return fault(
            extra,
            "a named function has only function_name and args".to_owned(),
        );
    }
    let known = || REGISTRY.iter().map(|(name, ..)| *name);
    let Some(name) = map.get("function_name").and_then(Value::as_str) else {
        return fault(
            "function_name",
            "is a text, the name of the function".to_owned(),
        );
    };
    let Some((_, takes, make)) = REGISTRY.iter().find(|(known, ..)| *known == name) else {
        let near = near_misses(name, known(), 3);
        let hint = if near.is_empty() {
            format!("; there are `{}`", known().collect::<Vec<_>>().join("`, `"))
        } else {
            did_you_mean(&near)
        };
        return fault(
            "function_name",
            format!("there is no function `{name}`{hint}"),
        );
    };
    let empty = Map::new();
    let given = match map.get("args") {
        None | Some(Value::Null) => &empty,
        Some(Value::Object(args)) => args,
        Some(_) => return fault("args", "is an object of arguments".to_owned()),
    };
    if let Some(extra) = given.keys().find(|key| !takes.contains(&key.as_str())) {
        return fault(
            &format!("args.{extra}"),
            format!(
                "`{name}` has no such argument; it takes `{}`",
                takes.join("`, `")
            ),
        );
    }
    let mut args = Args {
        given,
        names,
        faults: Vec::new(),
    };
    match make(&mut args) {
        Some(function) if args.faults.is_empty() => Ok(function),
        _ => Err(args.faults),
    }
}

/// The arguments of one call, and what is wrong with them.
struct Args<'g, 'n> {
    given: &'g Map<String, Value>,
    names: &'g mut Names<'n>,
    faults: Vec<Found>,
}

impl Args<'_, '_> {
    fn fault<T>(&mut self, argument: &str, what: String) -> Option<T> {
        self.faults.push((format!("args.{argument}"), what));
        None
    }

    fn text(&mut self, argument: &str) -> Option<String> {
        match self.given.get(argument) {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => {
                Some(text.trim().to_owned()).filter(|text| !text.is_empty())
            }
            Some(_) => self.fault(argument, "is a text".to_owned()),
        }
    }

    /// The field named by the argument, else by the study's role of the same name.
    fn role_field(&mut self, role: &str, wanted: Ty) -> Option<RefId> {
        let named = match self.text(role) {
            Some(name) => name,
            None => self.names.study().role(role).unwrap_or(role).to_owned(),
        };
        self.field(role, &named, wanted)
    }

    fn field(&mut self, argument: &str, name: &str, wanted: Ty) -> Option<RefId> {
        match self.names.resolve(name) {
            Ok(id) => match typing::of_field(self.names, id) {
                ty if ty == Ty::Any || ty == wanted => Some(id),
                _ if wanted == Ty::Date => {
                    self.fault(argument, format!("`{name}` is no date field"))
                }
                _ => self.fault(argument, format!("`{name}` is no number field")),
            },
            Err(what) => self.fault(
                argument,
                format!("set `{argument}` under [fields] of the project file or in args: {what}"),
            ),
        }
    }
}

/// A field read as a date (`V::date`) or a number (`V::number`), with the doubt noted when it is none.
fn read<'a, T>(
    eval: &Eval<'_, 'a>,
    field: RefId,
    convert: impl Fn(&V<'a>) -> Option<T>,
) -> Option<T> {
    let read = eval.frame.cell(field).known();
    match read.and_then(|value| convert(&value).ok_or(Reason::Invalid)) {
        Ok(value) => Some(value),
        Err(reason) => {
            eval.doubt(reason, Some(field));
            None
        }
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

fn date(eval: &Eval<'_, '_>, field: RefId) -> Option<Moment> {
    read(eval, field, V::date)
}

/// Whether there is nothing in the field: blank, a missing code, or a form nobody opened.
fn is_absent(eval: &Eval<'_, '_>, field: RefId) -> bool {
    matches!(
        eval.frame.cell(field),
        Cell::Blank | Cell::Coded(_) | Cell::NotOpened
    )
}

fn shown(eval: &Eval<'_, '_>, field: RefId) -> String {
    eval.frame.text(field).unwrap_or_else(|| "空".to_owned())
}

/// A visit took place within its window. Bounds are inclusive; the anchor is day 0, or day 1 in studies
/// without a day 0.
#[derive(Debug)]
struct VisitWindow {
    visit: String,
    date: RefId,
    anchor: RefId,
    /// Days after the anchor, inclusive.
    earliest: i64,
    latest: i64,
    anchor_is_day_one: bool,
}

impl VisitWindow {
    fn make(args: &mut Args<'_, '_>) -> Option<Box<dyn NamedFunction>> {
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
        if visit.anchor_is_day_one && visit.day == 0 {
            return args.fault(
                "visit",
                format!("visit `{id}` is planned on day 0, which a study whose anchor is day 1 doesn't have"),
            );
        }
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
        let planned = i64::from(visit.day);
        let after_anchor = if visit.anchor_is_day_one && planned > 0 {
            planned - 1
        } else {
            planned
        };
        Some(Box::new(Self {
            visit: id,
            date,
            anchor,
            earliest: after_anchor - i64::from(visit.minus),
            latest: after_anchor + i64::from(visit.plus),
            anchor_is_day_one: visit.anchor_is_day_one,
        }))
    }

    /// The study day of a number of days after the anchor.
    fn study_day(&self, after_anchor: i64) -> i64 {
        if self.anchor_is_day_one && after_anchor >= 0 {
            after_anchor + 1
        } else {
            after_anchor
        }
    }

    fn range(&self) -> String {
        format!(
            "Day {} - Day {}",
            self.study_day(self.earliest),
            self.study_day(self.latest)
        )
    }
}

impl NamedFunction for VisitWindow {
    fn fields(&self) -> Vec<RefId> {
        vec![self.date, self.anchor]
    }

    fn decide<'a>(&'a self, eval: &Eval<'_, 'a>) -> Option<bool> {
        let (anchor, actual) = (date(eval, self.anchor), date(eval, self.date));
        let (fewest, most) = anchor?.days_until(actual?);
        if fewest >= self.earliest && most <= self.latest {
            Some(true)
        } else if most < self.earliest || fewest > self.latest {
            Some(false)
        } else {
            for field in [self.anchor, self.date] {
                if date(eval, field).is_some_and(|moment| !moment.is_whole_day()) {
                    eval.doubt(Reason::PartialDate, Some(field));
                }
            }
            None
        }
    }

    fn detail(&self, eval: &Eval<'_, '_>) -> String {
        let (anchor, actual) = (date(eval, self.anchor), date(eval, self.date));
        let (Some(anchor), Some(actual)) = (anchor, actual) else {
            return String::new();
        };
        let (fewest, most) = anchor.days_until(actual);
        let deviation = if most < self.earliest {
            self.earliest - most
        } else {
            fewest - self.latest
        };
        let (day, least) = if fewest == most {
            (format!("Day {}", self.study_day(fewest)), "")
        } else {
            let (from, to) = (self.study_day(fewest), self.study_day(most));
            (format!("Day {from} 至 Day {to}"), "至少 ")
        };
        format!(
            "{}访视实际日期 {}（{day}，锚点 {}），应在 {}，偏离 {least}{deviation} 天",
            self.visit,
            shown(eval, self.date),
            shown(eval, self.anchor),
            self.range(),
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
        format!("{}访视应在 {} 内", self.visit, self.range())
    }
}

/// The informed consent exists and is not later than the enrolment.
#[derive(Debug)]
struct InformedConsent {
    consent: RefId,
    enrollment: RefId,
}

impl InformedConsent {
    fn make(args: &mut Args<'_, '_>) -> Option<Box<dyn NamedFunction>> {
        let consent = args.role_field("consent_date", Ty::Date);
        let enrollment = args.role_field("enrollment_date", Ty::Date);
        Some(Box::new(Self {
            consent: consent?,
            enrollment: enrollment?,
        }))
    }
}

impl NamedFunction for InformedConsent {
    fn fields(&self) -> Vec<RefId> {
        vec![self.consent, self.enrollment]
    }

    /// Enrolled without any consent on file is a violation and no query; who is not enrolled yet is undecided.
    fn decide<'a>(&'a self, eval: &Eval<'_, 'a>) -> Option<bool> {
        let enrollment = date(eval, self.enrollment);
        if enrollment.is_some() && is_absent(eval, self.consent) {
            return Some(false);
        }
        let consent = date(eval, self.consent);
        let (consent, enrollment) = (consent?, enrollment?);
        let answer = consent.compare(Order::LessEqual, enrollment);
        if answer.is_none() {
            for (field, moment) in [(self.consent, consent), (self.enrollment, enrollment)] {
                if moment.is_partial() {
                    eval.doubt(Reason::PartialDate, Some(field));
                }
            }
        }
        answer
    }

    fn detail(&self, eval: &Eval<'_, '_>) -> String {
        let enrollment = shown(eval, self.enrollment);
        if is_absent(eval, self.consent) {
            format!("已于 {enrollment} 入组，但没有知情同意日期")
        } else {
            format!(
                "入组日期 {enrollment} 早于知情同意日期 {}",
                shown(eval, self.consent)
            )
        }
    }

    fn role(&self, field: RefId) -> Option<&'static str> {
        if field == self.consent {
            Some("知情同意日期")
        } else {
            Some("入组日期")
        }
    }

    fn words(&self) -> String {
        "知情同意日期不得晚于入组日期".to_owned()
    }
}

/// The subject is of age, or a guardian has consented.
#[derive(Debug)]
struct AgeRequirement {
    age: RefId,
    guardian: Option<RefId>,
    min_age: f64,
}

impl AgeRequirement {
    fn make(args: &mut Args<'_, '_>) -> Option<Box<dyn NamedFunction>> {
        let min_age = match args.given.get("min_age") {
            None => 18.0,
            Some(value) => match value.as_f64().filter(|age| (0.0..=150.0).contains(age)) {
                Some(age) => age,
                None => return args.fault("min_age", "is a number of years".to_owned()),
            },
        };
        let age = args.role_field("age", Ty::Num);
        let has_guardian = args.given.contains_key("guardian_consent_date")
            || args.names.study().role("guardian_consent_date").is_some();
        let guardian = has_guardian
            .then(|| args.role_field("guardian_consent_date", Ty::Date))
            .flatten();
        Some(Box::new(Self {
            age: age?,
            guardian,
            min_age,
        }))
    }
}

impl NamedFunction for AgeRequirement {
    fn fields(&self) -> Vec<RefId> {
        std::iter::once(self.age).chain(self.guardian).collect()
    }

    fn decide<'a>(&'a self, eval: &Eval<'_, 'a>) -> Option<bool> {
        let age = read(eval, self.age, |value| {
            value.number().filter(|age| *age >= 0.0)
        });
        if age.is_some_and(|age| age >= self.min_age) {
            return Some(true);
        }
        match self.guardian {
            Some(guardian) if !is_absent(eval, guardian) => date(eval, guardian).map(|_| true),
            _ => age.map(|_| false),
        }
    }

    fn detail(&self, eval: &Eval<'_, '_>) -> String {
        let min = number::show(self.min_age);
        let age = shown(eval, self.age);
        match self.guardian {
            Some(_) => format!("年龄 {age} 岁，不足 {min} 岁，且没有法定监护人知情同意日期"),
            None => format!("年龄 {age} 岁，不足 {min} 岁"),
        }
    }

    fn words(&self) -> String {
        format!(
            "受试者应满 {} 岁，或有法定监护人知情同意",
            number::show(self.min_age)
        )
    }
}
