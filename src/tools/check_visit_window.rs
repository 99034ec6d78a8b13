//! `check_visit_window`: whether a visit took place within its days. Bounds are inclusive; what a missing or
//! partial date leaves open is said to be open.

use chrono::{Days, NaiveDate};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{
    bounded,
    fields::{Names, plain},
    filter, lenient,
    scope::Scope,
    show,
    tool::{Effect, Observation, Tool, ToolError},
};
use crate::{
    engines::{
        react::thread::Ruled,
        rules::{Query, Reading, Seen, Window},
    },
    types::{project::Visit, record::Record},
};

/// Checks one visit of one subject.
#[derive(Debug, Clone, Copy)]
pub struct CheckVisitWindow;

/// Which visit.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// 受试者编号
    #[serde(deserialize_with = "lenient::text")]
    record_id: String,
    /// 访视编号，如 V3
    #[serde(deserialize_with = "lenient::text")]
    visit_id: String,
    /// 实际访视日期 YYYY-MM-DD；省略则用记录中的日期
    #[serde(default, deserialize_with = "lenient::optional_text")]
    actual_date: Option<String>,
    /// 访视编号用于多个事件时，是哪个事件
    #[serde(default, deserialize_with = "lenient::optional_text")]
    event: Option<String>,
}

impl Tool for CheckVisitWindow {
    type Args = Args;
    const NAME: &'static str = "check_visit_window";
    const DESCRIPTION: &'static str = "检查一名受试者的一次访视是否在方案规定的时间窗内，给出实际是第几天、应在哪几天、偏离多少天。日期缺失或不完整时说明无法判定。";
    const EFFECT: Effect = Effect::Read;

    async fn run(&self, scope: &Scope<'_>, args: Args) -> Result<Observation, ToolError> {
        let record = scope.find_record(&args.record_id)?;
        let names = Names::of(scope);
        let visit = visit(&args, scope, &names)?;
        let window = Window::of(visit).ok_or_else(|| {
            ToolError::Unavailable(format!(
                "项目文件里访视 {} 计划在第 0 天，而本研究没有第 0 天；请数据管理员更正",
                visit.id
            ))
        })?;
        let (on_record, anchor) = dates(record, visit, scope, &names)?;
        let recorded = on_record.text.clone();
        let supposed = args.actual_date.is_some() && args.actual_date != recorded;
        let (actual, note) = match args.actual_date.as_deref() {
            None => (on_record, None),
            Some(written) => given(written, on_record)?,
        };
        let mut observation = told(record, visit, window, &actual, &anchor);
        observation.notes.extend(note);
        observation.supposed = supposed;
        Ok(observation)
    }
}

fn visit<'s>(args: &Args, scope: &Scope<'s>, names: &Names<'_>) -> Result<&'s Visit, ToolError> {
    let visits = &scope.project.file.visits;
    let event = match args.event.as_deref() {
        None => None,
        Some(written) => Some(names.event(written).unwrap_or(written)),
    };
    let meant = |visit: &&Visit| {
        plain(&visit.id) == plain(&args.visit_id)
            && (event.is_none() || visit.event.as_deref() == event)
    };
    let found: Vec<&Visit> = visits.iter().filter(meant).collect();
    match found.as_slice() {
        [visit] => Ok(visit),
        [] => {
            let mut known: Vec<String> = visits.iter().map(|visit| visit.id.clone()).collect();
            known.dedup();
            Err(ToolError::Arguments(match known.is_empty() {
                true => "项目没有配置任何访视窗口，无法检查".to_owned(),
                false => format!(
                    "项目没有配置访视“{}”；有 {}",
                    bounded::text(&args.visit_id),
                    bounded::names(&known, 20)
                ),
            }))
        }
        several => {
            let events: Vec<String> = several
                .iter()
                .map(|visit| {
                    visit
                        .event
                        .clone()
                        .unwrap_or_else(|| "（未指定）".to_owned())
                })
                .collect();
            Err(ToolError::Arguments(format!(
                "访视 {} 出现在多个事件：{}；请写明 event",
                args.visit_id,
                events.join("、")
            )))
        }
    }
}

/// A date, or why there is none.
struct Found {
    reading: Option<(NaiveDate, NaiveDate)>,
    text: Option<String>,
    why: String,
}

impl Found {
    fn of(seen: Option<&Seen<'_>>, scope: &Scope<'_>) -> Self {
        let Some(seen) = seen else {
            return Self {
                reading: None,
                text: None,
                why: "尚未填写".to_owned(),
            };
        };
        let reading = match seen.reading {
            Reading::Date { first, last } => Some((first.date(), last.date())),
            _ => None,
        };
        Self {
            reading,
            text: seen.text.clone(),
            why: show::state(&seen.reading, &scope.data.dictionary)
                .unwrap_or_else(|| "不是日期".to_owned()),
        }
    }

    fn shown(&self) -> String {
        match &self.text {
            Some(text) => bounded::text(text),
            None => self.why.clone(),
        }
    }
}

