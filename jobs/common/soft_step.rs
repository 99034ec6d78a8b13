//! The judgement of a soft rule: the model is shown the record, answers, and is told what is wrong with an
//! answer that can't be used. Each answer is a step of its own.

use anyhow::anyhow;

use super::{
    ask::{Asked, Question, ask},
    services::Services,
    study::{Study, edc_error},
};
use crate::{
    adapters::llm::{ChatRequest, Format},
    engines::{
        soft::{self, Data, Judgement, Opening, PROMPT_VERSION, Said, TRIES},
        sop::{CompiledSkill, Found, NO_MODEL, NodeResult, Walk},
    },
    queue::{JobError, Lease},
    store::{
        runs::Run,
        trace::{self, Entry},
    },
    types::{
        finding::{FieldValue, Finding, FindingOutcome, Severity},
        text::without_nul,
    },
};

/// Most tokens of one answer.
const ANSWER_TOKENS: u32 = 1024;

/// What a step at a soft rule came to.
pub struct Judged {
    /// Where the run goes from here.
    pub turn: Turn,
    /// What was said for it.
    pub talk: Talk,
    /// Fingerprint of the data, when it was read in this step.
    pub data_version: Option<String>,
}

/// What a step said and heard, to be written with it.
#[derive(Default)]
pub struct Talk {
    /// The thread of the transcript it belongs to.
    pub thread: String,
    /// What is to be appended to that.
    pub said: Vec<Entry>,
    /// Questions it took.
    pub calls: i32,
    /// Tokens they used.
    pub tokens: i64,
}

/// Where the run goes.
pub enum Turn {
    /// The node is decided.
    Decided(Found),
    /// The model gets another try; one sentence why.
    Again(String),
    /// The model is not to be had; one sentence for people.
    Unavailable(String),
}

impl Judged {
    fn without_model(why: String) -> Self {
        Self {
            turn: Turn::Unavailable(why),
            talk: Talk::default(),
            data_version: None,
        }
    }
}

/// Does one step at the soft rule `run` stands at.
///
/// # Errors
/// Worth another attempt, or not yet.
pub async fn judge(
    services: &Services,
    lease: &Lease,
    study: &Study,
    run: &Run,
    skill: &CompiledSkill,
    walk: &Walk,
    instruction: &str,
) -> Result<Judged, JobError> {
    let Some(model) = &services.model else {
        return Ok(Judged::without_model(NO_MODEL.to_owned()));
    };
    let limits = &study.project.file.llm;
    if let Err(why) = model.may_see(limits) {
        return Ok(Judged::without_model(not_run(&why)));
    }
    let node = walk.node().unwrap_or_default();
    let thread = format!("{node}#{}", walk.visits(node));
    let kept = {
        let mut conn = services.pool.acquire().await?;
        trace::thread(&mut conn, run.id, &thread).await?
    };
    // What was shown once is what the judgement is about, even if the record changed since.
    let is_new = kept.is_empty();
    let (said, data, data_version) = if is_new {
        match open(study, run, instruction).await? {
            Ok(opened) => opened,
            Err(too_large) => {
                return Ok(Judged::without_model(not_run(&too_large.to_string())));
            }
        }
    } else {
        let data = stored_data(&kept)?;
        (kept, data, None)
    };
    if let Some(field) = data.withheld_for(instruction) {
        let why = format!(
            "核查要求涉及标为身份信息的字段 {field}，不发送给大模型，软规则未执行，转人工复核"
        );
        return Ok(Judged::without_model(why));
    }
    let corrections = said
        .iter()
        .filter(|entry| entry.kind == "correction")
        .count();
    let question = Question {
        project: study.id(),
        run: run.id,
        step: run.step_no,
        thread: &thread,
        said: if is_new { &said } else { &[] },
        prompt_version: PROMPT_VERSION,
        request: ChatRequest {
            messages: soft::render(&format!("{}/{thread}", run.id), &parts(&said)),
            max_tokens: ANSWER_TOKENS,
            format: if corrections == 0 {
                Format::Json
            } else {
                Format::Text
            },
            tools: Vec::new(),
        },
        run_limits: (
            i64::from(limits.run_max_calls),
            i64::from(limits.run_max_tokens),
        ),
        day_limits: model.day_limits(limits),
    };
    let (reply, calls, tokens) = match ask(services, model, lease, &question).await? {
        Asked::Unavailable(why) => return Ok(Judged::without_model(not_run(&why))),
        Asked::Reply {
            reply,
            calls,
            tokens,
        } => (reply, calls, tokens),
    };
    let answer = without_nul(&reply.text).0;
    let judged = if reply.truncated {
        Err("回答被截断了，请缩短".to_owned())
    } else {
        soft::judge(&answer, &data)
    };
    let mut said = vec![Entry::new("reply", answer)];
    let turn = match judged {
        Ok(judgement) => Turn::Decided(found(skill, node, &data, judgement)),
        Err(why) if corrections + 1 < TRIES => {
            said.push(Entry::new("correction", soft::correction(&why)));
            Turn::Again(why)
        }
        Err(why) => {
            let reason = format!("大模型 {TRIES} 次回答均不能用（{why}）");
            Turn::Decided(found(skill, node, &data, Judgement::Unable { reason }))
        }
    };
    Ok(Judged {
        turn,
        talk: Talk {
            thread,
            said,
            calls,
            tokens,
        },
        data_version,
    })
}

