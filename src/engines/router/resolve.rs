//! From a draft (what is wanted, whom the words name) to an intent, or to a question back.

use super::{
    Choice, Clarification, Consent, Conversation, Entities, Intent, IntentKind, PATIENT_SLOT,
    entities, ids,
    ids::Trouble,
    message::{Message, patterns},
    quoted,
    subject::Subject,
    texts,
};

/// One request of a message, before it is known whether everything it takes is there.
#[derive(Debug, Clone)]
pub(super) struct Draft {
    pub kind: IntentKind,
    pub write: bool,
    pub confidence: f64,
    /// The part of the folded text.
    pub start: usize,
    pub end: usize,
    pub subject: Subject,
    pub whole: bool,
    /// The clause is a remark: it stands only when nothing else does.
    pub remark: bool,
}

patterns! {
    /// A patient described, not named: the memory must not stand in.
    DESCRIBED = r"其他|其它|其余|剩下|剩余|别的|患者|病人|受试者|病例|中心|叫.{1,4}的|谁|(?-u:\b)(?:patients?|subjects?|site)(?-u:\b)";
    /// A change that needs no patient.
    WRITE_AT_LARGE = r"所有|全部|质疑|疑问|query|queries|全都|批量|all|pending|规则|配置|受试者.{0,4}$|患者.{0,4}$";
    /// A question about one patient that names none: 年龄多大, 怎么样了.
    NEEDS_PATIENT = r"(?x)
        ^(?:那|请问|查一下|查下|查|看一下|看下|看看|看|告诉我|帮我|麻烦|现在|最近一?次?|的|她|他
        |\s)*(?:(?:年龄|性别|身高|体重|bmi|血压|体温|心率|ecog(?:评分)?|血红蛋白|白细胞|血小板|肌酐
        |知情同意?(?:日期|时间)?|入组(?:日期|时间)|出生(?:日期|年月)|诊断|病史|既往史|合并用药
        |入排(?:状态|情况|结果)|访视情况|随访情况)(?:的|值|结果|是)*(?:呢|多少|多大|多高|多重
        |怎么样了?|如何|什么|正常吗|正常不|几分|\?|\s)*|(?:怎么样了?|如何了|(?:他的)?情况(?:怎么样
        |如何)|什么情况|啥情况|(?:入组|出组|脱落|签知情|随访)了?(?:吗|没有?|没有呢)))$";
    ASCII_CLAUSE_END = r"[a-z0-9]$";
}

/// Whether a text asks about one patient and names none.
pub(super) fn needs_patient(text: &str) -> bool {
    NEEDS_PATIENT.is_match(text.trim())
}

/// Turns a draft into an intent.
pub(super) fn finish(
    draft: &Draft,
    message: &Message,
    conversation: &Conversation<'_>,
    without: &[String],
) -> Intent {
    let text = message.part(draft.start, draft.end);
    let mut subject = draft.subject.clone();
    let is_task = draft.kind == IntentKind::QcTask;
    if let Some((trouble, start, end)) = &subject.trouble {
        return ask_range(draft, message, trouble, *start, *end);
    }
    if is_task {
        subject.ids.retain(|id| !without.contains(id));
    }
    let whole = draft.whole && subject.ids.is_empty() && is_task;
    if whole && !draft.write && !without.is_empty() {
        return ask_whole(draft, message, without);
    }
    if let Some(span) = subject.unresolved {
        return ask_patient(draft, message, conversation, Some(span), &subject.ids);
    }
    let mut confidence = draft.confidence;
    if subject.ids.is_empty() && !whole {
        let at_large = draft.write && WRITE_AT_LARGE.is_match(text);
        let needed =
            is_task && !at_large || draft.kind == IntentKind::QaQuery && needs_patient(text);
        if needed {
            let stands_in = conversation
                .memory
                .resolved()
                .filter(|_| !subject.plural && !DESCRIBED.is_match(text) && !names_something(text));
            let Some(id) = stands_in else {
                return ask_patient(draft, message, conversation, None, &[]);
            };
            subject.ids.push(normal(id));
            confidence = confidence.min(0.7);
        }
    }
    Intent {
        kind: draft.kind,
        confidence,
        entities: entities_of(message, draft, subject.ids, whole),
        wishes_write: draft.write,
        about_past: entities::about_past(text),
        clarification: None,
        consent: if is_task && quoted::holds(message, draft.start, draft.end) {
            Consent::Needed
        } else {
            Consent::NotNeeded
        },
        text: message.written(draft.start, draft.end).trim().to_owned(),
    }
}

