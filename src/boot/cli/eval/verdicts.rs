//! `iit eval verdicts`: the soft rules' judge, with its prompts, checks and corrections, over labelled cases. The
//! cases are sent as they stand in the file: a file of real data belongs to a model that may see it.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use futures::{StreamExt, TryStreamExt, stream};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::verdict_score::{Score, Verdict};
use crate::engines::redaction::Hidden;
use crate::{
    adapters::llm::{ChatRequest, Format, LlmClient, LlmConfig, LlmError},
    boot::{
        cli::{
            exit::{CommandResult, Failure},
            output,
        },
        logging, process,
    },
    engines::{
        react::Said,
        soft::{
            self, Data, Judgement, Opening, TRIES,
            data::{DataRow, FieldNote},
            verdict::INVENTED,
        },
    },
};

/// The cases that come with the program.
const BUNDLED: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/data/verdicts.jsonl"
));
/// Cases under way at once.
const AT_ONCE: usize = 4;
/// Times a question is put again that the server was too busy for.
const PATIENCE: u32 = 4;
/// Most tokens of one answer, as in a run.
const ANSWER_TOKENS: u32 = 1024;

/// Arguments.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// JSON lines: {"id","instruction","text" or "data" or "rows","labels"?,"choices"?,"expect"?}；
    /// 不给出时用随程序附带的标注集 · without it, the cases that come with the program.
    file: Option<PathBuf>,
    /// 用所配置的大模型，目前唯一的方式 · by the configured model, which is the only way there is.
    #[arg(long)]
    llm: bool,
    /// Where the answers go; stdout when absent (the summary then goes to stderr).
    #[arg(long)]
    out: Option<PathBuf>,
    /// 汇总以 JSON 输出到 stdout；逐条结果只写入 --out · the summary as JSON on stdout, the answers only to --out.
    #[arg(long)]
    json: bool,
}

/// One case as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    id: Value,
    instruction: String,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    data: Option<BTreeMap<String, String>>,
    #[serde(default)]
    rows: Option<Vec<WrittenRow>>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    choices: BTreeMap<String, BTreeMap<String, String>>,
    #[serde(default)]
    expect: Option<Verdict>,
    /// What makes it hard, for the figures.
    #[serde(default)]
    about: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRow {
    #[serde(default)]
    event: Option<String>,
    #[serde(default)]
    form: Option<String>,
    #[serde(default)]
    instance: Option<u32>,
    values: BTreeMap<String, String>,
}

/// One case.
#[derive(Debug)]
pub(super) struct Case {
    /// As it came.
    pub id: Value,
    /// What to judge.
    pub instruction: String,
    /// On what.
    pub data: Data,
    /// The label.
    pub expect: Option<Verdict>,
    /// What makes it hard.
    pub about: String,
}

/// What the judge made of a case.
#[derive(Debug, Clone)]
pub(super) struct Judged {
    /// The verdict.
    pub verdict: Verdict,
    /// Its quotes.
    pub quotes: Vec<String>,
    /// It quoted what does not stand in the data.
    pub invented: bool,
    /// Questions it took.
    pub tries: u32,
    /// No answer could be used.
    pub given_up: bool,
    /// Tokens of the prompts and of the answers.
    pub tokens: (i64, i64),
}

#[derive(Serialize)]
struct Line<'a> {
    id: &'a Value,
    verdict: Verdict,
    quotes: &'a [String],
}

