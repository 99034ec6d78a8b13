//! From finished work to the message that leaves: parts are filled in, and the settlement that fills in
//! the last one writes the reply and its `deliver` job.

use super::{
    answer::{DETAILED_RECORDS, Outcome, qc_answer},
    services::Services,
};
use crate::{
    adapters::wecom::{
        card,
        split::{MAX_TEXT_BYTES, split_text},
    },
    engines::router::texts,
    jobs::{cron_skill, deliver::Deliver},
    queue::{JobError, NewJob, Settlement},
    store::{
        batches, conversations,
        inbox::{self, Channel, Message},
        ledger,
        outbox::{self, NewOutbound},
        outbox_parts, projects,
        replies::{self, Chip},
        results,
    },
    types::ids::{BatchId, MessageId, OutboxId},
};

/// Ends a batch that is complete: the part of the reply that waited for it is written; where nobody
/// waits, because a schedule started it, people are told if it went wrong.
///
/// # Errors
/// The database failed.
pub async fn finish_batch(
    services: &Services,
    settlement: &mut Settlement,
    id: BatchId,
) -> Result<(), JobError> {
    let Some(batch) = batches::get(settlement.conn(), id).await? else {
        return Ok(());
    };
    let Some((message, part)) = batch.reply_to else {
        return cron_skill::batch_ended(services, settlement, &batch).await;
    };
    let outcome = if batch.total <= DETAILED_RECORDS {
        let runs = results::runs(settlement.conn(), id).await?;
        let records: Vec<String> = runs.iter().map(|run| run.record.clone()).collect();
        let dismissed = ledger::dismissed(settlement.conn(), &batch.project, &records).await?;
        Outcome::Detailed(runs, dismissed.into_iter().collect())
    } else {
        Outcome::Counted(results::tally(settlement.conn(), id).await?)
    };
    let study = projects::get(settlement.conn(), &batch.project)
        .await?
        .map_or_else(|| batch.project.clone(), |project| project.file.name);
    let text = qc_answer(&study, &batch, &outcome);
    replies::fill(settlement.conn(), message, part, &text, &[]).await?;
    send_if_complete(services, settlement, message).await
}

/// Writes the reply to `message` when none of its parts is missing any more.
///
/// # Errors
/// The database failed.
pub async fn send_if_complete(
    services: &Services,
    settlement: &mut Settlement,
    message: MessageId,
) -> Result<(), JobError> {
    let parts = replies::locked(settlement.conn(), message).await?;
    let texts: Option<Vec<&str>> = parts.iter().map(|part| part.text.as_deref()).collect();
    let Some(texts) = texts.filter(|texts| !texts.is_empty()) else {
        return Ok(());
    };
    let Some(message) = inbox::get(settlement.conn(), message).await? else {
        return Ok(());
    };
    if matches!(message.status.as_str(), "answered" | "failed") {
        return Ok(());
    }
    let text = match texts.as_slice() {
        [only] => (*only).to_owned(),
        many => many
            .iter()
            .enumerate()
            .map(|(no, text)| format!("{}）{text}", no + 1))
            .collect::<Vec<_>>()
            .join("\n\n"),
    };
    let chips: Vec<Chip> = parts.iter().flat_map(|part| part.chips.clone()).collect();
    reply(services, settlement, &message, &text, &chips, "answered").await
}

/// Writes one reply and ends the message as `status`.
///
/// # Errors
/// The database failed.
pub async fn reply(
    services: &Services,
    settlement: &mut Settlement,
    message: &Message,
    text: &str,
    chips: &[Chip],
    status: &str,
) -> Result<(), JobError> {
    send(
        services,
        settlement,
        &NewOutbound {
            message: Some(message.id),
            project: message.project.as_deref(),
            channel: message.channel,
            recipient: &message.sender,
            text,
            chips,
            degraded: message.degraded,
            parts: &[],
        },
    )
    .await?;
    if let Some(project) = &message.project {
        conversations::log(
            settlement.conn(),
            project,
            &message.sender,
            "assistant",
            text,
            Some(message.id),
        )
        .await?;
    }
    inbox::finish(settlement.conn(), message.id, status).await?;
    Ok(())
}

/// Writes an outbound message; for WeCom split into what it takes, with its `deliver` job. Choices stand
/// as numbers under the text, and once more as a card when they fit on one.
///
/// # Errors
/// The database failed.
pub async fn send(
    services: &Services,
    settlement: &mut Settlement,
    outbound: &NewOutbound<'_>,
) -> Result<OutboxId, JobError> {
    let note = if outbound.degraded {
        format!("\n{}", texts::degraded_note())
    } else {
        String::new()
    };
    let parts = match outbound.channel {
        Channel::Rest => Vec::new(),
        Channel::Wecom => split_text(
            &(with_numbers(outbound.text, outbound.chips) + &note),
            MAX_TEXT_BYTES,
        ),
    };
    let text = outbound.text.to_owned() + &note;
    let id = outbox::add(
        settlement.conn(),
        &NewOutbound {
            text: &text,
            parts: &parts,
            ..outbound.clone()
        },
    )
    .await?;
    if parts.is_empty() {
        return Ok(id);
    }
    let labels: Vec<&str> = outbound.chips.iter().map(|c| c.label.as_str()).collect();
    if card::buttons(&labels).is_some() {
        // Whether cards are wanted knows the process that sends.
        outbox_parts::add_card(settlement.conn(), id).await?;
    }
    // Only the demo may know that nobody will deliver: elsewhere another process may have WeCom's keys.
    if services.wecom.is_none() && services.conversation.open_project.is_some() {
        let why = "示例中未配置企业微信，未发送 (WeCom is not configured in the demo)";
        outbox::conclude(settlement.conn(), id, Some(why)).await?;
        return Ok(id);
    }
    let job = Deliver {
        outbox: id,
        to: outbound.recipient.to_lowercase(),
    };
    settlement.enqueue(NewJob::of(&job)?).await?;
    Ok(id)
}

/// Choices as people can answer them where there are no buttons: by number.
fn with_numbers(text: &str, chips: &[Chip]) -> String {
    let mut text = text.to_owned();
    for (no, chip) in chips.iter().enumerate() {
        text.push_str(&format!("\n{}. {}", no + 1, chip.label));
    }
    if !chips.is_empty() {
        text.push_str("\n（回复数字即可）");
    }
    text
}