/// Whether digits stand in the text that are no visit: perhaps an id nobody could read, so the memory's
/// patient must not be checked in its place.
fn names_something(text: &str) -> bool {
    text.bytes().any(|b| b.is_ascii_digit()) && entities::visit(text).is_none()
}

/// An id as ids are given: upper-case, half-width.
pub(super) fn normal(id: &str) -> String {
    crate::types::text::half_width(id.trim()).to_ascii_uppercase()
}

/// A question back that belongs to no request: what is wanted?
pub(super) fn ask_what(
    message: &Message,
    question: String,
    choices: Vec<Choice>,
    ids: Vec<String>,
) -> Intent {
    Intent {
        kind: IntentKind::Unclear,
        confidence: 0.5,
        entities: Entities {
            record_ids: ids,
            ..Entities::default()
        },
        wishes_write: false,
        about_past: false,
        clarification: Some(Clarification {
            question,
            choices,
            resume: None,
        }),
        consent: Consent::NotNeeded,
        text: message.written(0, message.plain().len()).trim().to_owned(),
    }
}

pub(super) fn choice(label: impl Into<String>, text: impl Into<String>) -> Choice {
    Choice {
        label: label.into(),
        text: text.into(),
    }
}

/// The question to type an id, for a request that lacks one.
pub(super) fn ask_for_id(message: &Message, resume: &str) -> Intent {
    let mut intent = ask_what(message, texts::patient_id_please(), Vec::new(), Vec::new());
    if let Some(clarification) = &mut intent.clarification {
        clarification.resume = Some(resume.to_owned());
    }
    intent
}

fn entities_of(message: &Message, draft: &Draft, record_ids: Vec<String>, whole: bool) -> Entities {
    let text = message.part(draft.start, draft.end);
    let written = |span: Option<(usize, usize)>| {
        span.map(|(start, end)| {
            crate::types::text::half_width(
                message
                    .written(draft.start + start, draft.start + end)
                    .trim(),
            )
        })
    };
    Entities {
        record_ids,
        visit: entities::visit(text),
        form: written(entities::form(text)),
        field: written(entities::field(text)),
        whole_project: whole,
    }
}

fn unclear(draft: &Draft, message: &Message, clarification: Clarification) -> Intent {
    Intent {
        kind: IntentKind::Unclear,
        confidence: 0.5,
        entities: entities_of(message, draft, Vec::new(), false),
        wishes_write: draft.write,
        about_past: false,
        clarification: Some(clarification),
        consent: Consent::NotNeeded,
        text: message.written(draft.start, draft.end).trim().to_owned(),
    }
}

/// 请问您指的是哪位患者？ with whom it could be.
pub(super) fn ask_patient(
    draft: &Draft,
    message: &Message,
    conversation: &Conversation<'_>,
    reference: Option<(usize, usize)>,
    among: &[String],
) -> Intent {
    let resume = resume(draft, message, reference);
    let is_check = draft.kind == IntentKind::QcTask && !draft.write;
    let candidates: Vec<String> = if among.is_empty() {
        candidate(conversation).into_iter().collect()
    } else {
        among.iter().take(4).cloned().collect()
    };
    let mut choices = Vec::new();
    let question = match candidates.as_slice() {
        [one] => {
            choices.push(choice(
                format!("是，{one}"),
                super::answer::fill(&resume, &named(one)),
            ));
            texts::which_patient(Some(one))
        }
        several => {
            for id in several {
                choices.push(choice(id.clone(), super::answer::fill(&resume, &named(id))));
            }
            texts::which_patient(None)
        }
    };
    if !candidates.is_empty() {
        choices.push(choice(texts::OTHER_PATIENT, texts::OTHER_PATIENT));
    }
    if is_check {
        choices.push(choice(texts::WHOLE_PROJECT, texts::WHOLE_PROJECT_QC));
    }
    if candidates.is_empty() {
        choices.push(choice("最近入组的患者", "查下最近入组的病人"));
        choices.push(choice(texts::HELP_CHIP, "帮助"));
    }
    unclear(
        draft,
        message,
        Clarification {
            question,
            choices,
            resume: Some(resume),
        },
    )
}

