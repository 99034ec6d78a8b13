//! What a skill's tools proposed, written in the settlement of the step that called them: once, or not at all.

use super::{notice, services::Services};
use crate::{
    queue::{JobError, Settlement},
    store::ledger::{self, DecideError, Decision, Found},
    tools::Proposal,
    types::{finding::Finding, ids::RunId, project::ProjectFile},
};

/// Writes `proposals` of a tool call in `run` of the skill. What a person settled meanwhile stays as it is.
///
/// # Errors
/// The database failed.
pub async fn write(
    services: &Services,
    settlement: &mut Settlement,
    file: &ProjectFile,
    run: RunId,
    skill_type: &str,
    proposals: &[Proposal],
) -> Result<(), JobError> {
    let raised: Vec<&Finding> = proposals
        .iter()
        .filter_map(|proposal| match proposal {
            Proposal::Raise(finding) => Some(finding),
            _ => None,
        })
        .collect();
    if !raised.is_empty() {
        let records: Vec<String> = raised
            .iter()
            .map(|finding| finding.record.clone())
            .collect();
        ledger::lock_records(settlement.conn(), &file.id, &records).await?;
        let found: Vec<Found<'_>> = raised
            .into_iter()
            .map(|finding| Found {
                run,
                skill_type,
                finding,
                waits: false,
            })
            .collect();
        ledger::record(settlement.conn(), &file.id, &found).await?;
    }
    for proposal in proposals {
        match proposal {
            Proposal::Raise(_) => {}
            Proposal::Answer { id, text } => {
                let conn = settlement.conn();
                match ledger::decide(conn, *id, Decision::Answer, "system:sop", text).await {
                    Ok(_) | Err(DecideError::Stale { .. } | DecideError::NotFound(_)) => {}
                    Err(error) => return Err(JobError::retry(error)),
                }
            }
            Proposal::Close { id, reason } => {
                ledger::suggest_close(settlement.conn(), &file.id, *id, run, reason).await?;
            }
            Proposal::Notify { to, text } => {
                notice::tell(services, settlement, file, to, text).await?;
            }
        }
    }
    Ok(())
}
