//! `assess_ae_causality`: whether an adverse event comes from the study drug, in the words of the study's
//! scale. Without a date of onset or of exposure nothing can be said, and no model is asked; else a model
//! judges by the event's row and the exposure's, in a run of its own.

use chrono::NaiveDate;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    bounded,
    fields::{Names, plain},
    filter, lenient,
    scope::Scope,
    show,
    tool::{Effect, Judgement, Observation, Tool, ToolError},
};
use crate::{
    engines::{
        causality,
        rules::{Query, Reading},
        soft::Data,
    },
    types::{
        dictionary::Dictionary,
        record::{Record, Row},
    },
};

/// Assesses one event of one subject.
#[derive(Debug, Clone, Copy)]
pub struct AssessAeCausality;

/// Which event.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// 受试者编号
    #[serde(deserialize_with = "lenient::text")]
    record_id: String,
    /// 不良事件：其名称或编号；只有一件时可省略
    #[serde(default, deserialize_with = "lenient::optional_text")]
    ae_id: Option<String>,
    /// 不良事件表单的第几条；只有一件时可省略
    #[serde(default, deserialize_with = "lenient::optional_number")]
    instance: Option<usize>,
    /// 同一条目号用于多个访视时，是哪个访视
    #[serde(default, deserialize_with = "lenient::optional_text")]
    event: Option<String>,
}

impl Tool for AssessAeCausality {
    type Args = Args;
    const NAME: &'static str = "assess_ae_causality";
    const DESCRIPTION: &'static str = "评估一名受试者的一件不良事件与研究药物的因果关系，按本研究的量表给出等级、理由和原文依据，供研究者参考。缺少发生日期或用药日期时说明无法评估。";
    const EFFECT: Effect = Effect::Read;

    async fn run(&self, scope: &Scope<'_>, args: Args) -> Result<Observation, ToolError> {
        let record = scope.find_record(&args.record_id)?;
        let names = Names::of(scope);
        let file = &scope.project.file;
        let scale = file.safety.causality_scale;
        let form = form(scope)?;
        let row = event_row(record, &form, &args, scope, &names)?;
        let called = form.called(row, &scope.data.dictionary);
        let unable = |why: String| {
            let none = causality::unable(&why);
            let ruling = none.ruling(scale, &record.id, &called);
            let mut told = Observation::of(none.shown(scale, &record.id, &called))
                .ruled(ruling.outcome, ruling.text)
                .note("无法评估不等于无关；请如实告知提问者");
            told.records.push(record.id.clone());
            told
        };
        let (Some(start), Some(exposure)) =
            (file.field_for("ae_start"), file.field_for("exposure_start"))
        else {
            return Ok(unable(
                "项目文件没有说明不良事件发生日期（ae_start）或用药开始日期（exposure_start）的字段"
                    .to_owned(),
            ));
        };
        let dates = |field: &str| dates(field, record, scope, &names);
        let onset = dates(start)?
            .into_iter()
            .find(|date| date.is_at(row))
            .map(|date| (date.first, date.last));
        let Some(onset) = onset else {
            return Ok(unable(format!("没有可用的不良事件发生日期（{start}）")));
        };
        let exposures = dates(exposure)?;
        let Some(first) = exposures.iter().min_by_key(|date| (date.first, date.last)) else {
            return Ok(unable(format!("没有可用的用药开始日期（{exposure}）")));
        };
        let interval = (
            onset.0.signed_duration_since(first.last).num_days(),
            onset.1.signed_duration_since(first.first).num_days(),
        );
        let drug_form = names.definition(exposure).map(|field| field.form.clone());
        let data = Data::of_some(record, &scope.data.dictionary, |at, field| {
            let is_event = std::ptr::eq(at, row) && field.form == form.name;
            let is_drug = Some(&field.form) == drug_form.as_ref()
                && exposures.iter().any(|date| date.is_at(at));
            is_event || is_drug
        })
        .map_err(|too_large| ToolError::Unavailable(too_large.to_string()))?;
        Ok(Observation::judged(Judgement {
            record: record.id.clone(),
            opening: causality::opening(scale, &called, interval, &data),
            event: called,
            scale,
        }))
    }
}

/// Where a study's adverse events stand.
struct Form {
    name: String,
    term: Option<String>,
}

fn form(scope: &Scope<'_>) -> Result<Form, ToolError> {
    let file = &scope.project.file;
    let dictionary = &scope.data.dictionary;
    let term = file.field_for("ae_term").map(str::to_owned);
    let of_term = term
        .as_deref()
        .and_then(|term| dictionary.field(term))
        .map(|field| field.form.clone());
    let named = file.field_for("ae_form").map(str::to_owned);
    let name = named
        .filter(|form| dictionary.forms.contains(form))
        .or(of_term)
        .ok_or_else(|| {
            ToolError::Unavailable(
                "项目文件没有说明不良事件在哪个表单（fields.ae_form、fields.ae_term）；请数据管理员补充"
                    .to_owned(),
            )
        })?;
    Ok(Form { name, term })
}

