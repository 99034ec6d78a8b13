//! All tools by name, and who may use which.

use std::{collections::BTreeMap, sync::Arc};

use futures::future::BoxFuture;
use serde_json::Value;

use super::{
    aggregate::Aggregate,
    assess_ae_causality::AssessAeCausality,
    check_ethics_compliance::CheckEthicsCompliance,
    check_visit_window::CheckVisitWindow,
    get_project_stats::GetProjectStats,
    manage_issue::ManageIssue,
    read_clinical_data::ReadClinicalData,
    scope::Scope,
    search_protocol::SearchProtocol,
    search_records::SearchRecords,
    send_notification::SendNotification,
    tool::{Effect, Observation, Tool, ToolError},
    update_record::{UpdateRecord, WriteClinicalData},
};
use crate::adapters::{dify::DifyClient, llm::ToolSpec};

/// Who calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    /// The right brain: reads, and nothing else.
    React,
    /// The left brain, at a node that lists its tools.
    Sop,
}

impl Caller {
    /// Whether a tool of that effect is for it at all.
    #[must_use]
    pub fn may(self, effect: Effect) -> bool {
        match self {
            Self::React => effect == Effect::Read,
            Self::Sop => true,
        }
    }
}

type Run = for<'a> fn(
    &'a (dyn std::any::Any + Send + Sync),
    &'a Scope<'a>,
    Value,
) -> BoxFuture<'a, Result<Observation, ToolError>>;

struct Entry {
    tool: Arc<dyn std::any::Any + Send + Sync>,
    effect: Effect,
    spec: ToolSpec,
    run: Run,
}

/// All tools by name.
#[derive(Default)]
pub struct Registry {
    tools: BTreeMap<&'static str, Entry>,
}

impl Registry {
    /// The tools of this program: the only place that names them all.
    #[must_use]
    pub fn standard(dify: Option<Arc<DifyClient>>) -> Self {
        Self::default()
            .with(ReadClinicalData)
            .with(SearchRecords)
            .with(Aggregate)
            .with(AssessAeCausality)
            .with(CheckVisitWindow)
            .with(CheckEthicsCompliance)
            .with(GetProjectStats)
            .with(ManageIssue)
            .with(UpdateRecord)
            .with(WriteClinicalData)
            .with(SendNotification)
            .with(SearchProtocol::new(dify))
    }

    /// Adds a tool.
    #[must_use]
    pub fn with<T: Tool>(mut self, tool: T) -> Self {
        let entry = Entry {
            tool: Arc::new(tool),
            effect: T::EFFECT,
            spec: ToolSpec {
                name: T::NAME.to_owned(),
                description: T::DESCRIPTION.to_owned(),
                parameters: schema_of::<T::Args>(),
            },
            run: |tool, scope, args| {
                Box::pin(async move {
                    let Some(tool) = tool.downcast_ref::<T>() else {
                        return Err(ToolError::Unavailable("工具登记有误".to_owned()));
                    };
                    let args = serde_json::from_value(args)
                        .map_err(|error| ToolError::Arguments(format!("参数不对：{error}")))?;
                    tool.run(scope, args).await
                })
            },
        };
        let replaced = self.tools.insert(T::NAME, entry);
        debug_assert!(replaced.is_none(), "two tools are called {}", T::NAME);
        self
    }

    /// What `caller` is told it may call; of the SOP's, those its node lists.
    #[must_use]
    pub fn specs(&self, caller: Caller, listed: Option<&[String]>) -> Vec<ToolSpec> {
        self.tools
            .iter()
            .filter(|(name, entry)| {
                caller.may(entry.effect)
                    && listed.is_none_or(|listed| listed.iter().any(|one| one == *name))
            })
            .map(|(_, entry)| entry.spec.clone())
            .collect()
    }

    /// The effect of a tool; `None`: there is none of that name.
    #[must_use]
    pub fn effect(&self, name: &str) -> Option<Effect> {
        self.tools.get(name).map(|entry| entry.effect)
    }

    /// Calls a tool for `caller`, if it may.
    ///
    /// # Errors
    /// The tool's own; [`ToolError::Arguments`] for a name that is none, or is not for this caller.
    pub async fn call(
        &self,
        caller: Caller,
        listed: Option<&[String]>,
        scope: &Scope<'_>,
        name: &str,
        arguments: &str,
    ) -> Result<Observation, ToolError> {
        let allowed = listed.is_none_or(|listed| listed.iter().any(|one| one == name));
        let entry = self
            .tools
            .get(name)
            .filter(|entry| allowed && caller.may(entry.effect))
            .ok_or_else(|| {
                let names: Vec<String> = self
                    .specs(caller, listed)
                    .into_iter()
                    .map(|spec| spec.name)
                    .collect();
                ToolError::Arguments(format!(
                    "没有可用的工具 {name}；可用的有：{}",
                    names.join("、")
                ))
            })?;
        let arguments = match arguments.trim() {
            "" => Value::Object(serde_json::Map::new()),
            text => serde_json::from_str(text)
                .map_err(|error| ToolError::Arguments(format!("参数不是 JSON：{error}")))?,
        };
        (entry.run)(entry.tool.as_ref(), scope, arguments).await
    }
}

fn schema_of<A: schemars::JsonSchema>() -> Value {
    let mut schema = schemars::schema_for!(A).to_value();
    if let Some(map) = schema.as_object_mut() {
        // Of no use to a model, and refused by some servers.
        map.remove("$schema");
        map.remove("title");
        // What the type is to us; the tool's own description says what it is to the model.
        map.remove("description");
    }
    schema
}
