//! The labelled messages put to the configured model, a few at a time. They are sent as they stand in the
//! file: a file of real messages belongs to a model that may see them.

use std::{collections::BTreeMap, io::IsTerminal, time::Duration};

use chrono::{DateTime, Utc};
use futures::{StreamExt, stream};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use super::{
    labelled::Line,
    score::{Answer, Known},
};
use crate::{
    adapters::llm::{ChatRequest, Format, LlmClient, LlmConfig, LlmError},
    boot::cli::exit::Failure,
    engines::router::{
        self, Conversation, Routing,
        model::{self as reading, ANSWER_TOKENS, Claim, Context, Opening, Said, TRIES, schema},
    },
    types::clock::Clock,
};

/// Questions under way at once.
const AT_ONCE: usize = 4;
/// Times a question is put again that the server was too busy for.
const PATIENCE: u32 = 4;

/// What it took.
#[derive(Debug, Default, Serialize)]
pub(super) struct Cost {
    /// The model's name.
    pub model: String,
    /// Questions asked.
    pub calls: u64,
    /// Tokens, as far as the server counted.
    pub prompt_tokens: i64,
    pub completion_tokens: i64,
    /// In yuan, by the configured prices.
    pub cost_cny: f64,
    /// Messages the keywords decided in its place, by the reason.
    pub fallbacks: BTreeMap<&'static str, u64>,
}

/// Answers every line, in order.
///
/// # Errors
/// [`Failure::Outside`] when the model can't be asked at all: nobody there, a refused key, no credit.
pub(super) async fn answer_all(
    lines: &[Line],
    config: &LlmConfig,
    threshold: f64,
) -> Result<(Vec<Answer>, Cost), Failure> {
    let config = config.of_intents().unwrap_or_else(|| config.clone());
    let asking = Asking {
        client: LlmClient::new(&config).map_err(|error| {
            Failure::Usage(format!(
                "大模型客户端无法建立 the model client can't be built: {error:#}"
            ))
        })?,
        now: Clock::system().now(),
        threshold,
    };
    let target = if std::io::stderr().is_terminal() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(u64::try_from(lines.len()).ok(), target);
    if let Ok(style) =
        ProgressStyle::with_template("{bar:32} {pos}/{len} 条  {elapsed}  剩余 {eta}")
    {
        bar.set_style(style);
    }
    let mut answers = Vec::with_capacity(lines.len());
    let mut cost = Cost {
        model: asking.client.model().to_owned(),
        ..Cost::default()
    };
    let mut asked = stream::iter(lines)
        .map(|line| asking.route(line))
        .buffered(AT_ONCE);
    while let Some(one) = asked.next().await {
        let (answer, took) = one?;
        bar.inc(1);
        answers.push(answer);
        cost.calls += took.calls;
        cost.prompt_tokens += took.prompt;
        cost.completion_tokens += took.completion;
        if let Some(why) = took.fallback {
            *cost.fallbacks.entry(why).or_default() += 1;
        }
    }
    bar.finish_and_clear();
    #[expect(clippy::cast_precision_loss, reason = "prices are far below 2^52")]
    let yuan = config.price.of(cost.prompt_tokens, cost.completion_tokens) as f64 / 1e6;
    cost.cost_cny = yuan;
    Ok((answers, cost))
}

#[derive(Default)]
struct Took {
    calls: u64,
    prompt: i64,
    completion: i64,
    fallback: Option<&'static str>,
}

struct Asking {
    client: LlmClient,
    now: DateTime<Utc>,
    threshold: f64,
}

impl Asking {
    /// Routes one message as the program does: at once where it can, else by the model, with one repair.
    async fn route(&self, line: &Line) -> Result<(Answer, Took), Failure> {
        let known = Known::of(line);
        let known = known.conversation();
        let mut took = Took::default();
        let routing = match router::certain::read(&line.text, &known) {
            Some(routing) => routing,
            None => match self.claims(line, &known, &mut took).await? {
                Some(claims) => reading::believe(&claims, &line.text, &known, self.threshold),
                None => router::keyword::route(&line.text, &known),
            },
        };
        let Routing { intents, .. } = routing;
        Ok((Answer::of(line, &intents), took))
    }

    async fn claims(
        &self,
        line: &Line,
        known: &Conversation<'_>,
        took: &mut Took,
    ) -> Result<Option<Vec<Claim>>, Failure> {
        let context = Context {
            conversation: known,
            now: self.now,
            today: self.now.date_naive(),
        };
        let opening = Opening::new(&line.text, &context);
        let (mut reply, mut correction) = (String::new(), String::new());
        for no in 0..TRIES {
            let mut said = vec![
                Said::System(&opening.system),
                Said::Context(&opening.context),
                Said::Message(&opening.message),
            ];
            if no > 0 {
                said.extend([Said::Reply(&reply), Said::Correction(&correction)]);
            }
            let format = if no == 0 {
                Format::Schema {
                    name: schema::NAME,
                    schema: schema::schema(),
                }
            } else {
                Format::Text
            };
            let request = ChatRequest {
                messages: reading::render(&line.id.to_string(), &said),
                max_tokens: ANSWER_TOKENS,
                format,
                tools: Vec::new(),
            };
            let Some(answer) = self.ask(request, took).await? else {
                took.fallback = Some("unavailable");
                return Ok(None);
            };
            let claims = match answer {
                Some(text) => {
                    let claims = reading::read(&text, &line.text, known);
                    reply = text;
                    claims
                }
                None => Err("回答被截断了，请缩短".to_owned()),
            };
            match claims {
                Ok(claims) => return Ok(Some(claims)),
                Err(why) => correction = reading::correction(&why),
            }
        }
        took.fallback = Some("unusable");
        Ok(None)
    }

    /// One answer (the inner `None`: it was cut off), or `None` when there is none to be had.
    async fn ask(
        &self,
        mut request: ChatRequest,
        took: &mut Took,
    ) -> Result<Option<Option<String>>, Failure> {
        for again in 0..PATIENCE {
            took.calls += 1;
            let key = format!("eval/{}", uuid::Uuid::new_v4());
            match self.client.chat(&request, &key).await {
                Ok(answer) => {
                    let used = answer.reply.usage;
                    took.prompt += used.map_or(0, |used| used.prompt);
                    took.completion += used.map_or(0, |used| used.completion);
                    let reply = answer.reply;
                    return Ok(Some((!reply.truncated).then_some(reply.text)));
                }
                Err(LlmError::Refused { .. }) if request.format != Format::Text => {
                    request.format = Format::Text;
                }
                Err(
                    error @ (LlmError::NotSent { .. }
                    | LlmError::BadKey { .. }
                    | LlmError::NoCredit { .. }
                    | LlmError::Refused { .. }),
                ) => return Err(Failure::Outside(error.to_string())),
                Err(error @ LlmError::RateLimited(_)) => {
                    let wait = error
                        .retry_after()
                        .unwrap_or(Duration::from_secs(2_u64 << again));
                    tokio::time::sleep(wait.min(Duration::from_secs(60))).await;
                }
                Err(LlmError::Trouble(_)) => {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
                Err(_) => return Ok(None),
            }
        }
        Ok(None)
    }
}
