//! `aggregate`: counts, means and the like, computed here and not by the model. What a figure rests on stands
//! beside it: how many values of how many subjects, how many are missing, which rows were counted.

mod bucket;
mod plan;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{
    bounded,
    fields::Names,
    filter, lenient,
    scope::Scope,
    tally::Undecided,
    tool::{Effect, Observation, Tool, ToolError},
};
use crate::engines::rules::{Query, Verdict};
use bucket::Bucket;
use plan::Plan;

/// Computes over the study's records.
#[derive(Debug, Clone, Copy)]
pub struct Aggregate;

/// What is computed of what.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// 统计方式
    op: Op,
    /// 统计的字段（字段名、别名或标签）；只数受试者人数时省略
    #[serde(default, deserialize_with = "lenient::optional_text")]
    field: Option<String>,
    /// 按此字段分组；日期字段按月分组
    #[serde(default, deserialize_with = "lenient::optional_text")]
    group_by: Option<String>,
    /// 筛选条件（JSON Logic），如 {"==":[{"var":"sex"},"2"]}
    #[serde(default, deserialize_with = "lenient::optional_logic")]
    #[schemars(with = "Option<Map<String, Value>>")]
    filter: Option<Value>,
    /// 字段在多个访视采集时，只统计这个访视；省略则按访视分列
    #[serde(default, deserialize_with = "lenient::optional_text")]
    event: Option<String>,
    /// 可重复的表单或访视：each 每条都计（默认），first 每例只取第一条，latest 每例只取最后一条
    #[serde(default)]
    take: Option<Take>,
}

/// How.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Op {
    /// How many.
    Count,
    /// Arithmetic mean.
    Mean,
    /// Smallest or earliest.
    Min,
    /// Largest or latest.
    Max,
    /// Sum.
    Sum,
    /// Middle value; of an even number the mean of the two.
    Median,
}

/// Which instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Take {
    /// All.
    Each,
    /// The first of each subject (at each event).
    First,
    /// The last of each subject (at each event).
    Latest,
}

impl Tool for Aggregate {
    type Args = Args;
    const NAME: &'static str = "aggregate";
    const DESCRIPTION: &'static str = "对全部受试者做统计：count 计数、mean 均值、min/max 最小最大（日期为最早最晚）、sum 合计、median 中位数，可筛选、可分组。任何统计数都必须由它得出，不要自己计算。";
    const EFFECT: Effect = Effect::Read;

    async fn run(&self, scope: &Scope<'_>, mut args: Args) -> Result<Observation, ToolError> {
        let mut names = Names::of(scope);
        if let Some(logic) = &mut args.filter {
            filter::understand(logic, &mut names)?;
        }
        let plan = Plan::of(&args, &mut names)?;
        let columns = plan.columns();
        let columns: Vec<&[&str]> = columns.iter().map(Vec::as_slice).collect();
        let study = names.study();
        let query = Query::compile(args.filter.as_ref(), &columns, &study)
            .map_err(|faults| filter::refusal(&faults))?;

        let mut undecided = Undecided::default();
        let mut sum = Sum::default();
        for record in scope.records() {
            let answer = query.ask(record, scope.today);
            if answer.verdict != Verdict::Holds {
                undecided.count(answer.verdict, &record.id);
                continue;
            }
            sum.subjects += 1;
            let Some(places) = answer.columns.first() else {
                continue;
            };
            sum.rows_undecided += answer.undecided.first().copied().unwrap_or_default();
            let used = plan.used(places, &query);
            if used.is_empty() {
                sum.without += 1;
            }
            for place in used {
                let event = plan.event_of(place, &query);
                for group in plan.groups_of(place, &names) {
                    let key = (event.map(str::to_owned), group);
                    sum.buckets
                        .entry(key)
                        .or_default()
                        .add(&record.id, place.seen.first(), &plan);
                }
                sum.all.add(&record.id, place.seen.first(), &plan);
            }
        }
        Ok(sum.told(&plan, &query, names, &undecided))
    }
}

/// What was gathered.
#[derive(Default)]
struct Sum {
    /// Subjects the condition holds for.
    subjects: usize,
    /// Of them, those with no row the field stands on.
    without: usize,
    /// Rows left out because the condition can't be decided on them.
    rows_undecided: usize,
    all: Bucket,
    /// By event and group.
    buckets: BTreeMap<(Option<String>, Option<String>), Bucket>,
}

impl Sum {
    fn told(
        &self,
        plan: &Plan,
        query: &Query,
        mut names: Names<'_>,
        undecided: &Undecided,
    ) -> Observation {
        let by_event = plan.by_event(query);
        let mut value = json!({
            "op": plan.op,
            "subjects": self.subjects,
            "not_evaluable": undecided.total(),
        });
        let mut observation = Observation::default();
        match &plan.main {
            None => value["value"] = json!(self.subjects),
            Some(main) => {
                value["field"] = json!(main);
                value["label"] = json!(names.label(main));
                let parts = self.all.told(plan, None);
                // Values of several visits together are no figure of anything.
                if !by_event {
                    merge(&mut value, parts);
                    observation.records = self.all.extreme_of(plan);
                }
            }
        }
        if let Some(group) = &plan.group {
            value["group_by"] = json!(group);
            value["group_label"] = json!(names.label(group));
        }
        if by_event || plan.group.is_some() {
            let groups: Vec<Value> = self
                .buckets
                .iter()
                .map(|((event, group), bucket)| {
                    let mut row = json!({});
                    if let Some(event) = event {
                        row["event"] = json!(event);
                    }
                    if let Some(group) = group {
                        row["group"] = json!(group);
                    }
                    let whole = (!by_event).then(|| self.all.n());
                    merge(&mut row, bucket.told(plan, whole));
                    row
                })
                .collect();
            let total = groups.len();
            let shown = bounded::rows(groups, bounded::MOST_ROWS);
            if shown.len() < total {
                observation = observation.note(format!(
                    "共 {total} 组，只显示前 {} 组；请加 filter 缩小范围",
                    shown.len()
                ));
            }
            value["groups"] = Value::Array(shown);
        }
        observation.value = value;
        observation.notes.extend(self.notes(plan, query, &names));
        observation.notes.extend(undecided.note());
        observation.notes.append(&mut names.notes);
        observation.unmapped = names.unmapped;
        observation
    }

    fn notes(&self, plan: &Plan, query: &Query, names: &Names<'_>) -> Vec<String> {
        let mut notes = Vec::new();
        if self.subjects == 0 {
            notes.push("没有符合条件的受试者，统计值不存在（不是 0）；请如实告知提问者".to_owned());
            return notes;
        }
        let Some(main) = &plan.main else {
            return notes;
        };
        notes.push(plan.counted(query, names));
        if query.follows_filter(0) && query.standing(0) != plan::ONCE {
            notes.push("筛选条件逐行判断：只统计符合条件的行".to_owned());
        } else if !query.filter_fields().is_empty() && query.standing(0) != plan::ONCE {
            notes.push("筛选条件按受试者判断：只要有一处符合，该受试者的全部行都计入".to_owned());
        }
        if self.rows_undecided > 0 {
            notes.push(format!(
                "另有 {} 行无法判定是否符合条件，未计入；回答时请说明",
                self.rows_undecided
            ));
        }
        if self.without > 0 {
            notes.push(format!(
                "{} 例没有 {} 的任何记录",
                self.without,
                names.shown(main)
            ));
        }
        notes.extend(self.all.note());
        notes
    }
}

fn merge(into: &mut Value, parts: Map<String, Value>) {
    if let Some(map) = into.as_object_mut() {
        map.extend(parts);
    }
}