impl Form {
    /// Whether a row holds an event: the term is filled in, or anything of the form is where it has no term.
    fn is_filled(&self, row: &Row, dictionary: &Dictionary) -> bool {
        let has = |name: &str| row.get(name).is_some_and(|text| !text.trim().is_empty());
        match &self.term {
            Some(term) => has(term),
            None => dictionary
                .fields()
                .iter()
                .any(|field| field.form == self.name && has(&field.name)),
        }
    }

    /// What people call the event of a row.
    fn called(&self, row: &Row, dictionary: &Dictionary) -> String {
        let term = self.term.as_deref().and_then(|term| {
            let text = row.get(term)?.trim();
            let field = dictionary.field(term)?;
            // A name that is not to be shown stands for nothing here.
            let shown = (!field.identifier && !text.is_empty()).then_some(text)?;
            let choice = field.choices.iter().find(|choice| choice.code == shown);
            Some(choice.map_or(shown, |choice| &choice.label))
        });
        let place = show::place(row.event.as_deref(), row.instance, dictionary);
        match (term, place.is_empty()) {
            (Some(term), true) => bounded::text(term),
            (Some(term), false) => format!("{}（{place}）", bounded::text(term)),
            (None, true) => "不良事件".to_owned(),
            (None, false) => place,
        }
    }
}

/// The one row that is meant.
fn event_row<'r>(
    record: &'r Record,
    form: &Form,
    args: &Args,
    scope: &Scope<'_>,
    names: &Names<'_>,
) -> Result<&'r Row, ToolError> {
    let dictionary = &scope.data.dictionary;
    let all: Vec<&Row> = record
        .rows
        .iter()
        .filter(|row| form.is_filled(row, dictionary))
        .collect();
    if all.is_empty() {
        return Err(ToolError::Arguments(format!(
            "受试者 {} 没有不良事件的记录",
            record.id
        )));
    }
    let event = args
        .event
        .as_deref()
        .map(|written| names.event(written).unwrap_or(written));
    let instance = args.instance.and_then(|n| u32::try_from(n).ok());
    if args.instance.is_some() && instance.is_none() {
        return Err(ToolError::Arguments("instance 太大".to_owned()));
    }
    let placed: Vec<&Row> = all
        .iter()
        .copied()
        .filter(|row| event.is_none_or(|event| row.event.as_deref() == Some(event)))
        .filter(|row| instance.is_none_or(|n| row.instance == Some(n)))
        .collect();
    let meant: Vec<&Row> = match args.ae_id.as_deref().map(plain) {
        None => placed,
        Some(wanted) => {
            let says = |row: &Row| {
                dictionary
                    .fields()
                    .iter()
                    .filter(|field| field.form == form.name && !field.identifier)
                    .any(|field| {
                        row.get(&field.name)
                            .is_some_and(|text| plain(text) == wanted)
                    })
            };
            // A bare number is the row's: as a value it stands in many fields that name no event.
            match wanted.trim_start_matches('#').parse::<u32>() {
                Ok(number) => placed
                    .into_iter()
                    .filter(|row| row.instance == Some(number))
                    .collect(),
                Err(_) => placed.into_iter().filter(|row| says(row)).collect(),
            }
        }
    };
    match meant.as_slice() {
        [row] => Ok(row),
        found => {
            let listed = if found.is_empty() { &all } else { &meant };
            let events: Vec<String> = listed
                .iter()
                .map(|row| form.called(row, dictionary))
                .collect();
            let what = match found.is_empty() {
                true => "没有所指的不良事件",
                false => "所指的不良事件不止一件",
            };
            Err(ToolError::Arguments(format!(
                "受试者 {} {what}；有 {}；请写明 instance 或 ae_id",
                record.id,
                bounded::names(&events, 20)
            )))
        }
    }
}

/// A date and where it stands.
struct Dated {
    event: Option<String>,
    instance: Option<u32>,
    first: NaiveDate,
    last: NaiveDate,
}

impl Dated {
    fn is_at(&self, row: &Row) -> bool {
        self.event == row.event && self.instance == row.instance
    }
}

/// The dates that stand in `field`, as the rules read them: what is blank, coded as missing or no date is none.
fn dates(
    field: &str,
    record: &Record,
    scope: &Scope<'_>,
    names: &Names<'_>,
) -> Result<Vec<Dated>, ToolError> {
    let columns: [&[&str]; 1] = [&[field]];
    let study = names.study();
    let query = Query::compile(None, &columns, &study).map_err(|f| filter::refusal(&f))?;
    let answer = query.ask(record, scope.today);
    Ok(answer
        .columns
        .iter()
        .flatten()
        .filter_map(|place| match place.seen.first()?.reading {
            Reading::Date { first, last } => Some(Dated {
                event: place.event.map(str::to_owned),
                instance: place.instance,
                first: first.date(),
                last: last.date(),
            }),
            _ => None,
        })
        .collect())
}
