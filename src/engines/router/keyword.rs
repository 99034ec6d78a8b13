//! The router that needs no model: clause by clause, by the words of the field.

use super::{
    Conversation, Intent, IntentKind, Routing, answer,
    answer::Answer,
    cues, explicit,
    fold::Folding,
    message::Message,
    parts::parts,
    resolve,
    resolve::{Draft, ask_what, choice},
    subject::Subject,
    texts,
};

/// Decides what a message wants, by keywords. Never fails, never panics, always at least one intent.
#[must_use]
pub fn route(text: &str, conversation: &Conversation<'_>) -> Routing {
    let intents = route_message(&Message::new(text), conversation);
    Routing {
        intents,
        degraded: true,
    }
}

/// The patient the history named last, when the turn that did named just one: what a memory that was
/// kept along with it would hold.
#[must_use]
pub fn last_patient(conversation: &Conversation<'_>) -> Option<String> {
    resolve::last_patient(conversation)
}

pub(super) fn route_message(message: &Message, conversation: &Conversation<'_>) -> Vec<Intent> {
    if message.is_too_long() {
        return vec![ask_what(message, texts::too_long(), Vec::new(), Vec::new())];
    }
    if let Some(pending) = conversation.pending {
        let answered = Conversation {
            pending: None,
            ..*conversation
        };
        match answer::read(message, pending) {
            Answer::Means(text) => return route_message(&Message::new(&text), &answered),
            Answer::OtherPatient => {
                let resume = pending.resume.as_deref().unwrap_or(super::PATIENT_SLOT);
                return vec![resolve::ask_for_id(message, resume)];
            }
            Answer::NoSuchChoice => {
                let question = texts::no_such_choice(&pending.question, pending.choices.len());
                let mut again = ask_what(message, question, pending.choices.clone(), Vec::new());
                if let Some(clarification) = &mut again.clarification {
                    clarification.resume.clone_from(&pending.resume);
                }
                return vec![again];
            }
            Answer::MessageOfItsOwn => {}
        }
    }
    if let Some(intent) = explicit::read(message, conversation) {
        return vec![intent];
    }
    let plain = message.plain();
    if cues::is_injection(plain) {
        return vec![plain_intent(message, IntentKind::OutOfScope, 0.9)];
    }
    let mut folding = Folding::new(message, conversation);
    for part in parts(message) {
        folding.take(part);
    }
    let intents = folding.finish();
    if intents.is_empty() {
        vec![ask_what(
            message,
            texts::what_do_you_need(),
            vec![choice(texts::HELP_CHIP, "帮助")],
            Vec::new(),
        )]
    } else {
        intents
    }
}

/// An intent for the whole message that is about nobody.
pub(super) fn plain_intent(message: &Message, kind: IntentKind, confidence: f64) -> Intent {
    let end = message.plain().len();
    let draft = Draft {
        kind,
        write: false,
        confidence,
        start: 0,
        end,
        subject: Subject::default(),
        whole: false,
        remark: false,
    };
    resolve::finish(&draft, message, &Conversation::default(), &[])
}
