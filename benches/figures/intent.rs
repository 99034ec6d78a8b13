//! What understanding a message takes beside the model's own time: from the callback's transaction to the
//! settlement that writes the reply, with a model that answers at once.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::Bench;
use crate::fake_llm::FakeLlm;
use crate::fake_wecom::FakeWecom;
use crate::load;
use crate::place;
use crate::program::{self, Running};
use crate::report::{Figure, Target};
use crate::samples::Samples;
use crate::webhook::{Callback, client, listening};

/// Who writes; both are members of the fake WeCom and of the study.
const SENDERS: [&str; 2] = ["ZhangSan", "LiSi"];
const RATE: f64 = 5.0;
/// How long, after the last message, for the last answer.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(100);

pub async fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let count = bench.amount(200, 20);
    let base = bench.place.database("intent").await?;
    place::demo(&base, &SENDERS).await?;
    let model = FakeLlm::start(|_| {
        json!({ "intents": [{
            "type": "OUT_OF_SCOPE", "text": "", "confidence": 0.95, "record_ids": [], "visit": null, "form": null,
            "field": null, "whole_project": false, "write": false, "past": false, "missing_info": null,
            "clarification_question": null,
        }] })
        .to_string()
    })
    .await;
    let wecom = FakeWecom::start().await;
    let mut command = program::iit(&bench.place, &base, &["all"]);
    command.envs(model.variables());
    let (command, address) = listening(command, &wecom).await?;
    let all = Running::start(command).await?;
    let client = client()?;
    load::open_loop(&load::poisson(RATE, count), |n, due| {
        let (wecom, client, address) = (wecom.clone(), client.clone(), address.clone());
        async move {
            let from = SENDERS.get(n % SENDERS.len()).copied().unwrap_or_default();
            let text = format!("第 {n} 次问：周末团建去哪里玩比较好");
            Callback::seal(&wecom.config(), &address, n, from, &text)?
                .post(&client)
                .await?;
            Ok(due.elapsed())
        }
    })
    .await?;
    // Not until they are sent: WeCom takes only so many for one member in a minute.
    let answered = async {
        loop {
            let open = "SELECT count(*) FROM iit_inbox WHERE status <> 'answered'";
            if base.count(open).await? == 0 {
                return anyhow::Ok(());
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    tokio::time::timeout(PATIENCE, answered)
        .await
        .context("the messages were not answered in time")??;
    all.stop().await?;
    let rows: Vec<f64> = sqlx::query_scalar(
        "SELECT EXTRACT(EPOCH FROM i.answered_at - i.created_at)::float8
         FROM iit_inbox i JOIN iit_task_run r ON r.message_id = i.id
         WHERE i.status = 'answered' AND NOT i.degraded AND r.final_state = 'understood'",
    )
    .fetch_all(&base.database.pool)
    .await?;
    ensure!(
        rows.len() == count && model.log().len() == count,
        "of {count} messages {} were understood by the model, with {} questions",
        rows.len(),
        model.log().len()
    );
    base.drop().await?;
    let times = rows
        .into_iter()
        .map(Duration::try_from_secs_f64)
        .collect::<Result<Vec<_>, _>>()
        .context("a message was answered before it came")?;
    let times = Samples::new(times);
    Ok(vec![
        Figure::new(
            "message → understood, model of zero latency",
            Target::Below(20.0),
            times.ms(95),
            "ms p95",
        )
        .detail(times.spread())
        .note(format!(
            "`iit all`, {count} messages at {RATE}/s by two people, Poisson arrivals: stored, job claimed, context read, question \
             journaled, asked over loopback HTTP, answer journaled, checked, run and reply settled"
        )),
    ])
}