/// Runs the command.
///
/// # Errors
/// [`Failure::Usage`]: no model is configured, a file that can't be read or written, a bad line (named as
/// `file:line`). [`Failure::Outside`]: the model can't be asked.
pub(super) fn run(args: Args) -> CommandResult {
    let Args {
        file,
        llm: _,
        out,
        json,
    } = args;
    logging::one_shot();
    let config = LlmConfig::from_lookup(|name| std::env::var(name).ok())
        .map_err(|error| Failure::Usage(error.to_string()))?
        .ok_or_else(|| {
            Failure::Usage(
                "`iit eval verdicts` 需要大模型，但尚未配置；请设置 LLM_BASE_URL 与 LLM_MODEL 后重试 (no language model is configured)"
                    .to_owned(),
            )
        })?;
    let client = LlmClient::new(&config).map_err(|error| {
        Failure::Usage(format!(
            "大模型客户端无法建立 the model client can't be built: {error:#}"
        ))
    })?;
    let cases = read(file.as_deref())?;
    let judged: Vec<Judged> = process::block_on(async {
        stream::iter(&cases)
            .map(|case| judge(&client, case))
            .buffered(AT_ONCE)
            .try_collect()
            .await
    })?;
    let mut lines = String::new();
    let mut score = Score::new(client.model());
    for (case, judged) in cases.iter().zip(&judged) {
        score.count(case, judged);
        let line = Line {
            id: &case.id,
            verdict: judged.verdict,
            quotes: &judged.quotes,
        };
        let line = serde_json::to_string(&line)
            .map_err(|error| Failure::Usage(format!("无法写出结果 · {error}")))?;
        lines.push_str(&line);
        lines.push('\n');
    }
    score.price(&config.price);
    if let Some(path) = &out {
        std::fs::write(path, &lines).map_err(|error| {
            Failure::Usage(format!(
                "{}: 无法写入，请检查路径和权限 · cannot write: {error}",
                path.display()
            ))
        })?;
    }
    match (json, &out) {
        (true, _) => output::json(&score.figures())?,
        (false, Some(_)) => output::say(score.summary().trim_end())?,
        (false, None) => {
            output::print(lines.as_bytes())?;
            output::warn(score.summary().trim_end());
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// One case, judged as a soft rule without tools is: with corrections, and with every quote looked up.
async fn judge(client: &LlmClient, case: &Case) -> Result<Judged, Failure> {
    let mut said = Opening::new(&case.instruction, &case.data, false).said();
    let mut judged = Judged {
        verdict: Verdict::Unable,
        quotes: Vec::new(),
        invented: false,
        tries: 0,
        given_up: false,
        tokens: (0, 0),
    };
    // A server that does not know the JSON mode is asked without it.
    let mut format = Format::Json;
    let mut again = 0;
    while usize::try_from(judged.tries).unwrap_or(TRIES) < TRIES {
        let request = ChatRequest {
            messages: soft::render(&case.id.to_string(), &said),
            max_tokens: ANSWER_TOKENS,
            format: format.clone(),
            tools: Vec::new(),
        };
        let key = format!("eval/{}/{}", uuid::Uuid::new_v4(), judged.tries);
        let reply = match client.chat(&request, &key).await {
            Ok(answer) => answer.reply,
            Err(LlmError::Refused { .. }) if format != Format::Text => {
                format = Format::Text;
                continue;
            }
            Err(error) if again < PATIENCE && may_pass(&error) => {
                again += 1;
                let asked_for = error.retry_after().unwrap_or(Duration::from_secs(1));
                tokio::time::sleep(asked_for.min(Duration::from_secs(20)) * again).await;
                continue;
            }
            Err(error) => {
                return Err(Failure::Outside(format!("{}: {error}", plain(&case.id))));
            }
        };
        judged.tries += 1;
        format = Format::Text;
        if let Some(used) = reply.usage {
            judged.tokens.0 += used.prompt;
            judged.tokens.1 += used.completion;
        }
        let made = match reply.truncated {
            true => Err("回答被截断了，请缩短".to_owned()),
            false => soft::judge(&reply.text, &case.data, &Hidden::default()),
        };
        match made {
            Ok(made) => return Ok(taken(judged, made)),
            Err(why) => {
                said.push(Said::Reply(reply.text));
                said.push(Said::Correction(soft::correction(&why)));
            }
        }
    }
    judged.given_up = true;
    Ok(judged)
}

fn taken(judged: Judged, made: Judgement) -> Judged {
    let (verdict, evidence, invented) = match made {
        Judgement::Pass { evidence, .. } => (Verdict::Pass, evidence, false),
        Judgement::Fail { evidence, .. } => (Verdict::Fail, evidence, false),
        Judgement::Unable { reason } => (Verdict::Unable, Vec::new(), reason == INVENTED),
    };
    Judged {
        verdict,
        quotes: evidence.into_iter().map(|one| one.quote).collect(),
        invented,
        ..judged
    }
}

fn may_pass(error: &LlmError) -> bool {
    matches!(
        error,
        LlmError::RateLimited(_) | LlmError::Trouble(_) | LlmError::NoAnswer { .. }
    )
}

/// The cases of a file; the bundled ones without one. Blank lines are skipped.
///
/// # Errors
/// [`Failure::Usage`] naming the file, or the file and line that can't be read.
pub(super) fn read(path: Option<&Path>) -> Result<Vec<Case>, Failure> {
    let (name, text) = match path {
        None => ("verdicts.jsonl".to_owned(), BUNDLED.to_owned()),
        Some(path) => {
            let text = std::fs::read_to_string(path).map_err(|error| {
                Failure::Usage(format!(
                    "{}: 无法读取，请检查路径和权限 · cannot read: {error}",
                    path.display()
                ))
            })?;
            (path.display().to_string(), text)
        }
    };
    let mut cases = Vec::new();
    for (no, line) in (1..).zip(text.trim_start_matches('\u{feff}').lines()) {
        if line.trim().is_empty() {
            continue;
        }
        let case = case(line).map_err(|what| {
            Failure::Usage(format!(
                "{name}:{no}: 这一行不是有效的判定用例 · not a case: {what}；应为 {{\"id\",\"instruction\",\"text\",…}}"
            ))
        })?;
        cases.push(case);
    }
    if cases.is_empty() {
        return Err(Failure::Usage(format!(
            "{name}: 文件里没有任何用例 · no case in the file"
        )));
    }
    Ok(cases)
}

fn case(line: &str) -> Result<Case, String> {
    let written: Written = serde_json::from_str(line).map_err(|error| error.to_string())?;
    if written.instruction.trim().is_empty() {
        return Err("instruction is empty".to_owned());
    }
    let row = |values: BTreeMap<String, String>| WrittenRow {
        event: None,
        form: None,
        instance: None,
        values,
    };
    let mut labels = written.labels;
    let rows = match (written.text, written.data, written.rows) {
        (Some(text), None, None) => {
            labels
                .entry("text".to_owned())
                .or_insert_with(|| "文本".to_owned());
            vec![row(BTreeMap::from([("text".to_owned(), text)]))]
        }
        (None, Some(values), None) => vec![row(values)],
        (None, None, Some(rows)) => rows,
        _ => return Err("exactly one of text, data and rows is needed".to_owned()),
    };
    let mut fields = BTreeMap::new();
    let mut shown = Vec::new();
    for row in rows {
        let values: BTreeMap<String, String> = row
            .values
            .into_iter()
            .filter(|(_, value)| !value.trim().is_empty())
            .collect();
        for name in values.keys() {
            fields.entry(name.clone()).or_insert_with(|| FieldNote {
                label: labels.get(name).unwrap_or(name).clone(),
                choices: written.choices.get(name).cloned().unwrap_or_default(),
            });
        }
        if !values.is_empty() {
            shown.push(DataRow {
                event: row.event,
                form: row.form,
                instance: row.instance,
                values,
            });
        }
    }
    Ok(Case {
        data: Data {
            record: "P001".to_owned(),
            fields,
            withheld: BTreeMap::new(),
            rows: shown,
        },
        id: written.id,
        instruction: written.instruction,
        expect: written.expect,
        about: written.about.unwrap_or_else(|| "其他".to_owned()),
    })
}

/// An id as people read it.
pub(super) fn plain(id: &Value) -> String {
    id.as_str().map_or_else(|| id.to_string(), str::to_owned)
}
