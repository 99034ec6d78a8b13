//! What exactly is counted: which field, which of its rows, in which groups.

use super::{Args, Op, Take};
use crate::{
    engines::rules::{Place, Query, Reading, Standing},
    tools::{ToolError, bounded, fields::Names, show},
    types::dictionary::ValueType,
};

/// One place in a record.
pub(super) const ONCE: Standing = Standing {
    several_events: false,
    repeats: false,
};

/// What is counted.
pub(super) struct Plan {
    pub(super) op: Op,
    /// The field; `None`: subjects are counted.
    pub(super) main: Option<String>,
    pub(super) group: Option<String>,
    /// Where the group stands among what is read together.
    group_at: usize,
    event: Option<String>,
    take: Take,
    /// Dates have a time of day.
    pub(super) with_time: bool,
}

impl Plan {
    pub(super) fn of(args: &Args, names: &mut Names<'_>) -> Result<Self, ToolError> {
        let field = match args.field.as_deref() {
            Some(written) => Some(names.field(written)?),
            None => None,
        };
        let group = match args.group_by.as_deref() {
            Some(written) => Some(names.field(written)?),
            None => None,
        };
        let event = match args.event.as_deref() {
            Some(written) => Some(names.event(written).map(str::to_owned).ok_or_else(|| {
                let events: Vec<String> = names
                    .dictionary()
                    .events
                    .iter()
                    .map(|event| format!("{}（{}）", event.unique_name, event.label))
                    .collect();
                ToolError::Arguments(match events.is_empty() {
                    true => "本研究没有划分访视事件，请不要写 event".to_owned(),
                    false => format!(
                        "没有名为“{written}”的访视；有 {}",
                        bounded::names(&events, 12)
                    ),
                })
            })?),
            None => None,
        };
        let mut with_time = false;
        match &field {
            None if args.op != Op::Count => {
                return Err(ToolError::Arguments(
                    "除 count 外都要写明统计的字段 field".to_owned(),
                ));
            }
            None => {}
            Some(field) => {
                let ty = names.definition(field).map(|f| f.value_type());
                with_time = ty == Some(ValueType::DateTime);
                fits(args.op, ty, &names.shown(field))?;
            }
        }
        let (main, group_at) = match (field, &group) {
            (Some(field), _) => (Some(field), 1),
            (None, group) => (group.clone(), 0),
        };
        if event.is_some() && main.is_none() {
            return Err(ToolError::Arguments(
                "只数受试者时不能限定 event；请把访视写进 filter，如 {\"var\":\"事件名.字段\"}"
                    .to_owned(),
            ));
        }
        Ok(Self {
            op: args.op,
            main,
            group,
            group_at,
            event,
            take: args.take.unwrap_or(Take::Each),
            with_time,
        })
    }

    /// What is read together.
    pub(super) fn columns(&self) -> Vec<Vec<&str>> {
        let Some(main) = self.main.as_deref() else {
            return Vec::new();
        };
        match self.group.as_deref() {
            Some(group) if self.group_at == 1 => vec![vec![main, group]],
            _ => vec![vec![main]],
        }
    }

    /// Whether each visit has a figure of its own.
    pub(super) fn by_event(&self, query: &Query) -> bool {
        self.event.is_none() && query.standing(0).several_events
    }

    /// The event a place is counted under.
    pub(super) fn event_of<'a>(&self, place: &Place<'a>, query: &Query) -> Option<&'a str> {
        place.event.filter(|_| self.by_event(query))
    }

    /// Of a record's places, those that count.
    pub(super) fn used<'p, 'a>(
        &self,
        places: &'p [Place<'a>],
        query: &Query,
    ) -> Vec<&'p Place<'a>> {
        let mut used: Vec<&Place<'a>> = places
            .iter()
            .filter(|place| match &self.event {
                Some(event) => place.event == Some(event),
                None => true,
            })
            .collect();
        if self.take == Take::Each || !query.standing(0).repeats {
            return used;
        }
        used.sort_by_key(|place| place.instance);
        if self.take == Take::Latest {
            used.reverse();
        }
        let mut seen = Vec::new();
        used.retain(|place| {
            let new = !seen.contains(&place.event);
            seen.push(place.event);
            new
        });
        used
    }

    /// The groups a place belongs to: several when boxes are ticked, none of a name when there is no value.
    pub(super) fn groups_of(&self, place: &Place<'_>, names: &Names<'_>) -> Vec<Option<String>> {
        let Some(group) = &self.group else {
            return vec![None];
        };
        let Some(seen) = place.seen.get(self.group_at) else {
            return vec![None];
        };
        let field = names.definition(group);
        let choice = |code: &str| {
            let known = field.and_then(|f| f.choices.iter().find(|c| c.code == code));
            Some(match known {
                Some(choice) => format!("{code}（{}）", choice.label),
                None => code.to_owned(),
            })
        };
        match &seen.reading {
            Reading::Codes(codes) if !codes.is_empty() => {
                codes.iter().map(|code| choice(code)).collect()
            }
            Reading::Codes(_) => vec![Some("（一项也没有勾选）".to_owned())],
            Reading::Code(code) => vec![choice(code)],
            Reading::Date { first, last } => {
                let month = |at: &chrono::NaiveDateTime| at.format("%Y-%m").to_string();
                vec![Some(match month(first) == month(last) {
                    true => month(first),
                    false => "（日期不完整）".to_owned(),
                })]
            }
            reading => match (show::state(reading, names.dictionary()), &seen.text) {
                (Some(state), _) => vec![Some(format!("（{state}）"))],
                (None, Some(text)) => vec![Some(bounded::text(text))],
                (None, None) => vec![Some("（空白）".to_owned())],
            },
        }
    }

    /// Which rows were counted, in words.
    pub(super) fn counted(&self, query: &Query, names: &Names<'_>) -> String {
        let standing = query.standing(0);
        let visits = match &self.event {
            Some(event) => format!(
                "只统计访视 {}；",
                show::place(Some(event), None, names.dictionary())
            ),
            None if standing.several_events => {
                "该字段在多个访视采集，按访视分列，不合并；如只要一个访视请用 event；".to_owned()
            }
            None => String::new(),
        };
        let rows = match (standing.repeats, self.take) {
            (false, _) if standing.several_events && self.event.is_none() => "每例在每个访视计一次",
            (false, _) => "每例计一次",
            (true, Take::Each) => {
                "该表单可重复，按条计（n 为条数，records 为例数）；如需每例一次请用 take=first 或 latest"
            }
            (true, Take::First) => "该表单可重复，每例只取第一条",
            (true, Take::Latest) => "该表单可重复，每例只取最后一条",
        };
        format!("{visits}{rows}")
    }
}

/// Whether the values of a field can be computed with like that.
fn fits(op: Op, ty: Option<ValueType>, shown: &str) -> Result<(), ToolError> {
    let (number, ordered) = match ty {
        Some(ValueType::Integer | ValueType::Number { .. }) => (true, true),
        Some(ValueType::Date | ValueType::DateTime | ValueType::Time) => (false, true),
        _ => (false, false),
    };
    let fine = match op {
        Op::Count => true,
        Op::Min | Op::Max => ordered,
        Op::Mean | Op::Sum | Op::Median => number,
    };
    if fine {
        return Ok(());
    }
    Err(ToolError::Arguments(match op {
        Op::Min | Op::Max => {
            format!("{shown} 不是数值或日期字段，没有最小最大；可用 count 与 group_by")
        }
        _ => format!("{shown} 不是数值字段，不能求均值、合计或中位数；可用 count 与 group_by"),
    }))
}
