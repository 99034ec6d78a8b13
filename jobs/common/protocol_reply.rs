//! A question about the protocol, answered without a language model: the passages themselves.

use super::{services::Services, study::Study};
use crate::{
    engines::{redaction::Hidden, router::texts},
    tools::{
        ToolError,
        search_protocol::{NO_DOCUMENTS, find},
    },
    types::text::ellipsis,
};

/// Passages shown: a person reads them on a phone.
const SHOWN: usize = 3;
/// Characters of one passage.
const LONGEST: usize = 400;

/// The best passages word for word with their places, or why there are none.
pub async fn verbatim(services: &Services, study: &Study, question: &str) -> String {
    let Some(question) = may_leave(services, study, question).await else {
        return "方案暂时查不了：无法确认问题中没有身份信息".to_owned();
    };
    let found = find(
        &study.project,
        &services.reader,
        services.dify.as_deref(),
        &question,
        SHOWN,
    );
    let findings = match found.await {
        Ok(findings) => findings,
        Err(ToolError::Unavailable(why)) => return format!("方案暂时查不了：{why}"),
        Err(_) => return "请写出想查方案里的什么内容，例如“V4 访视窗口”“入选标准”。".to_owned(),
    };
    if findings.no_documents {
        return format!("{}\n\n{NO_DOCUMENTS}", texts::needs_language_model());
    }
    if findings.passages.is_empty() {
        return "方案文件中没有找到与您的问题有关的内容。可以换方案里的说法再问一次，例如“V4 访视窗口”“排除标准”。"
            .to_owned();
    }
    let opening = if findings.doubtful {
        "当前没有语言模型可用，以下是文件中用词相近的原文，不一定回答了您的问题，请自行判断："
    } else {
        "当前没有语言模型可用，以下是文件中最相关的原文："
    };
    let passages = findings.passages.iter().map(|found| {
        let page = match (found.page, &found.number) {
            (Some(page), Some(_)) => format!("（第 {page} 页）"),
            _ => String::new(),
        };
        format!(
            "【{}{page}】\n{}",
            found.citation(),
            ellipsis(&found.text, LONGEST)
        )
    });
    std::iter::once(opening.to_owned())
        .chain(passages)
        .collect::<Vec<_>>()
        .join("\n\n")
}

/// The question without what is personal, where somebody else's server may be asked. `None`: that can't be told.
async fn may_leave(services: &Services, study: &Study, question: &str) -> Option<String> {
    if services.dify.is_none() {
        return Some(question.to_owned());
    }
    let redactor = services.redactor(study).await.ok()?;
    let mut hidden = Hidden::default();
    let redacted = redactor.redact(question, &mut hidden).ok()?;
    Some(hidden.mask(&redacted))
}
