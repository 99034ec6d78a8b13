//! `update_record`, also called `write_clinical_data`: proposes a write. There is no way to write into the EDC
//! yet, so there is nothing a proposal could lead to, and the tool says so: a person must not believe that
//! something was written or is waiting to be.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    lenient,
    scope::Scope,
    tool::{Effect, Observation, Tool, ToolError},
};

/// By its first name.
#[derive(Debug, Clone, Copy)]
pub struct UpdateRecord;

/// By its second.
#[derive(Debug, Clone, Copy)]
pub struct WriteClinicalData;

/// What would be written.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "read only to tell a wrong call from a right one")]
pub struct Args {
    /// 受试者编号
    #[serde(deserialize_with = "lenient::text")]
    record_id: String,
    /// 字段与新值
    values: Map<String, Value>,
    /// 修改理由
    #[serde(deserialize_with = "lenient::text")]
    reason: String,
}

const DESCRIPTION: &str = "建议修改受试者的数据，由人批准后写入。";

fn not_yet() -> ToolError {
    ToolError::Unavailable(
        "本版本还不能向 EDC 写入数据，没有写入任何内容，也没有提交建议；请在 EDC 中由有权限的人修改"
            .to_owned(),
    )
}

impl Tool for UpdateRecord {
    type Args = Args;
    const NAME: &'static str = "update_record";
    const DESCRIPTION: &'static str = DESCRIPTION;
    const EFFECT: Effect = Effect::Propose;

    async fn run(&self, scope: &Scope<'_>, args: Args) -> Result<Observation, ToolError> {
        scope.find_record(&args.record_id)?;
        Err(not_yet())
    }
}

impl Tool for WriteClinicalData {
    type Args = Args;
    const NAME: &'static str = "write_clinical_data";
    const DESCRIPTION: &'static str = DESCRIPTION;
    const EFFECT: Effect = Effect::Propose;

    async fn run(&self, scope: &Scope<'_>, args: Args) -> Result<Observation, ToolError> {
        UpdateRecord.run(scope, args).await
    }
}
