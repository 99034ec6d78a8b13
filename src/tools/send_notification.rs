//! `send_notification`: tells people of the study something. The tool sends nothing: it hands the job a
//! [`Proposal::Notify`], which goes out with the job's settlement, once.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{
    bounded, lenient,
    scope::Scope,
    tool::{Effect, Observation, Proposal, Tool, ToolError},
};
use crate::types::text::ellipsis;

/// Longest notice.
const MOST_CHARS: usize = 1_000;

/// Tells people something.
#[derive(Debug, Clone, Copy)]
pub struct SendNotification;

/// Whom, what.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// 通知内容
    #[serde(deserialize_with = "lenient::text")]
    text: String,
    /// 收件人：项目成员的企业微信账号或项目文件中的组；省略则为研究协调员
    #[serde(default, deserialize_with = "lenient::texts")]
    to: Vec<String>,
}

impl Tool for SendNotification {
    type Args = Args;
    const NAME: &'static str = "send_notification";
    const DESCRIPTION: &'static str = "给项目成员发企业微信通知。";
    const EFFECT: Effect = Effect::Notify;

    async fn run(&self, scope: &Scope<'_>, args: Args) -> Result<Observation, ToolError> {
        let file = &scope.project.file;
        let is_known = |name: &String| {
            file.groups.contains_key(name)
                || file
                    .members
                    .iter()
                    .any(|member| member.wecom_user.to_lowercase() == name.to_lowercase())
        };
        // Study data goes to the people of the study and to nobody else.
        if let Some(stranger) = args.to.iter().find(|name| !is_known(name)) {
            let groups: Vec<String> = file.groups.keys().cloned().collect();
            return Err(ToolError::Arguments(format!(
                "“{}”不是项目成员，也不是项目文件中的组（{}）",
                bounded::text(stranger),
                bounded::names(&groups, 10)
            )));
        }
        let mut observation = Observation::of(json!({ "text": "通知将随本步骤一起发出" }));
        observation.proposals.push(Proposal::Notify {
            to: args.to,
            text: ellipsis(&args.text, MOST_CHARS),
        });
        Ok(observation)
    }
}
