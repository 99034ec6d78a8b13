//! The judgement of a soft rule: the model is shown the record, may look further with its node's tools,
//! answers, and is told what is wrong with an answer that can't be used. Each answer is a step of its own, with
//! the calls it asks for.

use anyhow::anyhow;
use sha2::{Digest, Sha256};

use super::{
    ask::{Asked, Question, ask},
    services::Services,
    study::{Study, edc_error},
    tool_calls,
    transcript::{self, entry},
};
use crate::engines::redaction::Hidden;
use crate::{
    adapters::llm::{ChatRequest, Format, Reply, ToolCall},
    engines::{
        react::{Given, Said, calls, thread},
        soft::{self, Data, Opening, PROMPT_VERSION, TOOL_TURNS, TRIES},
        sop::{CompiledSkill, Found, NO_MODEL, NodeResult, Walk},
    },
    queue::{JobError, Lease},
    store::{runs::Run, trace::Entry},
    tools::{Judgement, Proposal, registry::Caller},
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
    /// What its tools want done.
    pub proposals: Vec<Proposal>,
    /// Names of fields that nobody could map.
    pub unmapped: Vec<String>,
}

/// Where the run goes.
pub enum Turn {
    /// The node is decided.
    Decided(Found),
    /// Another step at this node follows.
    Again {
        /// The step's outcome.
        outcome: &'static str,
        /// One sentence about it.
        note: String,
        /// Calls that a judgement answers first; none: the next step follows at once.
        waiting: Vec<(ToolCall, Judgement)>,
    },
    /// The model, or a tool it needs, is not to be had; one sentence for people.
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

/// What a soft rule asks, and what it may use.
pub struct Rule<'a> {
    /// What to judge.
    pub instruction: &'a str,
    /// The tools its node lists.
    pub tools: &'a [String],
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
    rule: &Rule<'_>,
) -> Result<Judged, JobError> {
    let Some(model) = &services.model else {
        return Ok(Judged::without_model(NO_MODEL.to_owned()));
    };
    let limits = &study.project.file.llm;
    if let Err(why) = model.may_see(limits) {
        return Ok(Judged::without_model(not_run(&why)));
    }
    // A server that knows no tools judges by what it is shown.
    let tools = match model.client.profile().tools {
        true => services.tools.specs(Caller::Sop, Some(rule.tools)),
        false => Vec::new(),
    };
    let node = walk.node().unwrap_or_default();
    let thread = format!("{node}#{}", walk.visits(node));
    let kept = read_thread(services, run, &thread).await?;
    // What was shown once is what the judgement is about, even if the record changed since.
    let is_new = kept.is_empty();
    let (said, data, data_version) = if is_new {
        match open(study, run, rule.instruction, !tools.is_empty()).await? {
            Ok(opened) => opened,
            Err(too_large) => {
                return Ok(Judged::without_model(not_run(&too_large.to_string())));
            }
        }
    } else {
        let data = stored_data(&kept)?;
        (kept, data, None)
    };
    if let Some(field) = data.withheld_for(rule.instruction) {
        let why = format!(
            "核查要求涉及标为身份信息的字段 {field}，不发送给大模型，软规则未执行，转人工复核"
        );
        return Ok(Judged::without_model(why));
    }
    let redactor = services.redactor(study).await?;
    // A judgement that came to nothing is a call that failed, too.
    if calls::keep_failing(&said) {
        return Ok(Judged::without_model(TOOLS_FAIL.to_owned()));
    }
    let count = |wanted: fn(&Said) -> bool| said.iter().filter(|one| wanted(one)).count();
    let corrections = count(|one| matches!(one, Said::Correction(_)));
    let last = count(|one| matches!(one, Said::Calls(_))) >= TOOL_TURNS;
    let opening: Vec<Entry> = said.iter().map(entry).collect();
    let question = Question {
        project: study.id(),
        run: run.id,
        step: run.step_no,
        thread: &thread,
        said: if is_new { &opening } else { &[] },
        prompt_version: PROMPT_VERSION,
        request: ChatRequest {
            messages: soft::render(&format!("{}/{thread}", run.id), &said),
            max_tokens: ANSWER_TOKENS,
            format: format(corrections, rule.tools),
            tools: if last { Vec::new() } else { tools },
        },
        redactor: &redactor,
        run_limits: (
            i64::from(limits.run_max_calls),
            i64::from(limits.run_max_tokens),
        ),
        day_limits: model.day_limits(limits),
    };
    let (reply, hidden, calls, tokens) = match ask(services, model, lease, &question).await? {
        Asked::Unavailable(why) => return Ok(Judged::without_model(not_run(&why))),
        Asked::Reply {
            reply,
            hidden,
            calls,
            tokens,
        } => (reply, hidden, calls, tokens),
    };
    let mut talk = Talk {
        thread,
        calls,
        tokens,
        ..Talk::default()
    };
    if !reply.truncated && !reply.tool_calls.is_empty() && !last {
        let (turn, seen) = call(
            services,
            lease,
            study,
            run,
            rule,
            &said,
            (&reply, &hidden),
            &mut talk,
        )
        .await?;
        return Ok(Judged {
            turn,
            talk,
            data_version: data_version.or(seen),
        });
    }
    let answer = without_nul(&reply.text).0;
    let given: Vec<&Given> = thread::results(&said).collect();
    let judged = if reply.truncated {
        Err("回答被截断了，请缩短".to_owned())
    } else if !reply.tool_calls.is_empty() {
        Err("已不能再调用工具，请用已有的数据判断，判断不了就回答 unable".to_owned())
    } else {
        soft::judge_with(&answer, &data, &hidden, &given)
    };
    talk.said.push(Entry::new("reply", answer));
    let shown = shown(&data, &given);
    let turn = match judged {
        Ok(judgement) => Turn::Decided(found(skill, node, &data, shown, judgement)),
        Err(why) if corrections + 1 < TRIES => {
            talk.said
                .push(Entry::new("correction", soft::correction(&why)));
            Turn::Again {
                outcome: "invalid_reply",
                note: format!("大模型的回答不能用：{why}"),
                waiting: Vec::new(),
            }
        }
        Err(why) => {
            let reason = format!("大模型 {TRIES} 次回答均不能用（{why}）");
            let judgement = soft::Judgement::Unable { reason };
            Turn::Decided(found(skill, node, &data, shown, judgement))
        }
    };
    Ok(Judged {
        turn,
        talk,
        data_version,
    })
}

