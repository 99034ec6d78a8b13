//! What a conversation must be like to be sent: servers refuse it otherwise, or answer something else than
//! what was asked. A fault here is ours, not the server's.

use std::collections::HashSet;

use super::{
    profile::Profile,
    request::{ChatRequest, Message, Role, ToolCall},
};

/// Checks that `request` can be sent to a server of this profile.
///
/// # Errors
/// What is wrong with it, without a word of what it says.
pub(super) fn check(request: &ChatRequest, profile: &Profile) -> Result<(), String> {
    if !request.messages.iter().any(|m| m.role == Role::User) {
        return Err("nothing is asked".to_owned());
    }
    if request.max_tokens == 0 {
        return Err("no token is left for the answer".to_owned());
    }
    if !profile.tools && !request.tools.is_empty() {
        return Err(format!(
            "a server of the profile `{}` knows no tools (LLM_PROFILE)",
            profile.name
        ));
    }
    let mut rest = request.messages.as_slice();
    while let [message, after @ ..] = rest {
        let at = request.messages.len() - rest.len() + 1;
        check_alone(message, profile).map_err(|why| format!("message {at} {why}"))?;
        let answered =
            answers(&message.tool_calls, after).map_err(|why| format!("message {at} {why}"))?;
        rest = after.get(answered..).unwrap_or_default();
    }
    Ok(())
}

/// What can be said of a message without its neighbours. Tools' messages are taken in with the calls they
/// answer, so one that is met here answers none.
fn check_alone(message: &Message, profile: &Profile) -> Result<(), String> {
    let blank = message.content.trim().is_empty();
    match message.role {
        Role::Tool => return Err("is a tool's and follows no call".to_owned()),
        Role::Assistant if blank && message.tool_calls.is_empty() => {
            return Err("is an assistant's that says and calls nothing".to_owned());
        }
        Role::User if blank && message.images.is_empty() => {
            return Err("is a person's that says nothing".to_owned());
        }
        _ => {}
    }
    if message.role != Role::Assistant && !message.tool_calls.is_empty() {
        return Err("calls tools and is no assistant's".to_owned());
    }
    if message.images.is_empty() {
        return Ok(());
    }
    if message.role != Role::User {
        return Err("has a picture and is no person's".to_owned());
    }
    if !profile.images {
        return Err(format!(
            "has a picture, which a server of the profile `{}` does not read (LLM_PROFILE)",
            profile.name
        ));
    }
    Ok(())
}

/// How many messages of `after` answer `calls`: each exactly once, in any order, and nothing in between.
fn answers(calls: &[ToolCall], after: &[Message]) -> Result<usize, String> {
    let mut open = HashSet::new();
    for call in calls {
        if call.id.trim().is_empty() || call.name.trim().is_empty() {
            return Err("has a call without an id or a name".to_owned());
        }
        if !open.insert(call.id.as_str()) {
            return Err("has two calls of one id".to_owned());
        }
    }
    for message in after.iter().take(calls.len()) {
        let id = match &message.answers {
            Some(id) if message.role == Role::Tool => id.as_str(),
            _ => return Err("has a call that is not answered right after it".to_owned()),
        };
        if !open.remove(id) {
            return Err(
                "is followed by an answer to no call of its own, or by a second one".to_owned(),
            );
        }
    }
    match open.is_empty() {
        true => Ok(calls.len()),
        false => Err("has a call that is not answered right after it".to_owned()),
    }
}
