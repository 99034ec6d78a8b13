//! A node that is one tool call: made with the node's arguments, answered by the tool's own ruling. What it
//! gave stands in the transcript.

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::{
    services::Services,
    soft_step::{self, Judged, Talk, Turn},
    study::Study,
    tool_calls,
    transcript::entry,
};
use crate::{
    adapters::llm::ToolCall,
    engines::{
        react::{
            Given, Said,
            thread::{self, Asked, Ruled, Ruling},
        },
        sop::{CompiledSkill, Found, NodeResult, Walk},
    },
    queue::{JobError, Lease},
    store::runs::Run,
    tools::registry::Caller,
    types::finding::{FieldValue, Finding, FindingOutcome, Severity},
};

/// The argument that names the record.
const RECORD: &str = "record_id";

/// Does one step at the tool `run` stands at.
///
/// # Errors
/// Worth another attempt.
pub async fn call(
    services: &Services,
    lease: &Lease,
    study: &Study,
    run: &Run,
    skill: &CompiledSkill,
    walk: &Walk,
    (tool, args): (&str, &Map<String, Value>),
) -> Result<Judged, JobError> {
    let node = walk.node().unwrap_or_default();
    let thread = format!("{node}#{}", walk.visits(node));
    // A judgement that the call waited for has answered it.
    let kept = soft_step::read_thread(services, run, &thread).await?;
    if let Some(given) = thread::results(&kept).next() {
        return Ok(Judged {
            turn: concluded(skill, node, &run.record, given),
            talk: Talk::default(),
            data_version: None,
        });
    }
    let call = ToolCall {
        id: format!("{node}_{}", walk.visits(node)),
        name: tool.to_owned(),
        arguments: Value::Object(filled(services, tool, args, &run.record)).to_string(),
    };
    let listed = [tool.to_owned()];
    let who = tool_calls::As {
        caller: Caller::Sop,
        listed: Some(&listed),
        record: Some(&run.record),
    };
    let calls = [call];
    let made = tool_calls::make(services, lease, study, who, &calls, &[None]).await?;
    let given = made.given.first().cloned();
    let [call] = calls;
    let asked = Said::Calls(Asked {
        text: String::new(),
        thinking: None,
        calls: vec![call],
    });
    let rows = std::iter::once(asked).chain(given.clone().map(Said::Result));
    let talk = Talk {
        thread,
        said: rows.map(|row| entry(&row)).collect(),
        proposals: made.proposals,
        unmapped: made.unmapped,
        ..Talk::default()
    };
    let turn = match given {
        Some(given) => concluded(skill, node, &run.record, &given),
        None => Turn::Again {
            outcome: "tools",
            note: format!("等待 {tool} 的评估"),
            waiting: made.waiting,
        },
    };
    Ok(Judged {
        turn,
        talk,
        data_version: made.data_version,
    })
}

/// The node's arguments with `{record}` filled in; a tool about a record is about this one.
fn filled(
    services: &Services,
    tool: &str,
    args: &Map<String, Value>,
    record: &str,
) -> Map<String, Value> {
    let mut args: Map<String, Value> = args
        .iter()
        .map(|(name, value)| (name.clone(), with_record(value, record)))
        .collect();
    let listed = [tool.to_owned()];
    let takes_record = services
        .tools
        .specs(Caller::Sop, Some(&listed))
        .iter()
        .any(|spec| spec.parameters["properties"].get(RECORD).is_some());
    if takes_record && !args.contains_key(RECORD) {
        args.insert(RECORD.to_owned(), Value::String(record.to_owned()));
    }
    args
}

fn with_record(value: &Value, record: &str) -> Value {
    match value {
        Value::String(text) => Value::String(text.replace("{record}", record)),
        Value::Array(items) => items.iter().map(|one| with_record(one, record)).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| (name.clone(), with_record(value, record)))
            .collect(),
        other => other.clone(),
    }
}

/// What the node came to by what the tool gave. A tool that rules nothing passes when it answered.
fn concluded(skill: &CompiledSkill, node: &str, record: &str, given: &Given) -> Turn {
    let tool = &given.name;
    if !given.ok {
        let why = given.content.trim_end_matches('。');
        return Turn::Unavailable(format!("工具 {tool} 没有给出结果（{why}），转人工复核"));
    }
    let Some(Ruling { outcome, text }) = &given.ruling else {
        return Turn::Decided(Found {
            result: NodeResult::Pass,
            findings: Vec::new(),
            rules_checked: Vec::new(),
            note: Some(format!("工具 {tool} 已完成")),
        });
    };
    let (result, found) = match outcome {
        Ruled::Pass => (NodeResult::Pass, None),
        Ruled::Fail => (
            NodeResult::Fail,
            Some((FindingOutcome::Fail, Severity::Error)),
        ),
        Ruled::Unable => (
            NodeResult::NotEvaluable,
            Some((FindingOutcome::NotEvaluable, Severity::Query)),
        ),
    };
    let finding = found.map(|(outcome, severity)| Finding {
        record: record.to_owned(),
        event: None,
        instance: None,
        rule: skill.node_key(node),
        field: String::new(),
        outcome,
        severity,
        message: format!("{text}（节点 {node}，工具 {tool}）"),
        // A person's word on it ends when the tool says anything else.
        values: vec![FieldValue {
            field: "工具结果指纹".to_owned(),
            value: Some(fingerprint(&given.content)),
        }],
    });
    Turn::Decided(Found {
        result,
        findings: finding.into_iter().collect(),
        rules_checked: Vec::new(),
        note: Some(text.clone()),
    })
}

fn fingerprint(content: &str) -> String {
    let digest = Sha256::digest(content);
    digest.iter().take(8).map(|b| format!("{b:02x}")).collect()
}
