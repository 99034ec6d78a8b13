//! Telling people of a study something they did not ask for.

use std::collections::HashSet;

use super::{reply, services::Services};
use crate::{
    queue::{JobError, Settlement},
    store::{
        inbox::Channel,
        outbox::{self, NewOutbound},
    },
    types::project::{ProjectFile, Role},
};

/// Puts a notice into the outbox of everybody it is for and who did not get the very same this week.
/// Nobody named: the study's coordinators.
///
/// # Errors
/// The database failed.
pub async fn tell(
    services: &Services,
    settlement: &mut Settlement,
    file: &ProjectFile,
    to: &[String],
    text: &str,
) -> Result<(), JobError> {
    for recipient in recipients(file, to) {
        // The same notice every night is read by nobody.
        let told = outbox::told_lately(settlement.conn(), &file.id, &recipient, text).await?;
        if told {
            continue;
        }
        let outbound = NewOutbound {
            message: None,
            project: Some(&file.id),
            channel: Channel::Wecom,
            recipient: &recipient,
            text,
            chips: &[],
            degraded: false,
            parts: &[],
        };
        reply::send(services, settlement, &outbound).await?;
    }
    Ok(())
}

/// Who `names` are: groups of the project file become their members; nobody named means the study's
/// coordinators, or, where it has none, its data managers and then its investigators.
#[must_use]
pub fn recipients(file: &ProjectFile, names: &[String]) -> Vec<String> {
    let mut people: Vec<String> = Vec::new();
    for name in names {
        match file.groups.get(name) {
            Some(group) => people.extend(group.iter().cloned()),
            None => people.push(name.clone()),
        }
    }
    if names.is_empty() {
        let of = |role: Role| {
            file.members
                .iter()
                .filter(move |member| member.role == role)
                .map(|member| member.wecom_user.clone())
        };
        for role in [Role::Crc, Role::Dm, Role::Pi, Role::Admin] {
            people.extend(of(role));
            if !people.is_empty() {
                break;
            }
        }
    }
    let mut seen = HashSet::new();
    people.retain(|person| seen.insert(person.to_lowercase()));
    people
}