/// An id as it is read again without doubt inside a sentence: marked as one when it does not look it.
#[must_use]
pub fn named(id: &str) -> String {
    let lower = id.to_ascii_lowercase();
    let plain = [
        lower.clone(),
        format!("质控 {lower}"),
        format!("看 {lower} 的"),
    ];
    let clear = plain.iter().all(|text| {
        let found = ids::mentions(text);
        found.len() == 1 && found.iter().all(|m| m.ids == [id])
    });
    if clear {
        id.to_owned()
    } else {
        format!("编号「{id}」")
    }
}

/// The request with a slot where the patient belongs.
fn resume(draft: &Draft, message: &Message, reference: Option<(usize, usize)>) -> String {
    match reference {
        Some((start, end)) if start >= draft.start && end <= draft.end => format!(
            "{}{PATIENT_SLOT}{}",
            spaced(message.written(draft.start, start)),
            message.written(end, draft.end).trim_end()
        ),
        _ => format!(
            "{PATIENT_SLOT} {}",
            message.written(draft.start, draft.end).trim()
        ),
    }
}

fn spaced(before: &str) -> String {
    let before = before.trim_start();
    if ASCII_CLAUSE_END.is_match(&before.to_ascii_lowercase()) {
        format!("{before} ")
    } else {
        before.to_owned()
    }
}

/// The patient a question may offer: the memory's, even when stale, else the last one in the history.
fn candidate(conversation: &Conversation<'_>) -> Option<String> {
    conversation
        .memory
        .known()
        .map(normal)
        .or_else(|| last_patient(conversation))
}

/// The patient the history named last, when the turn that did named just one.
pub(super) fn last_patient(conversation: &Conversation<'_>) -> Option<String> {
    conversation.history.iter().rev().find_map(|turn| {
        let message = Message::new(super::message::head(&turn.text, super::message::MAX_CHARS));
        let mut named: Vec<String> = Vec::new();
        for id in ids::mentions(message.plain())
            .into_iter()
            .flat_map(|m| m.ids)
        {
            if !named.contains(&id) {
                named.push(id);
            }
        }
        match named.as_slice() {
            [] => None,
            [one] => Some(Some(one.clone())),
            _ => Some(None),
        }
    })?
}

fn ask_range(
    draft: &Draft,
    message: &Message,
    trouble: &Trouble,
    start: usize,
    end: usize,
) -> Intent {
    let with = |names: String| {
        format!(
            "{}{names}{}",
            message.written(draft.start, start),
            message.written(end, draft.end)
        )
    };
    let choices = match trouble {
        Trouble::TooMany { .. } if draft.kind == IntentKind::QcTask && !draft.write => {
            vec![
                choice(texts::WHOLE_PROJECT, texts::WHOLE_PROJECT_QC),
                choice(texts::CANCEL, texts::CANCEL),
            ]
        }
        Trouble::TooMany { .. } | Trouble::NoRange { .. } => Vec::new(),
        Trouble::IdOrRange { id, from, to } => {
            let (id, from, to) = (
                id.to_ascii_uppercase(),
                from.to_ascii_uppercase(),
                to.to_ascii_uppercase(),
            );
            vec![
                choice(format!("编号 {id}"), with(format!("「{id}」"))),
                choice(format!("{from} 到 {to}"), with(format!("{from}到{to}"))),
            ]
        }
    };
    unclear(
        draft,
        message,
        Clarification {
            question: texts::range_trouble(trouble),
            choices,
            resume: Some(with(PATIENT_SLOT.to_owned())),
        },
    )
}

fn ask_whole(draft: &Draft, message: &Message, without: &[String]) -> Intent {
    unclear(
        draft,
        message,
        Clarification {
            question: texts::whole_project_without(without),
            choices: vec![
                choice("是，全项目", texts::WHOLE_PROJECT_QC),
                choice(texts::CANCEL, texts::CANCEL),
            ],
            resume: None,
        },
    )
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_pattern_compiles() {
        super::compile_all();
    }
}