fn not_run(why: &str) -> String {
    format!("{why}，软规则未执行，转人工复核")
}

type Opened = (Vec<Entry>, Data, Option<String>);

/// Reads the record and begins a thread about it.
async fn open(
    study: &Study,
    run: &Run,
    instruction: &str,
) -> Result<Result<Opened, soft::TooLarge>, JobError> {
    let ids = [run.record.clone()];
    let extract = study.edc.records(&ids).await.map_err(edc_error)?;
    let record = extract
        .records
        .first()
        .ok_or_else(|| JobError::dead(anyhow!("the EDC returned no record")))?;
    let data = match Data::of(record, &extract.dictionary) {
        Ok(data) => data,
        Err(too_large) => return Ok(Err(too_large)),
    };
    let opening = Opening::new(instruction, &data);
    let said = vec![
        Entry::new("system", opening.system),
        Entry::new("instruction", opening.instruction),
        Entry::new("data", opening.data),
    ];
    Ok(Ok((said, data, Some(extract.fingerprint))))
}

fn stored_data(said: &[Entry]) -> Result<Data, JobError> {
    let stored = said.iter().find(|entry| entry.kind == "data");
    stored
        .and_then(|entry| serde_json::from_str(&entry.content).ok())
        .ok_or_else(|| JobError::dead(anyhow!("the transcript of this run holds no readable data")))
}

fn parts(said: &[Entry]) -> Vec<Said<'_>> {
    said.iter()
        .map(|entry| {
            let text = entry.content.as_str();
            match entry.kind.as_str() {
                "system" => Said::System(text),
                "instruction" => Said::Instruction(text),
                "data" => Said::Data(text),
                "reply" => Said::Reply(text),
                _ => Said::Correction(text),
            }
        })
        .collect()
}

/// A judgement as the SOP takes it. One finding a node and record: on a re-run it is the same one, whatever
/// the model quotes this time.
fn found(skill: &CompiledSkill, node: &str, data: &Data, judgement: Judgement) -> Found {
    // It rests on all that was shown, not on the quotes alone: a person's word on it ends when any of it
    // changes.
    let shown = FieldValue {
        field: "所示数据指纹".to_owned(),
        value: Some(data.fingerprint()),
    };
    let finding = |outcome, severity, message, evidence: Vec<soft::verdict::Evidence>| Finding {
        record: data.record.clone(),
        event: None,
        instance: None,
        rule: skill.node_key(node),
        field: String::new(),
        outcome,
        severity,
        message,
        values: evidence.into_iter().map(quoted).chain([shown]).collect(),
    };
    match judgement {
        Judgement::Pass { reason, .. } => Found {
            result: NodeResult::Pass,
            findings: Vec::new(),
            rules_checked: Vec::new(),
            note: Some(format!("大模型判断通过：{reason}")),
        },
        Judgement::Fail { reason, evidence } => {
            let message = format!("{reason}（软规则 {node}，大模型判断，待人工确认）");
            let finding = finding(FindingOutcome::Fail, Severity::Warning, message, evidence);
            Found {
                result: NodeResult::Fail,
                findings: vec![finding],
                rules_checked: Vec::new(),
                note: Some(reason),
            }
        }
        Judgement::Unable { reason } => {
            let message = format!("无法判定：{reason}（软规则 {node}，待人工判断）");
            let outcome = FindingOutcome::NotEvaluable;
            let finding = finding(outcome, Severity::Query, message, Vec::new());
            Found {
                result: NodeResult::NotEvaluable,
                findings: vec![finding],
                rules_checked: Vec::new(),
                note: Some(reason),
            }
        }
    }
}

fn quoted(evidence: soft::verdict::Evidence) -> FieldValue {
    let mut field = evidence.field;
    if let Some(event) = evidence.event {
        field = format!("{event} {field}");
    }
    if let Some(instance) = evidence.instance {
        field.push_str(&format!(" #{instance}"));
    }
    FieldValue {
        field,
        value: Some(evidence.quote),
    }
}