/// What stands in the record: the visit's date and its anchor.
fn dates(
    record: &Record,
    visit: &Visit,
    scope: &Scope<'_>,
    names: &Names<'_>,
) -> Result<(Found, Found), ToolError> {
    let longitudinal = scope.data.dictionary.is_longitudinal();
    let date = match visit.event.as_deref().filter(|_| longitudinal) {
        Some(event) => format!("{event}.{}", visit.date_field),
        None => visit.date_field.clone(),
    };
    let columns: [&[&str]; 2] = [&[&date], &[&visit.anchor_field]];
    let study = names.study();
    let query = Query::compile(None, &columns, &study).map_err(|f| filter::refusal(&f))?;
    for (at, name) in [&visit.date_field, &visit.anchor_field]
        .into_iter()
        .enumerate()
    {
        let standing = query.standing(at);
        if standing.several_events || standing.repeats {
            return Err(ToolError::Unavailable(format!(
                "字段 {name} 在多处采集，项目文件没有说明访视 {} 用的是哪一处；请数据管理员在 [[visits]] 中写明 event",
                visit.id
            )));
        }
    }
    let answer = query.ask(record, scope.today);
    let found = |column: usize| {
        let place = answer.columns.get(column).and_then(|places| places.first());
        Found::of(place.and_then(|place| place.seen.first()), scope)
    };
    Ok((found(0), found(1)))
}

/// The date the model gave, and what has to be said when the record has another.
fn given(written: &str, on_record: Found) -> Result<(Found, Option<String>), ToolError> {
    let is_partial = written.len() < 10
        && written.chars().all(|c| c.is_ascii_digit() || c == '-')
        && matches!(written.len(), 4 | 7);
    let day = NaiveDate::parse_from_str(written, "%Y-%m-%d").ok();
    let day = day.filter(|_| written.len() == 10);
    if day.is_none() && !is_partial {
        return Err(ToolError::Arguments(format!(
            "actual_date“{}”不是完整日期，请写成 YYYY-MM-DD",
            bounded::text(written)
        )));
    }
    let note = on_record.text.as_deref().filter(|text| *text != written);
    let note = note.map(|text| format!("记录中的访视日期是 {text}，与给出的 {written} 不同"));
    let found = Found {
        reading: day.map(|day| (day, day)),
        text: Some(written.to_owned()),
        why: "日期不完整，不作推测".to_owned(),
    };
    Ok((found, note))
}

fn told(
    record: &Record,
    visit: &Visit,
    window: Window,
    actual: &Found,
    anchor: &Found,
) -> Observation {
    let days = anchor.reading.zip(actual.reading).map(|(from, to)| {
        (
            to.0.signed_duration_since(from.1).num_days(),
            to.1.signed_duration_since(from.0).num_days(),
        )
    });
    let holds = days.and_then(|days| window.holds(days));
    let deviation = days
        .filter(|_| holds.is_some())
        .map(|days| window.deviation(days));
    let day = days
        .filter(|(fewest, most)| fewest == most)
        .map(|(day, _)| window.study_day(day));
    let whole = anchor.reading.filter(|(first, last)| first == last);
    let expected = whole.and_then(|(anchor, _)| {
        let (earliest, latest) = window.days();
        Some(format!(
            "{} 至 {}",
            after(anchor, earliest)?,
            after(anchor, latest)?
        ))
    });
    let (id, range) = (&visit.id, window.range());
    let dates = expected
        .as_deref()
        .map_or_else(String::new, |dates| format!("（{dates}）"));
    let text = match (holds, deviation) {
        (Some(true), _) => format!(
            "受试者 {} 的 {id} 访视日期 {} 在窗口 {range}{dates} 内",
            record.id,
            actual.shown()
        ),
        (Some(false), deviation) => {
            let least = if day.is_none() { "至少 " } else { "" };
            format!(
                "受试者 {} 的 {id} 访视日期 {} 超出窗口 {range}{dates}，偏离 {least}{} 天",
                record.id,
                actual.shown(),
                deviation.unwrap_or_default()
            )
        }
        (None, _) => {
            let mut why = Vec::new();
            for (name, found) in [("锚点日期", anchor), ("访视日期", actual)] {
                let open = match found.reading {
                    None => true,
                    Some((first, last)) => first != last,
                };
                if open {
                    let text = found
                        .text
                        .as_deref()
                        .map_or_else(String::new, |t| format!("“{t}”"));
                    why.push(format!("{name}{text}{}", found.why));
                }
            }
            format!(
                "受试者 {} 的 {id} 访视无法判定是否在窗口 {range}{dates} 内：{}",
                record.id,
                why.join("，")
            )
        }
    };
    let mut observation = Observation::of(json!({
        "record_id": record.id,
        "visit_id": id,
        "inWindow": holds,
        "expectedRange": range,
        "expectedDates": expected,
        "actualDate": actual.text,
        "anchorDate": anchor.text,
        "actualDay": day,
        "deviation": deviation,
        "text": text,
    }))
    .ruled(
        match holds {
            Some(true) => Ruled::Pass,
            Some(false) => Ruled::Fail,
            None => Ruled::Unable,
        },
        text,
    );
    observation.records.push(record.id.clone());
    if holds.is_none() {
        observation = observation.note("无法判定不等于合格；请如实告知提问者");
    }
    observation
}

fn after(anchor: NaiveDate, days: i64) -> Option<NaiveDate> {
    match u64::try_from(days) {
        Ok(days) => anchor.checked_add_days(Days::new(days)),
        Err(_) => anchor.checked_sub_days(Days::new(days.unsigned_abs())),
    }
}
