//! "质控 ID=…" in WeCom to the reply in WeCom: callback, intent, four skills, ledger, delivery.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use iit_manager::adapters::edc::{Edc, RedcapFiles};
use iit_manager::adapters::wecom::config::WecomConfig;
use tokio::time::Instant;

use crate::Bench;
use crate::fake_wecom::FakeWecom;
use crate::load;
use crate::place;
use crate::program::{self, Running};
use crate::report::{Figure, Target};
use crate::samples::Samples;
use crate::webhook::{Callback, client, listening};

/// Who writes, members of the fake WeCom and of the study: enough of them that nobody is answered more often
/// than a member may be, 30 times a minute.
const SENDERS: [&str; 8] = [
    "ZhangSan", "LiSi", "WangWu", "ZhaoLiu", "SunQi", "ZhouBa", "WuJiu", "ZhengShi",
];
const RATE: f64 = 5.0;

pub async fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let count = bench.amount(50, 5);
    let base = bench.place.database("reply").await?;
    place::demo(&base, &SENDERS).await?;
    let wecom = FakeWecom::start().await;
    for sender in SENDERS {
        wecom.add_member(sender);
    }
    let (command, address) = listening(program::iit(&bench.place, &base, &["all"]), &wecom).await?;
    let all = Running::start(command).await?;
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("demo/study");
    let ids = RedcapFiles::new(folder).record_ids().await?;
    let asked = Asked {
        config: wecom.config(),
        client: client()?,
        address,
        ids,
        wecom: wecom.clone(),
    };
    let asked = Arc::new(asked);

    let mut times = Vec::with_capacity(count);
    for n in 0..count {
        let begin = Instant::now();
        times.push(asked.answered(n, begin).await?);
    }
    let alone = Samples::new(times);
    let together = load::open_loop(&load::poisson(RATE, count), |n, due| {
        let asked = asked.clone();
        async move { asked.answered(count + n, due).await }
    })
    .await?;
    let memory = all.memory_mb("VmHWM")?;
    all.stop().await?;
    let answered = base
        .count("SELECT count(*) FROM iit_inbox i JOIN iit_outbox o ON o.message_id = i.id WHERE i.status = 'answered' AND o.state = 'sent'")
        .await?;
    ensure!(
        usize::try_from(answered)? == 2 * count,
        "only {answered} messages were answered"
    );
    let odd: Vec<String> = sqlx::query_scalar(
        "SELECT concat_ws(' ', kind, state, 'attempt', attempt, last_error) FROM iit_jobs WHERE state <> 'done' OR attempt > 1",
    )
    .fetch_all(&base.database.pool)
    .await?;
    ensure!(
        odd.is_empty(),
        "jobs that were not done in one attempt: {odd:?}"
    );
    base.drop().await?;
    let note = format!(
        "`iit all` on the sample study, from posting the callback to the fake WeCom holding the reply to that subject; \
         4 skills, keyword router, {count} messages; the process peaked at {memory:.0} MB"
    );
    Ok(vec![
        Figure::new("质控 ID=… → reply, one at a time", Target::Below(3000.0), alone.ms(100), "ms max")
            .detail(alone.spread())
            .note(note),
        Figure::new("质控 ID=… → reply, 5/s", Target::Below(3000.0), together.ms(100), "ms max")
            .detail(together.spread())
            .note("Poisson arrivals, eight people writing in turn; one person's messages are answered in order"),
    ])
}

struct Asked {
    config: WecomConfig,
    client: reqwest::Client,
    address: String,
    ids: Vec<String>,
    wecom: FakeWecom,
}

impl Asked {
    /// Asks for the n-th subject and waits for the reply about it; the time counts from `since`.
    async fn answered(&self, n: usize, since: Instant) -> Result<Duration> {
        let id = self
            .ids
            .get(n)
            .context("the sample study has too few subjects")?;
        let from = SENDERS.get(n % SENDERS.len()).copied().unwrap_or_default();
        let text = format!("质控 ID={id}");
        let callback = Callback::seal(&self.config, &self.address, n, from, &text)?;
        callback.post(&self.client).await?;
        let mut seen = 0;
        let about = format!("受试者 {id}");
        loop {
            let messages = self.wecom.wait_for_messages(seen + 1).await;
            let reply = messages
                .iter()
                .skip(seen)
                .find(|m| m.content.starts_with("【质控】") && m.content.contains(&about));
            if let Some(reply) = reply {
                ensure!(
                    reply.to.iter().any(|to| to.eq_ignore_ascii_case(from)),
                    "the reply about {id} went to somebody else"
                );
                return Ok(since.elapsed());
            }
            seen = messages.len();
        }
    }
}
