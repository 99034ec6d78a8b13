//! Requests that say their kind in so many words: what a button stands for, and what anybody may type.
//! `查数据：…`, `问方案：…`, and the yes to a proposal.

use super::{
    Consent, Conversation, Intent, IntentKind,
    cues::Cue,
    message::{Message, patterns},
    parts::parts,
    resolve::{self, Draft},
    subject::{Subject, subject_of},
    texts,
};

patterns! {
    PREFIX = r"^\s*(?:(?P<check>确认启动质控)\s*:?|(?P<change>确认启动修改)\s*:|(?P<data>查数据)\s*:|(?P<protocol>问方案)\s*:|(?P<report>看报告)\s*:|(?P<feedback>提意见)\s*:)\s*";
}

/// The request of a message that names its own kind; `None` for any other message.
pub(super) fn read(message: &Message, conversation: &Conversation<'_>) -> Option<Intent> {
    let prefix = PREFIX.captures(message.plain())?;
    let whole = prefix.get(0)?;
    let (kind, write, consent) = [
        ("check", IntentKind::QcTask, false, Consent::Given),
        ("change", IntentKind::QcTask, true, Consent::Given),
        ("data", IntentKind::QaQuery, false, Consent::NotNeeded),
        (
            "protocol",
            IntentKind::ProtocolQa,
            false,
            Consent::NotNeeded,
        ),
        ("report", IntentKind::Report, false, Consent::NotNeeded),
        ("feedback", IntentKind::Feedback, false, Consent::NotNeeded),
    ]
    .into_iter()
    .find(|(name, ..)| prefix.name(name).is_some())
    .map(|(_, kind, write, consent)| (kind, write, consent))?;
    let end = message.plain().len();
    let (mut subject, mut so_far, mut all) = (Subject::default(), Subject::default(), false);
    for part in parts(message) {
        if part.end <= whole.end() {
            continue;
        }
        let taken_back = matches!(part.cue, Cue::Negated | Cue::Cancel | Cue::Excluded);
        if consent == Consent::Given && (taken_back || part.forbids || part.asked) {
            // 确认启动质控 P001，算了 is no yes.
            return None;
        }
        all |= part.whole;
        subject.join(subject_of(&part, &mut so_far, &conversation.memory));
        if kind != IntentKind::QcTask || write {
            subject.add(&part.without);
        }
    }
    let draft = Draft {
        kind,
        write,
        confidence: 1.0,
        start: whole.end(),
        end,
        subject,
        whole: all && kind == IntentKind::QcTask,
        remark: false,
    };
    let mut intent = resolve::finish(&draft, message, conversation, &[]);
    if intent.clarification.is_none() {
        intent.consent = consent;
    }
    Some(intent)
}

/// The message that says yes to a check of these records.
#[must_use]
pub fn confirmed_check(ids: &[String], kind_of_check: Option<&str>) -> String {
    let whom = if ids.is_empty() {
        texts::WHOLE_PROJECT.to_owned()
    } else {
        let names: Vec<String> = ids.iter().map(|id| resolve::named(id)).collect();
        names.join("、")
    };
    match kind_of_check {
        Some(kind) => format!("确认启动质控 {whom} 的{kind}"),
        None => format!("确认启动质控 {whom}"),
    }
}

/// The message that says yes to leading this wish to the SOP that changes data.
#[must_use]
pub fn confirmed_change(wish: &str) -> String {
    format!("确认启动修改：{wish}")
}

/// The message that says what kind of request `text` is; `None` where no such form exists.
pub(super) fn of_kind(kind: IntentKind, text: &str) -> Option<(&'static str, String)> {
    let (label, prefix) = match kind {
        IntentKind::QaQuery => ("查数据", "查数据"),
        IntentKind::ProtocolQa => ("问方案", "问方案"),
        IntentKind::Report => ("看报告", "看报告"),
        IntentKind::Feedback => ("提意见", "提意见"),
        _ => return None,
    };
    Some((label, format!("{prefix}：{text}")))
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::expect_used,
        reason = "a failed expectation is the test's verdict"
    )]
    use super::*;

    fn one(text: &str) -> Option<Intent> {
        read(&Message::new(text), &Conversation::default())
    }

    #[test]
    fn every_pattern_compiles() {
        compile_all();
    }

    #[test]
    fn a_yes_to_a_check_names_exactly_its_records() {
        for ids in [
            vec!["P001"],
            vec!["P001", "01-701-1015", "12"],
            vec!["甲001", "P-7"],
        ] {
            let ids: Vec<String> = ids.into_iter().map(str::to_owned).collect();
            for kind in [None, Some("入排"), Some("AE")] {
                let intent = one(&confirmed_check(&ids, kind)).unwrap();
                assert_eq!(intent.kind, IntentKind::QcTask);
                assert_eq!(intent.entities.record_ids, ids, "{kind:?}");
                assert_eq!(intent.consent, Consent::Given);
                assert!(!intent.entities.whole_project);
            }
        }
        let all = one(&confirmed_check(&[], Some("入排"))).unwrap();
        assert!(all.entities.whole_project);
        assert_eq!(all.consent, Consent::Given);
    }

    #[test]
    fn a_yes_to_a_change_keeps_the_wish() {
        let intent = one(&confirmed_change("把P001的年龄改成45")).unwrap();
        assert!(intent.wishes_write);
        assert_eq!(intent.consent, Consent::Given);
        assert_eq!(intent.entities.record_ids, ["P001"]);
        assert_eq!(intent.text, "把P001的年龄改成45");
        assert_eq!(intent.entities.field.as_deref(), Some("年龄"));
    }

    #[test]
    fn a_kind_that_is_named_is_the_kind_whatever_else_the_words_say() {
        let (_, text) = of_kind(IntentKind::QaQuery, "质控P001").unwrap();
        let intent = one(&text).unwrap();
        assert_eq!(intent.kind, IntentKind::QaQuery);
        assert_eq!(intent.entities.record_ids, ["P001"]);
        for text in [
            "查数据",
            "质控P001",
            "确认启动质控 P001，算了不用了",
            "确认启动质控 P001吗？",
            "不要确认启动质控 P001",
        ] {
            assert!(one(text).is_none(), "{text}");
        }
        assert_eq!(one("确认启动质控").unwrap().kind, IntentKind::Unclear);
    }
}
