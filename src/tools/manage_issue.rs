//! `manage_issue`: a query raised, answered or proposed to be closed. The tool writes nothing: it hands the job a
//! [`Proposal`], which stands in the ledger for a person once the job's step is settled.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{
    bounded,
    fields::Names,
    filter, lenient,
    scope::Scope,
    tool::{Effect, Observation, Proposal, Tool, ToolError},
};
use crate::{
    engines::rules::Query,
    store::{project_stats, reader},
    types::{
        finding::{FieldValue, Finding, FindingOutcome, Severity},
        ids::PendingActionId,
        text::ellipsis,
    },
};

/// The rule of what no rule found. One query a place: raised again, it is the same one.
const RULE: &str = "manage_issue";
/// Longest message.
const MOST_CHARS: usize = 500;

/// Raises, answers and proposes to close queries.
#[derive(Debug, Clone, Copy)]
pub struct ManageIssue;

/// What is proposed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// raise 提出质疑，answer 登记回复，close 建议关闭（由人确认）
    action: Action,
    /// 质疑内容、回复内容或关闭理由
    #[serde(deserialize_with = "lenient::text")]
    message: String,
    /// 提出质疑时：受试者编号
    #[serde(default, deserialize_with = "lenient::optional_text")]
    record_id: Option<String>,
    /// 提出质疑时：针对的字段
    #[serde(default, deserialize_with = "lenient::optional_text")]
    field: Option<String>,
    /// 提出质疑时：字段在多个访视采集，是哪个访视
    #[serde(default, deserialize_with = "lenient::optional_text")]
    event: Option<String>,
    /// 提出质疑时：可重复的表单，是第几条
    #[serde(default, deserialize_with = "lenient::optional_number")]
    #[schemars(with = "Option<u32>")]
    instance: Option<usize>,
    /// 回复或关闭时：质疑编号
    #[serde(default, deserialize_with = "lenient::optional_text")]
    issue_id: Option<String>,
}

/// What.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// A new query.
    Raise,
    /// The site's explanation.
    Answer,
    /// It seems settled.
    Close,
}

impl Tool for ManageIssue {
    type Args = Args;
    const NAME: &'static str = "manage_issue";
    const DESCRIPTION: &'static str =
        "提出质疑、登记对质疑的回复，或建议关闭质疑。提出后进入待处理清单，由人处理和关闭。";
    const EFFECT: Effect = Effect::Propose;

    async fn run(&self, scope: &Scope<'_>, args: Args) -> Result<Observation, ToolError> {
        let message = ellipsis(&args.message, MOST_CHARS);
        let (proposal, told) = match args.action {
            Action::Raise => {
                let finding = raised(&args, message, scope)?;
                let told = format!("已提出质疑：受试者 {} 的 {}", finding.record, finding.field);
                (Proposal::Raise(finding), told)
            }
            Action::Answer => {
                let id = known(&args, scope).await?;
                let told = format!("已登记对质疑 {id} 的回复");
                (Proposal::Answer { id, text: message }, told)
            }
            Action::Close => {
                let id = known(&args, scope).await?;
                let told = format!("已建议关闭质疑 {id}，待人确认");
                (
                    Proposal::Close {
                        id,
                        reason: message,
                    },
                    told,
                )
            }
        };
        let mut observation = Observation::of(json!({ "text": told }));
        if let Proposal::Raise(finding) = &proposal {
            observation.records.push(finding.record.clone());
        }
        observation.proposals.push(proposal);
        Ok(observation)
    }
}

fn raised(args: &Args, message: String, scope: &Scope<'_>) -> Result<Finding, ToolError> {
    let (Some(record), Some(field)) = (&args.record_id, &args.field) else {
        return Err(ToolError::Arguments(
            "提出质疑要写明 record_id 和 field".to_owned(),
        ));
    };
    let record = scope.find_record(record)?;
    let mut names = Names::of(scope);
    let field = names.field(field)?;
    let event = match args.event.as_deref() {
        None => None,
        Some(written) => Some(names.event(written).ok_or_else(|| {
            ToolError::Arguments(format!("没有名为“{}”的访视", bounded::text(written)))
        })?),
    };
    let instance = match args.instance {
        None => None,
        Some(n) => {
            Some(u32::try_from(n).map_err(|_| ToolError::Arguments(format!("没有第 {n} 条记录")))?)
        }
    };
    let columns: [&[&str]; 1] = [&[&field]];
    let study = names.study();
    let query = Query::compile(None, &columns, &study).map_err(|f| filter::refusal(&f))?;
    let answer = query.ask(record, scope.today);
    let places: Vec<_> = answer
        .columns
        .iter()
        .flatten()
        .filter(|place| event.is_none_or(|event| place.event == Some(event)))
        .filter(|place| instance.is_none_or(|n| place.instance == Some(n)))
        .collect();
    let shown = names.shown(&field);
    let place = match places.as_slice() {
        [place] => place,
        [] => {
            return Err(ToolError::Arguments(format!(
                "受试者 {} 在所写的访视或条目没有 {shown} 的记录，请核对 event 与 instance",
                record.id
            )));
        }
        several => {
            return Err(ToolError::Arguments(format!(
                "受试者 {} 的 {shown} 有 {} 处记录，请写明 event 或 instance",
                record.id,
                several.len()
            )));
        }
    };
    let value = place.seen.first().and_then(|seen| seen.text.clone());
    Ok(Finding {
        record: record.id.clone(),
        event: place.event.map(str::to_owned),
        instance: place.instance,
        rule: RULE.to_owned(),
        field: field.clone(),
        outcome: FindingOutcome::Fail,
        severity: Severity::Query,
        message,
        values: vec![FieldValue { field, value }],
    })
}

/// The ledger row that is meant, when it is one of this study's and of a record the run may read.
async fn known(args: &Args, scope: &Scope<'_>) -> Result<PendingActionId, ToolError> {
    let written = args.issue_id.as_deref().unwrap_or_default();
    let refused = || {
        ToolError::Arguments(format!(
            "没有编号为“{}”的质疑；请在 issue_id 写明待处理清单中的编号",
            bounded::text(written)
        ))
    };
    let id: PendingActionId = written.parse().map_err(|_| refused())?;
    let unavailable = |error: sqlx::Error| {
        tracing::warn!(%error, "reader.unavailable");
        ToolError::Unavailable("质控台账暂时无法读取，请稍后再试或联系管理员".to_owned())
    };
    let project = &scope.project.file.id;
    let mut tx = reader::begin(scope.reader, project)
        .await
        .map_err(unavailable)?;
    let row = project_stats::action(&mut tx, project, id)
        .await
        .map_err(unavailable)?;
    let row = row
        .filter(|row| scope.record.is_none_or(|only| row.record == only))
        .ok_or_else(refused)?;
    if matches!(row.status.as_str(), "closed" | "dismissed") {
        return Err(ToolError::Arguments(format!(
            "质疑 {id} 已经结束，不能再处理"
        )));
    }
    Ok(id)
}
