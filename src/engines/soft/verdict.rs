//! What a model answered, and what of it is believed.
//!
//! A verdict without a quote is no verdict, and a quote that does not stand in the data makes the whole
//! answer worthless: it is then left to a person, never taken for a pass.

use serde::{Deserialize, de::DeserializeOwned};

pub use super::quotes::Evidence;
use super::{
    data::Data,
    quotes::{self, Cited},
};
use crate::{
    engines::{react::Given, redaction::Hidden},
    types::text::ellipsis,
};

/// Longest reason kept.
pub(crate) const LONGEST_REASON: usize = 500;
/// Why an answer with an invented quote counts for nothing.
pub(crate) const INVENTED: &str = "大模型引用的原文在数据中不存在，其判断不可信";

/// A judgement that may be acted on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judgement {
    /// It holds, on this evidence.
    Pass {
        /// One sentence.
        reason: String,
        /// At least one.
        evidence: Vec<Evidence>,
    },
    /// It is broken, on this evidence.
    Fail {
        /// One sentence.
        reason: String,
        /// At least one.
        evidence: Vec<Evidence>,
    },
    /// A person has to decide.
    Unable {
        /// One sentence.
        reason: String,
    },
}

#[derive(Deserialize)]
struct Answer {
    verdict: Verdict,
    reason: String,
    #[serde(default)]
    evidence: Option<Vec<Cited>>,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Pass,
    Fail,
    Unable,
}

/// Judges an answer by the data, of which the model was shown placeholders where it is `hidden`: quotes are
/// compared with the values put back. The reason is for everybody who reads the ledger, and stays without.
///
/// # Errors
/// What to tell the model, in one sentence, when the answer is not of the form asked for or cites a place
/// that does not exist. An invented quote is no such mistake: it is [`Judgement::Unable`].
pub fn judge(text: &str, data: &Data, hidden: &Hidden) -> Result<Judgement, String> {
    judge_with(text, data, hidden, &[])
}

/// The same where tools gave more to quote.
///
/// # Errors
/// As [`judge`].
pub fn judge_with(
    text: &str,
    data: &Data,
    hidden: &Hidden,
    results: &[&Given],
) -> Result<Judgement, String> {
    let answer: Answer = read(text)?;
    let reason = ellipsis(hidden.mask(answer.reason.trim()).trim(), LONGEST_REASON);
    if reason.is_empty() {
        return Err("缺少 reason".to_owned());
    }
    if answer.verdict == Verdict::Unable {
        return Ok(Judgement::Unable { reason });
    }
    let cited = answer.evidence.unwrap_or_default();
    if cited.is_empty() {
        return Err("pass 和 fail 至少要有一条 evidence；没有依据就回答 unable".to_owned());
    }
    let Some(evidence) = quotes::find(cited, data, hidden, results)? else {
        return Ok(Judgement::Unable {
            reason: INVENTED.to_owned(),
        });
    };
    Ok(match answer.verdict {
        Verdict::Pass => Judgement::Pass { reason, evidence },
        _ => Judgement::Fail { reason, evidence },
    })
}

/// Reads an answer of the form `T`.
///
/// # Errors
/// What to tell the model.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    let text = bare(text);
    if text.is_empty() {
        return Err("回答是空的".to_owned());
    }
    serde_json::from_str(text).map_err(|error| {
        format!(
            "不是符合要求的 JSON（{}）",
            ellipsis(&error.to_string(), 120)
        )
    })
}

/// The answer without a thinking part in front and without the fence around it, if it is one fence as a
/// whole.
fn bare(text: &str) -> &str {
    let mut text = text.trim();
    if text.starts_with("<think>")
        && let Some((_, rest)) = text.split_once("</think>")
    {
        text = rest.trim();
    }
    let fenced = text
        .strip_prefix("```")
        .and_then(|rest| rest.strip_suffix("```"))
        .filter(|inside| !inside.contains("```"));
    match fenced {
        Some(inside) => inside.strip_prefix("json").unwrap_or(inside).trim(),
        None => text,
    }
}
