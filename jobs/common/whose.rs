//! Whose study a message is about. A member of one study means that one; a member of several is asked
//! once, and switches by writing another's id or name; a member of none is told nothing.

use sqlx::PgConnection;

use super::{click, services::Services};
use crate::{
    queue::JobError,
    store::{
        conversations,
        inbox::{self, Message},
        projects,
    },
};

/// Whose study a message is about.
pub enum Whose {
    /// This one.
    Project {
        /// Its id.
        id: String,
        /// What is to be understood: the message, or the one that made us ask.
        text: String,
        /// The sender has several studies and this is the one chosen: to be remembered.
        chosen: bool,
    },
    /// The sender just named the study to talk about, and nothing else: (id, name).
    Switched(String, String),
    /// The sender is a member of none.
    Nobody,
    /// The sender has several: (id, name).
    Ask(Vec<(String, String)>),
}

/// Finds out.
///
/// # Errors
/// The database failed.
pub async fn whose_study(
    services: &Services,
    conn: &mut PgConnection,
    message: &Message,
) -> Result<Whose, JobError> {
    let this = |id: String, chosen: bool| Whose::Project {
        id,
        text: message.text.clone(),
        chosen,
    };
    if let Some(project) = message
        .project
        .clone()
        .or_else(|| services.conversation.open_project.clone())
    {
        return Ok(this(project, false));
    }
    let mut memberships = projects::of_member(conn, &message.sender).await?;
    if memberships.len() <= 1 {
        return Ok(memberships
            .pop()
            .map_or(Whose::Nobody, |(project, _)| this(project, false)));
    }
    let (chosen, waiting) = conversations::chosen_project(conn, &message.sender).await?;
    // A click names its study by the id, which may itself be a number.
    let by_number = waiting.is_some() && message.kind != click::CLICK;
    let named = named(&message.text, &memberships, by_number);
    if let Some((id, name)) = named {
        let first = match waiting {
            Some(waiting) => inbox::get(conn, waiting).await?,
            None => None,
        };
        return Ok(match first {
            Some(first) => Whose::Project {
                id,
                text: first.text,
                chosen: true,
            },
            None => Whose::Switched(id, name),
        });
    }
    match chosen {
        Some(id) if memberships.iter().any(|(member_of, _)| *member_of == id) => Ok(this(id, true)),
        _ => Ok(Whose::Ask(memberships)),
    }
}

/// The study a text is the id or name of; while we wait for a typed answer, also its number in the list.
fn named(
    text: &str,
    memberships: &[(String, String)],
    by_number: bool,
) -> Option<(String, String)> {
    let text = text.trim();
    memberships
        .iter()
        .enumerate()
        .find(|(no, (id, name))| {
            text.eq_ignore_ascii_case(id)
                || text == name
                || (by_number && text == (no + 1).to_string())
        })
        .map(|(_, membership)| membership.clone())
}
