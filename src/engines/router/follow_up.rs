//! `P002呢`: a message that only names somebody asks what was asked before, about them.

use super::{
    Conversation, HISTORY_TURNS, Intent, IntentKind, Speaker, cues,
    cues::Cue,
    fold::Folding,
    message::Message,
    parts::parts,
    resolve,
    resolve::{Draft, ask_what, choice},
    subject::Subject,
    texts,
};

/// `P002呢`: the same as was asked last, about somebody else.
pub(super) fn follow_up(
    message: &Message,
    conversation: &Conversation<'_>,
    subject: &Subject,
    without: &[String],
) -> Intent {
    let mut draft = Draft {
        kind: IntentKind::QaQuery,
        write: false,
        confidence: 0.7,
        start: 0,
        end: message.plain().len(),
        subject: subject.clone(),
        whole: false,
        remark: false,
    };
    if subject.unresolved.is_some() || subject.trouble.is_some() {
        return resolve::finish(&draft, message, conversation, without);
    }
    let earlier = conversation
        .history
        .iter()
        .rev()
        .filter(|turn| turn.role == Speaker::User)
        .take(HISTORY_TURNS)
        .find_map(|turn| asked_before(&turn.text));
    // What was asked long ago is not asked again.
    if let Some(before) = earlier
        && (conversation.memory.fresh || before.kind != IntentKind::QcTask)
    {
        draft.kind = before.kind;
        let mut intent = resolve::finish(&draft, message, conversation, without);
        let entities = &mut intent.entities;
        entities.visit = entities.visit.take().or(before.entities.visit);
        entities.form = entities.form.take().or(before.entities.form);
        entities.field = entities.field.take().or(before.entities.field);
        intent.about_past |= before.about_past;
        return intent;
    }
    let ids = subject.ids.clone();
    let choices = ids
        .first()
        .map(|id| {
            vec![
                choice(format!("质控 {id}"), format!("质控 {id}")),
                choice(format!("{id} 的总体情况"), format!("{id}的情况怎么样")),
            ]
        })
        .unwrap_or_default();
    ask_what(message, texts::what_about(&ids), choices, ids)
}

/// A check or a question an earlier turn asked for; `None` when that turn was itself a follow-up.
fn asked_before(text: &str) -> Option<Intent> {
    let message = Message::new(text);
    if message.is_too_long() || cues::is_injection(message.plain()) {
        return None;
    }
    let parts = parts(&message);
    let asks = parts
        .iter()
        .any(|part| !matches!(part.cue, Cue::Silent | Cue::Unknown));
    if !asks {
        return None;
    }
    let nobody = Conversation::default();
    let mut folding = Folding::new(&message, &nobody);
    for part in parts {
        folding.take(part);
    }
    folding.drop_remarks();
    let draft = folding.drafts.into_iter().next_back()?;
    let usable = matches!(draft.kind, IntentKind::QcTask | IntentKind::QaQuery) && !draft.write;
    usable.then(|| Intent {
        kind: draft.kind,
        ..resolve::finish(&draft, &message, &nobody, &[])
    })
}
