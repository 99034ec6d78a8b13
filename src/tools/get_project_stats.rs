//! `get_project_stats`: how the study stands: enrolment from its data, findings from our ledger.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    fields::Names,
    filter,
    scope::Scope,
    show,
    tool::{Effect, Observation, Tool, ToolError},
};
use crate::{
    engines::rules::{Query, Reading, Seen},
    store::{
        project_stats::{self, Checked, Findings},
        reader,
    },
};

/// Most rules listed.
const MOST_RULES: usize = 10;
/// Most groups listed.
const MOST_GROUPS: usize = 40;
/// What is not settled yet.
const UNSETTLED: [&str; 3] = ["open", "answered", "close_proposed"];

/// Tells how the study stands.
#[derive(Debug, Clone, Copy)]
pub struct GetProjectStats;

/// Nothing to choose.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {}

impl Tool for GetProjectStats {
    type Args = Args;
    const NAME: &'static str = "get_project_stats";
    const DESCRIPTION: &'static str = "项目总体情况：入组人数与目标、按月/中心/性别的入组、未关闭的质疑（按严重程度与规则）、最近一次质控。";
    const EFFECT: Effect = Effect::Read;

    async fn run(&self, scope: &Scope<'_>, _: Args) -> Result<Observation, ToolError> {
        if let Some(only) = scope.record {
            return Err(ToolError::Arguments(format!(
                "本次只能查看受试者 {only} 的数据，不能查看全项目统计"
            )));
        }
        let (ledger, checked) = ours(scope).await.map_err(|error| {
            tracing::warn!(%error, "reader.unavailable");
            ToolError::Unavailable("质控台账暂时无法读取，请稍后再试或联系管理员".to_owned())
        })?;
        let mut notes = Vec::new();
        let enrollment = enrollment(scope, &mut notes)?;
        let zone = scope
            .project
            .file
            .timezone
            .parse()
            .unwrap_or(chrono_tz::UTC);
        let mut observation = Observation::of(json!({
            "project": scope.project.file.name,
            "subjects": scope.data.records.len(),
            "enrollment": enrollment,
            "findings": findings(&ledger),
            "last_check": checked.map(|checked| last_check(&checked, zone)),
        }));
        observation.notes = notes;
        if ledger.is_empty() && observation.value["last_check"].is_null() {
            observation = observation.note("本项目还没有做过质控，台账为空不代表没有问题");
        }
        Ok(observation)
    }
}

/// What our tables say, all of one moment.
async fn ours(scope: &Scope<'_>) -> Result<(Vec<Findings>, Option<Checked>), sqlx::Error> {
    let project = &scope.project.file.id;
    let mut tx = reader::begin(scope.reader, project).await?;
    let ledger = project_stats::findings(&mut tx, project).await?;
    let checked = project_stats::last_checked(&mut tx, project).await?;
    tx.commit().await?;
    Ok((ledger, checked))
}

fn last_check(checked: &Checked, zone: chrono_tz::Tz) -> Value {
    json!({
        "at": checked.at.with_timezone(&zone).format("%Y-%m-%d %H:%M").to_string(),
        "records": checked.records,
        "failed": checked.failed,
        "findings": checked.findings,
    })
}

fn findings(ledger: &[Findings]) -> Value {
    let mut by_status: BTreeMap<&str, i64> = BTreeMap::new();
    let mut by_severity: BTreeMap<&str, i64> = BTreeMap::new();
    let mut by_rule: BTreeMap<&str, i64> = BTreeMap::new();
    for row in ledger {
        *by_status.entry(&row.status).or_default() += row.count;
        if UNSETTLED.contains(&row.status.as_str()) {
            *by_severity.entry(&row.severity).or_default() += row.count;
            *by_rule.entry(&row.rule).or_default() += row.count;
        }
    }
    let mut rules: Vec<(&str, i64)> = by_rule.into_iter().collect();
    rules.sort_by_key(|(rule, count)| (-count, *rule));
    let rest: i64 = rules.iter().skip(MOST_RULES).map(|(_, count)| count).sum();
    let mut top: Vec<Value> = rules
        .iter()
        .take(MOST_RULES)
        .map(|(rule, count)| json!({ "rule": rule, "count": count }))
        .collect();
    if rest > 0 {
        top.push(json!({ "rule": "其他", "count": rest }));
    }
    json!({
        "unsettled": by_severity.values().sum::<i64>(),
        "unsettled_by_severity": by_severity,
        "unsettled_by_rule": top,
        "by_status": by_status,
    })
}