const TOOLS_FAIL: &str = "工具连续失败，软规则未执行，转人工复核";

/// In the JSON mode many servers call no tools. Where the record shown is all that the node may read, nothing
/// is lost by it.
fn format(corrections: usize, tools: &[String]) -> Format {
    let only_reads = tools.iter().all(|tool| tool == "read_clinical_data");
    match corrections == 0 && only_reads {
        true => Format::Json,
        false => Format::Text,
    }
}

/// Makes the calls of an answer.
#[expect(
    clippy::too_many_arguments,
    reason = "each is another thing of the step at hand"
)]
async fn call(
    services: &Services,
    lease: &Lease,
    study: &Study,
    run: &Run,
    rule: &Rule<'_>,
    said: &[Said],
    (reply, hidden): (&Reply, &Hidden),
    talk: &mut Talk,
) -> Result<(Turn, Option<String>), JobError> {
    let asked = calls::asked(said, reply, reply.tool_calls.clone());
    let refused = calls::refusals(said, &asked.calls);
    let who = tool_calls::As {
        caller: Caller::Sop,
        listed: Some(rule.tools),
        record: Some(&run.record),
    };
    let meant = tool_calls::meant(&asked.calls, hidden);
    let made = tool_calls::make(services, lease, study, who, &meant, &refused).await?;
    let note = tool_calls::outcomes(&made.given, &made.waiting);
    let rows: Vec<Said> = std::iter::once(Said::Calls(asked))
        .chain(made.given.into_iter().map(Said::Result))
        .collect();
    talk.said = rows.iter().map(entry).collect();
    let all: Vec<Said> = said.iter().cloned().chain(rows).collect();
    talk.unmapped = made.unmapped;
    let turn = match calls::keep_failing(&all) {
        true => Turn::Unavailable(TOOLS_FAIL.to_owned()),
        false => {
            talk.proposals = made.proposals;
            Turn::Again {
                outcome: "tools",
                note,
                waiting: made.waiting,
            }
        }
    };
    Ok((turn, made.data_version))
}

/// The rows of a thread that the model is shown.
///
/// # Errors
/// The database failed; another version wrote the thread.
pub async fn read_thread(
    services: &Services,
    run: &Run,
    thread: &str,
) -> Result<Vec<Said>, JobError> {
    let mut conn = services.pool.acquire().await?;
    transcript::read(&mut conn, run.id, thread).await
}

fn not_run(why: &str) -> String {
    format!("{why}，软规则未执行，转人工复核")
}

type Opened = (Vec<Said>, Data, Option<String>);

/// Reads the record and begins a thread about it.
async fn open(
    study: &Study,
    run: &Run,
    instruction: &str,
    tools: bool,
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
    let said = Opening::new(instruction, &data, tools).said();
    Ok(Ok((said, data, Some(extract.fingerprint))))
}

fn stored_data(said: &[Said]) -> Result<Data, JobError> {
    let stored = said.iter().find_map(|one| match one {
        Said::Data(json) => serde_json::from_str(json).ok(),
        _ => None,
    });
    stored
        .ok_or_else(|| JobError::dead(anyhow!("the transcript of this run holds no readable data")))
}

/// Stands for all that the model was shown.
fn shown(data: &Data, given: &[&Given]) -> String {
    let mut digest = Sha256::new();
    let mut any = false;
    for one in given.iter().filter(|one| one.ok) {
        any = true;
        digest.update(&one.name);
        digest.update([0]);
        digest.update(&one.content);
        digest.update([0]);
    }
    let data = data.fingerprint();
    if !any {
        return data;
    }
    let tools: String = digest
        .finalize()
        .iter()
        .take(8)
        .map(|b| format!("{b:02x}"))
        .collect();
    format!("{data}-{tools}")
}

/// A judgement as the SOP takes it. One finding a node and record: on a re-run it is the same one, whatever
/// the model quotes this time.
fn found(
    skill: &CompiledSkill,
    node: &str,
    data: &Data,
    shown: String,
    judgement: soft::Judgement,
) -> Found {
    // It rests on all that was shown, not on the quotes alone: a person's word on it ends when any of it
    // changes.
    let shown = FieldValue {
        field: "所示数据指纹".to_owned(),
        value: Some(shown),
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
        soft::Judgement::Pass { reason, .. } => Found {
            result: NodeResult::Pass,
            findings: Vec::new(),
            rules_checked: Vec::new(),
            note: Some(format!("大模型判断通过：{reason}")),
        },
        soft::Judgement::Fail { reason, evidence } => {
            let message = format!("{reason}（软规则 {node}，大模型判断，待人工确认）");
            let finding = finding(FindingOutcome::Fail, Severity::Warning, message, evidence);
            Found {
                result: NodeResult::Fail,
                findings: vec![finding],
                rules_checked: Vec::new(),
                note: Some(reason),
            }
        }
        soft::Judgement::Unable { reason } => {
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
