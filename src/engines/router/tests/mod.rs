//! The router's promises, over whole messages.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed expectation is the test's verdict"
)]

mod any_message;
mod commands;
mod memory;
mod messages;

use super::{keyword::route, *};

fn one(text: &str) -> Intent {
    with(text, &Conversation::default())
}

fn with(text: &str, conversation: &Conversation<'_>) -> Intent {
    let routing = route(text, conversation);
    assert!(routing.degraded);
    assert_eq!(routing.intents.len(), 1, "{text}: {:?}", routing.intents);
    routing.intents.into_iter().next().unwrap()
}

fn kinds(text: &str) -> Vec<IntentKind> {
    route(text, &Conversation::default())
        .intents
        .iter()
        .map(|intent| intent.kind)
        .collect()
}

fn about(patient: &str) -> Conversation<'_> {
    Conversation {
        memory: Memory {
            last_patient: Some(patient),
            last_patient_at: None,
            fresh: true,
        },
        ..Conversation::default()
    }
}

fn long_ago_about(patient: &str) -> Conversation<'_> {
    let mut conversation = about(patient);
    conversation.memory.fresh = false;
    conversation
}