fn enrollment(scope: &Scope<'_>, notes: &mut Vec<String>) -> Result<Value, ToolError> {
    let file = &scope.project.file;
    let Some(enrolled_on) = file.field_for("enrollment_date") else {
        notes.push("项目没有配置入组日期字段（enrollment_date），无法统计入组".to_owned());
        return Ok(Value::Null);
    };
    let names = Names::of(scope);
    let roles: Vec<(&str, [&str; 1])> = [
        ("site", file.field_for("site")),
        ("sex", file.field_for("sex")),
    ]
    .into_iter()
    .filter_map(|(role, field)| Some((role, [field?])))
    .collect();
    let enrolled_on = [enrolled_on];
    let mut columns: Vec<&[&str]> = vec![&enrolled_on];
    columns.extend(roles.iter().map(|(_, field)| field.as_slice()));
    let study = names.study();
    let query = Query::compile(None, &columns, &study).map_err(|f| filter::refusal(&f))?;

    let mut enrolled = 0_u64;
    let mut unreadable = 0_u64;
    let mut by_month: BTreeMap<String, u64> = BTreeMap::new();
    let mut by_role: Vec<BTreeMap<String, u64>> = vec![BTreeMap::new(); roles.len()];
    for record in scope.records() {
        let answer = query.ask(record, scope.today);
        let seen = |column: usize| {
            answer
                .columns
                .get(column)
                .into_iter()
                .flatten()
                .filter_map(|place| place.seen.first())
        };
        let Some((first, last)) = earliest(seen(0)) else {
            unreadable += u64::from(seen(0).any(|one| one.reading == Reading::Invalid));
            continue;
        };
        enrolled += 1;
        let month = |at: chrono::NaiveDateTime| at.format("%Y-%m").to_string();
        let known = month(first) == month(last);
        *by_month
            .entry(if known {
                month(first)
            } else {
                "日期不完整".to_owned()
            })
            .or_default() += 1;
        for (at, (counts, (_, [field]))) in by_role.iter_mut().zip(&roles).enumerate() {
            let one = seen(at + 1).find(|one| show::has_value(&one.reading));
            let group = one.map_or_else(
                || "未填写".to_owned(),
                |one| show::line(one, names.definition(field), names.dictionary()),
            );
            *counts.entry(group).or_default() += 1;
        }
    }
    if unreadable > 0 {
        notes.push(format!("{unreadable} 例的入组日期不是日期，未计为入组"));
    }
    let mut told = Map::new();
    told.insert("enrolled".to_owned(), json!(enrolled));
    told.insert("target".to_owned(), json!(file.target_enrollment));
    if let Some(target) = file.target_enrollment.filter(|target| *target > 0) {
        #[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
        let percent = enrolled as f64 * 100.0 / f64::from(target);
        told.insert("percent".to_owned(), json!((percent * 10.0).round() / 10.0));
    }
    told.insert("by_month".to_owned(), json!(by_month));
    for ((role, _), counts) in roles.iter().zip(by_role) {
        told.insert(format!("by_{role}"), json!(capped(counts)));
    }
    Ok(Value::Object(told))
}

/// The largest groups, and the rest together.
fn capped(counts: BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    if counts.len() <= MOST_GROUPS {
        return counts;
    }
    let mut sorted: Vec<(String, u64)> = counts.into_iter().collect();
    sorted.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let rest = sorted.split_off(MOST_GROUPS);
    let others = rest.iter().map(|(_, count)| count).sum();
    let named = format!("其他 {} 组", rest.len());
    sorted.into_iter().chain([(named, others)]).collect()
}

fn earliest<'s, 'a: 's>(
    seen: impl Iterator<Item = &'s Seen<'a>>,
) -> Option<(chrono::NaiveDateTime, chrono::NaiveDateTime)> {
    seen.filter_map(|one| match one.reading {
        Reading::Date { first, last } => Some((first, last)),
        _ => None,
    })
    .min()
}
